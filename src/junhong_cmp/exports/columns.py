"""The columns of an exported list of cards."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

import asyncpg

from junhong_cmp.cards.carrier import CARRIER_NAMES, Carrier
from junhong_cmp.exports.labels import REAL_NAME_NAMES, STATUS_NAMES, STOP_REASON_NAMES, name_of

Cell: TypeAlias = str | int | None

TITLES: Final = (
    "ICCID", "接入号", "IMSI", "IMEI", "账号", "运营商", "批次", "分类", "套餐", "状态", "停机原因", "实名",
    "轮询", "激活时间", "到期时间", "计费周期", "本周期用量(KB)", "读数时间", "最近查询用量", "入库时间",
)  # fmt: skip
COLUMNS: Final = """
    c.id, c.iccid, c.msisdn, c.imsi, c.imei, a.code AS account, a.carrier, c.batch_no, c.category, c.plan,
    c.status, c.stop_reason, c.real_name_status, c.polling_enabled, c.activated_at, c.expires_at, c.cycle,
    c.cycle_used_kb, c.last_reading_at, c.carddata_succeeded_at, c.created_at
"""
"""What :func:`cells_of` needs of ``iot_card AS c JOIN carrier_account AS a``."""


def cells_of(row: asyncpg.Record, zone: ZoneInfo) -> Sequence[Cell]:
    """Return the cells of one card in the order of the titles; a number is what may be added up."""
    return (
        row["iccid"],
        row["msisdn"],
        row["imsi"],
        row["imei"],
        row["account"],
        CARRIER_NAMES[Carrier(row["carrier"])],
        row["batch_no"],
        row["category"],
        row["plan"],
        name_of(STATUS_NAMES, row["status"]),
        name_of(STOP_REASON_NAMES, row["stop_reason"]),
        name_of(REAL_NAME_NAMES, row["real_name_status"]),
        "启用" if row["polling_enabled"] else "停用",
        _moment(row["activated_at"], zone),
        _moment(row["expires_at"], zone),
        row["cycle"],
        row["cycle_used_kb"],
        _moment(row["last_reading_at"], zone),
        _moment(row["carddata_succeeded_at"], zone),
        _moment(row["created_at"], zone),
    )


def _moment(instant: datetime | None, zone: ZoneInfo) -> str | None:
    return None if instant is None else f"{instant.astimezone(zone):%Y-%m-%d %H:%M:%S}"
