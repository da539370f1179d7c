"""Settings of what a worker does and how it reports."""

from datetime import timedelta
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from junhong_cmp.config.values import Duration, Weights
from junhong_cmp.logs import LogFormat, LogLevel


class WorkerRole(StrEnum):
    """What a worker process is for."""

    ALL = "all"
    LEADER = "leader"
    CONSUMER = "consumer"


class WorkerSettings(BaseModel):
    """Who this process is."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    role: WorkerRole = Field(WorkerRole.ALL, description="运行角色：all、leader、consumer")
    instance_name: str = Field(
        "",
        max_length=64,
        pattern=r"^[^\x00-\x1f\x7f]*$",
        description="实例名称，只用于展示，可为空",
    )


class QueueSettings(BaseModel):
    """How this process consumes the task queue."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    concurrency: int = Field(64, ge=1, le=10_000, description="同时处理的任务数")
    weights: Weights = Field(
        {"polling": 6, "import": 2, "default": 1},
        description="消费的队列及其权重，例如 polling=6,import=2,default=1",
    )
    strict_priority: bool = Field(default=False, description="严格按权重高低取任务，高者取空才取低者")


class PollingSettings(BaseModel):
    """How cards are polled."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    shards_per_account: int = Field(
        8, ge=1, le=1_024, description="每个（类型、账号）的分片数，全部实例须一致"
    )
    visibility: Duration = Field(
        timedelta(minutes=2),
        ge=timedelta(seconds=1),
        description="卡被认领后未开始处理时，多久重新到期",
    )
    turn_timeout: Duration = Field(
        timedelta(seconds=60),
        ge=timedelta(seconds=1),
        description="一次轮询（从开始到写回）的时限",
    )
    put_back: Duration = Field(
        timedelta(seconds=5),
        gt=timedelta(0),
        description="非卡自身原因未能轮询时，多久后再试",
    )
    max_backoff: Duration = Field(
        timedelta(hours=6),
        gt=timedelta(0),
        description="单卡连续失败时退避间隔的上限",
    )
    high_water: int = Field(5_000, ge=2, description="polling 队列积压到此数时停止认领，降到一半时恢复")
    reconcile_every: Duration = Field(
        timedelta(minutes=10),
        ge=timedelta(seconds=1),
        description="比对 PostgreSQL 与分片的间隔",
    )


class ImportsSettings(BaseModel):
    """How imports are kept going."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    redrive_every: Duration = Field(
        timedelta(minutes=1),
        ge=timedelta(seconds=1),
        description="多久检查一次未完成而不在队列中的导入任务，整秒",
    )


class LogSettings(BaseModel):
    """How this process writes its log."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    level: LogLevel = Field(LogLevel.INFO, description="日志级别：debug、info、warning、error")
    format: LogFormat = Field(
        LogFormat.AUTO, description="日志格式：auto（终端为 console，否则 json）、json、console"
    )
