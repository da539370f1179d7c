"""What an edit makes of a pool."""

import pytest
from tests.cli.pooled_cards import use
from tests.cli.stopped_cards import stop_for_usage
from tests.polling.plant import add_account, add_cards

from junhong_cmp.cards.model import CarrierAccount, StopReason
from junhong_cmp.cards.pool_store import list_pool_use, put_cards
from junhong_cmp.cli.pool_edit import PoolChange, PoolEdit
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.rule_editor import RuleRefusedError


async def apply(pool: Pool, account: CarrierAccount, edit: PoolEdit, *, dry_run: bool = False) -> PoolChange:
    async with pool.acquire() as conn:
        return await edit.apply(conn, account, dry_run=dry_run)


async def test_what_is_not_given_stays(pool: Pool) -> None:
    account = await add_account(pool)
    seen = []
    for edit in (
        PoolEdit("池", 1000, 900),
        PoolEdit("池", 2000, None),
        PoolEdit("池", None, 1500),
        PoolEdit("池", None, None, removes_threshold=True),
    ):
        change = await apply(pool, account, edit)
        seen.append((change.old_capacity_kb, change.old_threshold_kb, *change.pool[3:5]))
    assert seen == [
        (None, None, 1000, 900),
        (1000, 900, 2000, 900),
        (2000, 900, 2000, 1500),
        (2000, 1500, 2000, None),
    ]


async def test_a_dry_run_leaves_no_pool_and_no_total(pool: Pool) -> None:
    account = await add_account(pool)
    change = await apply(pool, account, PoolEdit("池", 1000, None), dry_run=True)
    assert change.pool.capacity_kb == 1000
    assert await list_pool_use(pool) == []
    with pytest.raises(RuleRefusedError, match="--capacity"):
        await apply(pool, account, PoolEdit("池", None, 900))


@pytest.mark.parametrize(("protect", "stops"), [(True, 2), (False, 0)])
async def test_cards_over_the_new_line_are_counted_by_what_they_have_used_by_now(
    pool: Pool, *, protect: bool, stops: int
) -> None:
    account = await add_account(pool, protect_enabled=protect)
    cards = await add_cards(pool, account, 2)
    made = (await apply(pool, account, PoolEdit("池", 1000, None))).pool
    async with pool.acquire() as conn:
        await put_cards(conn, account.id, made.id, [card.id for card in cards])
    await use(pool, account, cards, 300)
    assert (await apply(pool, account, PoolEdit("池", 601, None))).cards_to_stop == 0
    change = await apply(pool, account, PoolEdit("池", 600, None))
    assert (change.cards_to_stop, change.pool.used_kb, change.pool.cards) == (stops, 600, 2)


async def test_cards_below_the_raised_line_are_counted_to_come_back(pool: Pool) -> None:
    account = await add_account(pool, protect_enabled=True)
    cards = await add_cards(pool, account, 2)
    made = (await apply(pool, account, PoolEdit("池", 600, None))).pool
    async with pool.acquire() as conn:
        await put_cards(conn, account.id, made.id, [card.id for card in cards])
    await stop_for_usage(pool, account, cards, used_kb=300, reason=StopReason.POOL)
    assert (await apply(pool, account, PoolEdit("池", 599, None))).cards_to_resume == 0
    change = await apply(pool, account, PoolEdit("池", 601, None))
    assert (change.cards_to_resume, change.cards_to_stop) == (2, 0)


async def test_an_account_whose_zone_nobody_knows_has_no_total(pool: Pool) -> None:
    account = await add_account(pool, tz="Mars/Olympus")
    change = await apply(pool, account, PoolEdit("池", 1000, None))
    assert (change.pool.cycle, change.cards_to_stop) == (None, 0)
