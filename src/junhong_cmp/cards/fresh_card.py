"""A card as it is right after its insertion, without asking the database what it has just been told."""

from typing import Final

from junhong_cmp.cards.model import Card, CardStatus, NewCard, PollProgress, RealNameStatus, StopReason

_NEVER_POLLED: Final = PollProgress()


def _blank(*, real_name_required: bool) -> Card:
    return Card(
        id=0,
        iccid="",
        iccid19="",
        msisdn=None,
        imsi=None,
        imei=None,
        account_id=0,
        batch_no=None,
        category="",
        plan=None,
        pool_id=None,
        carrier_status_raw=None,
        status=CardStatus.UNKNOWN,
        status_changed_at=None,
        stop_reason=StopReason.NONE,
        real_name_required=real_name_required,
        real_name_status=RealNameStatus.UNKNOWN if real_name_required else RealNameStatus.NOT_REQUIRED,
        network_on=None,
        polling_enabled=True,
        orphan=False,
        activated_at=None,
        expires_at=None,
        threshold_kb=None,
        cycle=None,
        cycle_used_kb=0,
        last_reading_kb=None,
        last_reading_at=None,
        carddata=_NEVER_POLLED,
        cardstatus=_NEVER_POLLED,
        realname=_NEVER_POLLED,
        not_found_count=0,
        version=1,
    )


_DEFAULTS: Final = Card._fields.index("pool_id")
"""The fields before this one a new card brings along; from here on it has the defaults of its table."""
_NO_NAME_NEEDED: Final = tuple(_blank(real_name_required=False)[_DEFAULTS:])
_NAME_NEEDED: Final = tuple(_blank(real_name_required=True)[_DEFAULTS:])


def fresh_card(card_id: int, account_id: int, new: NewCard) -> Card:
    """Return the card that ``new`` has become: the defaults of the table ``iot_card`` for all else.

    Reading back some forty columns of each card takes longer than inserting it, and naming them all again
    for each card takes as long as everything else an import does with it.
    """
    iccid, msisdn, imsi, imei, batch_no, category, plan, real_name_required = new
    defaults = _NAME_NEEDED if real_name_required else _NO_NAME_NEEDED
    known = (card_id, iccid, iccid[:19], msisdn, imsi, imei, account_id, batch_no, category, plan)
    return Card._make(known + defaults)
