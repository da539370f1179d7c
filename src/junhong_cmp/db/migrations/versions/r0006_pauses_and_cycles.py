"""Pauses of one task type of an account, when an account's pause began, and cycles still open."""

from alembic import op

revision = "0006"
down_revision = "0005"

UPGRADE = """
ALTER TABLE carrier_account ADD COLUMN paused_at timestamptz;

-- One task type of an account rests; the account as a whole rests by its own paused_until.
CREATE TABLE polling_pause (
    account_id   bigint NOT NULL REFERENCES carrier_account (id) ON DELETE CASCADE,
    task_type    text NOT NULL,
    paused_until timestamptz NOT NULL,
    reason       text NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account_id, task_type)
);
CREATE TRIGGER polling_pause_changed
    AFTER INSERT OR DELETE OR TRUNCATE ON polling_pause
    FOR EACH STATEMENT EXECUTE FUNCTION bump_polling_config_version();
CREATE TRIGGER polling_pause_updated
    AFTER UPDATE ON polling_pause REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION bump_polling_config_version();

CREATE INDEX card_usage_cycle_open ON card_usage_cycle (cycle, card_id) WHERE NOT closed;
CREATE INDEX iot_card_expires ON iot_card (expires_at) WHERE expires_at IS NOT NULL AND deleted_at IS NULL;
"""

DOWNGRADE = """
DROP INDEX iot_card_expires;
DROP INDEX card_usage_cycle_open;
DROP TABLE polling_pause;
ALTER TABLE carrier_account DROP COLUMN paused_at;
"""


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
