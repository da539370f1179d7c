"""Usage by day and by billing cycle, and readings that cannot be right."""

from alembic import op

revision = "0002"
down_revision = "0001"

UPGRADE = """
CREATE TABLE card_usage_daily (
    card_id    bigint NOT NULL REFERENCES iot_card (id) ON DELETE CASCADE,
    day        date NOT NULL,
    used_kb    bigint NOT NULL CHECK (used_kb >= 0),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (card_id, day)
) WITH (fillfactor = 80);
CREATE INDEX card_usage_daily_day ON card_usage_daily (day);

CREATE TABLE card_usage_cycle (
    card_id    bigint NOT NULL REFERENCES iot_card (id) ON DELETE CASCADE,
    cycle      text NOT NULL,
    used_kb    bigint NOT NULL CHECK (used_kb >= 0),
    closed     boolean NOT NULL DEFAULT false,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (card_id, cycle)
) WITH (fillfactor = 80);

-- One row per card, kind and reading: recording the same reading again adds nothing.
CREATE TABLE usage_anomaly (
    card_id     bigint NOT NULL REFERENCES iot_card (id) ON DELETE CASCADE,
    kind        text NOT NULL CHECK (kind IN ('rollback', 'jump', 'unit')),
    reading_at  timestamptz NOT NULL,
    cycle       text,
    expected_kb bigint NOT NULL,
    reading_kb  bigint NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (card_id, kind, reading_at)
);
CREATE INDEX usage_anomaly_recorded ON usage_anomaly (recorded_at);
"""

DOWNGRADE = """
DROP TABLE usage_anomaly;
DROP TABLE card_usage_cycle;
DROP TABLE card_usage_daily;
"""


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
