"""Settings of the leader's lease."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from junhong_cmp.config.values import Duration

_RELIED_ON: Final = 0.9
"""The part of a lease its holder relies on."""


def _parse_switch(value: Any) -> Any:
    """Turn the truth value YAML makes of an unquoted ``on`` or ``off`` back into the word."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


class LeaseConflict(StrEnum):
    """What a process does that finds another one leading."""

    STANDBY = "standby"
    EXIT = "exit"


class LeaseMode(StrEnum):
    """Whether a lease decides who leads."""

    ON = "on"
    OFF = "off"


class LeaseSettings(BaseModel):
    """How the leader keeps its lease."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)

    ttl: Duration = Field(timedelta(seconds=15), ge=timedelta(seconds=1), description="租约有效期")
    renew: Duration = Field(timedelta(seconds=5), gt=timedelta(0), description="续约间隔")
    retry: Duration = Field(timedelta(seconds=2), gt=timedelta(0), description="竞选与续约失败后的重试间隔")
    on_conflict: LeaseConflict = Field(
        LeaseConflict.STANDBY, description="已有主节点时：standby（热备，照常消费）或 exit（退出码 78）"
    )
    mode: Annotated[LeaseMode, BeforeValidator(_parse_switch)] = Field(
        LeaseMode.ON, description="on，或 off（不用租约，须自行保证只有一个主节点）"
    )

    @model_validator(mode="after")
    def _check_together(self) -> "LeaseSettings":
        if self.renew + self.retry >= self.ttl * _RELIED_ON:
            raise ValueError("JUNHONG_LEASE_RENEW 与 JUNHONG_LEASE_RETRY 之和须小于 JUNHONG_LEASE_TTL 的九成")
        return self
