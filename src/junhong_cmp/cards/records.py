"""Writing down what polls found out: batches, an older observation never overwrites a newer one."""

from collections.abc import Sequence

from junhong_cmp.cards.model import PollTopic
from junhong_cmp.cards.observations import FailureWrite, RealNameWrite, Recorded, StatusWrite
from junhong_cmp.db.pool import Conn


async def record_status(conn: Conn, writes: Sequence[StatusWrite]) -> list[Recorded]:
    """Record card states with their history."""
    raise NotImplementedError


async def record_realname(conn: Conn, writes: Sequence[RealNameWrite]) -> list[Recorded]:
    """Record real-name states."""
    raise NotImplementedError


async def record_failure(
    conn: Conn, topic: PollTopic, writes: Sequence[FailureWrite], *, orphan_after: int = 5
) -> list[Recorded]:
    """Record failed polls of one topic; a card the carrier never knows becomes an orphan."""
    raise NotImplementedError
