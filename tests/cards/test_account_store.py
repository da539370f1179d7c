from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest
from tests.cards.inventory import NOON, add_account, hours

from junhong_cmp.cards.account_store import (
    NewAccount,
    described,
    find_account,
    list_accounts,
    lock_account,
    pause_account,
    record_account,
)
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.db.pool import Pool


async def test_every_field_comes_back(pool: Pool) -> None:
    new = NewAccount(
        code="cucc-27",
        carrier=Carrier.CUCC,
        name="联通 27 日",
        driver="cucc",
        base_url="https://gateway.example",
        credential_ref="cucc",
        tz="UTC",
        billing_day=27,
        usage_unit="MB",
        usage_lag=timedelta(hours=6),
        qps=2.5,
        concurrency=3,
        daily_quota=10_000,
        per_card_min_gap=timedelta(minutes=3),
        batch_size=50,
        polling_enabled=False,
    )
    async with pool.acquire() as conn:
        account = await record_account(conn, new)
        assert await find_account(conn, "cucc-27") == account
    for field in NewAccount.__dataclass_fields__:
        assert getattr(account, field) == getattr(new, field)


async def test_defaults_are_those_of_the_schema(pool: Pool) -> None:
    account = await add_account(pool, "by-code")
    await pool.execute("INSERT INTO carrier_account (code, carrier) VALUES ('by-sql', 'cmcc')")
    async with pool.acquire() as conn:
        accounts = await list_accounts(conn)
        for nobody in ("nobody", "no\0body", "no\udcffbody"):
            assert await find_account(conn, nobody) is None
    by_code, by_sql = (
        {name: getattr(each, name) for name in each.__dataclass_fields__ if name not in {"id", "code"}}
        for each in accounts
    )
    assert by_code == by_sql
    assert accounts[0] == account


async def test_recording_again_updates_and_keeps_the_pause(pool: Pool) -> None:
    account = await add_account(pool)
    async with pool.acquire() as conn:
        assert await pause_account(conn, account.id, hours(1), "限流")
        changed = await record_account(conn, NewAccount(code=account.code, carrier=Carrier.CTCC, qps=9))
    assert (changed.id, changed.carrier, changed.qps) == (account.id, Carrier.CTCC, 9)
    assert (changed.paused_until, changed.pause_reason) == (hours(1), "限流")


async def test_a_pause_is_lengthened_but_never_cut_short(pool: Pool) -> None:
    account = await add_account(pool)
    async with pool.acquire() as conn:
        assert await pause_account(conn, account.id, hours(2), "认证失败")
        assert not await pause_account(conn, account.id, hours(1), "限流")
        assert not await pause_account(conn, account.id, hours(2) + timedelta(seconds=1), "限流")
        paused = await find_account(conn, account.code)
        assert paused is not None
        assert (paused.paused_until, paused.pause_reason) == (hours(2), "认证失败")
        assert await pause_account(conn, account.id, hours(3), "维护")
    assert paused.is_paused(NOON)
    assert not paused.is_paused(hours(2))
    assert not account.is_paused(NOON)


async def test_a_pause_without_end_can_be_compared_with_now(pool: Pool) -> None:
    account = await add_account(pool)
    for forever, paused in (("infinity", True), ("-infinity", False)):
        await pool.execute("UPDATE carrier_account SET paused_until = $1::text::timestamptz", forever)
        async with pool.acquire() as conn:
            found = await find_account(conn, account.code)
        assert found is not None
        assert found.is_paused(NOON) is paused


async def test_a_description_recorded_again_changes_nothing_but_what_it_says(pool: Pool) -> None:
    account = await add_account(pool, "demo")
    async with pool.acquire() as conn:
        await pause_account(conn, account.id, hours(1), "throttled")
        new = await record_account(conn, replace(described(account), protect_enabled=True))
        assert new == await find_account(conn, "demo")
    assert described(new) == replace(described(account), protect_enabled=True)
    assert (new.id, new.paused_until, new.pause_reason) == (account.id, hours(1), "throttled")


async def test_a_locked_account_keeps_others_from_changing_it(pool: Pool) -> None:
    account = await add_account(pool, "demo")
    async with pool.acquire() as conn, pool.acquire() as other:
        async with conn.transaction():
            assert await lock_account(conn, "demo") == account
            assert await lock_account(conn, "nobody") is None
            assert await find_account(other, "demo") == account
            with pytest.raises(asyncpg.LockNotAvailableError):
                await other.fetch("SELECT id FROM carrier_account FOR UPDATE NOWAIT")
        assert await other.fetch("SELECT id FROM carrier_account FOR UPDATE NOWAIT")
