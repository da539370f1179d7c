"""Statements planned once a session instead of each time: for bulk writes, where planning is the cost.

Sessions plan each statement anew (see ``pool.session_settings``), and that goes for what PostgreSQL runs by
itself as well: a foreign key is checked by a query a row, and planning it takes three times as long as
carrying it out. Kept plans are safe where they can't become bad ones: with sequential scans disabled a plan
looks rows up by an index whether the table was empty or huge when it was made.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from junhong_cmp.db.pool import Conn

_BEGIN = "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off"
_END = "SET LOCAL plan_cache_mode = DEFAULT; SET LOCAL enable_seqscan = DEFAULT"


@asynccontextmanager
async def kept_plans(conn: Conn) -> AsyncGenerator[None, None]:
    """Keep the plans of the block's statements, foreign key checks included; inside a transaction.

    Every table its statements look into must have an index for that. After an error the transaction can
    only be rolled back, and that ends the settings too.
    """
    await conn.execute(_BEGIN)
    yield
    await conn.execute(_END)
