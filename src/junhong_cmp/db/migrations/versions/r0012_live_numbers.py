"""One live card a number, by an index of all cards: a partial one misleads the planner.

Of a table without statistics it takes ``deleted_at IS NULL`` to hold for one row in 200, and an index of just
those rows looks like the way to them: every look-up of a hundred cards by their ids read that index from end
to end, for each batch of polls, until the table was analysed.
"""

from alembic import op

revision = "0012"
down_revision = "0011"

UPGRADE = """
CREATE UNIQUE INDEX iot_card_live_number ON iot_card ((CASE WHEN deleted_at IS NULL THEN iccid END));
DROP INDEX iot_card_iccid_live;
"""

DOWNGRADE = """
CREATE UNIQUE INDEX iot_card_iccid_live ON iot_card (iccid) WHERE deleted_at IS NULL;
DROP INDEX iot_card_live_number;
"""


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
