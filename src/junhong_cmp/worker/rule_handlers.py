"""The handlers that apply rules to cards and accounts, wired together from the shared services."""

from dataclasses import dataclass
from typing import Self

from junhong_cmp.polling.alert_sweep import AlertSweep
from junhong_cmp.polling.card_tasks import CardTasks
from junhong_cmp.polling.handlers.alert_check import AlertCheckHandler
from junhong_cmp.polling.handlers.cycle_rollover import CycleRolloverHandler
from junhong_cmp.polling.handlers.expiry_check import ExpiryCheckHandler
from junhong_cmp.polling.handlers.operation_followup import OperationFollowupHandler
from junhong_cmp.polling.handlers.orphan_diff import OrphanDiffHandler
from junhong_cmp.polling.handlers.package import PackageHandler
from junhong_cmp.polling.handlers.periodic import PeriodicHandler
from junhong_cmp.polling.handlers.protect import ProtectHandler
from junhong_cmp.polling.handlers.quota_reset import QuotaResetHandler
from junhong_cmp.polling.handlers.usage_rollup import UsageRollupHandler
from junhong_cmp.polling.operation_sender import OperationSender
from junhong_cmp.polling.operation_settler import OperationSettler
from junhong_cmp.polling.package_evaluator import PackageEvaluator
from junhong_cmp.polling.pauses import AccountPauses
from junhong_cmp.polling.protect_sweep import ProtectSweep
from junhong_cmp.worker.services import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleHandlers:
    """What tasks about single cards and the platform's cron entries are handled by."""

    evaluator: PackageEvaluator
    package: PackageHandler
    protect: ProtectHandler
    periodic: tuple[PeriodicHandler, ...]

    @classmethod
    def of(cls, services: Services) -> Self:
        """Wire the handlers; nothing is sent before the first task."""
        tasks = CardTasks(services.client)
        pauses = AccountPauses(
            services.pool,
            reread=services.polling_config.try_refresh,
            accounts=lambda: services.polling_config.snapshot.accounts,
            loads=services.polling_concurrency.loads,
            clock=services.clock,
        )
        settler = OperationSettler(services.pool, services.polling_lifecycle, services.clock)
        evaluator = PackageEvaluator(services.pool, services.polling_config, tasks, clock=services.clock)
        return cls(
            evaluator=evaluator,
            package=PackageHandler(evaluator),
            protect=_protect(services, pauses, settler),
            periodic=(
                *_sweeps(services, tasks),
                *_carriers(services, pauses, settler, tasks),
                UsageRollupHandler(services.pool, clock=services.clock),
                QuotaResetHandler(services.pool, clock=services.clock),
            ),
        )


def _protect(services: Services, pauses: AccountPauses, settler: OperationSettler) -> ProtectHandler:
    sender = OperationSender(
        pool=services.pool,
        concurrency=services.polling_concurrency,
        pauses=pauses,
        settler=settler,
        stats=services.polling_stats,
        clock=services.clock,
    )
    return ProtectHandler(
        pool=services.pool,
        gateway=services.gateway,
        config_manager=services.polling_config,
        queue_manager=services.polling_queue,
        sender=sender,
        clock=services.clock,
    )


def _sweeps(services: Services, tasks: CardTasks) -> tuple[PeriodicHandler, ...]:
    """Return the handlers that look at cards in PostgreSQL only."""
    alerts = AlertSweep(services.pool, services.polling_config, services.clock)
    protect = ProtectSweep(services.pool, services.polling_config, tasks, services.clock)
    return (
        AlertCheckHandler(alerts, protect),
        ExpiryCheckHandler(alerts, protect),
        CycleRolloverHandler(services.pool, protect, clock=services.clock),
    )


def _carriers(
    services: Services, pauses: AccountPauses, settler: OperationSettler, tasks: CardTasks
) -> tuple[PeriodicHandler, ...]:
    """Return the handlers that ask carriers."""
    return (
        OperationFollowupHandler(
            pool=services.pool,
            gateway=services.gateway,
            config_manager=services.polling_config,
            concurrency=services.polling_concurrency,
            pauses=pauses,
            settler=settler,
            tasks=tasks,
            clock=services.clock,
        ),
        OrphanDiffHandler(
            pool=services.pool,
            gateway=services.gateway,
            config_manager=services.polling_config,
            concurrency=services.polling_concurrency,
            pauses=pauses,
            clock=services.clock,
        ),
    )
