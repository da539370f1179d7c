"""From a storage URL to the store behind it."""

import stat
from datetime import timedelta
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from obstore.store import LocalStore, MemoryStore, ObjectStore, S3Store

from junhong_cmp.errors import system_reason
from junhong_cmp.storage.errors import StorageUnavailableError, StorageUrlError

_S3_OPTIONS: Final = frozenset({"endpoint", "region", "allow_http", "virtual_hosted_style_request"})
_CONNECT_TIMEOUT: Final = timedelta(seconds=5)
_ALLOWED: Final = "支持 file:///目录、s3://桶/前缀 与 memory://"


def open_store(url: str, *, timeout: timedelta) -> tuple[ObjectStore, Path | None]:
    """Open the store of ``url``; the second value is the root folder of a local store.

    ``s3://bucket/prefix?endpoint=https://…&region=…&allow_http=true`` reaches any S3-compatible
    service; its credentials come from the usual ``AWS_*`` variables, never from the URL.

    Raises:
        StorageUrlError: an unsupported kind, an incomplete URL, or credentials inside it.
        StorageUnavailableError: the local folder can't be made or written to.

    """
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise StorageUrlError("存储 URL 不允许包含账号或密码，请使用 AWS_ACCESS_KEY_ID 等环境变量")
    match parts.scheme:
        case "file":
            root = _local_root(parts)
            return LocalStore(prefix=root), root
        case "memory":
            return MemoryStore(), None
        case "s3":
            return _open_s3(parts, timeout), None
        case _:
            raise StorageUrlError(f"存储 URL 的类型不受支持：{parts.scheme or '（空）'}，{_ALLOWED}")


def _local_root(parts: SplitResult) -> Path:
    if parts.netloc not in {"", "localhost"} or parts.query or not parts.path.startswith("/"):
        raise StorageUrlError("本地存储 URL 无效，应为 file:///绝对路径")
    root = Path(unquote(parts.path))
    try:
        existed = root.is_dir()
        root.mkdir(parents=True, exist_ok=True)
        if not existed:
            root.chmod(stat.S_IRWXU)  # card files are personal data: nobody else's to read
        return root.resolve()
    except OSError as error:
        raise StorageUnavailableError(f"本地存储目录无法使用：{root}：{system_reason(error)}") from error


def _open_s3(parts: SplitResult, timeout: timedelta) -> S3Store:
    if not parts.netloc:
        raise StorageUrlError("S3 存储 URL 缺少桶名，应为 s3://桶/前缀")
    options = dict(parse_qsl(parts.query))
    unknown = sorted(options.keys() - _S3_OPTIONS)
    if unknown:
        raise StorageUrlError(
            f"S3 存储 URL 含未知参数：{'、'.join(unknown)}，可用：{'、'.join(sorted(_S3_OPTIONS))}"
        )
    allow_http = options.pop("allow_http", "false").lower() == "true"
    hosted = options.pop("virtual_hosted_style_request", "false").lower() == "true"
    return S3Store(
        parts.netloc,
        prefix=unquote(parts.path).strip("/") or None,
        endpoint=options.get("endpoint"),
        region=options.get("region"),
        virtual_hosted_style_request=hosted,
        client_options={
            "allow_http": allow_http,
            "connect_timeout": _CONNECT_TIMEOUT,
            "timeout": timeout,
        },
        retry_config={"max_retries": 3, "retry_timeout": timeout},
    )
