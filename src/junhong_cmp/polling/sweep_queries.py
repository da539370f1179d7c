"""Which cards a protect sweep hands over: a coarse look that may find too many, for the task decides.

Parameters: $1 account, $2 and $7 the ids to look between (the first left out), $3 its current cycle, $4 now,
$5 the states in service, $6 how many.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class SweepCause(Enum):
    """Why cards are looked for; the values are the words of the log."""

    USAGE = "用量超限"
    POOL = "流量池用尽"
    ROLLOVER = "周期结转"
    RAISED = "限额提高"
    EXPIRY = "到期"


# What failed rests (see RETRY_AFTER), what was never sent did not fail.
_CANDIDATES = """
    WITH plans AS MATERIALIZED (SELECT name, quota_kb FROM data_plan WHERE account_id = $1)
    SELECT c.id FROM iot_card AS c {join}
    WHERE c.account_id = $1 AND c.id > $2 AND c.id <= $7 AND c.deleted_at IS NULL
        AND $3::text IS NOT NULL AND $4::timestamptz IS NOT NULL AND $5::text[] IS NOT NULL
        AND {condition}
        AND NOT EXISTS (
            SELECT FROM card_operation AS o WHERE o.card_id = c.id AND (
                o.status IN ('pending', 'sent')
                OR (o.status IN ('failed', 'unknown') AND o.sends > 0
                    AND o.updated_at > $4 - interval '6 hours')))
    ORDER BY c.id LIMIT $6
"""
_NOT_STOPPED_YET = """
    AND NOT EXISTS (
        SELECT FROM card_operation AS o
        WHERE o.card_id = c.id AND o.kind = 'stop' AND o.status = 'done' AND o.cycle = $3
            AND o.reason IN ('over_plan', 'threshold', 'pool')
            AND NOT EXISTS (
                SELECT FROM card_operation AS r
                WHERE r.card_id = o.card_id AND r.id > o.id AND r.kind = 'resume' AND r.status = 'done'
                    AND r.reason = 'limit_raised'))
"""
_OVER = """
    (c.threshold_kb > 0 AND c.cycle_used_kb >= c.threshold_kb) OR c.cycle_used_kb >= plans.quota_kb
"""
_POOL_USED_UP = """
    EXISTS (
        SELECT FROM data_pool AS d
        WHERE d.id = c.pool_id AND d.cycle = $3
            AND d.used_kb >= coalesce(nullif(d.threshold_kb, 0), d.capacity_kb)
            AND coalesce(nullif(d.threshold_kb, 0), d.capacity_kb) > 0)
"""
_CONDITIONS: Final[Mapping[SweepCause, str]] = {
    SweepCause.USAGE: f"c.cycle = $3 AND c.status = ANY ($5) AND ({_OVER}) {_NOT_STOPPED_YET}",
    SweepCause.POOL: f"c.cycle = $3 AND c.status = ANY ($5) AND {_POOL_USED_UP} {_NOT_STOPPED_YET}",
    SweepCause.ROLLOVER: """
        c.status = 'suspended' AND c.stop_reason IN ('over_plan', 'threshold', 'pool') AND NOT EXISTS (
            SELECT FROM card_operation AS o
            WHERE o.card_id = c.id AND o.kind = 'stop' AND o.status = 'done' AND o.cycle >= $3
                AND o.reason = c.stop_reason)
    """,
    SweepCause.RAISED: f"""
        c.status = 'suspended' AND c.stop_reason IN ('over_plan', 'threshold', 'pool') AND c.cycle = $3
        AND ({_OVER}) IS NOT TRUE AND NOT {_POOL_USED_UP} AND EXISTS (
            SELECT FROM card_operation AS o
            WHERE o.card_id = c.id AND o.kind = 'stop' AND o.status = 'done' AND o.cycle = $3
                AND o.reason = c.stop_reason)
    """,
    SweepCause.EXPIRY: """
        c.expires_at <= $4 AND c.status = ANY ($5) AND NOT EXISTS (
            SELECT FROM card_operation AS o
            WHERE o.card_id = c.id AND o.kind = 'stop' AND o.status = 'done' AND o.reason = 'expired'
                AND o.updated_at >= c.expires_at)
    """,
}
# Plans are gathered first: looked up card by card they would be read a million times.
_JOINS: Final[Mapping[SweepCause, str]] = dict.fromkeys(
    (SweepCause.USAGE, SweepCause.RAISED), "LEFT JOIN plans ON plans.name = c.plan"
)
CANDIDATES: Final[Mapping[SweepCause, str]] = {
    cause: _CANDIDATES.format(condition=condition, join=_JOINS.get(cause, ""))
    for cause, condition in _CONDITIONS.items()
}
# The least and greatest id; and whether the account (not by a pause) or a plan of it was changed so lately
# that every card is to be looked at.
EXTENT: Final = """
    SELECT (SELECT min(id) FROM iot_card WHERE account_id = $1) AS first_id,
        (SELECT max(id) FROM iot_card WHERE account_id = $1) AS last_id,
        EXISTS (
            SELECT FROM data_plan WHERE account_id = $1 AND updated_at > now() - interval '15 minutes')
        OR EXISTS (
            SELECT FROM carrier_account
            WHERE id = $1 AND updated_at > now() - interval '15 minutes'
                AND (paused_at IS NULL OR paused_at <= now() - interval '15 minutes'))
        AS is_changed
"""
