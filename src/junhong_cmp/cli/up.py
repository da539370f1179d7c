"""``junhong up``: the whole system on this machine, with no set-up."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from junhong_cmp.cli.options import AsJson, ConfigFile
from junhong_cmp.cli.output_file import refuse_unwritable
from junhong_cmp.cli.settings import load_settings
from junhong_cmp.cli.signals import StopSignals
from junhong_cmp.cli.usage import ChineseCommand
from junhong_cmp.config.values import parse_duration

# The embedded servers' addresses are known only once they run; these satisfy the configuration until then.
_EMBEDDED = {"redis.url": "unix:///embedded", "postgres.dsn": "postgresql:///embedded"}


RunFor = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="时长",
        help="导入完成并开始轮询后运行多久，如 20s；不设则直到 Ctrl-C",
        show_default=False,
    ),
]
Cards = Annotated[
    int | None,
    typer.Option(
        min=1, max=1_000_000, metavar="N", help="改用生成的 N 张卡，代替示例文件", show_default=False
    ),
]
Carriers = Annotated[
    str | None,
    typer.Option(
        metavar="驱动,…",
        help="同时轮询多家运营商，如 onelink,unicom,ctcc：各有账号、密钥与模拟网关，卡平均分配",
        show_default=False,
    ),
]
Throttle = Annotated[
    str | None,
    typer.Option(
        metavar="驱动,…", help="让 --carriers 中的这些运营商限流：各自暂停，其余不受影响", show_default=False
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(metavar="目录", help="数据目录，覆盖 JUNHONG_DATA_DIR（默认 .junhong）", show_default=False),
]
SimulatorLog = Annotated[
    Path | None,
    typer.Option(
        metavar="文件",
        help="把模拟网关收到的每次请求记入此文件；有多家运营商时每家一个，文件名带驱动名",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(
        "up",
        cls=ChineseCommand,
        help="一键运行整套系统：内置 Redis、PostgreSQL、模拟网关，导入示例卡并开始轮询",
    )(up)


def up(  # noqa: PLR0917 - one parameter a command-line option
    ctx: typer.Context,
    run_for: RunFor = None,
    cards: Cards = None,
    carriers: Carriers = None,
    throttle: Throttle = None,
    data_dir: DataDir = None,
    simulator_log: SimulatorLog = None,
    config_file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Bring everything up, show the polling until told to stop, and take everything down again."""
    signals = ctx.ensure_object(StopSignals)
    signals.install()  # until the run listens to them, nothing is open and a signal just ends us
    limit = None if run_for is None else _duration(run_for)
    settings = load_settings({"config": config_file, "data_dir": data_dir, **_EMBEDDED})

    from junhong_cmp.cli.up_carriers import choose_carriers  # noqa: PLC0415 - heavy; other faults must not wait

    if simulator_log is not None:
        refuse_unwritable(simulator_log, "--simulator-log")
    chosen = choose_carriers(carriers, throttle, cards)

    from junhong_cmp.cli.up_run import run_up  # noqa: PLC0415 - as above
    from junhong_cmp.cli.up_stage import UpOptions  # noqa: PLC0415 - as above

    options = UpOptions(
        data_dir=settings.data_dir,
        run_for=limit,
        cards=cards,
        carriers=chosen,
        simulator_log=None if simulator_log is None else simulator_log.absolute(),
        config_file=None if config_file is None else config_file.absolute(),
        shards_per_account=settings.polling.shards_per_account,
        worker_grace=settings.shutdown_grace,
    )
    uvloop.run(run_up(options, signals, as_json=as_json))


def _duration(text: str) -> timedelta:
    try:
        value = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"“{text}”{error}", param_hint="--for") from None
    assert isinstance(value, timedelta)  # noqa: S101 - that is what texts are parsed to
    return value
