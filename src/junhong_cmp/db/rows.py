"""Statements that take many rows as one array per column (``… FROM unnest($1::bigint[], …)``)."""

from collections.abc import Sequence

from junhong_cmp.db.pool import Conn


async def execute_rows(conn: Conn, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Run ``sql`` once over all ``rows``: one round trip and one plan; nothing to do for no rows."""
    if rows:
        await conn.execute(sql, *(list(column) for column in zip(*rows, strict=True)))
