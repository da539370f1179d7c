"""What a worker says of itself beside its heartbeat: for people who look at the fleet, not for programs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from junhong_cmp.config import Settings
from junhong_cmp.worker.version import program_version


@dataclass(frozen=True, slots=True)
class WorkerLabels:
    """A worker's role, the name its operator gave it, and its version; empty where a server is not ours."""

    role: str = ""
    instance_name: str = ""
    version: str = ""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the labels of this process."""
        return cls(settings.worker.role.value, settings.worker.instance_name, program_version())

    @classmethod
    def read(cls, labels: Mapping[str, str]) -> Self:
        """Return the labels that a server shows."""
        return cls(labels.get("role", ""), labels.get("instance", ""), labels.get("version", ""))

    def as_mapping(self) -> dict[str, str]:
        """Return the labels as a server shows them."""
        return {"role": self.role, "instance": self.instance_name, "version": self.version}
