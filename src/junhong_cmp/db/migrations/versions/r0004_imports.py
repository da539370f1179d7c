"""Import jobs and the outcome of every row."""

from alembic import op

revision = "0004"
down_revision = "0003"

UPGRADE = """
CREATE TABLE import_task (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  bigint NOT NULL REFERENCES carrier_account (id),
    file_name   text NOT NULL,
    file_key    text NOT NULL,
    file_sha256 text NOT NULL CHECK (file_sha256 ~ '^[0-9a-f]{64}$'),
    file_bytes  bigint NOT NULL CHECK (file_bytes >= 0),
    status      text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'running', 'done', 'failed')),
    total       int NOT NULL DEFAULT 0 CHECK (total >= 0),
    imported    int NOT NULL DEFAULT 0 CHECK (imported >= 0),
    skipped     int NOT NULL DEFAULT 0 CHECK (skipped >= 0),
    rejected    int NOT NULL DEFAULT 0 CHECK (rejected >= 0),
    warned      int NOT NULL DEFAULT 0 CHECK (warned >= 0),
    next_line   int NOT NULL DEFAULT 0 CHECK (next_line >= 0),
    result_key  text,
    error       text,
    created_at  timestamptz NOT NULL DEFAULT now(),
    started_at  timestamptz,
    finished_at timestamptz,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    UNIQUE (account_id, file_sha256)
);
CREATE INDEX import_task_unfinished ON import_task (id) WHERE status IN ('pending', 'running');

CREATE TABLE import_row (
    task_id     bigint NOT NULL REFERENCES import_task (id) ON DELETE CASCADE,
    line_no     int NOT NULL CHECK (line_no > 0),
    status      text NOT NULL CHECK (status IN ('imported', 'skipped', 'rejected')),
    value       text NOT NULL DEFAULT '',
    card_id     bigint REFERENCES iot_card (id) ON DELETE SET NULL,
    reason_code text,
    reason      text,
    warnings    text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (task_id, line_no)
);
CREATE INDEX import_row_card ON import_row (card_id) WHERE card_id IS NOT NULL;
"""

DOWNGRADE = """
DROP TABLE import_row;
DROP TABLE import_task;
"""


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
