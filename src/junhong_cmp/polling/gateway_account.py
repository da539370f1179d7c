"""Carrier accounts and cards as the gateway wants them."""

from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.gateway.client import CardRef, GatewayAccount


def gateway_account(account: CarrierAccount) -> GatewayAccount:
    """Return what a call needs of the account."""
    return GatewayAccount(
        id=account.id,
        code=account.code,
        driver=account.driver,
        base_url=account.base_url,
        credential_ref=account.credential_ref,
        usage_unit=account.usage_unit,
        concurrency=account.concurrency,
        batch_size=account.batch_size,
        change_rest=account.operation_min_gap,
        billing_day=account.billing_day,
        tz=account.tz,
        usage_lag=account.usage_lag,
    )


def card_ref(card: Card) -> CardRef:
    """Return what a call needs of the card.

    A card its carrier denies knowing by its number is asked for by its MSISDN every other time: whichever of
    the two the carrier knows brings it back.
    """
    by_msisdn = card.orphan and card.msisdn is not None and card.not_found_count % 2 == 1
    return CardRef(card.id, card.iccid, card.msisdn, by_msisdn)
