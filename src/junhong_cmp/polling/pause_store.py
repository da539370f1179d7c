"""Pauses operators order, in PostgreSQL: of an account, or of one of its task types."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from junhong_cmp.db.pool import Conn
from junhong_cmp.polling.tasks import POLLING_TASK_TYPES, TaskType

MANUAL: Final = "manual"
"""Begins the reason of an operator's pause of an account, to tell it from the carrier's own."""

_KNOWN: Final = frozenset(POLLING_TASK_TYPES)
_LIST = "SELECT account_id, task_type, paused_until FROM polling_pause"
_IN_FORCE = """
    SELECT code, NULL AS task_type, paused_at AS since, paused_until AS until, pause_reason AS reason
    FROM carrier_account WHERE paused_until > now()
    UNION ALL
    SELECT a.code, p.task_type, p.created_at, p.paused_until, p.reason
    FROM polling_pause p JOIN carrier_account a ON a.id = p.account_id WHERE p.paused_until > now()
    ORDER BY code, task_type NULLS FIRST
"""
_PAUSE_ACCOUNT = """
    UPDATE carrier_account
    SET paused_until = greatest(CASE WHEN paused_until > now() THEN paused_until END,
            coalesce($2::timestamptz, 'infinity')),
        paused_at = now(), pause_reason = $3, updated_at = now()
    WHERE id = $1
    RETURNING paused_until
"""
_RESUME_ACCOUNT = """
    UPDATE carrier_account SET paused_until = NULL, paused_at = NULL, pause_reason = NULL, updated_at = now()
    WHERE id = $1 AND paused_until > now()
    RETURNING true
"""
_PAUSE_TYPE = """
    INSERT INTO polling_pause AS p (account_id, task_type, paused_until, reason)
    VALUES ($1, $2, coalesce($3::timestamptz, 'infinity'), $4)
    ON CONFLICT (account_id, task_type) DO UPDATE
        SET paused_until = greatest(p.paused_until, excluded.paused_until), reason = excluded.reason,
            created_at = now()
    RETURNING paused_until
"""
_RESUME_TYPE = """
    DELETE FROM polling_pause WHERE account_id = $1 AND task_type = $2 RETURNING paused_until > now()
"""


@dataclass(frozen=True, slots=True)
class PauseInForce:
    """A pause of an account, or of one of its task types; an operator's, or one a carrier made us take."""

    account: str
    task_type: str | None
    manual: bool
    reason: str
    since: datetime | None
    until: datetime


async def list_pauses(conn: Conn) -> list[PauseInForce]:
    """Return the pauses in force by account; one of the whole account comes before those of its types."""
    return [
        PauseInForce(
            account=row["code"],
            task_type=row["task_type"],
            manual=row["task_type"] is not None or (row["reason"] or "").startswith(MANUAL),
            reason=(row["reason"] or "").removeprefix(MANUAL).removeprefix(": "),
            since=row["since"],
            until=_aware(row["until"]),
        )
        for row in await conn.fetch(_IN_FORCE)
    ]


async def list_type_pauses(conn: Conn) -> Mapping[tuple[int, TaskType], datetime]:
    """Return until when each paused (account, task type) rests, ended pauses included."""
    return {
        (row["account_id"], TaskType(row["task_type"])): _aware(row["paused_until"])
        for row in await conn.fetch(_LIST)
        if row["task_type"] in _KNOWN  # a newer release may know more types
    }


async def pause_polling(
    conn: Conn, account_id: int, task_type: TaskType | None, until: datetime | None, reason: str
) -> datetime:
    """Pause an account, or one task type of it, and return until when it rests now.

    ``until`` None means until it is resumed. A longer pause in force keeps its end.
    """
    if task_type is None:
        note = f"{MANUAL}: {reason}" if reason else MANUAL
        return _aware(await conn.fetchval(_PAUSE_ACCOUNT, account_id, until, note))
    return _aware(await conn.fetchval(_PAUSE_TYPE, account_id, task_type, until, reason))


async def resume_polling(conn: Conn, account_id: int, task_type: TaskType | None) -> bool:
    """End the pause of an account, whoever ordered it, or that of one task type; False if there was none."""
    if task_type is None:
        return bool(await conn.fetchval(_RESUME_ACCOUNT, account_id))
    return bool(await conn.fetchval(_RESUME_TYPE, account_id, task_type))


def _aware(at: datetime) -> datetime:
    """Give the driver's naive stand-in for ``infinity`` a zone to compare by."""
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
