import asyncpg
import pytest
from tests.imports.card_files import iccid

from junhong_cmp.exports.dossier import load_dossier
from junhong_cmp.exports.errors import NothingFoundError

RECORDS = """
    INSERT INTO card_usage_daily (card_id, day, used_kb)
    SELECT $1, date '2026-03-01' + n, n * 100 FROM generate_series(0, 9) AS n
"""
OPERATION = """
    INSERT INTO card_operation (card_id, kind, reason, request_id) VALUES ($1, 'stop', 'manual', 'r1')
"""
HISTORY = """
    INSERT INTO card_status_history (card_id, old_status, new_status, observed_at)
    VALUES ($1, 'unknown', 'active', now())
"""


async def test_all_there_is_about_a_card(pool: asyncpg.Pool, cards: list[int]) -> None:
    for statement in (RECORDS, OPERATION, HISTORY):
        await pool.execute(statement, cards[1])
    dossier = await load_dossier(pool, iccid(1), limit=3)
    assert (dossier.card.id, dossier.account_code, dossier.carrier) == (cards[1], "cmcc-1", "cmcc")
    assert [str(one["day"]) for one in dossier.days] == ["2026-03-10", "2026-03-09", "2026-03-08"]
    assert [one["kind"] for one in dossier.operations] == ["stop"]
    assert [one["new_status"] for one in dossier.history] == ["active"]
    assert (dossier.cycles, dossier.anomalies) == ([], [])


@pytest.mark.parametrize("form", ["{0}", "'{0}", '="{0}"', " {0} ", "{1}", "{1}F"])
async def test_any_form_of_the_number_finds_the_card(pool: asyncpg.Pool, cards: list[int], form: str) -> None:
    number = form.format(iccid(2), iccid(2)[:19])
    assert (await load_dossier(pool, number, limit=1)).card.id == cards[2]


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        ("8986", "不是有效的 ICCID：ICCID 应为 19 或 20 位，实际为 4 位"),
        ("8.98605E+19", "不是有效的 ICCID：ICCID 是科学计数法"),
        (iccid(77), f"没有 ICCID 为 {iccid(77)} 的卡"),
    ],
)
@pytest.mark.usefixtures("cards")
async def test_what_cannot_be_shown_is_said(pool: asyncpg.Pool, number: str, reason: str) -> None:
    with pytest.raises(NothingFoundError, match=reason):
        await load_dossier(pool, number, limit=1)


async def test_a_deleted_card_is_said_to_be_deleted(pool: asyncpg.Pool, cards: list[int]) -> None:
    await pool.execute("UPDATE iot_card SET deleted_at = '2026-03-01' WHERE id = $1", cards[0])
    with pytest.raises(NothingFoundError, match="已于 2026-0"):
        await load_dossier(pool, iccid(0), limit=1)


async def test_a_short_number_of_two_cards_is_not_guessed(pool: asyncpg.Pool, cards: list[int]) -> None:
    sibling = iccid(0)[:19] + ("1" if iccid(0)[19] != "1" else "2")
    await pool.execute(
        "INSERT INTO iot_card (account_id, iccid, iccid19)"
        " SELECT account_id, $2, left($2, 19) FROM iot_card WHERE id = $1",
        cards[0],
        sibling,
    )
    with pytest.raises(NothingFoundError, match="对应 2 张卡，请给出 20 位 ICCID"):
        await load_dossier(pool, iccid(0)[:19], limit=1)
    assert (await load_dossier(pool, iccid(0), limit=1)).card.id == cards[0]
