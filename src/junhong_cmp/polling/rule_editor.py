"""Polling rules changed in PostgreSQL: what the workers would refuse never gets there."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from junhong_cmp.cards.model import CardStatus, RealNameStatus
from junhong_cmp.db.pool import Conn
from junhong_cmp.polling.config import build_snapshot
from junhong_cmp.polling.config_store import StoredConfig, read_config
from junhong_cmp.polling.errors import InvalidSnapshotError, PollingError
from junhong_cmp.polling.tasks import TaskType

DEFAULT_PRIORITY: Final = 100

# Whoever else changes rules or accounts waits: their triggers write this row.
_LOCK = "SELECT version FROM polling_config_version FOR UPDATE"
_INSERT = """
    INSERT INTO polling_config
        (name, priority, account_id, category, card_status, real_name_status, intervals, enabled)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    RETURNING id
"""
_UPDATE = """
    UPDATE polling_config
    SET name = $2, priority = $3, account_id = $4, category = $5, card_status = $6, real_name_status = $7,
        intervals = $8, enabled = $9, updated_at = now()
    WHERE id = $1
"""
_DELETE = "DELETE FROM polling_config WHERE id = $1"
_DEFAULTS: Final[Mapping[str, Any]] = {
    "priority": DEFAULT_PRIORITY,
    "account_id": None,
    "category": None,
    "card_status": None,
    "real_name_status": None,
    "enabled": True,
}
_VALUES: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "card_status": ("卡状态", frozenset(CardStatus)),
    "real_name_status": ("实名状态", frozenset(RealNameStatus)),
}
_MAX_PRIORITY: Final = 2**31 - 1


class RuleRefusedError(PollingError):
    """An edit that cannot be made; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEdit:
    """What is to change in a rule; columns and task types that are not named stay as they are.

    ``intervals`` maps a task type to its fields, merged into those it has, or to None: the rule then says
    nothing about that type any more.
    """

    columns: Mapping[str, Any] = field(default_factory=dict)
    intervals: Mapping[TaskType, Mapping[str, Any] | None] = field(default_factory=dict)


@asynccontextmanager
async def guarded_edit(conn: Conn, *, dry_run: bool = False) -> AsyncIterator[StoredConfig]:
    """Make changes in one transaction that is kept only if all configuration together is valid then.

    A configuration invalid already may be mended step by step: a change that leaves fewer faults, and brings
    no new one, is kept. With ``dry_run`` nothing is kept.

    Raises:
        InvalidSnapshotError: naming every fault the changed configuration would have; nothing was changed.

    """
    transaction = conn.transaction()
    await transaction.start()
    try:
        await conn.execute(_LOCK)
        before = await read_config(conn)
        yield before
        _check_against(before, await read_config(conn))
    except BaseException:
        await transaction.rollback()
        raise
    await (transaction.rollback() if dry_run else transaction.commit())


async def set_rule(conn: Conn, stored: StoredConfig, name: str, edit: RuleEdit) -> tuple[int, bool]:
    """Change the rule of this name, or ``#id``, or make a new one; return its id and whether it is new.

    Raises:
        RuleRefusedError: several rules have the name, there is no such id, a value means nothing, or
            no interval would be left.

    """
    _check_values(edit)
    row = find_rule(stored.rows, name)
    if row is None and name.startswith("#"):
        raise RuleRefusedError(f"没有编号为 {name[1:]} 的规则；junhong polling rules ls 列出现有规则")
    found: Mapping[str, Any] = row if row is not None else {"name": name, "intervals": {}, **_DEFAULTS}
    new = {**found, **edit.columns, "intervals": _merged(found["intervals"], edit)}
    if not isinstance(new["name"], str) or not new["name"].strip():
        raise RuleRefusedError("规则名称不能为空")
    if not new["intervals"] and (row is None or edit.intervals):
        raise RuleRefusedError(
            f"规则 {name} 没有任何间隔，什么也不决定：请给出 --carddata 等，或用 rules rm 删除"
        )
    values = [new[column] for column in ("name", *list(_DEFAULTS)[:-1], "intervals", "enabled")]
    if row is None:
        return int(await conn.fetchval(_INSERT, *values)), True
    await conn.execute(_UPDATE, row["id"], *values)
    return int(row["id"]), False


async def remove_rule(conn: Conn, stored: StoredConfig, name: str) -> int:
    """Remove the rule of this name or ``#id`` and return its id.

    Raises:
        RuleRefusedError: there is no such rule, or several.

    """
    row = find_rule(stored.rows, name)
    if row is None:
        raise RuleRefusedError(f"没有规则 {name}；junhong polling rules ls 列出现有规则")
    await conn.execute(_DELETE, row["id"])
    return int(row["id"])


def find_rule(rows: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    """Return the rule an operator named, by its name or as ``#id``; None if there is none.

    Raises:
        RuleRefusedError: several rules have the name.

    """
    found = [row for row in rows if row["name"] == name]
    if not found:
        found = [row for row in rows if name == f"#{row['id']}"]
    if len(found) > 1:
        ids = "、".join(f"#{row['id']}" for row in found)
        raise RuleRefusedError(f"名为 {name} 的规则有 {len(found)} 条，请用编号指定：{ids}")
    return found[0] if found else None


def problems_of(stored: StoredConfig) -> tuple[str, ...]:
    """Return why the workers would refuse this configuration; nothing if they would not."""
    try:
        build_snapshot(stored.version, stored.rows, stored.accounts, stored.type_pauses)
    except InvalidSnapshotError as error:
        return error.problems
    return ()


def _check_against(before: StoredConfig, after: StoredConfig) -> None:
    left = problems_of(after)
    if left and not set(left) < set(problems_of(before)):
        raise InvalidSnapshotError(left)


def _merged(intervals: Any, edit: RuleEdit) -> dict[str, Any]:
    merged: dict[str, Any] = dict(intervals) if isinstance(intervals, Mapping) else {}
    for task_type, fields in edit.intervals.items():
        known = merged.pop(task_type.kind, None)
        if fields is not None:
            merged[task_type.kind] = {**(known if isinstance(known, Mapping) else {}), **fields}
    return merged


def _check_values(edit: RuleEdit) -> None:
    """Refuse conditions no card can meet: workers would bear them, but nobody means them."""
    for column, (title, known) in _VALUES.items():
        value = edit.columns.get(column)
        if value is not None and value not in known:
            raise RuleRefusedError(f"{title} {value!r} 不存在，可用：{'、'.join(sorted(known))}")
    priority = edit.columns.get("priority", DEFAULT_PRIORITY)
    if not -_MAX_PRIORITY <= priority <= _MAX_PRIORITY:
        raise RuleRefusedError("优先级超出范围")
