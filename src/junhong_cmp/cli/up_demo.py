"""What ``junhong up`` demonstrates with: an account, how often its cards are polled, and a card file."""

from pathlib import Path
from typing import Any, Final

from junhong_cmp.cards.account_store import NewAccount, find_account, record_account
from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.db.pool import Pool
from junhong_cmp.embedded.demo_cards import operator_file, write_clean_cards

ACCOUNT_CODE: Final = "demo"
_RULE_NAME: Final = "演示"
_RULE_PRIORITY: Final = 1_000
_CARDS_A_SECOND: Final = 100  # of usage polls; status and real-name polls add three quarters of it
_MIN_INTERVAL_S: Final = 5
_EXAMPLE: Final = Path(__file__).parents[3] / "examples" / "cards.csv"  # beside the source, not in a wheel

_SET_RULE = """
    UPDATE polling_config SET intervals = $3, updated_at = now()
    WHERE name = $1 AND account_id = $2 RETURNING true
"""
_ADD_RULE = "INSERT INTO polling_config (name, account_id, intervals, priority) VALUES ($1, $2, $3, $4)"


async def ensure_account(pool: Pool) -> CarrierAccount:
    """Return the demo account, created at the first start and left as it is afterwards."""
    async with pool.acquire() as conn, conn.transaction():
        account = await find_account(conn, ACCOUNT_CODE)
        if account is not None:
            return account
        return await record_account(
            conn,
            NewAccount(code=ACCOUNT_CODE, name="演示账号", carrier=Carrier.CMCC, qps=400.0, concurrency=128),
        )


async def set_intervals(pool: Pool, account: CarrierAccount, cards: int) -> None:
    """Poll ``cards`` cards at a rate a small machine keeps up with, whatever their number."""
    intervals = demo_intervals(cards)
    async with pool.acquire() as conn, conn.transaction():
        if not await conn.fetchval(_SET_RULE, _RULE_NAME, account.id, intervals):
            await conn.execute(_ADD_RULE, _RULE_NAME, account.id, intervals, _RULE_PRIORITY)


def demo_intervals(cards: int) -> dict[str, Any]:
    """Return ``polling_config.intervals`` for some number of cards: below 200 polls a second in all."""
    usage_s = max(_MIN_INTERVAL_S, -(-cards // _CARDS_A_SECOND))
    return {
        "carddata": {"interval_s": usage_s, "jitter": 0.1, "enabled": True},
        "cardstatus": {"interval_s": usage_s * 2, "jitter": 0.1, "enabled": True},
        "realname": {"interval_s": usage_s * 4, "jitter": 0.1, "enabled": True},
    }


def card_file(folder: Path, count: int | None) -> Path:
    """Return the file to import: the example, or a generated one of ``count`` cards kept in ``folder``."""
    if count is None:
        if _EXAMPLE.is_file():
            return _EXAMPLE
        path = folder / "cards.csv"
        path.write_bytes(operator_file().content)
        return path
    path = folder / f"cards-{count}.csv"
    write_clean_cards(path, count)
    return path


def rows_in(path: Path) -> int:
    """Return the number of line ends in a file: about the number of its cards."""
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
