"""Count failures of the LLM judge with the episode, so that a new process does not begin with the same one."""

from alembic import op

revision = "2026.11"
down_revision = "2026.10"
branch_labels = None
depends_on = None

UP = """
    ALTER TABLE episode ADD judge_failures SMALLINT NOT NULL DEFAULT 0,
        ADD judge_refusals SMALLINT NOT NULL DEFAULT 0;
    COMMENT ON COLUMN episode.judge_failures IS 'Times the LLM judge failed on it; those with fewer come first.';
    COMMENT ON COLUMN episode.judge_refusals IS
        'Of these, times the LLM refused or replied with something unusable; after a few it is left unjudged.';
"""
DOWN = "ALTER TABLE episode DROP judge_failures, DROP judge_refusals;"


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(UP)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(DOWN)
