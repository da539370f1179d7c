"""Imports tell what they wait for: a storage that is away, a temporary folder that is full."""

from alembic import op

revision = "0013"
down_revision = "0012"

UPGRADE = "ALTER TABLE import_task ADD COLUMN waits_for text"
DOWNGRADE = "ALTER TABLE import_task DROP COLUMN waits_for"


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
