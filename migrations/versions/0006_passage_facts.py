"""Collections say which passages facts are read from."""

from alembic import op

revision = "2026.6"
down_revision = "2026.5"
branch_labels = None
depends_on = None

UP = """
    ALTER TABLE collection ADD passage_facts TEXT NOT NULL DEFAULT 'auto',
        ADD CONSTRAINT collection_passage_facts_check CHECK (passage_facts IN ('auto', 'on', 'off'));
    COMMENT ON COLUMN collection.passage_facts IS
        'Which passages facts are read from: on (all), off (none), auto (those about their title).';
"""
DOWN = """
    ALTER TABLE collection DROP passage_facts;
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(UP)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(DOWN)
