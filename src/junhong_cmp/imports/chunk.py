"""One chunk of rows, all or nothing: cards, outcomes and progress in a single transaction."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from junhong_cmp.cards.model import Card
from junhong_cmp.cards.store import find_by_iccids, insert_cards
from junhong_cmp.db.pool import Conn
from junhong_cmp.imports.errors import CardImportError
from junhong_cmp.imports.model import ImportStatus, RowProblem, RowResult, RowStatus
from junhong_cmp.imports.row_store import find_first_lines, record_rows
from junhong_cmp.imports.rows import Candidate
from junhong_cmp.imports.store import advance_import, lock_import

Outcome: TypeAlias = Candidate | RowResult
_STRETCH: Final = 100
"""Rows decided at a time: whoever else shares the event loop must not wait for a whole chunk."""


class SupersededError(CardImportError):
    """Another run of the same import has moved its progress, or ended it."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows that are judged together.

    ``first_line`` must be the import's ``next_line`` when the chunk is written, and ``next_line`` is
    what it becomes.
    """

    first_line: int
    next_line: int
    outcomes: Sequence[Outcome]


async def write_chunk(conn: Conn, import_id: int, account_id: int, chunk: Chunk) -> list[Card]:
    """Write a chunk inside the caller's transaction and return the cards that are new.

    The lock on the import's row lets one of two simultaneous runs through; the other then finds the
    progress moved.

    Raises:
        SupersededError: the import is not running, or not at ``first_line``; nothing was written.

    """
    current = await lock_import(conn, import_id)
    if current is None or current.status is not ImportStatus.RUNNING or current.next_line != chunk.first_line:
        raise SupersededError("同一导入正由另一个进程执行")
    candidates = [outcome for outcome in chunk.outcomes if isinstance(outcome, Candidate)]
    created = await insert_cards(conn, account_id, [candidate.card for candidate in candidates])
    known = {card.iccid: card for card in created}
    if others := {candidate.value for candidate in candidates} - known.keys():
        known |= await find_by_iccids(conn, others)
    new_ids = {card.id for card in created}
    older_ids = {card.id for card in known.values()} - new_ids
    first_lines = await find_first_lines(conn, import_id, older_ids) if older_ids else {}
    judge = _Judge(account_id, known, new_ids, first_lines)
    results: list[RowResult] = []
    for start in range(0, len(chunk.outcomes), _STRETCH):
        results += [judge.decide(outcome) for outcome in chunk.outcomes[start : start + _STRETCH]]
        await asyncio.sleep(0)
    await record_rows(conn, import_id, results)
    await advance_import(conn, import_id, chunk.next_line, results)
    return created


class _Judge:
    """A judge gives each row its outcome, in the order of the file, once the database has spoken."""

    def __init__(
        self,
        account_id: int,
        known: Mapping[str, Card],
        new_ids: Collection[int],
        first_lines: Mapping[int, int],
    ) -> None:
        self._account_id = account_id
        self._known = known
        self._new_ids = new_ids
        self._first_lines = dict(first_lines)

    def decide(self, outcome: Outcome) -> RowResult:
        if isinstance(outcome, RowResult):
            return outcome
        # Missing only if the card was deleted between the two statements: the whole chunk is tried again.
        card = self._known[outcome.value]
        if card.account_id != self._account_id:
            return _refuse(outcome, RowStatus.REJECTED, RowProblem.OTHER_ACCOUNT, "属于其他账号")
        first_line = self._first_lines.setdefault(card.id, outcome.line_no)
        if first_line != outcome.line_no:
            reason = f"文件内重复，首次出现在第 {first_line} 行"
            return _refuse(outcome, RowStatus.SKIPPED, RowProblem.DUPLICATE_IN_FILE, reason, card.id)
        if card.id not in self._new_ids:
            return _refuse(outcome, RowStatus.SKIPPED, RowProblem.EXISTS, "已存在", card.id)
        return RowResult(
            line_no=outcome.line_no,
            status=RowStatus.IMPORTED,
            value=outcome.value,
            card_id=card.id,
            warnings=outcome.warnings,
        )


def _refuse(
    row: Candidate, status: RowStatus, problem: RowProblem, reason: str, card_id: int | None = None
) -> RowResult:
    return RowResult(
        line_no=row.line_no,
        status=status,
        value=row.value,
        card_id=card_id,
        reason_code=problem,
        reason=reason,
        warnings=row.warnings,
    )
