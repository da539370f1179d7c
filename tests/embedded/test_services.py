"""Redis and PostgreSQL of a data folder: kept data, refused second runs, killed runs, awkward places."""

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs
from tests.waiting import wait_until

from junhong_cmp.embedded.pids import start_moment
from junhong_cmp.embedded.services import EmbeddedServices
from junhong_cmp.errors import ConfigError, DependencyUnavailableError

_RUN_UNTIL_KILLED = """
import asyncio, sys
from pathlib import Path
from junhong_cmp.embedded.services import EmbeddedServices

async def main():
    services = EmbeddedServices(Path(sys.argv[1]))
    await services.start()
    print(*(process.pid for process in services.processes), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def _keep_something(services: EmbeddedServices) -> None:
    async with Redis.from_url(services.redis_url) as redis:
        await redis.set("kept", "yes")
    connection = await asyncpg.connect(services.postgres_dsn)
    await connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
    await connection.close()


async def _something_is_kept(services: EmbeddedServices) -> bool:
    async with Redis.from_url(services.redis_url) as redis:
        in_redis = await redis.get("kept") == b"yes"
    connection = await asyncpg.connect(services.postgres_dsn)
    in_postgres = await connection.fetchval("SELECT n FROM kept") == 1
    await connection.close()
    return in_redis and in_postgres


async def test_data_is_there_again_at_the_next_start(data_folder: Path) -> None:
    services = EmbeddedServices(data_folder / "data")
    await services.start()
    await _keep_something(services)
    await services.stop()
    assert not any(process.running for process in services.processes)

    again = EmbeddedServices(data_folder / "data")
    await again.start()
    assert await _something_is_kept(again)
    await again.stop()


async def test_a_second_run_on_the_same_folder_is_refused(data_folder: Path) -> None:
    services = EmbeddedServices(data_folder)
    await services.start()
    with pytest.raises(DependencyUnavailableError, match=f"正被另一个 junhong up 使用（进程 {os.getpid()}）"):
        await EmbeddedServices(data_folder).start()
    assert all(process.running for process in services.processes)
    await services.stop()


async def test_a_killed_run_leaves_no_process_and_its_folder_starts_again(data_folder: Path) -> None:
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _RUN_UNTIL_KILLED, str(data_folder), stdout=asyncio.subprocess.PIPE
    )
    assert run.stdout is not None
    pids = [int(pid) for pid in (await run.stdout.readline()).split()]
    assert len(pids) == 2
    run.send_signal(signal.SIGKILL)
    await run.wait()

    services = EmbeddedServices(data_folder)  # at once, while the old servers are still ending
    await services.start()
    assert [start_moment(pid) for pid in pids] == [None, None]
    await services.stop()


async def test_servers_left_running_are_ended_before_the_next_start(data_folder: Path) -> None:
    first = EmbeddedServices(data_folder)
    await first.start()
    left = [process.pid for process in first.processes]
    first.folder.close()  # as if the run had died on a system without a parent-death signal

    with capture_logs() as logs:
        second = EmbeddedServices(data_folder)
        await second.start()
    found = [entry for entry in logs if entry["event"] == "发现上次运行遗留的进程，正在结束"]
    assert {entry["pid"] for entry in found} == set(left)
    await wait_until(
        lambda: not any(process.running for process in first.processes), description="first ended"
    )
    await second.stop()


async def test_a_folder_with_a_long_path_works(data_folder: Path) -> None:
    deep = data_folder.joinpath(*["a-rather-long-folder-name"] * 8)
    services = EmbeddedServices(deep)
    await services.start()
    await _keep_something(services)
    await services.stop()

    again = EmbeddedServices(deep)
    await again.start()
    assert await _something_is_kept(again)
    await again.stop()
    socket_folder = Path(again.redis_url.removeprefix("unix://").partition("?")[0]).parent
    assert not socket_folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has folders its servers cannot enter")
async def test_a_folder_closed_to_the_database_account_works(data_folder: Path) -> None:
    home = data_folder / "home"
    home.mkdir(mode=0o700)
    services = EmbeddedServices(home / "data")
    await services.start()
    await _keep_something(services)
    await services.stop()
    cluster = (home / "data" / "postgres").readlink()
    assert (cluster / "PG_VERSION").exists()

    again = EmbeddedServices(home / "data")
    await again.start()
    assert await _something_is_kept(again)
    await again.stop()

    (home / "data" / "postgres").unlink()  # the data folder is removed and used anew
    anew = EmbeddedServices(home / "data")
    await anew.start()
    connection = await asyncpg.connect(anew.postgres_dsn)
    assert await connection.fetchval("SELECT to_regclass('kept')") is None
    await connection.close()
    await anew.stop()
    await asyncio.to_thread(shutil.rmtree, cluster)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
async def test_a_database_of_another_account_is_left_to_it(data_folder: Path) -> None:
    (data_folder / "postgres").mkdir()
    os.chown(data_folder / "postgres", 54_321, 54_321)
    with pytest.raises(ConfigError, match="属于其他账号"):
        await EmbeddedServices(data_folder).start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has folders its servers cannot enter")
async def test_a_database_that_was_shut_in_later_is_not_replaced(data_folder: Path) -> None:
    home = data_folder / "home"
    (home / "data" / "postgres").mkdir(parents=True)
    home.chmod(0o700)
    with pytest.raises(ConfigError, match="已不对数据库账号开放"):
        await EmbeddedServices(home / "data").start()


async def test_a_database_half_made_by_a_killed_run_is_made_anew(data_folder: Path) -> None:
    draft = data_folder / "postgres.unfinished"
    draft.mkdir()
    (draft / "PG_VERSION").write_text("18\n")
    services = EmbeddedServices(data_folder)
    await services.start()
    assert not draft.exists()
    await services.stop()


async def test_a_cancelled_start_leaves_nothing_running(data_folder: Path) -> None:
    services = EmbeddedServices(data_folder)
    start = asyncio.create_task(services.start())
    await wait_until(lambda: len(services.processes) == 2, description="both servers are being started")
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert not any(process.running for process in services.processes)
    again = EmbeddedServices(data_folder)
    await again.start()
    await again.stop()


async def test_a_path_through_a_file_is_a_configuration_error(data_folder: Path) -> None:
    (data_folder / "file").touch()
    with pytest.raises(ConfigError, match="路径中有一段不是目录"):
        await EmbeddedServices(data_folder / "file" / "data").start()


async def test_servers_end_when_their_socket_folder_is_taken_by_somebody_else(data_folder: Path) -> None:
    (data_folder / "run").mkdir()
    (data_folder / "run" / "redis.sock").mkdir()
    services = EmbeddedServices(data_folder)
    with pytest.raises(OSError, match=r"redis\.sock"):
        await services.start()
    assert not any(process.running for process in services.processes)
