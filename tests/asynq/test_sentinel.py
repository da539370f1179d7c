"""The Sentinel form of the URL against a real Sentinel, through a failover."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError
from tests.asynq.secured import CERTIFICATES, TRUST, program_with_tls, tls_settings
from tests.asynq.serving import Bench, open_bench
from tests.redis_servers import free_ports, redis_program
from tests.waiting import wait_until

from junhong_cmp.asynq.errors import TaskIdConflictError
from junhong_cmp.asynq.processing_task import ProcessingTask
from junhong_cmp.asynq.task import EnqueueOptions, Task

USERS = """
user default off
user app on >app-pw ~asynq:* &asynq:* +@all -@admin
user replica on >replica-pw ~* &* +@all
masteruser replica
masterauth replica-pw
"""
WATCHERS = """
user default off
user watcher on >watcher-pw ~* &* +@all
sentinel sentinel-user watcher
sentinel sentinel-pass watcher-pw
sentinel auth-user main replica
sentinel auth-pass main replica-pw
"""


@dataclass
class Fleet:
    """A primary, its replica and a Sentinel: how to reach them, and the primary to kill."""

    url: str
    primary: asyncio.subprocess.Process


@dataclass(frozen=True)
class Manner:
    """How the servers of a fleet are run, and what clients need to know of it."""

    program: str
    secured: bool

    def configure(self, folder: Path, port: int, more: str) -> Path:
        """Write the configuration file of one server."""
        settings: Mapping[str, str] = {"port": str(port)}
        if self.secured:
            settings = {**tls_settings(port), "tls-auth-clients": "no"}
        place = folder / f"{port}.conf"
        lines = [f"{name} {value}" for name, value in settings.items()]
        place.write_text("\n".join([*lines, "bind 127.0.0.1", f"dir {folder}", more]))
        return place

    async def run(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            self.program, *arguments, stdout=asyncio.subprocess.DEVNULL
        )

    def url(self, port: int) -> str:
        if not self.secured:
            return f"redis-sentinel://127.0.0.1:{port}/0?master=main"
        user = "username=app&password=app-pw"
        return f"redis-sentinel://watcher:watcher-pw@127.0.0.1:{port}/0?master=main&{user}&tls=true&{TRUST}"

    def open_sentinel(self, port: int) -> Any:
        if not self.secured:
            return Redis(port=port)
        authority = str(CERTIFICATES / "authority.pem")
        return Redis(port=port, username="watcher", password="watcher-pw", ssl=True, ssl_ca_certs=authority)


async def end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await asyncio.wait_for(process.wait(), 10)


@pytest.fixture(params=["plain", "secured"])
def manner(request: pytest.FixtureRequest) -> Manner:
    """Without a password, or over TLS with a user of its own for everybody."""
    if request.param == "plain":
        return Manner(str(redis_program()), secured=False)
    program = program_with_tls()
    if program is None:
        pytest.skip("no redis-server with TLS on PATH")
    return Manner(program, secured=True)


@pytest.fixture
async def fleet(manner: Manner, data_folder: Path) -> AsyncIterator[Fleet]:
    primary_port, replica_port, sentinel_port = free_ports(3)
    plain = 'save ""\nrepl-diskless-sync-delay 0\n' + (USERS if manner.secured else "")
    follows = f"replicaof 127.0.0.1 {primary_port}\n"
    watches = (
        f"sentinel monitor main 127.0.0.1 {primary_port} 1\n"
        "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n"
    )
    watches += WATCHERS if manner.secured else ""
    primary = await manner.run(str(manner.configure(data_folder, primary_port, plain)))
    replica = await manner.run(str(manner.configure(data_folder, replica_port, plain + follows)))
    sentinel = await manner.run(str(manner.configure(data_folder, sentinel_port, watches)), "--sentinel")
    client = manner.open_sentinel(sentinel_port)
    try:
        await wait_until(lambda: replica_known(client), timeout=20, description="the replica is known")
        yield Fleet(manner.url(sentinel_port), primary)
    finally:
        await client.aclose()
        for process in (sentinel, replica, primary):
            await end(process)


async def replica_known(sentinel: Any) -> bool:
    try:
        replicas = await sentinel.sentinel_slaves("main")
    except RedisError:
        return False
    return any(replica["master-link-status"] == "ok" for replica in replicas)


async def enqueue(bench: Bench, task_id: str) -> None:
    """Enqueue one task, again and again while the primary is away; a lost reply shows as a conflict."""

    async def works() -> bool:
        try:
            await bench.client.enqueue(Task("t"), EnqueueOptions(task_id=task_id))
        except TaskIdConflictError:
            return True
        except (RedisError, OSError):
            return False
        return True

    await wait_until(works, timeout=30, description=f"{task_id} is taken")


async def test_a_client_and_a_server_follow_the_primary(fleet: Fleet) -> None:
    runs: Counter[str] = Counter()

    async def note(task: ProcessingTask) -> None:
        runs[task.id] += 1

    async with open_bench(fleet.url) as bench:
        await bench.serve(note)
        await enqueue(bench, "before")
        await wait_until(lambda: runs["before"], description="the primary serves")
        await end(fleet.primary)
        for number in range(20):
            await enqueue(bench, f"after-{number}")
        await wait_until(lambda: len(runs) == 21, timeout=30, description="the promoted replica serves")
        await bench.wait_size("active", 0)
