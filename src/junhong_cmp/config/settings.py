"""The whole configuration as one frozen value."""

from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

from junhong_cmp.config.connections import GatewaySettings, PostgresSettings, RedisSettings, StorageSettings
from junhong_cmp.config.lease import LeaseSettings
from junhong_cmp.config.sections import (
    ImportsSettings,
    LogSettings,
    PollingSettings,
    QueueSettings,
    WorkerSettings,
)
from junhong_cmp.config.values import Duration


class Settings(BaseModel):
    """Everything a process is told at start; secrets are ``SecretStr`` and print as asterisks."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    worker: WorkerSettings
    redis: RedisSettings
    postgres: PostgresSettings
    storage: StorageSettings
    gateway: GatewaySettings
    queue: QueueSettings
    polling: PollingSettings
    imports: ImportsSettings
    lease: LeaseSettings
    log: LogSettings
    start_limit: Duration = Field(
        timedelta(seconds=60),
        ge=timedelta(0),
        description="启动时等待 Redis、PostgreSQL 与库表就绪的时限，到时退出码 69",
    )
    shutdown_grace: Duration = Field(
        timedelta(seconds=8),
        ge=timedelta(0),
        description="优雅关闭时等待在途任务的时限，到时未完成的任务退回队首",
    )
    data_dir: Path = Field(Path(".junhong"), description="junhong up 内置服务的数据目录")

    @model_validator(mode="after")
    def _check_together(self) -> "Settings":
        if self.gateway.url is not None and self.gateway.total_timeout >= self.polling.turn_timeout:
            raise ValueError(
                "JUNHONG_GATEWAY_TOTAL_TIMEOUT 须小于 JUNHONG_POLLING_TURN_TIMEOUT，"
                "否则网关尚未应答，轮询已被中止"
            )
        return self
