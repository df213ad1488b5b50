"""Collections know what kind of corpus they hold: the ranking weights they start from depend on it."""

from alembic import op

revision = "2026.5"
down_revision = "2026.4"
branch_labels = None
depends_on = None

UP = """
    ALTER TABLE collection ADD title_share REAL, ADD fixed_kind TEXT,
        ADD CONSTRAINT collection_fixed_kind_check CHECK (fixed_kind IN ('encyclopedic', 'general'));
    COMMENT ON COLUMN collection.title_share IS
        'Share of its passages titled after what they describe; null until measured.';
    COMMENT ON COLUMN collection.fixed_kind IS 'The kind of corpus that somebody set; null: by title_share.';
"""
DOWN = """
    ALTER TABLE collection DROP title_share, DROP fixed_kind;
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(UP)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(DOWN)
