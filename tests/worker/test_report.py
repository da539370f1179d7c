"""The start-up record, word for word."""

from structlog.testing import capture_logs

from junhong_cmp.config import WorkerRole
from junhong_cmp.worker.report import StartReport, missing_services
from junhong_cmp.worker.roles import enabled_modules


def report(
    role: WorkerRole, name: str = "", missing: tuple[str, ...] = (), scheduling: str = "无"
) -> StartReport:
    return StartReport(
        role=role,
        instance_name=name,
        started=enabled_modules(role),
        missing=missing,
        scheduling=scheduling,
    )


def test_leader() -> None:
    assert report(WorkerRole.LEADER, scheduling="主").sentence == (
        "Worker 启动：Worker 角色=leader，实例名称=未命名，"
        "已启用=queue_server、polling_initializer、polling_scheduler、asynq_scheduler，已禁用=无，"
        "调度状态=主，承担单例主动调度职责"
    )


def test_hot_standby() -> None:
    assert report(WorkerRole.ALL, scheduling="热备").sentence == (
        "Worker 启动：Worker 角色=all，实例名称=未命名，"
        "已启用=queue_server、polling_initializer、polling_scheduler、asynq_scheduler，已禁用=无，"
        "调度状态=热备，主节点失效后接任单例主动调度职责"
    )


def test_consumer_with_a_name_and_without_gateway() -> None:
    missing = missing_services(storage=True, gateway=False)
    assert report(WorkerRole.CONSUMER, "c-1", missing).sentence == (
        "Worker 启动：Worker 角色=consumer，实例名称=c-1，已启用=queue_server，"
        "已禁用=polling_initializer、polling_scheduler、asynq_scheduler，"
        "未配置网关，轮询任务将推迟而不查询运营商"
    )


def test_the_record_carries_fields_too() -> None:
    with capture_logs() as logs:
        report(WorkerRole.CONSUMER).write()
    (record,) = logs
    assert record["role"] == "consumer"
    assert record["instance_name"] == "未命名"
    assert record["enabled_modules"] == ["queue_server"]
    assert record["disabled_modules"] == ["polling_initializer", "polling_scheduler", "asynq_scheduler"]
    assert record["scheduling"] == "无"
    assert record["log_level"] == "info"


def test_what_is_missing() -> None:
    assert missing_services(storage=True, gateway=True) == ()
    assert len(missing_services(storage=False, gateway=False)) == 2
