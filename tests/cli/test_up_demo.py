"""What ``junhong up`` demonstrates with."""

from pathlib import Path

import pytest

from junhong_cmp.cli import up_demo
from junhong_cmp.cli.up_carriers import LONE_CARRIER, choose_carriers
from junhong_cmp.cli.up_demo import (
    card_file,
    demo_intervals,
    ensure_account,
    poll_only,
    rows_in,
    set_intervals,
)
from junhong_cmp.db.pool import Pool
from junhong_cmp.embedded.demo_cards import operator_file
from junhong_cmp.polling.config import build_snapshot
from junhong_cmp.polling.config_store import load_config

MOST_POLLS_A_SECOND = 300


@pytest.mark.parametrize("cards", [1, 200, 3_000, 10_000, 1_000_000])
def test_any_number_of_cards_is_polled_at_a_rate_a_small_machine_keeps_up_with(cards: int) -> None:
    intervals = demo_intervals(cards)
    assert sum(cards / rule["interval_s"] for rule in intervals.values()) <= MOST_POLLS_A_SECOND
    assert set(intervals) == {"carddata", "cardstatus", "realname"}


def test_the_example_is_polled_every_half_minute() -> None:
    assert demo_intervals(3_000)["carddata"]["interval_s"] == 30


async def test_account_and_rule_are_made_once_and_make_a_valid_snapshot(pool: Pool) -> None:
    account = await ensure_account(pool, LONE_CARRIER, "http://127.0.0.1:1")
    assert (account.code, account.base_url, account.credential_ref) == ("demo", None, None)
    await set_intervals(pool, account, 3_000)
    await set_intervals(pool, account, 10_000)
    assert (await ensure_account(pool, LONE_CARRIER, "http://127.0.0.1:2")) == account
    assert await pool.fetchval("SELECT count(*) FROM polling_config") == 1
    async with pool.acquire() as conn:
        stored = await load_config(conn)
    (rule,) = build_snapshot(stored.version, stored.rows, stored.accounts).rules
    seconds = {kind.kind: found and found.interval.total_seconds() for kind, found in rule.intervals.items()}
    assert seconds == {"carddata": 100, "cardstatus": 200, "realname": 400}


async def test_each_of_several_accounts_is_what_its_driver_suggests(pool: Pool) -> None:
    carriers = choose_carriers("onelink,unicom,ctcc", None, None)
    for url in ("http://127.0.0.1:1", "http://127.0.0.1:2"):
        for carrier in carriers:
            await ensure_account(pool, carrier, url)
    rows = await pool.fetch(
        "SELECT code, carrier, driver, base_url, credential_ref, billing_day, usage_unit, batch_size"
        " FROM carrier_account ORDER BY id"
    )
    url = "http://127.0.0.1:2"
    assert [tuple(row) for row in rows] == [
        ("demo-onelink", "cmcc", "onelink", url, "demo-onelink", 1, "KB", 100),
        ("demo-unicom", "cucc", "unicom", url, "demo-unicom", 27, "MB", 50),
        ("demo-ctcc", "ctcc", "ctcc", url, "demo-ctcc", 1, "MB", 1),
    ]


async def test_what_an_operator_changed_about_an_account_stays(pool: Pool) -> None:
    (carrier,) = choose_carriers("unicom", None, None)
    await ensure_account(pool, carrier, "http://127.0.0.1:1")
    await pool.execute("UPDATE carrier_account SET qps = 3, batch_size = 7")
    account = await ensure_account(pool, carrier, "http://127.0.0.1:2")
    assert (account.qps, account.batch_size) == (3, 7)


async def test_only_the_accounts_of_a_run_are_polled_and_others_are_let_alone(pool: Pool) -> None:
    both = choose_carriers("onelink,unicom", None, None)
    for carrier in (LONE_CARRIER, *both):
        await ensure_account(pool, carrier, "http://127.0.0.1:1")
    await pool.execute("INSERT INTO carrier_account (code, carrier) VALUES ('own', 'cmcc')")

    async def polled() -> set[str]:
        rows = await pool.fetch("SELECT code FROM carrier_account WHERE polling_enabled")
        return {row["code"] for row in rows}

    await poll_only(pool, both)
    assert await polled() == {"demo-onelink", "demo-unicom", "own"}
    await poll_only(pool, [LONE_CARRIER])
    assert await polled() == {"demo", "own"}


def test_the_example_file_is_imported_where_it_is(tmp_path: Path) -> None:
    path = card_file(tmp_path, LONE_CARRIER, None)
    assert path.name == "cards.csv"
    assert path.parent.name == "examples"
    assert path.read_bytes() == operator_file().content


def test_an_installation_without_examples_writes_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up_demo, "_EXAMPLE", tmp_path / "absent.csv")
    assert card_file(tmp_path, LONE_CARRIER, None).read_bytes() == operator_file().content


def test_generated_files_of_one_size_are_the_same_file(tmp_path: Path) -> None:
    first = card_file(tmp_path, LONE_CARRIER, 50).read_bytes()
    assert card_file(tmp_path, LONE_CARRIER, 50).read_bytes() == first
    assert rows_in(card_file(tmp_path, LONE_CARRIER, 50)) == 51


def test_files_of_several_carriers_have_no_card_in_common(tmp_path: Path) -> None:
    carriers = (LONE_CARRIER, *choose_carriers("generic,onelink,unicom,ctcc", None, None))
    files = [card_file(tmp_path, carrier, 40) for carrier in carriers]
    numbers = [line[:19] for path in files for line in path.read_text("utf-8").splitlines()[1:]]
    assert len(set(numbers)) == len(numbers) == 200
