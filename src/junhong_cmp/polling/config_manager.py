"""The polling configuration of this process, kept up to date and always valid."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import structlog

from junhong_cmp.db.listener import Listener
from junhong_cmp.db.pool import Pool
from junhong_cmp.db.retrying import DATABASE_FAULTS
from junhong_cmp.polling.background import cancel_and_wait
from junhong_cmp.polling.config import PolledCard, PollingConfigSnapshot, build_snapshot
from junhong_cmp.polling.config_store import load_config
from junhong_cmp.polling.due import PollRule
from junhong_cmp.polling.eligibility import poll_rule
from junhong_cmp.polling.errors import InvalidSnapshotError
from junhong_cmp.polling.tasks import TaskType

log = structlog.stdlib.get_logger(__name__)

CHANNEL: Final = "polling_config"
REREAD: Final = timedelta(seconds=30)
REREAD_UNTOLD: Final = timedelta(seconds=2)
"""How often the configuration is read where no notification can arrive."""


class PollingConfigManager:
    """A config manager holds the last good snapshot and replaces it when the database changes.

    Changes arrive by notification; a slow re-read is the safety net. Without a ``dsn`` to be notified
    over, as behind PgBouncer, it is read every other second. A version that does not validate is refused
    as a whole, and one that cannot be read changes nothing.
    """

    def __init__(self, pool: Pool, dsn: str | None, *, reread_every: timedelta | None = None) -> None:
        self._pool = pool
        self._listener = None if dsn is None else Listener(dsn, (CHANNEL,), self._hear)
        self._reread_s = (reread_every or (REREAD_UNTOLD if dsn is None else REREAD)).total_seconds()
        self._changed = asyncio.Event()
        self._reading = asyncio.Lock()
        self._reachable = True
        self._snapshot = PollingConfigSnapshot(0, (), {})
        self._refused_version: int | None = None
        self._watching: asyncio.Task[None] | None = None
        self._subscribers: list[Callable[[PollingConfigSnapshot], None]] = []

    @property
    def snapshot(self) -> PollingConfigSnapshot:
        """The last good configuration; version 0 with nothing in it until one was read."""
        return self._snapshot

    def rule_for(self, card: PolledCard, task_type: TaskType) -> PollRule | None:
        """Return the rule the card is polled by now, or None when it is not to be polled."""
        return poll_rule(card, task_type, self._snapshot)

    def subscribe(self, callback: Callable[[PollingConfigSnapshot], None]) -> None:
        """Have ``callback`` called, in the event loop, with every snapshot taken over from now on."""
        self._subscribers.append(callback)

    async def start(self) -> None:
        """Read the configuration once, then keep it up to date.

        Raises:
            DATABASE_FAULTS: the first read failed.

        """
        await self.refresh()
        if self._listener is not None:
            await self._listener.start()
        self._watching = asyncio.create_task(self._watch(), name="polling:config")

    async def stop(self) -> None:
        """Stop following changes; the snapshot stays readable."""
        if self._watching is None:
            return
        task, self._watching = self._watching, None
        await cancel_and_wait(task)
        if self._listener is not None:
            await self._listener.stop()

    async def refresh(self) -> bool:
        """Read the database now and take its configuration over if it is valid; tell whether it is.

        Raises:
            DATABASE_FAULTS: it could not be read.

        """
        async with self._reading:  # one at a time: an older read must not arrive after a newer one
            return await self._read()

    async def try_refresh(self) -> bool:
        """Do as :meth:`refresh` does; what goes wrong is logged and leaves the snapshot as it is."""
        try:
            valid = await self.refresh()
        except DATABASE_FAULTS as error:
            if self._reachable:
                log.warning("轮询配置读取失败，继续使用当前版本", error=type(error).__name__)
            self._reachable = False
            return False
        except Exception:  # told in full; a row nobody thought of must not end every worker of the fleet
            log.exception("轮询配置无法使用，继续使用当前版本", version=self._snapshot.version)
            return False
        if not self._reachable:
            log.info("轮询配置恢复读取", version=self._snapshot.version)
        self._reachable = True
        return valid

    async def _read(self) -> bool:
        async with self._pool.acquire() as conn:
            stored = await load_config(conn)
        try:
            snapshot = build_snapshot(stored.version, stored.rows, stored.accounts, stored.type_pauses)
        except InvalidSnapshotError as error:
            self._refuse(stored.version, error)
            return False
        if snapshot != self._snapshot:
            self._take_over(snapshot)
        self._refused_version = None
        return True

    def _take_over(self, snapshot: PollingConfigSnapshot) -> None:
        is_news = snapshot.rules != self._snapshot.rules or self._refused_version is not None
        for account_id, reason in snapshot.unusable.items():
            if self._snapshot.unusable.get(account_id) != reason:
                code = snapshot.accounts[account_id].code
                log.error("账号无法使用，不再轮询", account=code, reason=reason)
        previous, self._snapshot = self._snapshot.version, snapshot
        # A pause of an account makes a version too; at times there are many, and none is news here.
        say = log.info if is_news or not previous else log.debug
        say(
            "轮询配置已生效",
            version=snapshot.version,
            previous=previous,
            rules=len(snapshot.rules),
            accounts=len(snapshot.accounts),
        )
        for callback in self._subscribers:
            callback(snapshot)

    def _refuse(self, version: int, error: InvalidSnapshotError) -> None:
        if version == self._refused_version:
            return
        self._refused_version = version
        sentence = f"轮询配置无效，继续使用版本 {self._snapshot.version}"
        log.error(sentence, refused=version, problems=error.problems)

    def _hear(self, _channel: str, _payload: str) -> None:
        self._changed.set()

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._reread_s):
                    await self._changed.wait()
            self._changed.clear()
            await self.try_refresh()
