"""What the options of ``junhong polling rules set`` say about a rule's conditions and intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final

import typer

from junhong_cmp.config.values import parse_duration
from junhong_cmp.polling.tasks import TaskType

Priority = Annotated[
    int | None, typer.Option("--priority", "-p", metavar="数", help="优先级，小者先；新规则默认 100")
]
NewName = Annotated[str | None, typer.Option("--name", metavar="名称", help="改名")]
OfAccount = Annotated[str | None, typer.Option("--account", metavar="账号", help="只对该账号")]
OfCategory = Annotated[str | None, typer.Option("--category", metavar="分类", help="只对该分类")]
OfStatus = Annotated[str | None, typer.Option("--status", metavar="状态", help="只对该卡状态")]
OfRealName = Annotated[str | None, typer.Option("--real-name", metavar="状态", help="只对该实名状态")]
AnyOf = Annotated[
    list[str] | None,
    typer.Option("--any", metavar="条件", help="去掉一个条件：account、category、status、real-name"),
]
CarddataEvery = Annotated[
    str | None,
    typer.Option("--carddata", metavar="间隔", help="流量的间隔，如 4h；off 不轮询，none 留给其他规则"),
]
CardstatusEvery = Annotated[
    str | None, typer.Option("--cardstatus", metavar="间隔", help="卡状态的间隔，写法相同")
]
RealnameEvery = Annotated[
    str | None, typer.Option("--realname", metavar="间隔", help="实名状态的间隔，写法相同")
]
Jitter = Annotated[
    float | None, typer.Option("--jitter", metavar="比例", help="本次给出的各间隔的抖动，0 到 0.45")
]
Enabled = Annotated[
    bool | None, typer.Option("--enable/--disable", help="启用或停用规则", show_default=False)
]

_COLUMNS: Final = {
    "account": "account_id",
    "category": "category",
    "status": "card_status",
    "real-name": "real_name_status",
}
_OFF: Final = "off"
_NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions to set, and the names of those to drop; the account is looked up elsewhere."""

    account: str | None
    category: str | None
    status: str | None
    real_name: str | None
    dropped: tuple[str, ...]

    def columns(self) -> dict[str, Any]:
        """Return the new value of each column that is to change, but for a new account."""
        for name in self.dropped:
            if name not in _COLUMNS:
                raise typer.BadParameter(f"条件只能为 {'、'.join(_COLUMNS)}", param_hint="--any")
        given = {"category": self.category, "status": self.status, "real-name": self.real_name}
        both = sorted(
            {name for name, value in {**given, "account": self.account}.items() if value is not None}
            & set(self.dropped)
        )
        if both:
            raise typer.BadParameter(f"条件 {'、'.join(both)} 既给出又去掉", param_hint="--any")
        columns: dict[str, Any] = {_COLUMNS[name]: None for name in self.dropped}
        return columns | {_COLUMNS[name]: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Intervals:
    """The intervals to set by task type, as texts, and the jitter of those."""

    carddata: str | None
    cardstatus: str | None
    realname: str | None
    jitter: float | None

    def fields(self) -> dict[TaskType, Mapping[str, Any] | None]:
        """Return what changes in the rule's ``intervals``; whether that is valid, the editor says."""
        texts = {
            TaskType.POLLING_CARDDATA: self.carddata,
            TaskType.POLLING_CARDSTATUS: self.cardstatus,
            TaskType.POLLING_REALNAME: self.realname,
        }
        given = {task_type: text for task_type, text in texts.items() if text is not None}
        if self.jitter is not None and not given:
            raise typer.BadParameter("抖动须与间隔一同给出", param_hint="--jitter")
        return {task_type: self._parse(task_type, text) for task_type, text in given.items()}

    def _parse(self, task_type: TaskType, text: str) -> Mapping[str, Any] | None:
        if text == _NONE:
            return None
        if text == _OFF:
            return {"enabled": False}
        try:
            interval: timedelta = parse_duration(text)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint=f"--{task_type.kind}") from error
        seconds = interval.total_seconds()
        fields: dict[str, Any] = {
            "enabled": True,
            "interval_s": int(seconds) if seconds.is_integer() else seconds,
        }
        return fields if self.jitter is None else fields | {"jitter": self.jitter}
