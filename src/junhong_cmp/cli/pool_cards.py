"""``junhong pool put`` and ``take``: cards into a pool and out of it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cards.pool_store import PoolUse, list_members, list_pool_use, put_cards, take_cards
from junhong_cmp.cli.card_choice import (
    NumberFile,
    Numbers,
    cards_with,
    chosen_numbers,
    portions,
    some_of,
)
from junhong_cmp.cli.inspection import print_json
from junhong_cmp.cli.limit_options import AccountCode, PoolName
from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn
from junhong_cmp.cli.polling_access import PollingAccess, account_named
from junhong_cmp.cli.pool_edit import recount
from junhong_cmp.cli.usage import ChineseCommand
from junhong_cmp.db.pool import Conn
from junhong_cmp.polling.rule_editor import RuleRefusedError

WholePool = Annotated[bool, typer.Option("--all", help="池中的全部卡")]


@dataclass(slots=True)
class Moves:
    """How many cards were meant, how many moved, and how many of those came from other pools."""

    cards: int = 0
    moved: int = 0
    from_other_pools: int = 0
    others: set[int] = field(default_factory=set)

    def as_json(self) -> dict[str, int]:
        """Return the counts as plain values."""
        return {name: value for name, value in asdict(self).items() if name != "others"}


def register(group: typer.Typer) -> None:
    """Add the commands to their group."""
    group.command("put", cls=ChineseCommand, help="把卡放入流量池；已在别的池中的改入此池")(put)
    group.command("take", cls=ChineseCommand, help="把卡移出流量池")(take)


def put(
    account: AccountCode,
    name: PoolName,
    numbers: Numbers = None,
    *,
    file: NumberFile = None,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    as_json: AsJson = False,
) -> None:
    """Put cards of the account into its pool, all of them or, if one is not the account's, none."""
    chosen = chosen_numbers(numbers, file)

    async def work(conn: Conn) -> Moves:
        found, pool = await _pool_named(conn, account, name)
        ids = await _ids_of(conn, found, chosen)
        moves = Moves(cards=len(ids))
        for portion in portions(ids):
            before = await put_cards(conn, found.id, pool.id, portion)
            if before is None:
                raise RuleRefusedError(f"流量池 {name} 刚被删除")
            moves.moved += len(before)
            moves.from_other_pools += sum(old is not None for old in before)
            moves.others.update(old for old in before if old is not None)
        await recount(conn, found, [pool.id, *moves.others])
        return moves

    moves = PollingAccess(config_file, postgres_dsn).run("卡未放入流量池", work)
    if as_json:
        print_json(moves.as_json())
        return
    same = moves.cards - moves.moved
    rest = f"，另有 {same} 张已在池中" if same else ""
    came = f"（其中 {moves.from_other_pools} 张来自别的流量池）" if moves.from_other_pools else ""
    typer.echo(f"已放入流量池 {name}：{moves.moved} 张卡{came}{rest}")


def take(
    account: AccountCode,
    name: PoolName,
    numbers: Numbers = None,
    *,
    file: NumberFile = None,
    whole: WholePool = False,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    as_json: AsJson = False,
) -> None:
    """Take cards out of a pool."""
    if whole and (numbers or file is not None):
        raise typer.BadParameter("--all 不与卡号或 --file 同用")
    chosen = None if whole else chosen_numbers(numbers, file)

    async def work(conn: Conn) -> Moves:
        found, pool = await _pool_named(conn, account, name)
        if chosen is None:
            ids = await list_members(conn, pool.id)
        else:
            ids = await _ids_of(conn, found, chosen)
        moves = Moves(cards=len(ids))
        for portion in portions(ids):
            moves.moved += await take_cards(conn, pool.id, portion)
        await recount(conn, found, [pool.id])
        return moves

    moves = PollingAccess(config_file, postgres_dsn).run("卡未移出流量池", work)
    if as_json:
        print_json({"cards": moves.cards, "moved": moves.moved})
        return
    same = moves.cards - moves.moved
    rest = f"，另有 {same} 张不在池中" if same else ""
    typer.echo(f"已移出流量池 {name}：{moves.moved} 张卡{rest}")


async def _pool_named(conn: Conn, code: str, name: str) -> tuple[CarrierAccount, PoolUse]:
    account = await account_named(conn, code)
    pools = await list_pool_use(conn, account.id, name)
    if not pools:
        raise RuleRefusedError(f"账号 {code} 没有流量池 {name}；junhong pool ls 列出现有，pool set 新建")
    return account, pools[0]


async def _ids_of(conn: Conn, account: CarrierAccount, numbers: Sequence[str]) -> list[int]:
    cards = await cards_with(conn, numbers)
    foreign = [card.iccid for card in cards if card.account_id != account.id]
    if foreign:
        raise RuleRefusedError(f"{len(foreign)} 张卡不属于账号 {account.code}：{some_of(foreign)}")
    return [card.id for card in cards]
