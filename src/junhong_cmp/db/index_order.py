"""Reading in the order an index gives, whatever the planner makes of a table's statistics.

PostgreSQL sorts where it thinks few rows are left to sort, and of rows just written it always thinks so: of a
table it has not analysed it takes ``account_id = $1`` to hold for one row in 200, of one it analysed before a
bulk insert for none. Every page of a paged query then reads and sorts all rows that are left, and reading
them all is quadratic. With sorting disabled it takes an index that has the order, if there is one, and reads
no further than the page; what only a sort can answer is sorted as before.

It is told by ``SET LOCAL``, which ends with the transaction: no session keeps it, also where PgBouncer lends
one session to many. A transaction holds one page, so that nothing is open while the caller deals with it.
"""

from asyncpg import Record

from junhong_cmp.db.pool import Conn, Pool

_KEEP_ORDER = "SET LOCAL enable_sort = off"


async def keep_index_order(conn: Conn) -> None:
    """Have the rest of the caller's transaction read in the order of an index wherever one has it."""
    await conn.execute(_KEEP_ORDER)


async def fetch_in_index_order(pool: Pool, sql: str, *args: object) -> list[Record]:
    """Run one statement, such as a page of ``… WHERE id > $1 ORDER BY id LIMIT $2``, in a transaction."""
    async with pool.acquire() as conn, conn.transaction():
        await keep_index_order(conn)
        return await conn.fetch(sql, *args)
