"""What vector indexes find is measured, and said of each collection; terms of the weights stay in their rows."""

from alembic import op

revision = "2026.3"
down_revision = "2026.2"
branch_labels = None
depends_on = None

UP = """
    ALTER TABLE collection ADD index_recall JSONB DEFAULT '{}' NOT NULL;
    COMMENT ON COLUMN collection.index_recall IS
        'Of its vector indexes, by table: how much they find, and the breadth of search that it takes.';

    -- A row of numbers takes most of a page: in pieces aside it is written and found five times.
    ALTER TABLE ranking_audit SET (toast_tuple_target = 8160);
"""
DOWN = """
    ALTER TABLE collection DROP index_recall;
    ALTER TABLE ranking_audit RESET (toast_tuple_target);
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(UP)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(DOWN)
