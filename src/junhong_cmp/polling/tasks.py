"""Names and payloads of the platform's tasks, as they stand on the wire."""

from enum import StrEnum
from typing import Any, Final, NamedTuple, Self

import orjson

from junhong_cmp.polling.errors import InvalidPayloadError

POLLING_QUEUE: Final = "polling"
IMPORT_QUEUE: Final = "import"
CRON_QUEUE: Final = "default"

PAYLOAD_VERSION: Final = 1

_UNREADABLE: Final = "轮询任务载荷无法解析"


class TaskType(StrEnum):
    """Every task type of the platform; the values are a wire format and never change."""

    POLLING_CARDDATA = "polling:carddata"
    POLLING_CARDSTATUS = "polling:cardstatus"
    POLLING_REALNAME = "polling:realname"
    POLLING_PACKAGE = "polling:package"
    POLLING_PROTECT = "polling:protect"
    IOT_CARD_IMPORT = "iot_card:import"
    DATA_CLEANUP = "platform:data_cleanup"
    IMPORT_REDRIVE = "platform:import_redrive"
    ALERT_CHECK = "platform:alert_check"
    CYCLE_ROLLOVER = "platform:cycle_rollover"
    EXPIRY_CHECK = "platform:expiry_check"
    USAGE_ROLLUP = "platform:usage_rollup"
    OPERATION_FOLLOWUP = "platform:operation_followup"
    QUOTA_RESET = "platform:quota_reset"
    ORPHAN_DIFF = "platform:orphan_diff"

    @property
    def kind(self) -> str:
        """The part after the colon: ``carddata`` names columns, settings and shards."""
        return self.value.partition(":")[2]


POLLING_TASK_TYPES: Final = (
    TaskType.POLLING_CARDDATA,
    TaskType.POLLING_CARDSTATUS,
    TaskType.POLLING_REALNAME,
)


class PollPayload(NamedTuple):
    """What a poll task carries: the card, its account, the claim, and when the card was due.

    ``claim`` and ``due`` are unix milliseconds of Redis time; ``due`` 0 means unknown.
    No personal data travels in a task, only ids.
    """

    card_id: int
    account_id: int
    claim: int
    due: int = 0

    def encode(self) -> bytes:
        """Return the JSON form, with its version."""
        return orjson.dumps(
            {
                "v": PAYLOAD_VERSION,
                "card_id": self.card_id,
                "account_id": self.account_id,
                "claim": self.claim,
                "due": self.due,
            },
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read the JSON form.

        Raises:
            InvalidPayloadError: not JSON, or see ``of``.

        """
        try:
            fields = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise InvalidPayloadError(_UNREADABLE) from error
        return cls.of(fields)

    @classmethod
    def of(cls, fields: Any) -> Self:
        """Read the fields of the JSON form; unknown ones are ignored, so newer producers are understood.

        Raises:
            InvalidPayloadError: of another version, or a field is missing or no integer.

        """
        try:
            version = fields["v"]
            values = (fields["card_id"], fields["account_id"], fields["claim"], fields.get("due", 0))
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidPayloadError(_UNREADABLE) from error
        if version != PAYLOAD_VERSION:
            raise InvalidPayloadError(f"轮询任务载荷版本 {version!r} 不受支持，当前支持 {PAYLOAD_VERSION}")
        if any(type(value) is not int or value < 0 for value in values):
            raise InvalidPayloadError("轮询任务载荷的字段必须是非负整数")
        return cls(*values)
