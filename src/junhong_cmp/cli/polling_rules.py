"""``junhong polling rules``: the polling rules, listed, checked, set and removed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from junhong_cmp.cli.inspection import REFUSED, print_json
from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn
from junhong_cmp.cli.polling_access import PollingAccess, account_named
from junhong_cmp.cli.rule_options import (
    AnyOf,
    CarddataEvery,
    CardstatusEvery,
    Conditions,
    Enabled,
    Intervals,
    Jitter,
    NewName,
    OfAccount,
    OfCategory,
    OfRealName,
    OfStatus,
    Priority,
    RealnameEvery,
)
from junhong_cmp.cli.rule_shift_texts import load_texts, shift_texts, shifts_as_json
from junhong_cmp.cli.usage import ChineseCommand, ChineseGroup
from junhong_cmp.db.pool import Conn
from junhong_cmp.polling.config import PollingConfigSnapshot, build_snapshot
from junhong_cmp.polling.config_store import StoredConfig, load_config, read_config
from junhong_cmp.polling.rule_editor import RuleEdit, guarded_edit, problems_of, remove_rule, set_rule
from junhong_cmp.polling.rule_matches import CardGroup, MatchReport, load_groups, match_groups
from junhong_cmp.polling.rule_shifts import RuleShift, find_shifts

RuleName = Annotated[str, typer.Argument(metavar="规则", help="规则的名称，或 #编号")]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="只校验并显示结果，不改动")]


@dataclass(frozen=True, slots=True)
class Rules:
    """The configuration as stored, why the workers would refuse it, and what it matches if they would not."""

    stored: StoredConfig
    problems: tuple[str, ...]
    matches: MatchReport | None
    snapshot: PollingConfigSnapshot | None = None
    groups: Sequence[CardGroup] = ()

    def shifts_since(self, before: StoredConfig, rule_id: int) -> list[RuleShift]:
        """Return what the change of that rule meant for the others; nothing while workers would refuse it."""
        if self.snapshot is None:
            return []
        return find_shifts(self.groups, _snapshot(before), self.snapshot, rule_id)

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        codes = {account.id: account.code for account in self.stored.accounts}
        rules = [{**row, "account": codes.get(row["account_id"])} for row in self.stored.rows]
        if self.matches is None:
            return {"version": self.stored.version, "problems": self.problems, "rules": rules}
        for rule in rules:
            found = self.matches.rules.get(rule["id"])
            rule.update({"cards": found.cards, "decides": dict(found.decides)} if found else {"cards": None})
        counts = {
            "cards": self.matches.cards,
            "unmatched": self.matches.unmatched,
            "undecided": self.matches.undecided,
        }
        loads = [{**asdict(load), "too_much": load.is_too_much} for load in self.matches.loads]
        return {
            "version": self.stored.version,
            "problems": self.problems,
            "rules": rules,
            **counts,
            "loads": loads,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """A changed rule, the rules as they are with it, and what that means for those beside it."""

    rule_id: int
    rules: Rules
    shifts: Sequence[RuleShift]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {"id": self.rule_id, "shifts": shifts_as_json(self.shifts), **self.rules.as_json()}


def register(app: typer.Typer) -> None:
    """Add the group to the polling commands."""
    group = typer.Typer(cls=ChineseGroup, no_args_is_help=True)
    for name, explanation, command in (
        ("ls", "列出规则，以及各规则匹配多少张卡", list_rules),
        ("check", "校验规则，报告无规则的卡与超出账号速率的负载", check_rules),
        ("set", "新建或修改一条规则，整体校验通过才写入", change_rule),
        ("rm", "删除一条规则，整体校验通过才写入", delete_rule),
    ):
        group.command(name, cls=ChineseCommand, help=explanation)(command)
    app.add_typer(group, name="rules", help="轮询规则")


def list_rules(
    config_file: ConfigFile = None, postgres_dsn: PostgresDsn = None, as_json: AsJson = False
) -> None:
    """Print every rule."""
    _show(PollingAccess(config_file, postgres_dsn).run("无法读取轮询规则", _load), as_json=as_json)


def check_rules(
    config_file: ConfigFile = None, postgres_dsn: PostgresDsn = None, as_json: AsJson = False
) -> None:
    """Print what the workers make of the rules; a configuration they refuse ends with code 1."""
    rules = PollingAccess(config_file, postgres_dsn).run("无法读取轮询规则", _load)
    if as_json:
        print_json(rules.as_json())
    else:
        from junhong_cmp.cli.polling_screen import print_check  # noqa: PLC0415 - JSON needs no tables

        print_check(rules.problems, rules.matches, rules.stored)
    if rules.problems:
        raise typer.Exit(REFUSED)


def change_rule(
    rule: RuleName,
    *,
    priority: Priority = None,
    name: NewName = None,
    account: OfAccount = None,
    category: OfCategory = None,
    status: OfStatus = None,
    real_name: OfRealName = None,
    any_of: AnyOf = None,
    carddata: CarddataEvery = None,
    cardstatus: CardstatusEvery = None,
    realname: RealnameEvery = None,
    jitter: Jitter = None,
    enabled: Enabled = None,
    dry_run: DryRun = False,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    as_json: AsJson = False,
) -> None:
    """Make or change a rule; only what is given changes."""
    conditions = Conditions(account, category, status, real_name, tuple(any_of or ()))
    plain = {"priority": priority, "name": name, "enabled": enabled}
    columns = {column: value for column, value in plain.items() if value is not None} | conditions.columns()
    intervals = Intervals(carddata, cardstatus, realname, jitter).fields()

    async def work(conn: Conn) -> tuple[bool, Change]:
        if account is not None:
            columns["account_id"] = (await account_named(conn, account)).id
        async with guarded_edit(conn, dry_run=dry_run) as stored:
            rule_id, is_new = await set_rule(
                conn, stored, rule, RuleEdit(columns=columns, intervals=intervals)
            )
            return is_new, await _changed(conn, stored, rule_id)

    is_new, change = PollingAccess(config_file, postgres_dsn).run("规则未保存", work)
    if as_json:
        print_json({"created": is_new, "saved": not dry_run, **change.as_json()})
        return
    verb = "校验通过，未改动" if dry_run else "已新建" if is_new else "已修改"
    _tell(change, f"{verb}；{_matched(change)}")


def delete_rule(
    rule: RuleName,
    dry_run: DryRun = False,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
) -> None:
    """Remove a rule."""

    async def work(conn: Conn) -> Change:
        async with guarded_edit(conn, dry_run=dry_run) as stored:
            return await _changed(conn, stored, await remove_rule(conn, stored, rule))

    change = PollingAccess(config_file, postgres_dsn).run("规则未删除", work)
    matches = change.rules.matches
    unmatched = matches.unmatched if matches is not None else 0
    verb = "可以删除，未改动" if dry_run else "已删除"
    _tell(change, f"{verb}；没有规则匹配的卡 {unmatched} 张")


def _tell(change: Change, what: str) -> None:
    typer.echo(f"规则 #{change.rule_id} {what}")
    matches = change.rules.matches
    for text in (*shift_texts(change.shifts), *load_texts(matches.loads if matches is not None else ())):
        typer.echo(text)


async def _load(conn: Conn) -> Rules:
    return await _judge(conn, await load_config(conn))


async def _changed(conn: Conn, before: StoredConfig, rule_id: int) -> Change:
    rules = await _judge(conn, await read_config(conn))
    return Change(rule_id, rules, rules.shifts_since(before, rule_id))


async def _judge(conn: Conn, stored: StoredConfig) -> Rules:
    problems, snapshot = problems_of(stored), _snapshot(stored)
    if snapshot is None:
        return Rules(stored, problems, None)
    groups = await load_groups(conn)
    return Rules(stored, (), match_groups(groups, snapshot), snapshot, groups)


def _snapshot(stored: StoredConfig) -> PollingConfigSnapshot | None:
    """Return what the workers make of a configuration, None if they refuse it."""
    if problems_of(stored):
        return None
    return build_snapshot(stored.version, stored.rows, stored.accounts, stored.type_pauses)


def _matched(change: Change) -> str:
    rules = change.rules
    if rules.matches is None:
        return f"配置仍无效：{'；'.join(rules.problems)}"
    found = rules.matches.rules.get(change.rule_id)
    return "规则处于停用状态" if found is None else f"匹配 {found.cards} 张卡"


def _show(rules: Rules, *, as_json: bool) -> None:
    if as_json:
        print_json(rules.as_json())
        return
    from junhong_cmp.cli.polling_screen import print_rules  # noqa: PLC0415 - JSON needs no tables

    print_rules(rules.problems, rules.matches, rules.stored)
