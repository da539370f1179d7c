"""dramatiq: threads, as many as are asked for."""

import threading

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from tally import Tally


def fill(url: str, tasks: int, payload: str) -> None:
    """Enqueue tasks."""
    actor = _declare(url, lambda _payload: None)
    for _ in range(tasks):
        actor.send(payload)


def serve(url: str, concurrency: int, tally: Tally) -> None:
    """Work tasks off."""
    lock = threading.Lock()

    def noop(_payload: str) -> None:
        with lock:
            tally.count()

    actor = _declare(url, noop)
    worker = dramatiq.Worker(actor.broker, worker_threads=concurrency)
    worker.start()
    threading.Event().wait()


def _declare(url: str, function: object) -> dramatiq.Actor:
    broker = RedisBroker(url=url)
    dramatiq.set_broker(broker)
    return dramatiq.actor(function, actor_name="noop", broker=broker)
