from collections import Counter

from junhong_cmp.polling import keys
from junhong_cmp.polling.shards import ShardId, shard_of, stable_hash
from junhong_cmp.polling.tasks import TaskType


def test_the_hash_never_changes() -> None:
    assert stable_hash(1, "shard") == stable_hash(1, "shard")
    assert [shard_of(card, 8) for card in (1, 2, 3, 10**12)] == [3, 2, 5, 2]


def test_cards_spread_evenly_over_shards() -> None:
    counts = Counter(shard_of(card, 8) for card in range(1, 80_001))
    assert set(counts) == set(range(8))
    assert max(counts.values()) - min(counts.values()) < 800


def test_all_keys_of_a_shard_share_its_hash_tag() -> None:
    shard = ShardId(TaskType.POLLING_CARDDATA, 7, 3)
    assert keys.shard_due(shard) == "polling:{carddata:7:3}:due"
    assert keys.shard_fence(shard) == "polling:{carddata:7:3}:fence"
    assert keys.shard_claim(shard) == "polling:{carddata:7:3}:claim"
