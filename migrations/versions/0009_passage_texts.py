"""Passages are found by their text."""

from alembic import op

revision = "2026.9"
down_revision = "2026.8"
branch_labels = None
depends_on = None

UP = "CREATE INDEX passage_text_idx ON passage (collection_id, hashtextextended(text, 0))"
DOWN = "DROP INDEX passage_text_idx"


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(UP)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(DOWN)
