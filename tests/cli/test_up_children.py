"""How ``junhong up`` starts the processes that run this program."""

import os
from pathlib import Path

import pytest

from junhong_cmp.cli.up_children import DemoKey, WorkerLinks, start_simulator, start_worker
from junhong_cmp.embedded.folder import DataFolder
from junhong_cmp.errors import DependencyUnavailableError

LINKS = WorkerLinks(
    redis_url="unix:///nowhere/redis.sock",
    postgres_dsn="postgresql://junhong@/junhong?host=/nowhere",
    storage_url="file:///nowhere",
    gateway_url="http://127.0.0.1:9",
)


@pytest.fixture
def folder(data_folder: Path) -> DataFolder:
    folder = DataFolder(data_folder)
    folder.open(mode=0o700)
    folder.close()
    return folder


async def test_the_simulator_is_there_with_its_url_and_log(folder: DataFolder) -> None:
    (folder.root / "simulator.url").write_text("http://left.over")
    process, url = await start_simulator(folder, DemoKey(), folder.root / "requests.jsonl")
    assert url.startswith("http://127.0.0.1:")
    assert (folder.root / "requests.jsonl").exists()
    assert await process.kill() == -9


async def test_a_simulator_that_cannot_start_is_an_error_with_its_log(folder: DataFolder) -> None:
    with pytest.raises(DependencyUnavailableError, match="模拟网关 启动失败"):
        await start_simulator(folder, DemoKey(), folder.root / "no" / "such" / "folder.jsonl")


async def test_the_worker_is_told_by_environment_only(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUNHONG_GATEWAY_SECRET_FILE", "/the/users/own")
    monkeypatch.setenv("JUNHONG_QUEUE_CONCURRENCY", "7")
    key = DemoKey()
    process = start_worker(folder, key, LINKS, Path("/etc/junhong.yaml"))
    await process.kill()
    environment = process.spec.environment
    assert environment is not None
    assert environment["JUNHONG_WORKER_ROLE"] == "all"
    assert environment["JUNHONG_GATEWAY_SECRET"] == key.secret
    assert environment["JUNHONG_QUEUE_CONCURRENCY"] == "7"
    assert environment["JUNHONG_CONFIG"] == "/etc/junhong.yaml"
    assert "JUNHONG_GATEWAY_SECRET_FILE" not in environment
    assert environment["PATH"] == os.environ["PATH"]
    assert key.secret not in " ".join(process.spec.arguments)
    assert key.secret not in repr(process.spec) + repr(key)


def test_every_run_signs_with_a_key_of_its_own() -> None:
    assert DemoKey().secret != DemoKey().secret
