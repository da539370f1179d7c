"""The real ``junhong worker``, which also takes probes."""

import sys
from pathlib import Path

from import_bench.probe_record import PROBE, ProbeRecord
from junhong_cmp.__main__ import main
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.worker.task_handler import TaskHandler


def take_probes(record: ProbeRecord) -> None:
    """Have task handlers note each probe instead of passing it on."""
    others = TaskHandler.process_task

    async def process_task(self: TaskHandler, task: ProcessingTask) -> None:
        if task.type == PROBE:
            record.note(task.payload)
        else:
            await others(self, task)

    TaskHandler.process_task = process_task  # type: ignore[method-assign] # only this process is changed


if __name__ == "__main__":
    take_probes(ProbeRecord(Path(sys.argv.pop(1))))
    sys.exit(main())
