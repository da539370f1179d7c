"""How many cards of an account one poll may ask about: what leader and consumers agree on without talking."""

from collections.abc import Mapping
from typing import Final

from junhong_cmp.cards.model import CarrierAccount
from junhong_cmp.gateway.client import GatewayCall
from junhong_cmp.gateway.drivers.table import batch_size_of
from junhong_cmp.polling.gateway_account import gateway_account
from junhong_cmp.polling.tasks import TaskType

CALLS: Final[Mapping[TaskType, GatewayCall]] = {
    TaskType.POLLING_CARDDATA: GatewayCall.USAGE,
    TaskType.POLLING_CARDSTATUS: GatewayCall.STATUS,
    TaskType.POLLING_REALNAME: GatewayCall.REALNAME,
}
"""The question each polling task type asks."""


def batch_size(account: CarrierAccount, task_type: TaskType) -> int:
    """Return the most cards of one task; 1 when the account or its driver knows single calls only."""
    if account.batch_size <= 1:
        return 1
    return batch_size_of(gateway_account(account), CALLS[task_type])
