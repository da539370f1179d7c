"""Carrier accounts in PostgreSQL."""

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Literal

import asyncpg

from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.pool import Conn

_COLUMNS = """
    id, code, name, carrier, driver, base_url, credential_ref, tz, billing_day, usage_unit, usage_lag_s,
    qps, concurrency, daily_quota, per_card_min_gap_s, batch_size, polling_enabled, paused_until,
    pause_reason,
    monthly_quota, operation_min_gap_s, protect_enabled, stop_on_expiry, quota_per
"""
_FIND = f"SELECT {_COLUMNS} FROM carrier_account WHERE code = $1"  # noqa: S608 - constant column list
_LOCK = f"{_FIND} FOR UPDATE"
_LIST = f"SELECT {_COLUMNS} FROM carrier_account ORDER BY id"  # noqa: S608 - constant column list
_RECORD = f"""
    INSERT INTO carrier_account (
        code, name, carrier, driver, base_url, credential_ref, tz, billing_day, usage_unit, usage_lag_s,
        qps, concurrency, daily_quota, per_card_min_gap_s, batch_size, polling_enabled,
        monthly_quota, operation_min_gap_s, protect_enabled, stop_on_expiry, quota_per)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
    ON CONFLICT (code) DO UPDATE SET
        name = excluded.name, carrier = excluded.carrier, driver = excluded.driver,
        base_url = excluded.base_url, credential_ref = excluded.credential_ref, tz = excluded.tz,
        billing_day = excluded.billing_day, usage_unit = excluded.usage_unit,
        usage_lag_s = excluded.usage_lag_s, qps = excluded.qps, concurrency = excluded.concurrency,
        daily_quota = excluded.daily_quota, per_card_min_gap_s = excluded.per_card_min_gap_s,
        batch_size = excluded.batch_size, polling_enabled = excluded.polling_enabled,
        monthly_quota = excluded.monthly_quota, operation_min_gap_s = excluded.operation_min_gap_s,
        protect_enabled = excluded.protect_enabled, stop_on_expiry = excluded.stop_on_expiry,
        quota_per = excluded.quota_per, updated_at = now()
    RETURNING {_COLUMNS}
"""  # noqa: S608 - constant column list
_PAUSE = """
    UPDATE carrier_account
    SET paused_until = $2::timestamptz, paused_at = now(), updated_at = now(),
        pause_reason = CASE WHEN paused_until > now() AND pause_reason LIKE 'manual%' THEN pause_reason
            ELSE $3 END
    WHERE id = $1 AND (paused_until IS NULL OR paused_until < $2::timestamptz - interval '1 second')
    RETURNING true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAccount:
    """An account as an operator describes it; the defaults are the schema's."""

    code: str
    carrier: Carrier
    name: str = ""
    driver: str = "generic"
    base_url: str | None = None
    credential_ref: str | None = None
    tz: str = "Asia/Shanghai"
    billing_day: int = 1
    usage_unit: str = "KB"
    usage_lag: timedelta = timedelta(0)
    qps: float = 50.0
    concurrency: int = 64
    daily_quota: int | None = None
    per_card_min_gap: timedelta = timedelta(0)
    batch_size: int = 1
    polling_enabled: bool = True
    monthly_quota: int | None = None
    operation_min_gap: timedelta = timedelta(minutes=3)
    protect_enabled: bool = False
    stop_on_expiry: bool = False
    quota_per: Literal["call", "card"] = "call"


def described(account: CarrierAccount) -> NewAccount:
    """Return what an operator once said of the account, to be recorded with changes."""
    return NewAccount(**{each.name: getattr(account, each.name) for each in fields(NewAccount)})


async def find_account(conn: Conn, code: str) -> CarrierAccount | None:
    """Return the account with this code, or None; what PostgreSQL can't be asked for is nobody's code."""
    if not code.isprintable():
        return None
    row = await conn.fetchrow(_FIND, code)
    return None if row is None else account_from_row(row)


async def lock_account(conn: Conn, code: str) -> CarrierAccount | None:
    """Return the account with this code and keep others from changing it until the transaction ends."""
    row = await conn.fetchrow(_LOCK, code)
    return None if row is None else account_from_row(row)


async def list_accounts(conn: Conn) -> list[CarrierAccount]:
    """Return every account, the oldest first."""
    return [account_from_row(row) for row in await conn.fetch(_LIST)]


async def record_account(conn: Conn, account: NewAccount) -> CarrierAccount:
    """Insert the account, or bring the one with this code up to date; a pause in force stays."""
    row = await conn.fetchrow(
        _RECORD,
        account.code,
        account.name,
        account.carrier,
        account.driver,
        account.base_url,
        account.credential_ref,
        account.tz,
        account.billing_day,
        account.usage_unit,
        int(account.usage_lag.total_seconds()),
        account.qps,
        account.concurrency,
        account.daily_quota,
        int(account.per_card_min_gap.total_seconds()),
        account.batch_size,
        account.polling_enabled,
        account.monthly_quota,
        int(account.operation_min_gap.total_seconds()),
        account.protect_enabled,
        account.stop_on_expiry,
        account.quota_per,
    )
    if row is None:  # pragma: no cover - an upsert always returns its row
        raise LookupError(account.code)
    return account_from_row(row)


async def pause_account(conn: Conn, account_id: int, until: datetime, reason: str) -> bool:
    """Keep everybody off the account until then; False when such a pause, or a longer one, is in force.

    Many calls are refused at once when a carrier throttles: a pause that would add less than a
    second is not written, for each that is makes every worker read its configuration again.
    An operator's pause in force keeps its reason: what ends a carrier's pause must not end it.
    """
    return bool(await conn.fetchval(_PAUSE, account_id, until, reason))


def account_from_row(row: asyncpg.Record) -> CarrierAccount:
    """Build an account from a row that has the table's columns."""
    return CarrierAccount(
        id=row["id"],
        code=row["code"],
        name=row["name"],
        carrier=Carrier(row["carrier"]),
        driver=row["driver"],
        base_url=row["base_url"],
        credential_ref=row["credential_ref"],
        tz=row["tz"],
        billing_day=row["billing_day"],
        usage_unit=row["usage_unit"],
        usage_lag=timedelta(seconds=row["usage_lag_s"]),
        qps=row["qps"],
        concurrency=row["concurrency"],
        daily_quota=row["daily_quota"],
        per_card_min_gap=timedelta(seconds=row["per_card_min_gap_s"]),
        batch_size=row["batch_size"],
        polling_enabled=row["polling_enabled"],
        paused_until=_aware(row["paused_until"]),
        pause_reason=row["pause_reason"],
        monthly_quota=row["monthly_quota"],
        operation_min_gap=timedelta(seconds=row["operation_min_gap_s"]),
        protect_enabled=row["protect_enabled"],
        stop_on_expiry=row["stop_on_expiry"],
        quota_per=row["quota_per"],
    )


def _aware(at: datetime | None) -> datetime | None:
    """Give the driver's naive stand-in for ``infinity``, a pause without end, a zone to compare by."""
    return at if at is None or at.tzinfo is not None else at.replace(tzinfo=UTC)
