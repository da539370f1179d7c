"""Requirement: 按启动状态优雅关闭."""

import signal

import pytest
from tests.scenarios.platform import EVERY_MODULE, SINGLETONS, Platform


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_consumer_stops_only_what_it_started(platform: Platform, number: signal.Signals) -> None:
    """consumer 关闭不访问未启动调度器

    The modules a consumer does not run are not even built, so there is nothing a stop could reach.
    """
    worker = await platform.join("consumer")
    worker.signal(number)
    assert await worker.wait_exit() == 0
    assert [record["module"] for record in worker.find("模块已停止")] == ["queue_server"]
    assert worker.find("收到退出信号，开始优雅关闭", signal=number.name)
    assert worker.find("优雅关闭完成")
    assert not [name for name in SINGLETONS if f'"module":"{name}"' in worker.log_text]


@pytest.mark.parametrize("role", ["leader", "all"])
async def test_leader_stops_everything_in_order(platform: Platform, role: str) -> None:
    """leader 关闭全部已启动模块

    Asynq Scheduler first, then the polling scheduler and initializer, and the queue server last.
    """
    await platform.poll_usage_every(1)
    cards = await platform.issue_cards(30)
    worker = await platform.join(role)
    await platform.all_polled(cards)
    worker.signal(signal.SIGTERM)
    assert await worker.wait_exit() == 0
    assert [record["module"] for record in worker.find("模块已停止")] == EVERY_MODULE[::-1]
    assert not await platform.redis.llen("asynq:{polling}:active")
    assert not await platform.redis.exists("asynq:servers", "asynq:schedulers")
