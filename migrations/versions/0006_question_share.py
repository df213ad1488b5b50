"""The kind of a corpus is told by its questions, once enough were asked."""

from alembic import op

revision = "2026.6"
down_revision = "2026.5"
branch_labels = None
depends_on = None

UP = """
    ALTER TABLE collection ADD question_share REAL, ADD question_count INTEGER NOT NULL DEFAULT 0;
    COMMENT ON COLUMN collection.question_share IS
        'Share of its questions that name what a candidate is titled after; null until enough were asked.';
    COMMENT ON COLUMN collection.question_count IS 'Different questions that question_share was looked for in.';
    COMMENT ON COLUMN collection.fixed_kind IS
        'The kind of corpus that somebody set; null: by what was measured.';
"""
DOWN = """
    ALTER TABLE collection DROP question_share, DROP question_count;
    COMMENT ON COLUMN collection.fixed_kind IS 'The kind of corpus that somebody set; null: by title_share.';
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(UP)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(DOWN)
