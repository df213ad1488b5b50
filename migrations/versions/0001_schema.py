"""The schema, room by room (``migrations/schema``).

The dimension of the vector columns is the configured one; a later revision takes it from them.
"""

import re
from pathlib import Path

from alembic import op

from engram.config.settings import Settings
from engram.migrations.rules import EVERY_TABLE

revision = "2026.1"
down_revision = None
branch_labels = None
depends_on = None

DEFAULT_DIMENSION = 384
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

# Whom connections that serve one tenant are: see ``migrations.rules``.
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


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    dimension = str(Settings().embedding_dimension or DEFAULT_DIMENSION)
    driver = op.get_bind().connection.cursor()  # takes many statements at once
    for statements in _rooms():
        driver.execute(statements.replace("{dimension}", dimension))
    driver.execute(TENANT_ROLE)
    for rule in EVERY_TABLE:
        driver.execute(rule)


def downgrade() -> None:
    statements = "\n".join(_rooms())
    for kind in ("TABLE", "SEQUENCE"):
        made = re.findall(rf"^CREATE {kind} (\w+)", statements, re.MULTILINE)
        op.execute(f"DROP {kind} {', '.join(made)}")


def _rooms() -> list[str]:
    return [(FOLDER / f"{room}.sql").read_text(encoding="utf-8") for room in ROOMS]
