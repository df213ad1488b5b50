"""Collections say when their passages' keys changed: what a process keeps of them is of one version."""

from alembic import op

revision = "2026.4"
down_revision = "2026.3"
branch_labels = None
depends_on = None

UP = """
    ALTER TABLE collection ADD keys_version UUID DEFAULT gen_random_uuid() NOT NULL;
    COMMENT ON COLUMN collection.keys_version IS 'Another one with each change of its passages'' base keys.';
    ALTER TABLE key_evolution ADD keys_version UUID DEFAULT gen_random_uuid() NOT NULL;
    COMMENT ON COLUMN key_evolution.keys_version IS 'Another one with each change of evolved keys.';
"""
DOWN = """
    ALTER TABLE collection DROP keys_version;
    ALTER TABLE key_evolution DROP keys_version;
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(UP)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(DOWN)
