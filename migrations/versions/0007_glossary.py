"""Rename tables, columns and values by the glossary: audit log, use of quotas, staged embeddings, sufficiency."""

from alembic import op

revision = "2026.7"
down_revision = "2026.6"
branch_labels = None
depends_on = None

TABLES = (("act", "audit_log"), ("spent", "quota_usage"), ("spare_vector", "staged_embedding"))
WITH_SUFFICIENCY = ("session", "session_round")
WITH_ANSWER_FEATURES = ("judged_query", "episode")


def upgrade() -> None:
    for old, new in TABLES:
        _rename(old, new)
    op.execute("ALTER TABLE audit_log RENAME said TO body")
    op.execute("COMMENT ON TABLE quota_usage IS 'Use of quotas per day.'")
    _rename_sufficiency("enough", "sufficiency")
    for table in WITH_ANSWER_FEATURES:
        op.execute(f"ALTER TABLE {table} RENAME enough TO answer_features")
    op.execute("COMMENT ON TABLE ranking_audit IS 'Changes of the ranking weights and of sufficiency, by event.'")


def downgrade() -> None:
    op.execute(
        "COMMENT ON TABLE ranking_audit IS 'What each event added to the weights of ranking and of what is enough.'"
    )
    for table in WITH_ANSWER_FEATURES:
        op.execute(f"ALTER TABLE {table} RENAME answer_features TO enough")
    _rename_sufficiency("sufficiency", "enough")
    op.execute("COMMENT ON TABLE quota_usage IS 'What quotas were spent of a day.'")
    op.execute("ALTER TABLE audit_log RENAME body TO said")
    for old, new in TABLES:
        _rename(new, old)


def _rename_sufficiency(old: str, new: str) -> None:
    for table in WITH_SUFFICIENCY:
        op.execute(f"ALTER TABLE {table} RENAME {old} TO {new}")
    for table in ("ranking_belief", "ranking_audit"):
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_model_check")
        op.execute(f"UPDATE {table} SET model = '{new}' WHERE model = '{old}'")  # noqa: S608 - words of this file
        op.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {table}_model_check CHECK (model IN ('ranking', 'round', '{new}'))"
        )
    op.execute(f"UPDATE session SET stop_reason = '{new}' WHERE stop_reason = '{old}'")  # noqa: S608 - the same


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
