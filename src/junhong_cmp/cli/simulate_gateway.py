"""``junhong simulate-gateway``: run a simulated carrier."""

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import orjson
import typer
import uvloop

from junhong_cmp import logs
from junhong_cmp.cli.output_file import refuse_unwritable
from junhong_cmp.cli.usage import ChineseCommand
from junhong_cmp.errors import ConfigError, system_reason
from junhong_cmp.gateway.signing import Credential
from junhong_cmp.gateway.simulator import CarrierSimulator, SimulatorConfig, serve
from junhong_cmp.gateway.simulators.table import SIMULATORS

Port = Annotated[int, typer.Option(min=0, max=65535, metavar="端口", help="监听端口，0 表示任选一个空闲端口")]
Host = Annotated[str, typer.Option(metavar="地址", help="监听地址")]
Driver = Annotated[
    str, typer.Option(metavar="驱动", help="模拟哪种运营商接口，可选：" + "、".join(SIMULATORS))
]
KeyId = Annotated[str, typer.Option(envvar="JUNHONG_GATEWAY_KEY_ID", metavar="编号", help="密钥编号")]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        envvar="JUNHONG_GATEWAY_SECRET_FILE",
        metavar="文件",
        help="存放密钥的文件；密钥也可由 JUNHONG_GATEWAY_SECRET 给出",
        show_default=False,
    ),
]
Latency = Annotated[int, typer.Option(min=0, metavar="毫秒", help="每次应答的延迟（毫秒）")]
Jitter = Annotated[int, typer.Option(min=0, metavar="毫秒", help="延迟的上下浮动（毫秒）")]
ErrorRate = Annotated[float, typer.Option(min=0, max=1, metavar="比例", help="随机故障的比例")]
UnknownRate = Annotated[float, typer.Option(min=0, max=1, metavar="比例", help="查无此卡的比例")]
ThrottleQps = Annotated[
    float | None,
    typer.Option(min=0.001, metavar="次数", help="每个账号每秒允许的调用数，默认不限", show_default=False),
]
OperationDelay = Annotated[int, typer.Option(min=0, metavar="毫秒", help="停机、复机生效所需时间（毫秒）")]
Seed = Annotated[int, typer.Option(metavar="整数", help="随机种子：相同种子的卡有相同的数据")]
LogFile = Annotated[
    Path | None,
    typer.Option("--log", metavar="文件", help="请求日志文件（JSON，每行一次调用）", show_default=False),
]
CardsFile = Annotated[
    Path | None,
    typer.Option("--cards", metavar="文件", help="卡列表接口列出的卡号，每行一个", show_default=False),
]
UrlFile = Annotated[
    Path | None,
    typer.Option(metavar="文件", help="开始监听后把网关地址写入此文件", show_default=False),
]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("simulate-gateway", cls=ChineseCommand, help="运行一个模拟运营商网关，供演示和测试使用")(
        simulate_gateway
    )


def simulate_gateway(
    *,
    driver: Driver = "generic",
    port: Port = 0,
    host: Host = "127.0.0.1",
    key_id: KeyId = "demo",
    secret_file: SecretFile = None,
    latency: Latency = 20,
    jitter: Jitter = 10,
    error_rate: ErrorRate = 0.0,
    unknown_rate: UnknownRate = 0.0,
    throttle_qps: ThrottleQps = None,
    operation_delay: OperationDelay = 0,
    seed: Seed = 0,
    cards: CardsFile = None,
    log_file: LogFile = None,
    url_file: UrlFile = None,
) -> None:
    """Serve until SIGTERM or SIGINT, telling the address in one JSON line once there is one."""
    logs.configure()
    for path, option in ((log_file, "--log"), (url_file, "--url-file")):
        if path is not None:
            refuse_unwritable(path, option)
    config = SimulatorConfig(
        credential=Credential(key_id, _secret(secret_file)),
        driver=driver,
        cards=_card_numbers(cards),
        host=host,
        port=port,
        latency=timedelta(milliseconds=latency),
        jitter=timedelta(milliseconds=jitter),
        error_rate=error_rate,
        unknown_rate=unknown_rate,
        throttle_qps=throttle_qps,
        operation_delay=timedelta(milliseconds=operation_delay),
        seed=seed,
        log_path=log_file,
    )
    uvloop.run(_serve_until_signalled(config, url_file))


async def _serve_until_signalled(config: SimulatorConfig, url_file: Path | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def tell(simulator: CarrierSimulator) -> None:
        if url_file is not None:
            _write_whole(url_file, simulator.url)
        ready = {"url": simulator.url, "port": simulator.port, "pid": os.getpid()}
        typer.echo(orjson.dumps(ready))

    await serve(config, until=stop, on_ready=tell)


def _secret(file: Path | None) -> str:
    if file is None:
        secret = os.environ.get("JUNHONG_GATEWAY_SECRET", "")
        if not secret:
            raise ConfigError(["网关密钥未设置：请使用 --secret-file 或 JUNHONG_GATEWAY_SECRET"])
        return secret
    return _text_of(file, "网关密钥文件").strip()


def _card_numbers(file: Path | None) -> tuple[str, ...]:
    if file is None:
        return ()
    return tuple(_text_of(file, "卡号文件").split())


def _text_of(file: Path, what: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError([f"{what}无法读取：{file}：不是 UTF-8 编码"]) from error
    except OSError as error:
        raise ConfigError([f"{what}无法读取：{file}：{system_reason(error)}"]) from error


def _write_whole(file: Path, text: str) -> None:
    """Put the text there in one step: whoever waits for the file never reads half of it."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise ConfigError([f"网关地址文件无法写入：{file}：{system_reason(error)}"]) from error
