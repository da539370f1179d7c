"""How people call what the database keeps as codes."""

from collections.abc import Mapping
from typing import Final

from junhong_cmp.cards.model import CardStatus, RealNameStatus, StopReason

STATUS_NAMES: Final[Mapping[str, str]] = {
    CardStatus.UNKNOWN: "未知",
    CardStatus.INVENTORY: "库存",
    CardStatus.TESTING: "可测试",
    CardStatus.READY: "待激活",
    CardStatus.ACTIVE: "已激活",
    CardStatus.SUSPENDED: "停机",
    CardStatus.PRE_CANCELLED: "预销户",
    CardStatus.CANCELLED: "已销户",
}
STOP_REASON_NAMES: Final[Mapping[str, str]] = {
    StopReason.NONE: "",
    StopReason.OVER_PLAN: "超套餐",
    StopReason.THRESHOLD: "达量",
    StopReason.POOL: "流量池用尽",
    StopReason.EXPIRED: "到期",
    StopReason.MANUAL: "人工",
    StopReason.VIOLATION: "违规",
    StopReason.IMEI_MISMATCH: "机卡分离",
    StopReason.NOT_REAL_NAME: "未实名",
    StopReason.ARREARS: "欠费",
    StopReason.CARRIER: "运营商停机",
    StopReason.UNKNOWN: "未知",
}
REAL_NAME_NAMES: Final[Mapping[str, str]] = {
    RealNameStatus.NOT_REQUIRED: "无需实名",
    RealNameStatus.UNVERIFIED: "未实名",
    RealNameStatus.VERIFIED: "已实名",
    RealNameStatus.UNKNOWN: "未知",
}


def name_of(names: Mapping[str, str], code: str) -> str:
    """Return the name of ``code``; one without a name is shown as it is."""
    return names.get(code, code)
