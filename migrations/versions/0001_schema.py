"""The schema, room by room (``migrations/schema``).

The dimension of the vector columns is the configured encoder's; a database keeps the one it was made with.
"""

import re
from pathlib import Path

from alembic import op

from app.settings import Settings

revision = "2026.1"
down_revision = None
branch_labels = None
depends_on = None

FOLDER = Path(__file__).parents[1] / "schema"
ROOMS = ("corpus", "retrieval", "learning", "log", "jobs", "staging", "keys")  # each refers to earlier ones only

# The planner takes any collection for as large as its table, and so looks rows up by more than their collection.
# By itself it would go by how many rows collections have on average, which says nothing of one, and in a new table
# by a guess, by which a plan is made that a session then keeps while the table grows.
AS_LARGE_AS_ALL = """
    DO $$ DECLARE owned text; BEGIN
        FOR owned IN SELECT table_name FROM information_schema.columns
            WHERE table_schema = current_schema() AND column_name = 'collection_id'
        LOOP
            EXECUTE format('ALTER TABLE %I ALTER COLUMN collection_id SET (n_distinct = 1)', owned);
            IF current_setting('server_version_num')::int >= 180000 THEN
                PERFORM pg_restore_attribute_stats(
                    'schemaname', current_schema()::text, 'relname', owned, 'attname', 'collection_id',
                    'inherited', false, 'null_frac', 0::real, 'avg_width', 8, 'n_distinct', 1::real
                );
            END IF;
        END LOOP;
    END $$
"""


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    dimension = str(Settings().embedding_dimension)
    driver = op.get_bind().connection.cursor()  # takes many statements at once
    for statements in _rooms():
        driver.execute(statements.replace("{dimension}", dimension))
    driver.execute(AS_LARGE_AS_ALL)


def downgrade() -> None:
    statements = "\n".join(_rooms())
    for kind in ("TABLE", "SEQUENCE"):
        made = re.findall(rf"^CREATE {kind} (\w+)", statements, re.MULTILINE)
        op.execute(f"DROP {kind} {', '.join(made)}")


def _rooms() -> list[str]:
    return [(FOLDER / f"{room}.sql").read_text(encoding="utf-8") for room in ROOMS]
