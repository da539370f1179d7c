"""Which shard a card waits in, and the stable hash behind shards and phases."""

from hashlib import blake2b
from typing import NamedTuple

from junhong_cmp.polling.tasks import TaskType


class ShardId(NamedTuple):
    """One sorted set of waiting cards: a part of one carrier account for one task type."""

    task_type: TaskType
    account_id: int
    number: int


def stable_hash(card_id: int, salt: str) -> int:
    """Return 64 well-mixed bits of a card id; the same in every process, release and machine."""
    return salted_hash(card_id, salt.encode())


def salted_hash(card_id: int, salt: bytes) -> int:
    """Return what ``stable_hash`` returns for the salt as text; for who hashes very many ids."""
    return int.from_bytes(blake2b(b"%d:%s" % (card_id, salt), digest_size=8).digest())


def shard_of(card_id: int, count: int) -> int:
    """Return the number of the card's shard among ``count`` shards of its account and type."""
    return salted_hash(card_id, b"shard") % count
