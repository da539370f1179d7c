"""Clean-up of large tables: no chunk reads what those before it have deleted, or what is to stay."""

from datetime import timedelta

from tests.crowd import Statistics, watched_crowd, whatever_is_known
from tests.polling.plant import poll_task

from junhong_cmp.polling.handlers.cleanup import DataCleanupHandler
from junhong_cmp.polling.tasks import PollPayload, TaskType

RECENT = timedelta(minutes=17_000, seconds=55)
KEEP = {
    "poll_minute": RECENT,
    "poll_error": RECENT,
    "import_row": timedelta(days=90),
}
LEFT = """
    SELECT (SELECT count(*) FROM poll_minute), (SELECT count(*) FROM poll_error),
        (SELECT count(*) FROM import_row)
"""


@whatever_is_known
async def test_a_chunk_reads_no_more_rows_than_it_deletes(postgres_dsn: str, statistics: Statistics) -> None:
    task = poll_task(TaskType.DATA_CLEANUP, PollPayload(0, 0, 0))
    async with watched_crowd(postgres_dsn, statistics, *KEEP) as watch:
        await DataCleanupHandler(watch.pool, keep=KEEP, chunk=1000).process_task(task)
        assert len(watch.plans) == 4 + 4 + 41
        watch.assert_frugal(1000)
        left = await watch.pool.fetchrow(LEFT)
    assert left is not None
    assert tuple(left) == (17_000, 17_000, 0)
