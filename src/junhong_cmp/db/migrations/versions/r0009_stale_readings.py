"""What a card's counter had come to before its open cycle: a reading of that much may be a stale one."""

from alembic import op

revision = "0009"
down_revision = "0008"

UPGRADE = """
ALTER TABLE iot_card ADD COLUMN previous_cycle_kb bigint CHECK (previous_cycle_kb >= 0);
"""

DOWNGRADE = """
ALTER TABLE iot_card DROP COLUMN previous_cycle_kb;
"""


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
