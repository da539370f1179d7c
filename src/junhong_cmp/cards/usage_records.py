"""Writing usage readings down: batches, each reading exactly once."""

from collections.abc import Sequence

from junhong_cmp.cards.observations import Recorded, UsageWrite
from junhong_cmp.db.pool import Conn


async def record_usage(conn: Conn, writes: Sequence[UsageWrite]) -> list[Recorded]:
    """Apply readings to their cards, with daily and cycle totals, in one transaction."""
    raise NotImplementedError
