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
# Each refers to earlier ones only.
ROOMS = (
    "access",
    "corpus",
    "retrieval",
    "learning",
    "log",
    "jobs",
    "staging",
    "keys",
    "upkeep",
    "sessions",
    "facts",
)

# The planner takes any collection for as large as its table, and so looks rows up by more than their collection.
# By itself it would go by how many rows collections have on average, which says nothing of one.
AS_LARGE_AS_ALL = """
    DO $$ DECLARE owned text; BEGIN
        FOR owned IN SELECT table_name FROM information_schema.columns
            WHERE table_schema = current_schema() AND column_name = 'collection_id'
        LOOP EXECUTE format('ALTER TABLE %I ALTER COLUMN collection_id SET (n_distinct = 1)', owned); END LOOP;
    END $$
"""
# And so from the first plan on, which a session may keep while the table grows: until a table is analysed it has
# one collection, and four rows for each value of what an index has next. Older servers guess at both until then.
BEFORE_ANY_ROW = """
    DO $$ BEGIN
        IF current_setting('server_version_num')::int >= 180000 THEN
            PERFORM pg_restore_attribute_stats(
                'schemaname', current_schema()::text, 'relname', t.relname::text, 'attname', a.attname::text,
                'inherited', false, 'null_frac', 0::real, 'avg_width', 8,
                'n_distinct', CASE WHEN a.attnum = c.attnum THEN 1::real ELSE -0.25::real END
            )
            FROM pg_class t
            JOIN pg_attribute c ON c.attrelid = t.oid AND c.attname = 'collection_id'
            JOIN pg_attribute a ON a.attrelid = t.oid
            WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace AND EXISTS (
                SELECT FROM pg_index x
                WHERE x.indrelid = t.oid AND x.indkey[0] = c.attnum AND a.attnum IN (c.attnum, x.indkey[1])
            );
        END IF;
    END $$
"""

# A tenant's connections see rows of its collections only, whatever a statement says: see app/tenancy.py. The owner
# of the tables, who migrates and works, is not bound by that. The array is made once for a statement.
TENANT_ROLE = """
    DO $$ BEGIN
        CREATE ROLE engram_tenant NOLOGIN;
        GRANT engram_tenant TO CURRENT_USER;
    EXCEPTION
        WHEN duplicate_object OR unique_violation THEN NULL; -- roles are shared by all databases of a server
        WHEN insufficient_privilege THEN
            RAISE NOTICE 'role engram_tenant is not there: ENGRAM_ROW_SECURITY needs it made by an administrator';
    END $$
"""
ROW_SECURITY = """
    DO $$ DECLARE
        owned record;
        tenants_own text := 'tenant = current_setting(''engram.tenant'', true)';
    BEGIN
        FOR owned IN
            SELECT c.relname AS name, a.attname = 'collection_id' AS inside FROM pg_class c
            JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
              AND NOT c.relispartition
              AND (a.attname = 'collection_id' OR c.relname = 'collection' AND a.attname = 'tenant')
        LOOP
            EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', owned.name);
            EXECUTE format('CREATE POLICY tenant ON %I USING (%s)', owned.name, CASE WHEN owned.inside
                THEN format('collection_id = ANY (ARRAY(SELECT id FROM collection WHERE %s))', tenants_own)
                ELSE tenants_own END);
            IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'engram_tenant') THEN
                EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO engram_tenant', owned.name);
            END IF;
        END LOOP;
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'engram_tenant') THEN
            EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO engram_tenant', current_schema());
        END IF;
    END $$
"""


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    dimension = str(Settings().embedding_dimension)
    driver = op.get_bind().connection.cursor()  # takes many statements at once
    for statements in _rooms():
        driver.execute(statements.replace("{dimension}", dimension))
    driver.execute(AS_LARGE_AS_ALL)
    driver.execute(BEFORE_ANY_ROW)
    driver.execute(TENANT_ROLE)
    driver.execute(ROW_SECURITY)


def downgrade() -> None:
    statements = "\n".join(_rooms())
    for kind in ("TABLE", "SEQUENCE"):
        made = re.findall(rf"^CREATE {kind} (\w+)", statements, re.MULTILINE)
        op.execute(f"DROP {kind} {', '.join(made)}")


def _rooms() -> list[str]:
    return [(FOLDER / f"{room}.sql").read_text(encoding="utf-8") for room in ROOMS]
