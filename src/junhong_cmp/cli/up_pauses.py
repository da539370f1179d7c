"""Which accounts rest, or have rested during a run of ``junhong up``, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.pause_store import MANUAL

_LOAD = """
    SELECT id, pause_reason, nullif(paused_until, 'infinity') AS until FROM carrier_account
    WHERE id = ANY($1::bigint[]) AND (paused_until > now() OR paused_at >= $2)
"""
_WORDS: Final[Mapping[str, str]] = {
    "throttled": "被限流",
    "quota_exhausted": "额度用尽",
    "auth": "密钥被拒",
    "maintenance": "运营商维护",
    "breaker_open": "连续失败，熔断",
    MANUAL: "人工暂停",
}


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of an account: the stable word for its reason, and its end, None for "by hand"."""

    reason: str
    until: datetime | None

    @property
    def text(self) -> str:
        """The reason in Chinese, where there is a word for it."""
        return reason_text(self.reason)

    def is_in_force(self, moment: datetime) -> bool:
        """Whether the account rests at a moment after the pause began."""
        return self.until is None or self.until > moment


def reason_text(reason: str) -> str:
    """Return the Chinese for the word of a reason, with the note an operator may have left."""
    head, _, note = reason.partition(": ")
    return f"{_WORDS.get(head, head)}：{note}" if note else _WORDS.get(head, head)


async def load_pauses(pool: Pool, account_ids: Sequence[int], *, since: datetime) -> Mapping[int, Pause]:
    """Return, by account, the pauses that are in force or began after ``since``."""
    rows = await pool.fetch(_LOAD, account_ids, since)
    return {row["id"]: Pause(row["pause_reason"] or "", row["until"]) for row in rows}
