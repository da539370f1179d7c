"""How ``junhong up`` starts the processes that run this program."""

import json
import os
from pathlib import Path

import pytest

from junhong_cmp.cli.up_carriers import LONE_CARRIER, choose_carriers
from junhong_cmp.cli.up_children import DemoKey, WorkerLinks, log_of, start_simulators, start_worker
from junhong_cmp.embedded.folder import DataFolder
from junhong_cmp.errors import DependencyUnavailableError

LINKS = WorkerLinks(
    redis_url="unix:///nowhere/redis.sock",
    postgres_dsn="postgresql://junhong@/junhong?host=/nowhere",
    storage_url="file:///nowhere",
)


@pytest.fixture
def folder(data_folder: Path) -> DataFolder:
    folder = DataFolder(data_folder)
    folder.open(mode=0o700)
    folder.close()
    return folder


async def test_the_simulator_is_there_with_its_url_and_log(folder: DataFolder) -> None:
    (folder.root / "simulator.url").write_text("http://left.over")
    (simulator,) = await start_simulators(folder, [LONE_CARRIER], folder.root / "requests.jsonl")
    assert simulator.url.startswith("http://127.0.0.1:")
    assert simulator.title == "模拟网关"
    assert (folder.root / "requests.jsonl").exists()
    assert await simulator.process.kill() == -9


async def test_a_simulator_that_cannot_start_is_an_error_with_its_log(folder: DataFolder) -> None:
    with pytest.raises(DependencyUnavailableError, match="模拟网关 启动失败"):
        await start_simulators(folder, [LONE_CARRIER], folder.root / "no" / "such" / "folder.jsonl")


async def test_one_of_several_that_cannot_start_takes_the_others_along(folder: DataFolder) -> None:
    carriers = choose_carriers("unicom,ctcc", None, None)
    log_of(carriers[1], folder.root / "requests.jsonl").mkdir()
    with pytest.raises(DependencyUnavailableError, match="模拟网关 ctcc 启动失败"):
        await start_simulators(folder, carriers, folder.root / "requests.jsonl")
    assert list(folder.pids.iterdir()) == []


async def test_the_worker_is_told_by_environment_only(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUNHONG_GATEWAY_SECRET_FILE", "/the/users/own")
    monkeypatch.setenv("JUNHONG_QUEUE_CONCURRENCY", "7")
    simulators = await start_simulators(folder, [LONE_CARRIER], None)
    process = start_worker(folder, simulators, LINKS, Path("/etc/junhong.yaml"))
    await process.kill()
    await simulators[0].process.kill()
    key, environment = simulators[0].key, process.spec.environment
    assert environment is not None
    assert environment["JUNHONG_WORKER_ROLE"] == "all"
    assert environment["JUNHONG_GATEWAY_URL"] == simulators[0].url
    assert environment["JUNHONG_GATEWAY_SECRET"] == key.secret
    assert environment["JUNHONG_QUEUE_CONCURRENCY"] == "7"
    assert environment["JUNHONG_CONFIG"] == "/etc/junhong.yaml"
    assert "JUNHONG_GATEWAY_SECRET_FILE" not in environment
    assert "JUNHONG_GATEWAY_CREDENTIALS" not in environment
    assert environment["PATH"] == os.environ["PATH"]
    assert key.secret not in " ".join(process.spec.arguments)
    assert key.secret not in repr(process.spec) + repr(key)


async def test_the_worker_has_each_accounts_key_under_its_name(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUNHONG_GATEWAY_CREDENTIALS_FILE", "/the/users/own")
    simulators = await start_simulators(folder, choose_carriers("unicom,ctcc", "ctcc", None), None)
    process = start_worker(folder, simulators, LINKS, None)
    for child in (process, *(simulator.process for simulator in simulators)):
        await child.kill()
    environment = process.spec.environment
    assert environment is not None
    assert "JUNHONG_GATEWAY_CREDENTIALS_FILE" not in environment
    assert json.loads(environment["JUNHONG_GATEWAY_CREDENTIALS"]) == {
        simulator.carrier.code: {"key_id": simulator.key.key_id, "secret": simulator.key.secret}
        for simulator in simulators
    }
    assert len({simulator.key.secret for simulator in simulators}) == 2
    throttled = ["--throttle-qps" in simulator.process.spec.arguments for simulator in simulators]
    assert throttled == [False, True]


def test_every_run_signs_with_a_key_of_its_own() -> None:
    assert DemoKey().secret != DemoKey().secret


def test_several_carriers_write_a_log_each(tmp_path: Path) -> None:
    (unicom,) = choose_carriers("unicom", None, None)
    assert log_of(LONE_CARRIER, tmp_path / "log.jsonl") == tmp_path / "log.jsonl"
    assert log_of(unicom, tmp_path / "log.jsonl") == tmp_path / "log-unicom.jsonl"
