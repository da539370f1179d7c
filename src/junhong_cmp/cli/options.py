"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="文件", help="YAML 配置文件；也可用 JUNHONG_CONFIG 指定", show_default=False
    ),
]
RedisUrl = Annotated[
    str | None,
    typer.Option(
        "--redis-url", metavar="URL", help="Redis 地址，覆盖环境变量（勿在此写密码）", show_default=False
    ),
]
PostgresDsn = Annotated[
    str | None,
    typer.Option(
        "--postgres-dsn",
        metavar="DSN",
        help="PostgreSQL 连接串，覆盖环境变量（勿在此写密码）",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="输出 JSON")]
