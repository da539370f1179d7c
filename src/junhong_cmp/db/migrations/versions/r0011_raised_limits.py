"""Cards resumed because their limit was raised; and nothing in the schema that nobody reads.

``polling_limit`` was never obeyed: an account's limits are columns of the account. Nor was any alert ever
acknowledged.
"""

from alembic import op

revision = "0011"
down_revision = "0010"

UPGRADE = """
ALTER TABLE card_operation DROP CONSTRAINT card_operation_reason_check;
ALTER TABLE card_operation ADD CONSTRAINT card_operation_reason_check CHECK (reason IN (
    'over_plan', 'threshold', 'pool', 'expired', 'manual', 'violation', 'imei_mismatch',
    'not_real_name', 'arrears', 'carrier', 'unknown', 'cycle_rollover', 'limit_raised'));
DROP TABLE polling_limit;
ALTER TABLE alert_event DROP COLUMN acknowledged_at;
"""

DOWNGRADE = """
ALTER TABLE alert_event ADD COLUMN acknowledged_at timestamptz;
CREATE TABLE polling_limit (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope       text NOT NULL CHECK (scope IN ('global', 'account', 'ip')),
    account_id  bigint REFERENCES carrier_account (id) ON DELETE CASCADE,
    subject     text NOT NULL DEFAULT '',
    qps         real CHECK (qps > 0),
    concurrency int CHECK (concurrency > 0),
    daily_quota bigint CHECK (daily_quota >= 0),
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    CHECK ((scope = 'account') = (account_id IS NOT NULL))
);
CREATE UNIQUE INDEX polling_limit_subject ON polling_limit (scope, coalesce(account_id, 0), subject);
UPDATE card_operation SET reason = 'cycle_rollover' WHERE reason = 'limit_raised';
ALTER TABLE card_operation DROP CONSTRAINT card_operation_reason_check;
ALTER TABLE card_operation ADD CONSTRAINT card_operation_reason_check CHECK (reason IN (
    'over_plan', 'threshold', 'pool', 'expired', 'manual', 'violation', 'imei_mismatch',
    'not_real_name', 'arrears', 'carrier', 'unknown', 'cycle_rollover'));
"""


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
