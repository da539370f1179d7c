"""The shard scripts with their keys, arguments and replies as Python values; nothing is batched here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from junhong_cmp.asynq.connection import RedisClient
from junhong_cmp.asynq.script_client import ScriptClient
from junhong_cmp.asynq.scripting import LuaScript
from junhong_cmp.polling import keys
from junhong_cmp.polling.errors import FencedError
from junhong_cmp.polling.shards import ShardId

_PACKAGE: Final = __package__ or ""


class Claim(NamedTuple):
    """A card claimed from its shard: ``claim`` and ``due`` are unix milliseconds of Redis time."""

    card_id: int
    claim: int
    due: int


@dataclass(frozen=True, slots=True)
class ClaimBatch:
    """What one claim of a shard brought; ``next_due_ms`` is the shard's earliest score now, None if empty."""

    claims: Sequence[Claim]
    next_due_ms: int | None
    now_ms: int
    foreign: Sequence[bytes] = ()


class Started(NamedTuple):
    """A started poll: its new claim, and the Redis time at which it was given."""

    claim: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """Cards in shards: all, those due now, those due for longer than the age asked about.

    ``endless`` are those that would wait for ever: their score is beyond any due time or claim.
    """

    cards: int = 0
    due: int = 0
    overdue: int = 0
    endless: int = 0

    def __add__(self, other: "ShardCounts") -> "ShardCounts":
        return ShardCounts(
            self.cards + other.cards,
            self.due + other.due,
            self.overdue + other.overdue,
            self.endless + other.endless,
        )


class ShardScripts:
    """The shard scripts run one script on many shards in one round trip.

    A reply is the exception if the script failed on that shard, so that one shard never fails
    the others. Arguments are flat lists as the ``.lua`` headers describe them.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis
        self._claim = LuaScript.load(_PACKAGE, "claim")
        self._start = LuaScript.load(_PACKAGE, "start")
        self._write_back = LuaScript.load(_PACKAGE, "write_back")
        self._remove = LuaScript.load(_PACKAGE, "remove")
        self._hasten = LuaScript.load(_PACKAGE, "hasten")
        self._seal = LuaScript.load(_PACKAGE, "seal")
        self._count = LuaScript.load(_PACKAGE, "count")

    async def claim(
        self,
        limits: Mapping[ShardId, int],
        *,
        epoch: int,
        visibility_ms: int,
        given: Mapping[ShardId, int] | None = None,
    ) -> list[ClaimBatch | Exception]:
        """Claim up to a limit of due cards of each shard; FencedError stands for a refused shard.

        ``given`` are claims known of; a shard that has forgotten one refuses.
        """
        known = {} if given is None else given
        calls = [
            (
                (keys.shard_due(shard), keys.shard_fence(shard), keys.shard_claim(shard)),
                (epoch, limit, visibility_ms, known.get(shard, 0)),
            )
            for shard, limit in limits.items()
        ]
        replies = await self._claim.run_many(self._redis, calls)
        return [_read_claims(reply, epoch) for reply in replies]

    async def start(
        self, shards: Mapping[ShardId, Sequence[tuple[int, int]]], *, timeout_ms: int
    ) -> list[list[Started | None] | Exception]:
        """Start (card, claim) pairs; None stands for one superseded or removed."""
        calls = [
            (
                (keys.shard_due(shard), keys.shard_claim(shard)),
                (timeout_ms, *(part for pair in pairs for part in pair)),
            )
            for shard, pairs in shards.items()
        ]
        replies = await self._start.run_many(self._redis, calls)
        return [_read_starts(reply) for reply in replies]

    async def write_back(
        self, shards: Mapping[ShardId, Sequence[tuple[int, int, int]]]
    ) -> list[list[bool] | Exception]:
        """Write (card, claim, next due) triples back; False stands for one superseded or removed."""
        return await self._flags(self._write_back, shards, with_claim_key=False)

    async def add(self, shards: Mapping[ShardId, Sequence[int]]) -> list[int | Exception]:
        """Add cards of a flat list (due, card, due, card, …) that are missing; how many that were.

        One plain command a shard does it: whoever is there keeps the score, be it due time or claim.
        """
        commands = (("ZADD", keys.shard_due(shard), "NX", *places) for shard, places in shards.items())
        if isinstance(self._redis, ScriptClient):
            return await self._redis.run_scripts(commands)
        pipe = self._redis.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        return list(await pipe.execute(raise_on_error=False))

    async def remove(
        self, shards: Mapping[ShardId, Sequence[tuple[int, int | str]]]
    ) -> list[list[bool] | Exception]:
        """Remove (card, score) pairs, score "" for whatever it is; True stands for one removed."""
        return await self._flags(self._remove, shards, with_claim_key=False)

    async def hasten(
        self, shards: Mapping[ShardId, Sequence[tuple[int, int | str]]]
    ) -> list[list[bool] | Exception]:
        """Bring (card, due) pairs forward, due "" for now; False stands for one left alone."""
        return await self._flags(self._hasten, shards, with_claim_key=True)

    async def seal(self, shards: Sequence[ShardId], *, epoch: int) -> list[Exception | None]:
        """Raise the fences to ``epoch``; FencedError stands for a shard that obeys a higher one."""
        calls = [((keys.shard_fence(shard),), (epoch,)) for shard in shards]
        replies = await self._seal.run_many(self._redis, calls)
        return [_read_seal(reply, epoch) for reply in replies]

    async def count(self, shards: Sequence[ShardId], *, overdue_ms: int) -> list[ShardCounts | Exception]:
        """Count the cards of each shard."""
        calls = [((keys.shard_due(shard),), (overdue_ms,)) for shard in shards]
        replies = await self._count.run_many(self._redis, calls)
        return [
            reply if isinstance(reply, Exception) else ShardCounts(*(int(figure) for figure in reply))
            for reply in replies
        ]

    async def _flags(
        self, script: LuaScript, shards: Mapping[ShardId, Sequence[tuple[Any, ...]]], *, with_claim_key: bool
    ) -> list[list[bool] | Exception]:
        calls = []
        for shard, rows in shards.items():
            due = keys.shard_due(shard)
            used = (due, keys.shard_claim(shard)) if with_claim_key else (due,)
            calls.append((used, [part for row in rows for part in row]))
        replies = await script.run_many(self._redis, calls)
        return [
            reply if isinstance(reply, Exception) else [bool(flag) for flag in reply] for reply in replies
        ]


def _read_seal(reply: Any, epoch: int) -> Exception | None:
    if isinstance(reply, Exception):
        return reply
    return None if int(reply) == epoch else FencedError(epoch=epoch, fence=int(reply))


def _read_claims(reply: Any, epoch: int) -> ClaimBatch | Exception:
    if isinstance(reply, Exception):
        return reply
    if reply[0] == b"FENCED":
        return FencedError(epoch=epoch, fence=int(reply[1]) if reply[1] else None)
    _, now, next_due, claim, cards, foreign = reply
    claims = [
        Claim(int(card), int(claim), int(due)) for card, due in zip(cards[::2], cards[1::2], strict=True)
    ]
    return ClaimBatch(claims, int(next_due) if next_due else None, int(now), foreign)


def _read_starts(reply: Any) -> list[Started | None] | Exception:
    if isinstance(reply, Exception):
        return reply
    started = Started(claim=int(reply[1]), now_ms=int(reply[0]))
    return [started if flag else None for flag in reply[2:]]
