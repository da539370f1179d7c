"""Carrier accounts, data pools, cards and their status history."""

from alembic import op

revision = "0001"
down_revision = None

UPGRADE = """
CREATE TABLE carrier_account (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    code               text NOT NULL UNIQUE CHECK (code <> ''),
    name               text NOT NULL DEFAULT '',
    carrier            text NOT NULL CHECK (carrier IN ('cmcc', 'cucc', 'ctcc', 'cbn', 'other')),
    driver             text NOT NULL DEFAULT 'generic',
    base_url           text,
    credential_ref     text,
    tz                 text NOT NULL DEFAULT 'Asia/Shanghai',
    billing_day        smallint NOT NULL DEFAULT 1 CHECK (billing_day BETWEEN 1 AND 31),
    usage_unit         text NOT NULL DEFAULT 'KB',
    usage_lag_s        int NOT NULL DEFAULT 0 CHECK (usage_lag_s >= 0),
    qps                real NOT NULL DEFAULT 50 CHECK (qps > 0),
    concurrency        int NOT NULL DEFAULT 64 CHECK (concurrency > 0),
    daily_quota        bigint CHECK (daily_quota >= 0),
    per_card_min_gap_s int NOT NULL DEFAULT 0 CHECK (per_card_min_gap_s >= 0),
    batch_size         int NOT NULL DEFAULT 1 CHECK (batch_size > 0),
    polling_enabled    boolean NOT NULL DEFAULT true,
    paused_until       timestamptz,
    pause_reason       text,
    created_at         timestamptz NOT NULL DEFAULT now(),
    updated_at         timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE data_pool (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id   bigint NOT NULL REFERENCES carrier_account (id),
    name         text NOT NULL,
    capacity_kb  bigint NOT NULL CHECK (capacity_kb >= 0),
    threshold_kb bigint CHECK (threshold_kb >= 0),
    cycle        text,
    used_kb      bigint NOT NULL DEFAULT 0 CHECK (used_kb >= 0),
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (account_id, name)
);

-- Every poll updates its card in place: free space in the page keeps those updates off the indexes.
CREATE TABLE iot_card (
    id                       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    iccid                    text NOT NULL CHECK (iccid ~ '^[0-9A-F]{19,20}$'),
    iccid19                  text NOT NULL CHECK (iccid19 = left(iccid, 19)),
    msisdn                   text,
    imsi                     text,
    imei                     text,
    account_id               bigint NOT NULL REFERENCES carrier_account (id),
    batch_no                 text,
    category                 text NOT NULL DEFAULT '',
    plan                     text,
    pool_id                  bigint REFERENCES data_pool (id) ON DELETE SET NULL,
    carrier_status_raw       text,
    status                   text NOT NULL DEFAULT 'unknown' CHECK (status IN (
        'unknown', 'inventory', 'testing', 'ready', 'active', 'suspended', 'pre_cancelled', 'cancelled')),
    status_changed_at        timestamptz,
    stop_reason              text NOT NULL DEFAULT 'none' CHECK (stop_reason IN (
        'none', 'over_plan', 'threshold', 'pool', 'expired', 'manual', 'violation', 'imei_mismatch',
        'not_real_name', 'arrears', 'carrier', 'unknown')),
    real_name_required       boolean NOT NULL DEFAULT false,
    real_name_status         text NOT NULL DEFAULT 'unknown' CHECK (real_name_status IN (
        'not_required', 'unverified', 'verified', 'unknown')),
    network_on               boolean,
    polling_enabled          boolean NOT NULL DEFAULT true,
    orphan                   boolean NOT NULL DEFAULT false,
    activated_at             timestamptz,
    expires_at               timestamptz,
    threshold_kb             bigint CHECK (threshold_kb >= 0),
    cycle                    text,
    cycle_used_kb            bigint NOT NULL DEFAULT 0 CHECK (cycle_used_kb >= 0),
    last_reading_kb          bigint CHECK (last_reading_kb >= 0),
    last_reading_at          timestamptz,
    carddata_attempted_at    timestamptz,
    carddata_succeeded_at    timestamptz,
    carddata_fail_count      int NOT NULL DEFAULT 0 CHECK (carddata_fail_count >= 0),
    cardstatus_attempted_at  timestamptz,
    cardstatus_succeeded_at  timestamptz,
    cardstatus_fail_count    int NOT NULL DEFAULT 0 CHECK (cardstatus_fail_count >= 0),
    realname_attempted_at    timestamptz,
    realname_succeeded_at    timestamptz,
    realname_fail_count      int NOT NULL DEFAULT 0 CHECK (realname_fail_count >= 0),
    not_found_count          int NOT NULL DEFAULT 0 CHECK (not_found_count >= 0),
    version                  bigint NOT NULL DEFAULT 1,
    created_at               timestamptz NOT NULL DEFAULT now(),
    updated_at               timestamptz NOT NULL DEFAULT now(),
    deleted_at               timestamptz
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX iot_card_iccid_live ON iot_card (iccid) WHERE deleted_at IS NULL;
CREATE INDEX iot_card_iccid19 ON iot_card (iccid19);
CREATE INDEX iot_card_account ON iot_card (account_id);
CREATE INDEX iot_card_msisdn ON iot_card (msisdn) WHERE msisdn IS NOT NULL;
CREATE INDEX iot_card_pool ON iot_card (pool_id) WHERE pool_id IS NOT NULL;

CREATE TABLE card_status_history (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    card_id     bigint NOT NULL REFERENCES iot_card (id) ON DELETE CASCADE,
    old_status  text NOT NULL,
    new_status  text NOT NULL,
    old_raw     text,
    new_raw     text,
    observed_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX card_status_history_card ON card_status_history (card_id, observed_at);
"""

DOWNGRADE = """
DROP TABLE card_status_history;
DROP TABLE iot_card;
DROP TABLE data_pool;
DROP TABLE carrier_account;
"""


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
