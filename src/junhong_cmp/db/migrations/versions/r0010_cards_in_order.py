"""Cards of an account in the order of their ids, so that a look at a range of them reads no others."""

from alembic import op

revision = "0010"
down_revision = "0009"

UPGRADE = """
DROP INDEX iot_card_account;
CREATE INDEX iot_card_account ON iot_card (account_id, id);
"""

DOWNGRADE = """
DROP INDEX iot_card_account;
CREATE INDEX iot_card_account ON iot_card (account_id);
"""


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
