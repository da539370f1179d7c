"""Polling rules with a version that announces itself, limits, figures and grouped errors."""

from alembic import op

revision = "0003"
down_revision = "0002"

UPGRADE = """
-- A NULL condition matches any card; the lowest priority wins.
CREATE TABLE polling_config (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name             text NOT NULL,
    priority         int NOT NULL,
    account_id       bigint REFERENCES carrier_account (id) ON DELETE CASCADE,
    category         text,
    card_status      text,
    real_name_status text,
    intervals        jsonb NOT NULL,
    enabled          boolean NOT NULL DEFAULT true,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE polling_config_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version  bigint NOT NULL
);
INSERT INTO polling_config_version (version) VALUES (1);

CREATE FUNCTION bump_polling_config_version() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    bumped bigint;
BEGIN
    IF TG_OP = 'UPDATE' THEN  -- nested: only update triggers have the transition table
        IF NOT EXISTS (SELECT FROM changed) THEN
            RETURN NULL;
        END IF;
    END IF;
    UPDATE polling_config_version SET version = version + 1 RETURNING version INTO bumped;
    PERFORM pg_notify('polling_config', bumped::text);
    RETURN NULL;
END
$$;

CREATE TRIGGER polling_config_changed
    AFTER INSERT OR DELETE OR TRUNCATE ON polling_config
    FOR EACH STATEMENT EXECUTE FUNCTION bump_polling_config_version();
CREATE TRIGGER polling_config_updated
    AFTER UPDATE ON polling_config REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION bump_polling_config_version();
CREATE TRIGGER carrier_account_changed
    AFTER INSERT OR DELETE OR TRUNCATE ON carrier_account
    FOR EACH STATEMENT EXECUTE FUNCTION bump_polling_config_version();
CREATE TRIGGER carrier_account_updated
    AFTER UPDATE ON carrier_account REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION bump_polling_config_version();

-- Limits shared by accounts, e.g. one outgoing address in front of several of them.
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

CREATE TABLE poll_minute (
    task_type     text NOT NULL,
    account_id    bigint NOT NULL,
    minute        timestamptz NOT NULL,
    due           int NOT NULL DEFAULT 0,
    done          int NOT NULL DEFAULT 0,
    failed        int NOT NULL DEFAULT 0,
    throttled     int NOT NULL DEFAULT 0,
    superseded    int NOT NULL DEFAULT 0,
    lag_histogram bigint[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (task_type, account_id, minute)
);
CREATE INDEX poll_minute_minute ON poll_minute (minute);

CREATE TABLE poll_error (
    task_type      text NOT NULL,
    account_id     bigint NOT NULL,
    code           text NOT NULL,
    message        text NOT NULL DEFAULT '',
    count          bigint NOT NULL DEFAULT 1 CHECK (count > 0),
    sample_card_id bigint,
    first_at       timestamptz NOT NULL DEFAULT now(),
    last_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (task_type, account_id, code, message)
);
CREATE INDEX poll_error_last ON poll_error (last_at);
"""

DOWNGRADE = """
DROP TABLE poll_error;
DROP TABLE poll_minute;
DROP TABLE polling_limit;
DROP TRIGGER carrier_account_changed ON carrier_account;
DROP TRIGGER carrier_account_updated ON carrier_account;
DROP TABLE polling_config;
DROP FUNCTION bump_polling_config_version();
DROP TABLE polling_config_version;
"""


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
