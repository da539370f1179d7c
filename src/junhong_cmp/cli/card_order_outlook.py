"""What stands before a stop or resume ordered by hand, so that nobody wonders why it is late."""

from collections.abc import Sequence
from datetime import UTC, datetime

from junhong_cmp.cards.account_store import list_accounts
from junhong_cmp.cards.model import Card, CarrierAccount
from junhong_cmp.cli.inspection import moment
from junhong_cmp.cli.polling_access import until_text
from junhong_cmp.config.values import format_duration
from junhong_cmp.db.pool import Pool
from junhong_cmp.polling.card_payload import Order
from junhong_cmp.polling.operation_rules import OperationKind, OperationStatus
from junhong_cmp.polling.operation_sending import find_last_sent
from junhong_cmp.polling.operation_store import OpenOperation, find_operations

KIND_NAMES = {OperationKind.STOP: "停机", OperationKind.RESUME: "复机"}
_ENDED = {OperationStatus.DONE: "完成", OperationStatus.FAILED: "失败", OperationStatus.UNKNOWN: "结果未知"}


async def load_outlook(pool: Pool, card: Card, order: Order) -> Sequence[str]:
    """Return, a sentence each, what will keep the workers from carrying the order out at once."""
    found = await find_operations(pool, card.id, order.request_id)
    for operation in found:
        if operation.request_id == order.request_id:
            return (_repeated(operation),)
    async with pool.acquire() as conn:
        account = next(each for each in await list_accounts(conn) if each.id == card.account_id)
    if not account.polling_enabled:
        return (f"账号 {account.code} 已停用，此指令将记为失败而不发送",)
    return [
        *_rest(account),
        *([_behind(found[0], account)] if found else await _gap(pool, card, account)),
    ]


def _repeated(operation: OpenOperation) -> str:
    how = _ENDED.get(operation.status, "尚未结束")
    kind, at = KIND_NAMES[operation.kind], moment(operation.requested_at)
    return f"此请求号已于 {at} 下达过（{kind}，{how}），不再另行执行"


def _rest(account: CarrierAccount) -> Sequence[str]:
    until = account.paused_until
    if until is None or until <= datetime.now(UTC):
        return ()
    return (f"账号 {account.code} 正在暂停，到{until_text(until)}，此后才会执行",)


def _behind(operation: OpenOperation, account: CarrierAccount) -> str:
    how = "尚未发出" if operation.sent_at is None else "等待运营商的结果"
    return (
        f"该卡有{KIND_NAMES[operation.kind]}操作尚未结束（请求号 {operation.request_id}，"
        f"{moment(operation.requested_at)} 下达，{how}）；此指令排在其后，每分钟再看一次，"
        f"且两次发送至少间隔 {format_duration(account.operation_min_gap)}"
    )


async def _gap(pool: Pool, card: Card, account: CarrierAccount) -> Sequence[str]:
    last = await find_last_sent(pool, card.id)
    if last is None or last + account.operation_min_gap <= datetime.now(UTC):
        return ()
    gap = format_duration(account.operation_min_gap)
    return (f"距该卡上次停复机不足 {gap}，此指令约 {moment(last + account.operation_min_gap)} 发出",)
