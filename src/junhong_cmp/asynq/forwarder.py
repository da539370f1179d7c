"""Scheduled and retried tasks become pending when their time comes."""

from junhong_cmp.asynq.broker import Broker


class Forwarder:
    """A forwarder moves due tasks of one queue from ``scheduled`` and ``retry`` to ``pending``."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def forward(self, queue: str) -> None:
        """Move everything that is due, a bounded number a script, until nothing is.

        Tasks of this server's own lost dequeues become pending again too.
        """
        await self._broker.put_back_unanswered(queue)
        while await self._broker.forward(queue):
            pass
