"""Numbers in their form of 19 characters that lack what tells two cards apart."""

from collections.abc import Collection
from typing import Final

from junhong_cmp.db.pool import Conn

_LENGTH: Final = 19
_SEVERAL: Final = """
    SELECT iccid19 FROM iot_card WHERE iccid19 = ANY ($1::text[]) AND deleted_at IS NULL
    GROUP BY iccid19 HAVING count(*) > 1 AND bool_and(iccid <> iccid19)
"""


async def find_ambiguous(conn: Conn, iccids: Collection[str]) -> set[str]:
    """Return the numbers of 19 characters that are the beginning of several live cards and equal to none."""
    short = [iccid for iccid in iccids if len(iccid) == _LENGTH]
    return {row["iccid19"] for row in await conn.fetch(_SEVERAL, short)} if short else set()
