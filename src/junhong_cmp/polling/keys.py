"""Redis keys of the polling package; all keys of one script share one hash tag."""

from junhong_cmp.polling.shards import ShardId


def shard_tag(shard: ShardId) -> str:
    """Return the hash tag of a shard, without braces: ``carddata:7:3``."""
    return f"{shard.task_type.kind}:{shard.account_id}:{shard.number}"


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
    """ZSET of ``<kind>:<card id>`` → end of the in-flight lease, unix milliseconds."""
    return f"polling:{{account:{account_id}}}:slots"


def account_rate(account_id: int) -> str:
    """Instant, in unix microseconds, at which the account's next call is free (GCRA)."""
    return f"polling:{{account:{account_id}}}:rate"


def generation() -> str:
    """Present once a full initialisation has been completed; its absence means lost data."""
    return "polling:generation"
