"""The counts are the workers' own decisions, added up."""

from tests.polling.plant import Plant, add_account, add_cards, add_rule

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.polling.rule_matches import MatchReport, count_matches


async def count(plant: Plant) -> MatchReport:
    await plant.config.refresh()
    async with plant.pool.acquire() as conn:
        return await count_matches(conn, plant.config.snapshot)


async def test_every_card_is_counted_where_it_belongs(plant: Plant, account: CarrierAccount) -> None:
    other = await add_account(plant.pool, "other", qps=0.001)
    await plant.pool.execute("DELETE FROM polling_config")
    await add_rule(plant.pool, {"carddata": {"interval_s": 60}}, priority=1, account_id=account.id)
    await add_rule(
        plant.pool,
        {"carddata": {"interval_s": 600}, "cardstatus": {"interval_s": 100}},
        priority=2,
        account_id=account.id,
    )
    await add_cards(plant.pool, account, 30)
    await add_cards(plant.pool, account, 10, first=50, real_name_required=True)
    await add_cards(plant.pool, other, 5, first=100)
    await plant.pool.execute("UPDATE iot_card SET polling_enabled = false WHERE iccid LIKE '%01'")
    report = await count(plant)
    first, second = report.rules.values()
    assert (report.cards, report.unmatched) == (43, 4)
    assert (first.cards, dict(first.decides)) == (39, {"carddata": 39})
    assert (second.cards, dict(second.decides)) == (39, {"cardstatus": 39})
    assert report.undecided == {"carddata": 4, "cardstatus": 4, "realname": 10}
    (load,) = report.loads
    assert (load.account, load.required_qps, load.is_too_much) == (
        "demo",
        round(39 / 60 + 39 / 100, 3),
        False,
    )
    await plant.pool.execute("UPDATE carrier_account SET qps = 1 WHERE code = 'demo'")
    assert (await count(plant)).loads[0].is_too_much


async def test_no_card_no_load(plant: Plant) -> None:
    report = await count(plant)
    assert (report.cards, report.unmatched, list(report.loads)) == (0, 0, [])
