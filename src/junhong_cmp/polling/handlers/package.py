"""A card's usage against its threshold, plan and pool, evaluated at somebody's request."""

from junhong_cmp.asynq.errors import PutBack, SkipRetry
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.polling.card_payload import CardPayload
from junhong_cmp.polling.errors import InvalidPayloadError
from junhong_cmp.polling.faults import AWAY_DELAY, ENQUEUE_FAULTS, is_dependency_outage
from junhong_cmp.polling.package_evaluator import PackageEvaluator
from junhong_cmp.polling.tasks import TaskType


class PackageHandler:
    """A package handler evaluates the card of a task by what was last read; it asks the carrier nothing.

    Readings that cross a line are evaluated without a task. This is for whoever changes a plan, a pool or a
    threshold and wants the rules to be heard at once.
    """

    task_type = TaskType.POLLING_PACKAGE

    def __init__(self, evaluator: PackageEvaluator) -> None:
        self._evaluator = evaluator

    async def process_task(self, task: ProcessingTask) -> None:
        """Evaluate one card.

        Raises:
            SkipRetry: the payload cannot be read.
            PutBack: PostgreSQL or Redis is away.

        """
        try:
            payload = CardPayload.decode(task.payload)
        except InvalidPayloadError as error:
            raise SkipRetry(str(error)) from error
        try:
            await self._evaluator.evaluate([payload.card_id])
        except ENQUEUE_FAULTS as error:
            if not is_dependency_outage(error):
                raise
            raise PutBack(AWAY_DELAY, f"依赖暂不可用：{type(error).__name__}") from error
