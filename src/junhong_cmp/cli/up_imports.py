"""The card files a run of ``junhong up`` hands in, watched together."""

from collections.abc import Sequence
from dataclasses import dataclass

from junhong_cmp.db.pool import Pool
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.store import find_import


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCounts:
    """Rows of all files: about how many there are, how many were dealt with, and what became of them."""

    rows: int = 0
    total: int = 0
    imported: int = 0
    skipped: int = 0
    rejected: int = 0


class DemoImports:
    """Demo imports follow the jobs of some card files until all have ended."""

    def __init__(self, tasks: Sequence[ImportTask], rows: int) -> None:
        self._tasks = list(tasks)
        self._rows = rows

    @property
    def files(self) -> str:
        """The names of the files."""
        return "、".join(task.file_name for task in self._tasks)

    @property
    def counts(self) -> ImportCounts:
        """What is known of all of them together."""
        return ImportCounts(
            rows=self._rows,
            total=sum(task.total for task in self._tasks),
            imported=sum(task.imported for task in self._tasks),
            skipped=sum(task.skipped for task in self._tasks),
            rejected=sum(task.rejected for task in self._tasks),
        )

    @property
    def done(self) -> bool:
        """Whether every file has been imported."""
        return all(task.status is ImportStatus.DONE for task in self._tasks)

    @property
    def failed(self) -> ImportTask | None:
        """The first job that ended without having imported its file."""
        ended = (task for task in self._tasks if task.status.is_final)
        return next((task for task in ended if task.status is not ImportStatus.DONE), None)

    async def refresh(self, pool: Pool) -> None:
        """Read how far they have come."""
        for place, task in enumerate(self._tasks):
            if not task.status.is_final:
                self._tasks[place] = await find_import(pool, task.id) or task
