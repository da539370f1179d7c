"""Lua scripts: read from ``.lua`` files, called by digest, sent in full only to a server that lacks them."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any

from redis.exceptions import NoScriptError

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.script_client import ScriptClient

ScriptKey = str | bytes
ScriptArg = str | bytes | int | float
ScriptCall = tuple[Sequence[ScriptKey], Sequence[ScriptArg]]


class LuaScript:
    """A Lua script runs atomically on the server; all keys of one call lie in one slot."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.sha1 = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()

    @classmethod
    def load(cls, package: str, *names: str) -> "LuaScript":
        """Read ``scripts/<name>.lua`` of ``package``; several names are joined, shared functions first."""
        folder = files(package) / "scripts"
        return cls("\n".join((folder / f"{name}.lua").read_text(encoding="utf-8") for name in names))

    async def run(self, redis: RedisClient, keys: Sequence[ScriptKey], args: Sequence[ScriptArg] = ()) -> Any:
        """Run the script and return its reply; it is sent in full if the server lost it."""
        try:
            return await redis.execute_command("EVALSHA", self.sha1, len(keys), *keys, *args)
        except NoScriptError:
            # The server answered before running anything, so this cannot run the script twice.
            return await redis.execute_command("EVAL", self.source, len(keys), *keys, *args)

    async def run_awake(
        self, redis: RedisClient, keys: Sequence[ScriptKey], args: Sequence[ScriptArg] = ()
    ) -> Any:
        """Run the script as :meth:`run` does, awake for some microseconds (:class:`ReplySpin`)."""
        if not isinstance(redis, ScriptClient):
            return await self.run(redis, keys, args)
        try:
            return await redis.run_script_awake("EVALSHA", self.sha1, len(keys), *keys, *args)
        except NoScriptError:
            return await self.run(redis, keys, args)

    async def run_many(self, redis: RedisClient, calls: Iterable[ScriptCall]) -> list[Any]:
        """Run the script once a call, all in one round trip; a reply is an exception if its call failed.

        A client with a script line starts to send while later calls are still being made.
        """
        sent: list[ScriptCall] = []
        if isinstance(redis, ScriptClient):
            replies = await redis.run_scripts(self._commands(calls, sent))
        else:
            pipe = redis.pipeline(transaction=False)
            for command in self._commands(calls, sent):
                pipe.execute_command(*command)
            replies = list(await pipe.execute(raise_on_error=False))
        for index, (keys, args) in enumerate(sent):
            if isinstance(replies[index], NoScriptError):
                replies[index] = await self._run_catching(redis, keys, args)
        return replies

    def _commands(self, calls: Iterable[ScriptCall], sent: list[ScriptCall]) -> Iterator[tuple[Any, ...]]:
        for call in calls:
            sent.append(call)
            keys, args = call
            yield "EVALSHA", self.sha1, len(keys), *keys, *args

    async def _run_catching(
        self, redis: RedisClient, keys: Sequence[ScriptKey], args: Sequence[ScriptArg]
    ) -> Any:
        try:
            return await self.run(redis, keys, args)
        except Exception as error:  # noqa: BLE001 - handed to the caller as the reply of this one call
            return error
