"""Name three tables by the glossary: the audit log, the use of quotas, and staged embeddings."""

from alembic import op

revision = "2026.7"
down_revision = "2026.6"
branch_labels = None
depends_on = None

TABLES = (("act", "audit_log"), ("spent", "quota_usage"), ("spare_vector", "staged_embedding"))


def upgrade() -> None:
    for old, new in TABLES:
        _rename(old, new)
    op.execute("ALTER TABLE audit_log RENAME said TO body")
    op.execute("COMMENT ON TABLE quota_usage IS 'Use of quotas per day.'")


def downgrade() -> None:
    op.execute("COMMENT ON TABLE quota_usage IS 'What quotas were spent of a day.'")
    op.execute("ALTER TABLE audit_log RENAME body TO said")
    for old, new in TABLES:
        _rename(new, old)


def _rename(old: str, new: str) -> None:
    """Rename a table with its sequence, its constraints and its indexes."""
    op.execute(f"ALTER TABLE {old} RENAME TO {new}")
    op.execute(
        f"""
        DO $$
        DECLARE name TEXT;
        BEGIN
            FOR name IN SELECT conname FROM pg_constraint
                WHERE conrelid = '{new}'::regclass AND starts_with(conname, '{old}_') LOOP
                EXECUTE format('ALTER TABLE {new} RENAME CONSTRAINT %I TO %I',
                    name, '{new}' || substr(name, length('{old}') + 1));
            END LOOP;
            FOR name IN SELECT relname FROM pg_class
                WHERE relnamespace = current_schema()::regnamespace AND starts_with(relname, '{old}_')
                    AND (relkind = 'S' OR oid IN (SELECT indexrelid FROM pg_index
                                                  WHERE indrelid = '{new}'::regclass)) LOOP
                EXECUTE format('ALTER TABLE %I RENAME TO %I', name, '{new}' || substr(name, length('{old}') + 1));
            END LOOP;
        END $$
        """  # noqa: S608 - names of the tables above
    )
