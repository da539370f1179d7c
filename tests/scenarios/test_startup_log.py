"""Requirement: Worker 启动日志."""

from tests.scenarios.platform import EVERY_MODULE, SINGLETONS, Platform


async def test_consumer_log_shows_the_disabled_modules(platform: Platform) -> None:
    """consumer 日志显示禁用单例模块"""
    worker = await platform.join("consumer", name="consumer-甲")
    [record] = worker.find("Worker 启动")
    assert "Worker 角色=consumer" in record["event"]
    assert "实例名称=consumer-甲" in record["event"]
    assert "已启用=queue_server" in record["event"]
    assert "已禁用=polling_initializer、polling_scheduler、asynq_scheduler" in record["event"]
    assert "承担单例主动调度职责" not in record["event"]
    assert record["role"] == "consumer"
    assert record["instance_name"] == "consumer-甲"
    assert record["enabled_modules"] == ["queue_server"]
    assert record["disabled_modules"] == SINGLETONS
    assert await worker.stop() == 0


async def test_leader_log_shows_the_enabled_modules(platform: Platform) -> None:
    """leader 日志显示启用单例模块"""
    worker = await platform.join("leader", name="leader-1")
    [record] = worker.find("Worker 启动")
    assert "Worker 角色=leader" in record["event"]
    assert "实例名称=leader-1" in record["event"]
    assert "已启用=queue_server、polling_initializer、polling_scheduler、asynq_scheduler" in record["event"]
    assert "已禁用=无" in record["event"]
    assert "承担单例主动调度职责" in record["event"]
    assert record["enabled_modules"] == EVERY_MODULE
    assert record["disabled_modules"] == []
    assert await worker.stop() == 0
