"""Work on many shards, cut so that nothing holds Redis for long."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from junhong_cmp.polling.shards import ShardId

T = TypeVar("T")


def chunks(
    work: Mapping[ShardId, Sequence[T]], *, longest: int, most: int
) -> Iterator[dict[ShardId, Sequence[T]]]:
    """Cut the items of many shards into round trips.

    Each holds about ``most`` items, and no more than ``longest`` of any one shard: they are one command.
    """
    chunk: dict[ShardId, Sequence[T]] = {}
    room = most
    for shard, items in work.items():
        for start in range(0, len(items), longest):
            part = items[start : start + longest]
            if chunk and (shard in chunk or len(part) > room):
                yield chunk
                chunk, room = {}, most
            chunk[shard] = part
            room -= len(part)
    if chunk:
        yield chunk
