"""What PostgreSQL really did for the statements some code ran: no guess at a plan, and no SQL repeated.

``watched_pool`` opens a pool whose sessions report the plan of every statement as it was carried out
(``auto_explain``). Code under test gets that pool; afterwards ``PlanWatch.assert_frugal`` fails if a node of
one of the plans touched more rows than it may.
"""

import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import asyncpg
import orjson

from junhong_cmp.db.pool import Conn, Pool, session_settings

_REPORTING: Final = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
}
_PLAN_FOLLOWS: Final = "plan:\n"
_CATALOGUE: Final = "pg_catalog."
"""In what the driver asks about types it meets for the first time."""
_TOUCHED: Final = (
    "Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck", "Rows Removed by Join Filter"
)  # fmt: skip
_SHOWN: Final = ("Node Type", "Join Type", "Index Name", "Relation Name")


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A statement and the tree of nodes that carried it out."""

    sql: str
    root: dict[str, Any]

    @property
    def most_rows(self) -> int:
        """The rows that the busiest node touched: those it passed on and those it threw away."""
        return max(_rows(node) for _, node in self._nodes())

    def __str__(self) -> str:
        lines = (
            f"{'  ' * depth}{' '.join(str(node[name]) for name in _SHOWN if name in node)}: {_rows(node)}"
            for depth, node in self._nodes()
        )
        return "\n".join([self.sql.strip(), *lines])

    def _nodes(self) -> Iterator[tuple[int, dict[str, Any]]]:
        below = [(0, self.root)]
        while below:
            depth, node = below.pop()
            yield depth, node
            below += [(depth + 1, child) for child in reversed(node.get("Plans", []))]


def _rows(node: dict[str, Any]) -> int:
    touched: float = sum(node.get(name, 0) for name in _TOUCHED)
    loops: int = node.get("Actual Loops", 1)
    return round(touched * loops)


@dataclass(slots=True)
class PlanWatch:
    """A plan watch keeps the plans of what ran on its pool since it was last asked."""

    pool: Pool
    plans: list[QueryPlan] = field(default_factory=list)

    def assert_frugal(self, rows: int) -> None:
        """Fail unless statements ran and no node of their plans touched more than ``rows`` rows.

        Ask outside of transactions: the last statement of one is reported when it ends.
        """
        plans, self.plans = self.plans, []
        assert plans, "no statement ran"
        lavish = [plan for plan in plans if plan.most_rows > rows]
        assert not lavish, f"more than {rows} rows touched:\n" + "\n\n".join(map(str, lavish))


@asynccontextmanager
async def watched_pool(dsn: str) -> AsyncIterator[PlanWatch]:
    """Open a pool with the sessions' usual settings that reports all plans."""

    async def listen(conn: Conn) -> None:
        conn.add_log_listener(hear)

    def hear(_conn: object, message: asyncpg.PostgresLogMessage) -> None:
        _, found, text = (message.message or "").partition(_PLAN_FOLLOWS)
        report = orjson.loads(text) if found else {}
        if found and _CATALOGUE not in report["Query Text"]:
            watch.plans.append(QueryPlan(report["Query Text"], report["Plan"]))

    settings = session_settings(timedelta(seconds=30)) | _REPORTING
    with warnings.catch_warnings():  # the pool takes the listeners away itself, and says so
        warnings.simplefilter("ignore", asyncpg.InterfaceWarning)
        async with asyncpg.create_pool(dsn, min_size=1, setup=listen, server_settings=settings) as pool:
            watch = PlanWatch(pool)
            yield watch
