"""Plain values to test with, without a database."""

from datetime import timedelta
from typing import Any

from junhong_cmp.cards.carrier import Carrier
from junhong_cmp.cards.model import (
    Card,
    CardStatus,
    CarrierAccount,
    PollProgress,
    RealNameStatus,
    StopReason,
)


def make_account(**changes: Any) -> CarrierAccount:
    fields: dict[str, Any] = {
        "id": 7,
        "code": "demo",
        "name": "",
        "carrier": Carrier.CMCC,
        "driver": "generic",
        "base_url": None,
        "credential_ref": None,
        "tz": "Asia/Shanghai",
        "billing_day": 1,
        "usage_unit": "KB",
        "usage_lag": timedelta(),
        "qps": 50.0,
        "concurrency": 64,
        "daily_quota": None,
        "per_card_min_gap": timedelta(),
        "batch_size": 1,
        "polling_enabled": True,
        "paused_until": None,
        "pause_reason": None,
    }
    return CarrierAccount(**(fields | changes))


def make_card(**changes: Any) -> Card:
    fields: dict[str, Any] = dict.fromkeys(
        (
            "msisdn",
            "imsi",
            "imei",
            "batch_no",
            "plan",
            "pool_id",
            "carrier_status_raw",
            "status_changed_at",
            "network_on",
            "activated_at",
            "expires_at",
            "threshold_kb",
            "cycle",
            "last_reading_kb",
            "last_reading_at",
        )
    )
    fields |= {
        "id": 1,
        "iccid": "89860000000000000001",
        "iccid19": "8986000000000000000",
        "account_id": 7,
        "category": "",
        "status": CardStatus.UNKNOWN,
        "stop_reason": StopReason.NONE,
        "real_name_required": False,
        "real_name_status": RealNameStatus.UNKNOWN,
        "polling_enabled": True,
        "orphan": False,
        "cycle_used_kb": 0,
        "carddata": PollProgress(),
        "cardstatus": PollProgress(),
        "realname": PollProgress(),
        "not_found_count": 0,
        "version": 1,
    }
    return Card(**(fields | changes))
