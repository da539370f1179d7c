"""Stop and resume operations, alert rules and the alerts raised."""

from alembic import op

revision = "0005"
down_revision = "0004"

UPGRADE = """
CREATE TABLE alert_rule (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL,
    kind       text NOT NULL CHECK (kind IN (
        'plan_usage', 'pool_usage', 'threshold', 'stale_data', 'api_failure', 'expiry')),
    account_id bigint REFERENCES carrier_account (id) ON DELETE CASCADE,
    category   text,
    level      text NOT NULL DEFAULT 'warning' CHECK (level IN ('info', 'warning', 'critical')),
    threshold  double precision NOT NULL CHECK (threshold >= 0),
    enabled    boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- The key lets an alert be raised once per card, rule, cycle and level, whoever raises it.
CREATE TABLE alert_event (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule_id         bigint NOT NULL REFERENCES alert_rule (id) ON DELETE CASCADE,
    card_id         bigint NOT NULL REFERENCES iot_card (id) ON DELETE CASCADE,
    cycle           text NOT NULL,
    level           text NOT NULL CHECK (level IN ('info', 'warning', 'critical')),
    message         text NOT NULL DEFAULT '',
    raised_at       timestamptz NOT NULL DEFAULT now(),
    acknowledged_at timestamptz,
    UNIQUE (card_id, rule_id, cycle, level)
);
CREATE INDEX alert_event_raised ON alert_event (raised_at);

CREATE TABLE card_operation (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    card_id      bigint NOT NULL REFERENCES iot_card (id) ON DELETE CASCADE,
    kind         text NOT NULL CHECK (kind IN ('stop', 'resume', 'network_on', 'network_off')),
    reason       text NOT NULL CHECK (reason IN (
        'over_plan', 'threshold', 'pool', 'expired', 'manual', 'violation', 'imei_mismatch',
        'not_real_name', 'arrears', 'carrier', 'unknown', 'cycle_rollover')),
    request_id   text NOT NULL UNIQUE,
    status       text NOT NULL DEFAULT 'pending' CHECK (status IN (
        'pending', 'sent', 'done', 'failed', 'unknown')),
    requested_by text NOT NULL DEFAULT '',
    attempts     int NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    error        text,
    requested_at timestamptz NOT NULL DEFAULT now(),
    sent_at      timestamptz,
    verified_at  timestamptz,
    updated_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX card_operation_card ON card_operation (card_id, requested_at);
CREATE INDEX card_operation_open ON card_operation (requested_at)
    WHERE status IN ('pending', 'sent', 'unknown');
"""

DOWNGRADE = """
DROP TABLE card_operation;
DROP TABLE alert_event;
DROP TABLE alert_rule;
"""


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
