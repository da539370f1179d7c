"""The real ``junhong worker``, which also takes a task that does nothing but note how long it waited."""

import struct
import sys
import time
from pathlib import Path

from junhong_cmp.__main__ import main
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.worker.task_handler import TaskHandler

PROBE = "bench:probe"
FORM = struct.Struct("<dd")
"""When a probe was sent, and how long it waited, in seconds."""


def take_probes(record: Path) -> None:
    """Have task handlers append each probe to ``record`` instead of passing it on."""
    out = record.open("ab", buffering=0)
    others = TaskHandler.process_task

    async def process_task(self: TaskHandler, task: ProcessingTask) -> None:
        if task.type != PROBE:
            await others(self, task)
            return
        (sent,) = struct.unpack("<d", task.payload)
        out.write(FORM.pack(sent, time.time() - sent))

    TaskHandler.process_task = process_task  # type: ignore[method-assign] # only this process is changed


if __name__ == "__main__":
    take_probes(Path(sys.argv.pop(1)))
    sys.exit(main())
