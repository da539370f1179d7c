"""Child-side launcher: binds a program's life to its parent's and drops root, then becomes it.

Run as a file by ``python -I -S launch.py SIGNAL PARENT UID GID -- PROGRAM ARGUMENT…`` and therefore free of
imports from the project. It takes the place of ``preexec_fn``, which is unsafe once the parent has threads.

SIGNAL is sent to the program by the kernel when its parent dies, however it dies (Linux; ignored elsewhere).
PARENT is the expected parent's pid: a parent that died before the signal was armed would never trigger it.
UID and GID are the account to become, or -1 to stay.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
PARENT_ALREADY_GONE = 71


def main(arguments: list[str]) -> None:
    """Drop privileges, arm the death signal and replace this process by the program."""
    death_signal, parent, uid, gid = (int(value) for value in arguments[:4])
    program = arguments[5:]
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":  # after setuid: the kernel forgets the signal when credentials change
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(PARENT_ALREADY_GONE)
    os.execv(program[0], program)  # noqa: S606 - a launcher that starts no shell is the point


if __name__ == "__main__":
    main(sys.argv[1:])
