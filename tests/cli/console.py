"""The program as an operator types it, as a process against real services."""

from typing import Any

import orjson
from tests.worker_process import WorkerProcess


class Console:
    """A console runs commands, of one group if it has one, and keeps what the last said on standard error."""

    def __init__(self, group: str | None, redis_url: str, postgres_dsn: str) -> None:
        self.group = group
        self.env = {
            "JUNHONG_REDIS_URL": redis_url,
            "JUNHONG_POSTGRES_DSN": postgres_dsn,
            "COLUMNS": "240",
        }
        self.errors = ""

    async def __call__(self, *arguments: str, code: int = 0) -> str:
        words = arguments if self.group is None else (self.group, *arguments)
        async with WorkerProcess(self.env, arguments=words) as command:
            assert await command.wait_exit() == code, command.log_text + command.output
        self.errors = command.log_text
        return command.output

    async def json(self, *arguments: str, code: int = 0) -> Any:
        return orjson.loads(await self(*arguments, "--json", code=code))
