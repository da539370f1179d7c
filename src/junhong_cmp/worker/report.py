"""The start-up record: one line that says what this process does and what it cannot do."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from junhong_cmp.config import WorkerRole
from junhong_cmp.leadership.lease import UNNAMED
from junhong_cmp.worker.roles import SCHEDULING_ROLES, disabled_modules

log = structlog.stdlib.get_logger(__name__)

NONE = "无"
LEADS = "主"
DUTY = "承担单例主动调度职责"
DUTY_TO_COME = "主节点失效后接任单例主动调度职责"


@dataclass(frozen=True, slots=True)
class StartReport:
    """What the start-up record says; ``scheduling`` is ``主``, ``热备`` or ``无``."""

    role: WorkerRole
    instance_name: str
    started: Sequence[str]
    missing: Sequence[str]
    scheduling: str

    @property
    def sentence(self) -> str:
        """Everything in one Chinese sentence, for readers who see nothing but the event."""
        parts = [
            f"Worker 角色={self.role.value}",
            f"实例名称={self.instance_name or UNNAMED}",
            f"已启用={_listed(self.started)}",
            f"已禁用={_listed(disabled_modules(self.role))}",
        ]
        if self.role in SCHEDULING_ROLES:
            parts.append(f"调度状态={self.scheduling}")
            parts.append(DUTY if self.scheduling == LEADS else DUTY_TO_COME)
        parts += self.missing
        return "Worker 启动：" + "，".join(parts)

    def write(self) -> None:
        """Write the record."""
        log.info(
            self.sentence,
            role=self.role.value,
            instance_name=self.instance_name or UNNAMED,
            enabled_modules=list(self.started),
            disabled_modules=list(disabled_modules(self.role)),
            scheduling=self.scheduling,
            missing=list(self.missing),
        )


def missing_services(*, storage: bool, gateway: bool) -> tuple[str, ...]:
    """Say what a worker cannot do without the optional services it was not given."""
    missing = []
    if not storage:
        missing.append("未配置对象存储，导入任务将退回队列等待")
    if not gateway:
        missing.append("未配置网关，轮询任务将推迟而不查询运营商")
    return tuple(missing)


def _listed(names: Sequence[str]) -> str:
    return "、".join(str(name) for name in names) or NONE
