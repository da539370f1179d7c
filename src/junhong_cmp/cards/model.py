"""Cards and carrier accounts, in the words of the field."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, NamedTuple

from junhong_cmp.cards.carrier import Carrier


class CardStatus(StrEnum):
    """Where a card is in its life; carrier codes nobody knows are ``UNKNOWN``, never null."""

    UNKNOWN = "unknown"
    INVENTORY = "inventory"
    TESTING = "testing"
    READY = "ready"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    PRE_CANCELLED = "pre_cancelled"
    CANCELLED = "cancelled"


class StopReason(StrEnum):
    """Why a card is stopped."""

    NONE = "none"
    OVER_PLAN = "over_plan"
    THRESHOLD = "threshold"
    POOL = "pool"
    EXPIRED = "expired"
    MANUAL = "manual"
    VIOLATION = "violation"
    IMEI_MISMATCH = "imei_mismatch"
    NOT_REAL_NAME = "not_real_name"
    ARREARS = "arrears"
    CARRIER = "carrier"
    UNKNOWN = "unknown"


class RealNameStatus(StrEnum):
    """Whether the holder's identity is verified, where that is asked for."""

    NOT_REQUIRED = "not_required"
    UNVERIFIED = "unverified"
    VERIFIED = "verified"
    UNKNOWN = "unknown"


class PollTopic(StrEnum):
    """What is asked about a card; each topic has columns of its own for its progress."""

    CARDDATA = "carddata"
    CARDSTATUS = "cardstatus"
    REALNAME = "realname"


class PollProgress(NamedTuple):
    """How one topic of one card fares; an attempt that failed is not a success."""

    attempted_at: datetime | None = None
    succeeded_at: datetime | None = None
    fail_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierAccount:
    """An account at a carrier, with its limits; it is what gets paused, never its cards.

    ``usage_lag`` is how late the carrier's usage figures are, where its answers do not tell their time: a
    figure counts for the day and the billing cycle it was of.
    """

    id: int
    code: str
    name: str
    carrier: Carrier
    driver: str
    base_url: str | None
    credential_ref: str | None
    tz: str
    billing_day: int
    usage_unit: str
    usage_lag: timedelta
    qps: float
    concurrency: int
    daily_quota: int | None
    per_card_min_gap: timedelta
    batch_size: int
    polling_enabled: bool
    paused_until: datetime | None
    pause_reason: str | None
    monthly_quota: int | None = None
    quota_per: Literal["call", "card"] = "call"
    operation_min_gap: timedelta = timedelta(minutes=3)
    protect_enabled: bool = False
    stop_on_expiry: bool = False

    def is_paused(self, now: datetime) -> bool:
        """Whether calls to the carrier have to wait at ``now``."""
        return self.paused_until is not None and now < self.paused_until


class NewCard(NamedTuple):
    """A card to be inserted; ``iccid`` is normalised (see ``cards.iccid``).

    A tuple, because an import makes very many: cheap to make, and a batch of them turns into columns at once.
    """

    iccid: str
    msisdn: str | None = None
    imsi: str | None = None
    imei: str | None = None
    batch_no: str | None = None
    category: str = ""
    plan: str | None = None
    real_name_required: bool = False

    @property
    def iccid19(self) -> str:
        """The part the 19- and the 20-character form of a number have in common."""
        return self.iccid[:19]


class Card(NamedTuple):
    """A live card as the database has it; a tuple, because every poll makes one: four times as cheap."""

    id: int
    iccid: str
    iccid19: str
    msisdn: str | None
    imsi: str | None
    imei: str | None
    account_id: int
    batch_no: str | None
    category: str
    plan: str | None
    pool_id: int | None
    carrier_status_raw: str | None
    status: CardStatus
    status_changed_at: datetime | None
    stop_reason: StopReason
    real_name_required: bool
    real_name_status: RealNameStatus
    network_on: bool | None
    polling_enabled: bool
    orphan: bool
    activated_at: datetime | None
    expires_at: datetime | None
    threshold_kb: int | None
    cycle: str | None
    cycle_used_kb: int
    last_reading_kb: int | None
    last_reading_at: datetime | None
    carddata: PollProgress
    cardstatus: PollProgress
    realname: PollProgress
    not_found_count: int
    version: int

    def progress(self, topic: PollTopic) -> PollProgress:
        """Return the progress of one topic."""
        match topic:
            case PollTopic.CARDDATA:
                return self.carddata
            case PollTopic.CARDSTATUS:
                return self.cardstatus
            case PollTopic.REALNAME:
                return self.realname
