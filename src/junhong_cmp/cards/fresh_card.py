"""A card as it is right after its insertion, without asking the database what it has just been told."""

from typing import Final

from junhong_cmp.cards.model import Card, CardStatus, NewCard, PollProgress, RealNameStatus, StopReason

_NEVER_POLLED: Final = PollProgress()


def fresh_card(card_id: int, account_id: int, new: NewCard) -> Card:
    """Return the card that ``new`` has become: the defaults of the table ``iot_card`` for all else.

    Reading back some forty columns of each card takes longer than inserting it.
    """
    return Card(
        id=card_id,
        iccid=new.iccid,
        iccid19=new.iccid19,
        msisdn=new.msisdn,
        imsi=new.imsi,
        imei=new.imei,
        account_id=account_id,
        batch_no=new.batch_no,
        category=new.category,
        plan=new.plan,
        pool_id=None,
        carrier_status_raw=None,
        status=CardStatus.UNKNOWN,
        status_changed_at=None,
        stop_reason=StopReason.NONE,
        real_name_required=new.real_name_required,
        real_name_status=RealNameStatus.UNKNOWN if new.real_name_required else RealNameStatus.NOT_REQUIRED,
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
