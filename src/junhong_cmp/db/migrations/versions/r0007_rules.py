"""What the rules about plans, pools, stops and resumes need, and differences from carriers' card lists."""

from alembic import op

revision = "0007"
down_revision = "0006"

UPGRADE = """
-- Stopping cards by itself is something an account's owner has to ask for.
ALTER TABLE carrier_account
    ADD COLUMN monthly_quota bigint CHECK (monthly_quota >= 0),
    ADD COLUMN quota_per text NOT NULL DEFAULT 'call' CHECK (quota_per IN ('call', 'card')),
    ADD COLUMN operation_min_gap_s int NOT NULL DEFAULT 180 CHECK (operation_min_gap_s >= 0),
    ADD COLUMN protect_enabled boolean NOT NULL DEFAULT false,
    ADD COLUMN stop_on_expiry boolean NOT NULL DEFAULT false;

-- What a card's plan, named in iot_card.plan, contains in a billing cycle.
CREATE TABLE data_plan (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id bigint NOT NULL REFERENCES carrier_account (id) ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> ''),
    quota_kb   bigint NOT NULL CHECK (quota_kb > 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (account_id, name)
);

-- An alert about a pool is raised once for the pool; its card is the one whose reading crossed the line.
ALTER TABLE alert_event ADD COLUMN pool_id bigint REFERENCES data_pool (id) ON DELETE CASCADE;
CREATE UNIQUE INDEX alert_event_pool ON alert_event (pool_id, rule_id, cycle, level)
    WHERE pool_id IS NOT NULL;

-- The billing cycle an operation was ordered in, and when a sender may look at it again. Of a card, one
-- operation at a time is under way: the index, not the senders' care, sees to it.
ALTER TABLE card_operation
    ADD COLUMN cycle text,
    ADD COLUMN sends int NOT NULL DEFAULT 0 CHECK (sends >= 0);
UPDATE card_operation AS o SET status = 'unknown', error = '同一张卡有更新的操作', updated_at = now()
FROM card_operation AS later
WHERE later.card_id = o.card_id AND later.id > o.id
    AND o.status IN ('pending', 'sent') AND later.status IN ('pending', 'sent');
CREATE UNIQUE INDEX card_operation_one_open ON card_operation (card_id)
    WHERE status IN ('pending', 'sent');

CREATE INDEX iot_card_stopped ON iot_card (account_id, id)
    WHERE stop_reason IN ('over_plan', 'threshold', 'pool') AND deleted_at IS NULL;

-- What a carrier's list of an account's cards says that we do not, and the other way round.
CREATE TABLE carrier_card_difference (
    account_id     bigint NOT NULL REFERENCES carrier_account (id) ON DELETE CASCADE,
    iccid          text NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('only_at_carrier', 'only_here', 'status_differs')),
    card_id        bigint REFERENCES iot_card (id) ON DELETE CASCADE,
    carrier_status text,
    our_status     text,
    first_seen_at  timestamptz NOT NULL DEFAULT now(),
    last_seen_at   timestamptz NOT NULL DEFAULT now(),
    resolved_at    timestamptz,
    PRIMARY KEY (account_id, iccid, kind)
);
CREATE INDEX carrier_card_difference_open ON carrier_card_difference (account_id, kind)
    WHERE resolved_at IS NULL;
"""

DOWNGRADE = """
DROP TABLE carrier_card_difference;
DROP INDEX iot_card_stopped;
DROP INDEX card_operation_one_open;
ALTER TABLE card_operation DROP COLUMN sends, DROP COLUMN cycle;
DROP INDEX alert_event_pool;
ALTER TABLE alert_event DROP COLUMN pool_id;
DROP TABLE data_plan;
ALTER TABLE carrier_account
    DROP COLUMN stop_on_expiry, DROP COLUMN protect_enabled,
    DROP COLUMN operation_min_gap_s, DROP COLUMN quota_per, DROP COLUMN monthly_quota;
"""


def upgrade() -> None:
    """Apply this revision."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Undo this revision."""
    op.execute(DOWNGRADE)
