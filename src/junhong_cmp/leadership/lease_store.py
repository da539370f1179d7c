"""The lease's scripts, one method each."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from redis.exceptions import ResponseError

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.scripting import LuaScript, ScriptArg
from junhong_cmp.leadership import keys
from junhong_cmp.leadership.candidate import Candidate
from junhong_cmp.leadership.lease import Elected, LeadershipView, LeaseRecord
from junhong_cmp.leadership.times import LeaseTimes

_ALLOW_OOM: Final = "#!lua flags=allow-oom\n"
_COMPILE_ERROR: Final = "ompiling script"


class LeaseStore:
    """A lease store takes, renews, gives up and reads the lease on one server.

    Its scripts run even when the server is out of memory: a leader that cannot renew would be replaced by
    one that cannot do better. A server before Redis 7 knows no such flag and runs them without it.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis
        self._acquire = _LeaseScript("acquire")
        self._renew = _LeaseScript("renew")
        self._release = _LeaseScript("release")
        self._read = _LeaseScript("read")

    async def acquire(
        self, candidate: Candidate, times: LeaseTimes, *, observed: str = "", floor: int = 0
    ) -> Elected | LeaseRecord:
        """Take the lease, or return whose it is and stand by for it.

        ``observed`` is the :attr:`LeaseRecord.state` that stood unchanged for a whole ttl; ``floor`` an epoch
        the new one must exceed.
        """
        reply = await self._acquire.run(
            self._redis,
            [keys.lease(), keys.standbys()],
            [
                candidate.holder,
                candidate.name,
                candidate.host,
                candidate.pid,
                _ms(times.ttl),
                observed,
                floor,
                candidate.encode(),
                _ms(times.shown),
            ],
        )
        if reply[0] == b"ELECTED":
            return Elected(int(reply[1]), timedelta(milliseconds=int(reply[2])) if reply[2] else None)
        return LeaseRecord.parse(reply[1], reply[2:])

    async def renew(self, holder: str, epoch: int, ttl: timedelta) -> LeaseRecord | None:
        """Renew the lease; return None, or what is there instead of it."""
        reply = await self._renew.run(self._redis, [keys.lease()], [holder, epoch, _ms(ttl)])
        return None if reply[0] == b"RENEWED" else LeaseRecord.parse(reply[1], reply[2:])

    async def release(self, holder: str, epoch: int) -> bool:
        """Give the lease up; tell whether it was still the caller's."""
        return bool(await self._release.run(self._redis, [keys.lease()], [holder, epoch]))

    async def withdraw(self, candidate: Candidate) -> None:
        """Stand by no more."""
        await self._redis.execute_command("ZREM", keys.standbys(), candidate.encode())

    async def read(self) -> LeadershipView:
        """Return who leads and who waits."""
        now, lease, standbys = await self._read.run(self._redis, [keys.lease(), keys.standbys()])
        candidates = [Candidate.decode(text) for text in standbys]
        return LeadershipView(
            LeaseRecord.parse(now, lease), tuple(found for found in candidates if found is not None)
        )


class _LeaseScript:
    """A lease script runs with the flag ``allow-oom`` where the server understands it."""

    def __init__(self, name: str) -> None:
        self._plain = LuaScript.load(__package__ or "", "_lease", name)
        self._chosen = LuaScript(_ALLOW_OOM + self._plain.source)

    async def run(self, redis: RedisClient, names: Sequence[str], args: Sequence[ScriptArg] = ()) -> Any:
        try:
            return await self._chosen.run(redis, names, args)
        except ResponseError as error:
            if self._chosen is self._plain or _COMPILE_ERROR not in str(error):
                raise
        self._chosen = self._plain
        return await self._chosen.run(redis, names, args)


def _ms(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)
