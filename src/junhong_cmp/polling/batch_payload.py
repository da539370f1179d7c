"""The payload of a task that polls several cards in one call, and telling it from that of a single poll."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

from junhong_cmp.polling.errors import InvalidPayloadError, NewerPayloadError
from junhong_cmp.polling.tasks import PollPayload

BATCH_VERSION: Final = 2
"""Workers before this version find it too new and leave the task to others while its claims hold."""

_UNREADABLE: Final = "轮询任务载荷无法解析"
_CARD_FIELDS: Final = 3


@dataclass(frozen=True, slots=True)
class BatchPayload:
    """What a batch task carries: its account, and of each card the id, the claim, and when it was due."""

    account_id: int
    cards: Sequence[PollPayload]

    def encode(self) -> bytes:
        """Return the JSON form; ``claim`` is there for workers that know single polls only."""
        return orjson.dumps(
            {
                "v": BATCH_VERSION,
                "account_id": self.account_id,
                "claim": max(card.claim for card in self.cards),
                "cards": [(card.card_id, card.claim, card.due) for card in self.cards],
            }
        )

    @classmethod
    def decode(cls, fields: Mapping[str, Any]) -> Self:
        """Read the fields of the JSON form; unknown ones are ignored.

        Raises:
            InvalidPayloadError: a field is missing, or a number is none.

        """
        try:
            account_id, cards = fields["account_id"], fields["cards"]
        except KeyError as error:
            raise InvalidPayloadError(_UNREADABLE) from error
        if not _are_numbers((account_id,)) or type(cards) is not list or not cards:
            raise InvalidPayloadError(_UNREADABLE)
        return cls(account_id, [_card(card, account_id) for card in cards])


def decode_poll(data: bytes) -> PollPayload | BatchPayload:
    """Read the payload of any poll task.

    Raises:
        NewerPayloadError: of a version that only newer workers know.
        InvalidPayloadError: it can never be understood.

    """
    try:
        fields = orjson.loads(data)
        version = fields["v"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InvalidPayloadError(_UNREADABLE) from error
    if version == BATCH_VERSION and type(version) is int:
        return BatchPayload.decode(fields)
    if type(version) is int and version > BATCH_VERSION:
        raise NewerPayloadError(version=version, supported=BATCH_VERSION, claim=fields.get("claim"))
    return PollPayload.of(fields)


def _card(fields: Any, account_id: int) -> PollPayload:
    if type(fields) is not list or len(fields) != _CARD_FIELDS or not _are_numbers(fields):
        raise InvalidPayloadError("轮询任务载荷的字段必须是非负整数")
    card_id, claim, due = fields
    return PollPayload(card_id, account_id, claim, due)


def _are_numbers(values: Sequence[Any]) -> bool:
    return set(map(type, values)) == {int} and min(values) >= 0
