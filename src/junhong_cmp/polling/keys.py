"""Redis keys of the polling package; all keys of one script share one hash tag."""

from typing import Final

from junhong_cmp.polling.shards import ShardId
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES

_TYPES: Final = {task_type.kind.encode(): task_type for task_type in POLLING_TASK_TYPES}


def shard_tag(shard: ShardId) -> str:
    """Return the hash tag of a shard, without braces: ``carddata:7:3``."""
    return f"{shard.task_type.kind}:{shard.account_id}:{shard.number}"


def parse_shard_tag(tag: bytes) -> ShardId | None:
    """Return the shard of a hash tag, None for what is none."""
    kind, _, rest = tag.partition(b":")
    account_id, _, number = rest.partition(b":")
    if kind not in _TYPES or not account_id.isdigit() or not number.isdigit():
        return None
    return ShardId(_TYPES[kind], int(account_id), int(number))


def shard_due(shard: ShardId) -> str:
    """ZSET of card id → due or claim, unix milliseconds."""
    return f"polling:{{{shard_tag(shard)}}}:due"


def shard_fence(shard: ShardId) -> str:
    """Highest leader epoch the shard has seen, decimal."""
    return f"polling:{{{shard_tag(shard)}}}:fence"


def shard_claim(shard: ShardId) -> str:
    """Highest claim the shard has ever given, unix milliseconds, decimal."""
    return f"polling:{{{shard_tag(shard)}}}:claim"


def account_slots(account_id: int) -> str:
    """ZSET of ``<kind>:<card id>`` → end of the in-flight lease, unix milliseconds; one member a call."""
    return f"polling:{{account:{account_id}}}:slots"


def account_riders(account_id: int) -> str:
    """ZSET like the slots: the cards but the first of each call that is about several."""
    return f"polling:{{account:{account_id}}}:riders"


def account_budget(account_id: int, name: str) -> str:
    """Count of what has been used of an account's budget named after its time, as ``day:2026-11-30``."""
    return f"polling:{{account:{account_id}}}:used:{name}"


def account_rate(account_id: int) -> str:
    """Instant, in unix microseconds, at which the account's next call is free (GCRA)."""
    return f"polling:{{account:{account_id}}}:rate"


def account_granted(account_id: int) -> str:
    """``<calls a second> <unix microseconds> <growth>``: a rate lower than configured, its carrier's wish."""
    return f"polling:{{account:{account_id}}}:granted"


def generation() -> str:
    """Present once a full initialisation has been completed; its absence means lost data."""
    return "polling:generation"


def continuity() -> str:
    """Word of the last leader on whether Redis knows of every poll under way; absent if it forgot all."""
    return "polling:continuity"


def hold() -> str:
    """Present, and expiring by itself, while the leader claims nothing after a loss of data."""
    return "polling:hold"


def notices() -> str:
    """ZSET of shard tag → earliest due time posted for the leader, unix milliseconds."""
    return "polling:{notices}:due"


def notices_fence() -> str:
    """Highest leader epoch the notice board has seen, decimal."""
    return "polling:{notices}:fence"
