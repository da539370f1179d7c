"""celery: its thread pool, as many threads as are asked for; results are ignored."""

import threading

from celery import Celery, Task
from tally import Tally


def fill(url: str, tasks: int, payload: str) -> None:
    """Enqueue tasks."""

    def noop(_payload: str) -> None:
        """Stand for the task on the producer's side."""

    task = _declare(url, noop)
    for _ in range(tasks):
        task.delay(payload)


def serve(url: str, concurrency: int, tally: Tally) -> None:
    """Work tasks off."""
    lock = threading.Lock()

    def noop(_payload: str) -> None:
        with lock:
            tally.count()

    task = _declare(url, noop)
    options = ["--pool=threads", f"--concurrency={concurrency}", "--loglevel=ERROR"]
    task.app.worker_main(["--quiet", "worker", *options])


def _declare(url: str, function: object) -> Task:
    app = Celery("peer", broker=url)
    app.conf.update(task_ignore_result=True, worker_redirect_stdouts=False)
    return app.task(function, name="noop")
