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


# First the cards, then their operations, looked up card by card: OFFSET 0 keeps the planner from joining the
# two, for on a wrong guess at how many cards are left it reads all operations for each. What failed rests
# (see RETRY_AFTER), what was never sent did not fail.
_CANDIDATES = """
    WITH plans AS MATERIALIZED (SELECT name, quota_kb FROM data_plan WHERE account_id = $1)
    SELECT c.id FROM (
        SELECT c.id, c.stop_reason, c.expires_at FROM iot_card AS c {join}
        WHERE c.account_id = $1 AND c.id > $2 AND c.id <= $7 AND c.deleted_at IS NULL
            AND $3::text IS NOT NULL AND $4::timestamptz IS NOT NULL AND $5::text[] IS NOT NULL
            AND {condition}
        ORDER BY c.id OFFSET 0) AS c
    WHERE NOT EXISTS (
            SELECT FROM card_operation AS o WHERE o.card_id = c.id AND (
                o.status IN ('pending', 'sent')
                OR (o.status IN ('failed', 'unknown') AND o.sends > 0
                    AND o.updated_at > $4 - interval '6 hours'))
            OFFSET 0)
        AND {stop} EXISTS (
            SELECT FROM card_operation AS o
            WHERE o.card_id = c.id AND o.kind = 'stop' AND o.status = 'done' AND {stopped}
            OFFSET 0)
    ORDER BY c.id LIMIT $6
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
_STOPPED_FOR_USAGE = "c.status = 'suspended' AND c.stop_reason IN ('over_plan', 'threshold', 'pool')"
_CONDITIONS: Final[Mapping[SweepCause, str]] = {
    SweepCause.USAGE: f"c.cycle = $3 AND c.status = ANY ($5) AND ({_OVER})",
    SweepCause.POOL: f"c.cycle = $3 AND c.status = ANY ($5) AND {_POOL_USED_UP}",
    SweepCause.ROLLOVER: _STOPPED_FOR_USAGE,
    SweepCause.RAISED: f"""
        {_STOPPED_FOR_USAGE} AND c.cycle = $3 AND ({_OVER}) IS NOT TRUE AND NOT {_POOL_USED_UP}
    """,
    SweepCause.EXPIRY: "c.expires_at <= $4 AND c.status = ANY ($5)",
}
_STOPPED_THIS_CYCLE = """
    o.cycle = $3 AND o.reason IN ('over_plan', 'threshold', 'pool') AND NOT EXISTS (
        SELECT FROM card_operation AS r
        WHERE r.card_id = o.card_id AND r.id > o.id AND r.kind = 'resume' AND r.status = 'done'
            AND r.reason = 'limit_raised'
        OFFSET 0)
"""
# The stop that worked which a card must not have had, or must have had where it is to come back.
_STOPS: Final[Mapping[SweepCause, tuple[str, str]]] = {
    SweepCause.USAGE: ("NOT", _STOPPED_THIS_CYCLE),
    SweepCause.POOL: ("NOT", _STOPPED_THIS_CYCLE),
    SweepCause.ROLLOVER: ("NOT", "o.cycle >= $3 AND o.reason = c.stop_reason"),
    SweepCause.RAISED: ("", "o.cycle = $3 AND o.reason = c.stop_reason"),
    SweepCause.EXPIRY: ("NOT", "o.reason = 'expired' AND o.updated_at >= c.expires_at"),
}
# Plans are gathered first: looked up card by card they would be read a million times.
_JOINS: Final[Mapping[SweepCause, str]] = dict.fromkeys(
    (SweepCause.USAGE, SweepCause.RAISED), "LEFT JOIN plans ON plans.name = c.plan"
)
CANDIDATES: Final[Mapping[SweepCause, str]] = {
    cause: _CANDIDATES.format(
        condition=_CONDITIONS[cause],
        join=_JOINS.get(cause, ""),
        stop=_STOPS[cause][0],
        stopped=_STOPS[cause][1],
    )
    for cause in SweepCause
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
