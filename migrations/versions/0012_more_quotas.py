"""Tenants have quotas of collections, keys, sessions and facts as well."""

from alembic import op

revision = "2026.12"
down_revision = "2026.11"
branch_labels = None
depends_on = None

UP = """
    ALTER TABLE tenant ADD collections BIGINT, ADD keys BIGINT, ADD sessions BIGINT, ADD facts BIGINT,
        ADD CONSTRAINT tenant_collections_check CHECK (collections >= 0),
        ADD CONSTRAINT tenant_keys_check CHECK (keys >= 0),
        ADD CONSTRAINT tenant_sessions_check CHECK (sessions >= 0),
        ADD CONSTRAINT tenant_facts_check CHECK (facts >= 0);
    ALTER TABLE quota_usage DROP CONSTRAINT quota_usage_kind_check,
        ADD CONSTRAINT quota_usage_kind_check
            CHECK (kind IN ('queries', 'verdicts', 'llm_tokens', 'sessions', 'facts'));
    COMMENT ON COLUMN tenant.passages IS 'Quotas, null for the default: how many it may hold,';
    COMMENT ON COLUMN tenant.collections IS 'How many collections it may have,';
    COMMENT ON COLUMN tenant.keys IS 'access keys that count,';
    COMMENT ON COLUMN tenant.sessions IS 'and, of a day (UTC), how many sessions it may start,';
    COMMENT ON COLUMN tenant.facts IS 'and how many facts it may state by itself.';
"""
DOWN = """
    DELETE FROM quota_usage WHERE kind IN ('sessions', 'facts');
    ALTER TABLE quota_usage DROP CONSTRAINT quota_usage_kind_check,
        ADD CONSTRAINT quota_usage_kind_check CHECK (kind IN ('queries', 'verdicts', 'llm_tokens'));
    ALTER TABLE tenant DROP collections, DROP keys, DROP sessions, DROP facts;
    COMMENT ON COLUMN tenant.passages IS 'Quotas, null for none: how many it may hold,';
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(UP)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(DOWN)
