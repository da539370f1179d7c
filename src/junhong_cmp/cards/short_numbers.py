"""Numbers in their form of 19 characters that lack what tells two cards apart."""

from collections.abc import Collection
from typing import Final

from junhong_cmp.db.pool import Conn

_LENGTH: Final = 19
# Number by number: all cards would be read for a hundred, as long as it is not known how many share a number.
_SEVERAL: Final = """
    SELECT n.iccid19
    FROM unnest($1::text[]) AS n (iccid19)
        CROSS JOIN LATERAL (
            SELECT count(*) AS cards, bool_or(iccid = n.iccid19) AS has_equal FROM iot_card
            WHERE iccid19 = n.iccid19 AND deleted_at IS NULL) AS c
    WHERE c.cards > 1 AND NOT c.has_equal
"""


async def find_ambiguous(conn: Conn, iccids: Collection[str]) -> set[str]:
    """Return the numbers of 19 characters that are the beginning of several live cards and equal to none."""
    short = [iccid for iccid in iccids if len(iccid) == _LENGTH]
    return {row["iccid19"] for row in await conn.fetch(_SEVERAL, short)} if short else set()
