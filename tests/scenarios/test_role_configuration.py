"""Requirement: Worker 角色配置."""

import time

import pytest
from tests.scenarios.platform import EVERY_MODULE, INITIALISED, Platform
from tests.worker_process import WorkerProcess

from junhong_cmp import config
from junhong_cmp.errors import ConfigError

UNROUTABLE = {
    "JUNHONG_REDIS_URL": "redis://192.0.2.1:6379/0",
    "JUNHONG_POSTGRES_DSN": "postgresql://junhong@192.0.2.1:5432/junhong",
}


async def test_role_defaults_to_all(platform: Platform) -> None:
    """默认兼容模式

    Without a role one worker does everything: it initialises the shards, schedules, consumes and fires cron.
    """
    await platform.poll_usage_every(2)
    cards = await platform.issue_cards(40)
    worker = await platform.join()
    record = worker.find("Worker 启动")[0]
    assert record["role"] == "all"
    assert record["enabled_modules"] == EVERY_MODULE
    assert record["disabled_modules"] == []

    await worker.wait_for(INITIALISED)
    await platform.all_polled(cards)
    await platform.wait_for_firing("import_redrive")
    assert await worker.stop() == 0


async def test_illegal_role_fails_before_any_connection(tmp_path_factory: pytest.TempPathFactory) -> None:
    """非法角色启动失败

    ``config.load`` refuses the value by name, and the process exits 78 without having tried to connect: the
    addresses it was given do not answer, so a connection attempt would have kept it for the start limit.
    """
    with pytest.raises(ConfigError) as refused:
        config.load(environ={**UNROUTABLE, "JUNHONG_WORKER_ROLE": "scheduler"})
    sentence = 'JUNHONG_WORKER_ROLE 只能为 all、leader、consumer，实际为 "scheduler"'
    assert sentence in str(refused.value)

    for value in ("scheduler", "Leader", " leader "):
        folder = tmp_path_factory.mktemp("empty")
        began = time.monotonic()
        async with WorkerProcess({**UNROUTABLE, "JUNHONG_WORKER_ROLE": value}, cwd=folder) as worker:
            assert await worker.wait_exit() == 78
            took = time.monotonic() - began
        [problem] = [record["problem"] for record in worker.find("配置错误")]
        assert problem == f'JUNHONG_WORKER_ROLE 只能为 all、leader、consumer，实际为 "{value}"'
        assert took < 5, "a start that had tried to connect would have waited for the start limit of 60 s"


async def test_instance_name_may_be_empty(platform: Platform) -> None:
    """实例名称可为空"""
    worker = await platform.join("consumer", name="")
    record = worker.find("Worker 启动")[0]
    assert record["instance_name"] == "未命名"
    assert "实例名称=未命名" in record["event"]
    assert await worker.stop() == 0
