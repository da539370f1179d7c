"""Members of a shard that are no cards: told about, cut short and escaped."""

from collections.abc import Sequence
from typing import Final

import structlog

from junhong_cmp.polling.keys import shard_tag
from junhong_cmp.polling.shards import ShardId

log = structlog.stdlib.get_logger(__name__)

_SHOWN_MEMBERS: Final = 3
_SHOWN_CHARACTERS: Final = 20


def report_foreign(shard: ShardId, members: Sequence[bytes]) -> None:
    """Warn that foreign members were taken out of a shard, showing the first few."""
    shown = [repr(member[:_SHOWN_CHARACTERS]) for member in members[:_SHOWN_MEMBERS]]
    log.warning(
        "分片中有不是卡编号的成员，已移除",
        shard=shard_tag(shard),
        count=len(members),
        members=shown,
    )
