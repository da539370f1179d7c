"""Payloads of tasks about one card that no shard has claimed: its package, its stop or resume."""

from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

from junhong_cmp.cards.model import StopReason
from junhong_cmp.polling.errors import InvalidPayloadError
from junhong_cmp.polling.operation_rules import OperationKind
from junhong_cmp.polling.tasks import PAYLOAD_VERSION

_LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True)
class Order:
    """A stop or resume that somebody ordered; ``request_id`` makes handing it in twice harmless."""

    kind: OperationKind
    request_id: str
    reason: StopReason = StopReason.MANUAL
    requested_by: str = ""


@dataclass(frozen=True, slots=True)
class CardPayload:
    """A card by its id, and the order to be carried out; without one the rules decide."""

    card_id: int
    order: Order | None = None

    def encode(self) -> bytes:
        """Return the JSON form, with its version."""
        fields: dict[str, Any] = {"v": PAYLOAD_VERSION, "card_id": self.card_id}
        if self.order is not None:
            fields["order"] = {
                "kind": self.order.kind,
                "reason": self.order.reason,
                "request_id": self.order.request_id,
                "requested_by": self.order.requested_by,
            }
        return orjson.dumps(fields)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read the JSON form; unknown fields are ignored, so newer producers are understood.

        Raises:
            InvalidPayloadError: not JSON, of another version, or with a field that cannot be right.

        """
        try:
            fields = orjson.loads(data)
            version, card_id, order = fields["v"], fields["card_id"], fields.get("order")
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise InvalidPayloadError("卡任务载荷无法解析") from error
        if version != PAYLOAD_VERSION:
            raise InvalidPayloadError(f"卡任务载荷版本 {version!r} 不受支持，当前支持 {PAYLOAD_VERSION}")
        if type(card_id) is not int or card_id <= 0:
            raise InvalidPayloadError("卡任务载荷的 card_id 必须是正整数")
        return cls(card_id, None if order is None else _order(order))


def _order(fields: Any) -> Order:
    try:
        kind, request_id = OperationKind(fields["kind"]), fields["request_id"]
        reason = StopReason(fields.get("reason", StopReason.MANUAL))
        requested_by = fields.get("requested_by", "")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidPayloadError("停复机指令无法解析") from error
    names = (request_id, requested_by)
    if reason is StopReason.NONE or not request_id or any(_is_no_name(name) for name in names):
        raise InvalidPayloadError("停复机指令的原因、请求号或下达人无效")
    return Order(kind, request_id, reason, requested_by)


def _is_no_name(value: object) -> bool:
    return not isinstance(value, str) or len(value) > _LONGEST_NAME or not value.isprintable()
