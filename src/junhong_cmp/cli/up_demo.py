"""What ``junhong up`` demonstrates with: accounts, how often their cards are polled, and card files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from junhong_cmp.cards.account_store import NewAccount, find_account, record_account
from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.cli.up_carriers import DemoCarrier, every_account_code
from junhong_cmp.db.pool import Pool
from junhong_cmp.embedded.demo_cards import operator_file, write_clean_cards
from junhong_cmp.embedded.demo_series import CardSeries
from junhong_cmp.gateway.drivers.table import DRIVERS

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
_MOVE = "UPDATE carrier_account SET base_url = $2, updated_at = now() WHERE id = $1"
_POLL_ONLY = """
    UPDATE carrier_account SET polling_enabled = (code = ANY($1::text[])), updated_at = now()
    WHERE code = ANY($2::text[]) AND polling_enabled <> (code = ANY($1::text[]))
"""


async def ensure_account(pool: Pool, carrier: DemoCarrier, url: str) -> CarrierAccount:
    """Return a carrier's account, created at the first start and afterwards left as it is.

    One of several gets its simulator's address at every start; one that is alone has the gateway's.
    """
    async with pool.acquire() as conn, conn.transaction():
        account = await find_account(conn, carrier.code)
        if account is None:
            account = await record_account(conn, _new_account(carrier))
        if not carrier.alone:
            await conn.execute(_MOVE, account.id, url)
        return account


async def poll_only(pool: Pool, carriers: Sequence[DemoCarrier]) -> None:
    """Let accounts of earlier runs rest that have no carrier in this one."""
    await pool.execute(_POLL_ONLY, [carrier.code for carrier in carriers], every_account_code())


async def set_intervals(pool: Pool, account: CarrierAccount, cards: int) -> None:
    """Poll an account's cards so that ``cards`` of all accounts are what a small machine keeps up with."""
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


def card_file(folder: Path, carrier: DemoCarrier, count: int | None) -> Path:
    """Return the file to import: the example, or a generated one of ``count`` cards kept in ``folder``."""
    if count is None:
        if _EXAMPLE.is_file():
            return _EXAMPLE
        path = folder / "cards.csv"
        path.write_bytes(operator_file().content)
        return path
    if carrier.alone:
        path, series = folder / f"cards-{count}.csv", CardSeries(carrier.carrier)
    else:
        path = folder / f"cards-{carrier.driver}-{count}.csv"
        series = CardSeries.named(carrier.carrier, carrier.driver)
    write_clean_cards(path, count, series)
    return path


def rows_in(path: Path) -> int:
    """Return the number of line ends in a file: about the number of its cards."""
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def _new_account(carrier: DemoCarrier) -> NewAccount:
    """Describe an account as its driver suggests, in the largest batches that the carrier takes."""
    if carrier.alone:
        return NewAccount(
            code=carrier.code, name=carrier.name, carrier=carrier.carrier, qps=400.0, concurrency=128
        )
    defaults = DRIVERS[carrier.driver].defaults
    return NewAccount(
        code=carrier.code,
        name=carrier.name,
        carrier=carrier.carrier,
        driver=carrier.driver,
        credential_ref=carrier.credential_ref,
        billing_day=defaults.billing_day,
        usage_unit=defaults.usage_unit,
        batch_size=max(defaults.batch_sizes.values(), default=1),
        qps=200.0,
        concurrency=64,
    )
