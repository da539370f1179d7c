"""Files as operators send them, their deliveries, and a stand-in for who is told of new cards."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.cards.model import Card
from junhong_cmp.imports.model import ImportStatus, ImportTask
from junhong_cmp.imports.tasks import message_for

PutFile: TypeAlias = Callable[[bytes], Coroutine[Any, Any, ImportTask]]


class Announcements:
    """A stand-in for the polling lifecycle: remembers who was announced, in order."""

    def __init__(self) -> None:
        self.card_ids: list[int] = []
        self.fail_at_call: int | None = None
        self.calls = 0

    async def cards_created(self, cards: Sequence[Card]) -> None:
        self.calls += 1
        if self.calls == self.fail_at_call:
            raise ConnectionResetError
        self.card_ids += [card.id for card in cards]


def delivery(import_id: int, *, draining: asyncio.Event | None = None, **fields: Any) -> ProcessingTask:
    """One delivery of the task of an import."""
    task, options = message_for(import_id)
    return ProcessingTask(
        id=options.task_id or "",
        type=task.type,
        payload=task.payload,
        deadline=datetime.now(UTC) + timedelta(minutes=5),
        draining=draining or asyncio.Event(),
        **fields,
    )


def make_import(**changes: Any) -> ImportTask:
    """An import as the database gives it, handed in and not begun."""
    fields: dict[str, Any] = {
        "id": 1,
        "account_id": 1,
        "file_name": "卡.csv",
        "file_key": "file",
        "file_sha256": "0" * 64,
        "file_bytes": 1,
        "file_lines": None,
        "sheet": "",
        "status": ImportStatus.PENDING,
        "total": 0,
        "imported": 0,
        "skipped": 0,
        "rejected": 0,
        "warned": 0,
        "next_line": 0,
        "result_key": None,
        "error": None,
        "waits_for": None,
        "notes": (),
        "created_at": datetime(2026, 3, 1, tzinfo=UTC),
        "started_at": None,
        "finished_at": None,
    }
    return ImportTask(**(fields | changes))


def iccid(number: int) -> str:
    """A valid ICCID of China Mobile with a correct check digit."""
    body = f"8986040000{number:09d}"
    total = sum(
        int(digit) if at % 2 else sum(divmod(2 * int(digit), 10)) for at, digit in enumerate(reversed(body))
    )
    return f"{body}{-total % 10}"


def card_file(numbers: Sequence[int]) -> bytes:
    """A clean CSV file of these cards, one a line, the first on line 2."""
    return ("ICCID,接入号\n" + "".join(f"{iccid(n)},1064{n:09d}\n" for n in numbers)).encode()
