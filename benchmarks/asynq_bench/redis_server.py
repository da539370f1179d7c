"""The one Redis everybody is measured on."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from junhong_cmp.embedded.binaries import find_redis_program

_START_LIMIT_S = 10.0


class MeasuredRedis:
    """A measured Redis is a server whose own CPU time can be read at any moment."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.client: Redis = Redis(host=host, port=port)

    @property
    def url(self) -> str:
        """URL of database 0."""
        return f"redis://{self.host}:{self.port}/0"

    @property
    def address(self) -> str:
        """``host:port``, as Go wants it."""
        return f"{self.host}:{self.port}"

    @property
    def version(self) -> str:
        """Name and version of the server."""
        info = self.client.info("server")
        name = info.get("server_name", "redis")
        return f"{name} {info.get('valkey_version', info['redis_version'])}"

    def cpu_seconds(self) -> float:
        """Return user and system CPU time the server has used so far."""
        info = self.client.info("cpu")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])

    def empty(self) -> None:
        """Delete everything."""
        self.client.flushall()


@contextmanager
def own_redis() -> Iterator[MeasuredRedis]:
    """Start a server on a free loopback port, without persistence, and end it afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with TemporaryDirectory(prefix="bench-redis-") as folder:
        options = {"port": port, "bind": "127.0.0.1", "dir": folder, "save": "", "appendonly": "no"}
        flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        log_path = Path(folder) / "redis.log"
        with log_path.open("wb") as log:
            process = subprocess.Popen([str(find_redis_program()), *flags], stdout=log)
        try:
            redis = MeasuredRedis("127.0.0.1", port)
            _wait_until_it_answers(redis)
            yield redis
        finally:
            process.terminate()
            process.wait()


def _wait_until_it_answers(redis: MeasuredRedis) -> None:
    give_up_at = time.monotonic() + _START_LIMIT_S
    while True:
        try:
            redis.client.ping()
        except RedisConnectionError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.02)
        else:
            return
