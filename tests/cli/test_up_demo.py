"""What ``junhong up`` demonstrates with."""

from pathlib import Path

import pytest

from junhong_cmp.cli import up_demo
from junhong_cmp.cli.up_demo import (
    ACCOUNT_CODE,
    card_file,
    demo_intervals,
    ensure_account,
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
    account = await ensure_account(pool)
    assert account.code == ACCOUNT_CODE
    await set_intervals(pool, account, 3_000)
    await set_intervals(pool, account, 10_000)
    assert (await ensure_account(pool)).id == account.id
    assert await pool.fetchval("SELECT count(*) FROM polling_config") == 1
    async with pool.acquire() as conn:
        stored = await load_config(conn)
    (rule,) = build_snapshot(stored.version, stored.rows, stored.accounts).rules
    seconds = {kind.kind: found and found.interval.total_seconds() for kind, found in rule.intervals.items()}
    assert seconds == {"carddata": 100, "cardstatus": 200, "realname": 400}


def test_the_example_file_is_imported_where_it_is(tmp_path: Path) -> None:
    path = card_file(tmp_path, None)
    assert path.name == "cards.csv"
    assert path.parent.name == "examples"
    assert path.read_bytes() == operator_file().content


def test_an_installation_without_examples_writes_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up_demo, "_EXAMPLE", tmp_path / "absent.csv")
    assert card_file(tmp_path, None).read_bytes() == operator_file().content


def test_generated_files_of_one_size_are_the_same_file(tmp_path: Path) -> None:
    first = card_file(tmp_path, 50).read_bytes()
    assert card_file(tmp_path, 50).read_bytes() == first
    assert rows_in(card_file(tmp_path, 50)) == 51
