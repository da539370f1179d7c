"""The users of docs/reference/redis-acl.example, made on a server, and what it refused them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.redis_servers import RedisFixture

_EXAMPLE: Final = Path(__file__).parents[1] / "docs" / "reference" / "redis-acl.example"

UrlOf: TypeAlias = Callable[[str], str]


def users_of(prefix: str) -> dict[str, list[str]]:
    """Return the rules of each user whose name begins with ``prefix``, by the rest of the name."""
    lines = _EXAMPLE.read_text(encoding="utf-8").splitlines()
    users = (line.split()[1:] for line in lines if line.startswith(f"user {prefix}"))
    return {name.removeprefix(prefix): rules for name, *rules in users}


@asynccontextmanager
async def made_users(redis_server: RedisFixture, redis_url: str, prefix: str) -> AsyncIterator[UrlOf]:
    """Make the users for a while; yield what gives the URL of one by the rest of its name."""
    users = users_of(prefix)
    for name, rules in users.items():
        await redis_server.command("ACL", "SETUSER", f"{prefix}{name}", "reset", *rules)
    await redis_server.command("ACL", "LOG", "RESET")
    yield lambda name: redis_url.replace("://", f"://{prefix}{name}:change-me-{name}@")
    for name in users:
        await redis_server.command("ACL", "DELUSER", f"{prefix}{name}")


async def refusals(redis_server: RedisFixture) -> set[tuple[str, str]]:
    """Return what the server refused to whom; that a client tells its version need not be heard."""
    entries: list[Any] = await redis_server.command("ACL", "LOG", 100)
    told = {(_field(entry, "username"), _field(entry, "object")) for entry in entries}
    return {(user, what) for user, what in told if what != "client|setinfo"}


def _field(entry: Any, name: str) -> str:
    value = entry[name] if name in entry else entry[name.encode()]
    return value.decode() if isinstance(value, bytes) else str(value)
