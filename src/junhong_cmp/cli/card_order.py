"""``junhong card stop`` and ``resume``: an order by hand, carried out by the workers."""

from typing import Annotated

import typer

from junhong_cmp.cards.model import StopReason
from junhong_cmp.cli.options import ConfigFile, PostgresDsn, RedisUrl
from junhong_cmp.cli.settings import load_settings

Number = Annotated[str, typer.Argument(metavar="ICCID", help="19 或 20 位")]
Reason = Annotated[
    StopReason, typer.Option("--reason", metavar="原因", help="记录的原因，如 manual、violation、arrears")
]
RequestId = Annotated[
    str | None,
    typer.Option("--request-id", metavar="ID", help="请求号：相同请求号只执行一次", show_default=False),
]


def stop_card(
    iccid: Number,
    reason: Reason = StopReason.MANUAL,
    request_id: RequestId = None,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    redis_url: RedisUrl = None,
) -> None:
    """Have a card stopped; no new billing cycle resumes it, unless the reason is one of usage."""
    if reason is StopReason.NONE:
        raise typer.BadParameter("原因不能为 none", param_hint="--reason")
    settings = load_settings({"config": config_file, "postgres.dsn": postgres_dsn, "redis.url": redis_url})
    from junhong_cmp.cli.card_order_run import run_stop  # noqa: PLC0415 - a wrong configuration first

    raise SystemExit(run_stop(settings, iccid, reason, request_id))


def resume_card(
    iccid: Number,
    request_id: RequestId = None,
    config_file: ConfigFile = None,
    postgres_dsn: PostgresDsn = None,
    redis_url: RedisUrl = None,
) -> None:
    """Have a card resumed; it is not stopped for usage again in this billing cycle."""
    settings = load_settings({"config": config_file, "postgres.dsn": postgres_dsn, "redis.url": redis_url})
    from junhong_cmp.cli.card_order_run import run_resume  # noqa: PLC0415 - as above

    raise SystemExit(run_resume(settings, iccid, request_id))
