"""A carrier account as the gateway wants it."""

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.gateway.client import GatewayAccount


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
    )
