"""What becomes of a task, judged by how its handler ended."""

import asyncio
import math
import time

import structlog

from junhong_cmp.asynq.broker_types import Ack, AckKind
from junhong_cmp.asynq.cancel_requests import CancelPolicy
from junhong_cmp.asynq.errors import AsynqError, PutBack, RevokeTask, SkipRetry
from junhong_cmp.asynq.in_flight import CancelCause, InFlight
from junhong_cmp.asynq.mux import UnknownTaskTypeError
from junhong_cmp.asynq.retry import choose_delay
from junhong_cmp.asynq.server_config import ServerConfig

log = structlog.stdlib.get_logger(__name__)

_ERROR_TEXT_LIMIT = 1000
"""Longer error texts are cut: they are stored with the task and shown in lists."""


class HandlerCancelledError(AsynqError):
    """The handler was cancelled by the server, or let itself be cancelled; a failure of the task."""


class Judge:
    """A judge turns the end of a handler into the one acknowledgement to write, or into none."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._told_types: set[str] = set()

    def judge(self, item: InFlight, error: BaseException | None) -> Ack | None:
        """Return the acknowledgement for ``item``, whose handler returned (None) or raised ``error``.

        None means that nothing may be written, because the task is no longer ours.
        A handler that was cancelled and still came to a result of its own has that
        result honoured: the work is done, or the decision is made.
        """
        if item.cause is CancelCause.LEASE_LOST:
            log.warning("租约已失去，丢弃任务结果", **_facts(item))
            return None
        if error is None:
            kind = AckKind.COMPLETE if item.leased.message.retention > 0 else AckKind.DONE
            return Ack(kind=kind, task=item.leased)
        if isinstance(error, PutBack | UnknownTaskTypeError):
            return self._put_back(item, error)
        if isinstance(error, RevokeTask) or self._to_be_dropped(item, error):
            log.info("任务已撤销", **_facts(item))
            return Ack(kind=AckKind.DONE, task=item.leased)
        if item.cause is CancelCause.SHUTDOWN and not isinstance(error, SkipRetry):
            # whatever a cancelled handler raises on its way out says nothing about the task
            return Ack(kind=AckKind.REQUEUE, task=item.leased)
        return self._failed(item, _named(item, error))

    def _to_be_dropped(self, item: InFlight, error: BaseException) -> bool:
        return self._unwanted(item, CancelPolicy.DROP) and not isinstance(error, SkipRetry)

    def _unwanted(self, item: InFlight, policy: CancelPolicy) -> bool:
        """Say whether an operator cancelled the task and ``policy`` is what then becomes of it."""
        return item.cause is CancelCause.REQUESTED and policy is (
            item.cancel_policy or self._config.cancel_policy
        )

    def _put_back(self, item: InFlight, error: PutBack | UnknownTaskTypeError) -> Ack:
        if isinstance(error, UnknownTaskTypeError):
            delay, reason = self._config.unknown_type_delay, str(error)
            if error.task_type not in self._told_types:
                self._told_types.add(error.task_type)
                log.warning("未知任务类型，延后放回队列", delay_s=delay.total_seconds(), **_facts(item))
        else:
            delay, reason = error.delay, error.reason
            log.debug("任务放回队列", reason=reason, delay_s=delay.total_seconds(), **_facts(item))
        at = math.ceil(time.time() + delay.total_seconds())
        return Ack(kind=AckKind.RETRY, task=item.leased, error=_text(reason), is_failure=False, at=at)

    def _failed(self, item: InFlight, error: BaseException) -> Ack:
        self._tell_error_handler(item, error)
        text = _text(str(error) or type(error).__name__)
        task = item.task
        unwanted = isinstance(error, SkipRetry) or self._unwanted(item, CancelPolicy.ARCHIVE)
        if unwanted or task.retried >= task.max_retry:
            # A handler that says SkipRetry has judged the task: its words tell all there is.
            trace = None if isinstance(error, SkipRetry) else error
            log.error("任务失败，已归档", error=text, exc_info=trace, **_facts(item))
            return Ack(kind=AckKind.ARCHIVE, task=item.leased, error=text)
        delay = choose_delay(self._config.retry_delay, error, task)
        log.warning(
            "任务失败，将重试", error=text, delay_s=delay.total_seconds(), exc_info=error, **_facts(item)
        )
        return Ack(
            kind=AckKind.RETRY,
            task=item.leased,
            error=text,
            is_failure=self._config.is_failure(error),
            at=math.ceil(time.time() + delay.total_seconds()),
        )

    def _tell_error_handler(self, item: InFlight, error: BaseException) -> None:
        if self._config.error_handler is None:
            return
        try:
            self._config.error_handler(item.task, error)
        except Exception:  # the caller's own reporting must not decide what becomes of the task
            log.exception("错误回调自身出错", **_facts(item))


def _named(item: InFlight, error: BaseException) -> BaseException:
    if isinstance(error, asyncio.CancelledError):
        return HandlerCancelledError(f"任务处理被取消：{item.cause or '处理器自行取消'}")
    return error


def _text(text: str) -> str:
    text = text.encode(errors="replace").decode()  # no log stream takes lone surrogates
    return text if len(text) <= _ERROR_TEXT_LIMIT else text[: _ERROR_TEXT_LIMIT - 1] + "…"


def _facts(item: InFlight) -> dict[str, object]:
    task = item.task
    return {
        "task_type": task.type,
        "task_id": task.id,
        "queue": task.queue,
        "retried": task.retried,
        "max_retry": task.max_retry,
    }
