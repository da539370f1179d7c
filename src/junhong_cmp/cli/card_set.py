"""``junhong card set``: the threshold of cards, and the plan they name."""

from dataclasses import asdict
from typing import Annotated

import typer

from junhong_cmp.cards.limit_edit import Keep, LimitEdit
from junhong_cmp.cards.volumes import volume_text
from junhong_cmp.cli.card_choice import NumberFile, Numbers, chosen_numbers
from junhong_cmp.cli.card_set_run import Outcome, apply_edit
from junhong_cmp.cli.inspection import print_json
from junhong_cmp.cli.limit_options import DryRun, parse_name
from junhong_cmp.cli.options import AsJson, ConfigFile, PostgresDsn, RedisUrl
from junhong_cmp.cli.polling_access import PollingAccess
from junhong_cmp.cli.volumes import parse_volume

Threshold = Annotated[
    int | None,
    typer.Option(
        "--threshold",
        "-t",
        metavar="流量",
        parser=parse_volume,
        help="卡自己的阈值：每个计费周期用到多少即停机（账号启用 protect_enabled 时），如 30MB",
        show_default=False,
    ),
]
NoThreshold = Annotated[bool, typer.Option("--no-threshold", help="去掉卡自己的阈值")]
Plan = Annotated[
    str | None,
    typer.Option("--plan", metavar="套餐", parser=parse_name, help="卡的套餐名", show_default=False),
]
NoPlan = Annotated[bool, typer.Option("--no-plan", help="去掉卡的套餐名")]


def set_card(
    numbers: Numbers = None,
    *,
    file: NumberFile = None,
    threshold_kb: Threshold = None,
    no_threshold: NoThreshold = False,
    plan: Plan = None,
    no_plan: NoPlan = False,
    dry_run: DryRun = False,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    redis_url: RedisUrl = None,
    as_json: AsJson = False,
) -> None:
    """Change the limits of cards, and have workers hold their usage against them."""
    edit = _edit_of(threshold_kb, plan, no_threshold=no_threshold, no_plan=no_plan)
    chosen = chosen_numbers(numbers, file)
    access = PollingAccess(config_file, postgres_dsn, redis_url)
    outcome = access.run_with_settings(
        "卡未修改", lambda pool, settings: apply_edit(pool, settings, chosen, edit, dry_run=dry_run)
    )
    if as_json:
        print_json({**asdict(outcome), "saved": not dry_run})
    else:
        _tell(outcome, edit, dry_run=dry_run)


def _edit_of(threshold_kb: int | None, plan: str | None, *, no_threshold: bool, no_plan: bool) -> LimitEdit:
    if no_threshold and threshold_kb is not None:
        raise typer.BadParameter("--threshold 与 --no-threshold 二者选一")
    if no_plan and plan is not None:
        raise typer.BadParameter("--plan 与 --no-plan 二者选一")
    edit = LimitEdit(
        threshold_kb if no_threshold or threshold_kb is not None else Keep.AS_IS,
        plan if no_plan or plan is not None else Keep.AS_IS,
    )
    if edit == LimitEdit():
        raise typer.BadParameter("给出要修改的内容：--threshold 或 --no-threshold，--plan 或 --no-plan")
    return edit


def _tell(outcome: Outcome, edit: LimitEdit, *, dry_run: bool) -> None:
    changes = []
    if not isinstance(edit.threshold_kb, Keep):
        changes.append(f"阈值 {volume_text(edit.threshold_kb)}")
    if not isinstance(edit.plan, Keep):
        changes.append(f"套餐 {edit.plan or '未设'}")
    verb = "校验通过，未改动：将修改" if dry_run else "已修改"
    same = outcome.cards - outcome.changed
    rest = f"，另有 {same} 张原本如此" if same else ""
    typer.echo(f"{verb} {outcome.changed} 张卡：{'，'.join(changes)}{rest}")
    if outcome.cards_to_stop:
        typer.echo(f"提示：其中 {outcome.cards_to_stop} 张已达停机条件，Worker 将逐张判定并停机")
    if outcome.cards_to_resume:
        typer.echo(f"提示：其中 {outcome.cards_to_resume} 张因用量停机、不再超限，Worker 将逐张判定并复机")
    for hint in outcome.hints:
        typer.echo(f"提示：{hint}")
