"""Numbers on the command line or in a file, and the cards they name."""

from pathlib import Path

import pytest
import typer
from tests.cards.inventory import add_account, add_cards

from junhong_cmp.cards.model import NewCard
from junhong_cmp.cards.store import insert_cards
from junhong_cmp.cli.card_choice import cards_with, chosen_numbers, portions
from junhong_cmp.db.pool import Pool
from junhong_cmp.imports.defusing import as_cell
from junhong_cmp.polling.rule_editor import RuleRefusedError

ONE, TWO = "89860000000000000010", "89860000000000000028"


def test_numbers_come_from_the_command_line_each_once() -> None:
    assert chosen_numbers([TWO, ONE, f" {TWO}"], None) == [TWO, ONE]


@pytest.mark.parametrize("content", [
    f"{ONE}\n\n  {TWO}\n{ONE}\n",
    f"\ufeffICCID\r\n{ONE}\r\n'{TWO}\r\n",
    f'="{ONE}"\r{TWO}',
    f'"ICCID"\n{as_cell(ONE)}\n{as_cell(TWO)}\n',
])  # fmt: skip
def test_numbers_come_from_a_file_or_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    file = tmp_path / "cards.txt"
    file.write_bytes(content.encode())
    assert chosen_numbers(None, str(file)) == [ONE, TWO]
    with file.open(encoding="utf-8") as piped:
        monkeypatch.setattr("sys.stdin", piped)
        assert chosen_numbers([], "-") == [ONE, TWO]


@pytest.mark.parametrize(("given", "file"), [(None, None), ([], None), ([ONE], "cards.txt")])
def test_one_way_of_the_two_it_must_be(given: list[str] | None, file: str | None) -> None:
    with pytest.raises(typer.BadParameter, match="二者选一"):
        chosen_numbers(given, file)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "不存在"),
        (b"\n \n", "中没有卡号"),
        (b"\xff\xfe8\x009\x00", "不是 UTF-8 文本"),
        (f"{ONE}\n8986\n".encode(), "1 个卡号无效：第 2 行：ICCID 应为 19 或 20 位"),
        ("\n".join(["8.98605E+19"] * 7).encode(), "7 个卡号无效：第 1 行：ICCID 是科学计数法"),
    ],
)
def test_a_file_that_is_no_list_of_cards_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, said: str
) -> None:
    file = tmp_path / "cards.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(typer.Exit) as ended:
        chosen_numbers(None, str(file))
    assert ended.value.exit_code == 1
    told = capsys.readouterr().err
    assert said in told
    assert len(told) < 600, "the first faults stand for all"


async def test_numbers_in_either_form_name_their_card_once(pool: Pool) -> None:
    cards = await add_cards(pool, await add_account(pool), 2)
    async with pool.acquire() as conn:
        found = await cards_with(conn, [cards[1].iccid, cards[0].iccid, cards[0].iccid[:19]])
        assert [card.id for card in found] == [cards[1].id, cards[0].id]
        with pytest.raises(RuleRefusedError, match=f"1 个卡号没有对应的卡：{TWO}"):
            await cards_with(conn, [cards[0].iccid, TWO])
        with pytest.raises(RuleRefusedError, match=f"没有 ICCID 为 {TWO} 的卡"):
            await cards_with(conn, [TWO])


async def test_a_short_number_that_several_cards_share_is_refused(pool: Pool) -> None:
    account = await add_account(pool)
    async with pool.acquire() as conn:
        async with conn.transaction():
            await insert_cards(conn, account.id, [NewCard(iccid=ONE), NewCard(iccid=ONE[:19] + "8")])
        with pytest.raises(RuleRefusedError, match="1 个 19 位卡号对应不止一张卡，请给出 20 位"):
            await cards_with(conn, [ONE[:19]])
        assert [card.iccid for card in await cards_with(conn, [ONE])] == [ONE]


def test_many_cards_are_worked_on_in_portions() -> None:
    assert [len(part) for part in portions(range(2500))] == [1000, 1000, 500]
    assert list(portions([])) == []
