"""Errors of the polling package.

::

    PollingError
    ├── InvalidPayloadError      the task can never be understood: skip its retries
    │   └── NewerPayloadError    a newer worker understands it: leave it to that one for a while
    ├── InvalidSnapshotError     keep the last good configuration
    ├── FencedError              another term owns the shard, or its keys are gone: see ``fence``
    └── TermOverError            the term can no longer be relied on: claim and enqueue nothing more
"""

from collections.abc import Sequence

from junhong_cmp.errors import JunhongError


class PollingError(JunhongError):
    """Root of the polling errors."""


class InvalidPayloadError(PollingError):
    """A poll task's payload cannot be read by this version."""


class NewerPayloadError(InvalidPayloadError):
    """A poll task's payload is of a newer version; ``claim`` is its claim if that can be told, else 0."""

    def __init__(self, *, version: int, supported: int, claim: object) -> None:
        self.claim = claim if type(claim) is int else 0
        super().__init__(f"轮询任务载荷版本 {version} 高于当前支持的 {supported}")


class InvalidSnapshotError(PollingError):
    """The polling configuration as a whole is refused; ``problems`` names every fault."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("轮询配置无效：" + "；".join(self.problems))


class FencedError(PollingError):
    """A shard refused an epoch; ``fence`` is the epoch it holds, None when it holds none."""

    def __init__(self, *, epoch: int, fence: int | None) -> None:
        self.epoch = epoch
        self.fence = fence
        holds = "分片没有任期记录" if fence is None else f"分片任期为 {fence}"
        super().__init__(f"操作被隔离：本任期为 {epoch}，{holds}")


class TermOverError(PollingError):
    """The leader's term has ended, or its lease could not be renewed in time."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        super().__init__(f"任期 {epoch} 已结束或不再可信")
