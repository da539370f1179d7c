"""Imports can be cancelled, chosen by sheet and watched; their rows cost no look-ups.

The keys of ``import_row`` into other tables were checked row by row, a third of the time of an import.
Rows are written under the lock of their import and are removed with it; a card is never deleted, only
marked.
"""

from alembic import op

revision = "0008"
down_revision = "0007"

UPGRADE = """
ALTER TABLE import_task
    ADD COLUMN file_lines int CHECK (file_lines >= 0),
    ADD COLUMN sheet      text NOT NULL DEFAULT '',
    ADD COLUMN notes      text[] NOT NULL DEFAULT '{}';
ALTER TABLE import_task DROP CONSTRAINT import_task_status_check;
ALTER TABLE import_task ADD CONSTRAINT import_task_status_check
    CHECK (status IN ('pending', 'running', 'done', 'failed', 'cancelled'));
ALTER TABLE import_task DROP CONSTRAINT import_task_account_id_file_sha256_key;
ALTER TABLE import_task ADD CONSTRAINT import_task_file_key UNIQUE (account_id, file_sha256, sheet);
ALTER TABLE import_row DROP CONSTRAINT import_row_task_id_fkey;
ALTER TABLE import_row DROP CONSTRAINT import_row_card_id_fkey;
"""

DOWNGRADE = """
UPDATE import_task SET status = 'failed', error = coalesce(error, '已取消') WHERE status = 'cancelled';
DELETE FROM import_task WHERE sheet <> '';
DELETE FROM import_row AS r WHERE NOT EXISTS (SELECT FROM import_task AS t WHERE t.id = r.task_id);
UPDATE import_row AS r SET card_id = NULL
WHERE card_id IS NOT NULL AND NOT EXISTS (SELECT FROM iot_card AS c WHERE c.id = r.card_id);
ALTER TABLE import_row ADD CONSTRAINT import_row_card_id_fkey
    FOREIGN KEY (card_id) REFERENCES iot_card (id) ON DELETE SET NULL;
ALTER TABLE import_row ADD CONSTRAINT import_row_task_id_fkey
    FOREIGN KEY (task_id) REFERENCES import_task (id) ON DELETE CASCADE;
ALTER TABLE import_task DROP CONSTRAINT import_task_file_key;
ALTER TABLE import_task ADD CONSTRAINT import_task_account_id_file_sha256_key
    UNIQUE (account_id, file_sha256);
ALTER TABLE import_task DROP CONSTRAINT import_task_status_check;
ALTER TABLE import_task ADD CONSTRAINT import_task_status_check
    CHECK (status IN ('pending', 'running', 'done', 'failed'));
ALTER TABLE import_task DROP COLUMN file_lines, DROP COLUMN sheet, DROP COLUMN notes;
"""


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
