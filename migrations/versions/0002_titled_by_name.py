"""Whether the title of a document is the name of its file."""

import sqlalchemy as sa
from alembic import op

revision = "2026.12"
down_revision = "2026.11"
branch_labels = None
depends_on = None
oldest_code = "2026.11"
"""The earliest revision whose code works on this schema."""


def upgrade() -> None:
    meaning = "Whether the titles of all passages are its file's name, or of none."
    op.add_column("document", sa.Column("titled_by_name", sa.Boolean, comment=meaning))
    op.execute("COMMENT ON COLUMN ingest_document.description IS 'What its importer says of it.'")


def downgrade() -> None:
    op.execute("COMMENT ON COLUMN ingest_document.description IS 'Its folder, digest, pages and notes.'")
    op.drop_column("document", "titled_by_name")
