"""Child-side launcher: binds a program's life to its parent's and drops root, then becomes it.

Run as a file by ``python -I -S launch.py SIGNAL PARENT UID GID ALIAS -- PROGRAM ARGUMENT…`` and therefore
free of imports from the project. It takes the place of ``preexec_fn``, unsafe once the parent has threads.

SIGNAL is sent to the program by the kernel when its parent dies, however it dies (Linux; ignored elsewhere).
PARENT is the expected parent's pid: a parent that died before the signal was armed would never trigger it.
UID and GID are the account to become, or -1 to stay. ALIAS is the uid the program shall take itself for, or
-1: ``initdb`` looks its user's name up, and in containers we often run under a number that has none.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
CLONE_NEWUSER = 0x10000000
PARENT_ALREADY_GONE = 71
NAMESPACE_REFUSED = 72


def main(arguments: list[str]) -> None:
    """Heed signals again, drop privileges, arm the death signal and replace this process by the program."""
    heed_signals()
    death_signal, parent, uid, gid, alias = (int(value) for value in arguments[:5])
    program = arguments[6:]
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if alias >= 0:
        appear_as(alias)
    if sys.platform == "linux":  # after setuid: the kernel forgets the signal when credentials change
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(PARENT_ALREADY_GONE)
    os.execv(program[0], program)  # noqa: S606 - a launcher that starts no shell is the point


def heed_signals() -> None:
    """Undo what is inherited: a shell ignores SIGINT for what it runs with ``&``, and Python SIGPIPE."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def appear_as(alias: int) -> None:
    """Enter a user namespace in which our uid and gid are ``alias``; files stay our own outside of it."""
    uid, gid = os.geteuid(), os.getegid()
    lines = {"setgroups": "deny", "uid_map": f"{alias} {uid} 1", "gid_map": f"{alias} {gid} 1"}
    try:
        libc = ctypes.CDLL(None)
        if libc.unshare(CLONE_NEWUSER) != 0:
            raise SystemExit(NAMESPACE_REFUSED)
        libc.prctl(
            PR_SET_DUMPABLE, 1, 0, 0, 0
        )  # lost with root; without it the maps below are not ours to write
        for name, line in lines.items():
            file = os.open(
                f"/proc/self/{name}", os.O_WRONLY
            )  # not open(): its codecs may be closed to us by now
            os.write(file, line.encode())
            os.close(file)
    except (OSError, AttributeError):  # forbidden by the machine, or no Linux at all
        raise SystemExit(NAMESPACE_REFUSED) from None


if __name__ == "__main__":
    main(sys.argv[1:])
