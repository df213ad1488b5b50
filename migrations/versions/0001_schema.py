"""The first schema, from ``migrations/schema.sql``."""

import re
from pathlib import Path

from alembic import op

from engram.migrations.rules import EVERY_TABLE, VIEWS

revision = "2026.11"
down_revision = None
branch_labels = None
depends_on = None
oldest_code = revision
"""The earliest revision whose code works on this schema."""

SCHEMA = (Path(__file__).parents[1] / "schema.sql").read_text(encoding="utf-8")
# Roles of connections that serve one tenant, or some readers of one: see ``migrations.rules``.
ROLE = """
    DO $$ BEGIN
        CREATE ROLE {role} NOLOGIN;
        GRANT {role} TO CURRENT_USER;
    EXCEPTION
        WHEN duplicate_object OR unique_violation THEN NULL; -- roles are shared by all databases of a server
        WHEN insufficient_privilege THEN
            RAISE NOTICE 'role {role} is not there: {needed_by} needs it made by an administrator';
    END $$
"""
ROLES = {"engram_tenant": "ENGRAM_ROW_SECURITY", "engram_reader": "a passage with readers"}


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    driver = op.get_bind().connection.cursor()  # takes many statements at once
    driver.execute(SCHEMA)
    for role, needed_by in ROLES.items():
        driver.execute(ROLE.format(role=role, needed_by=needed_by))
    for rule in EVERY_TABLE:
        driver.execute(rule)


def downgrade() -> None:
    op.execute(f"DROP VIEW IF EXISTS {', '.join(VIEWS)} CASCADE")  # with the policy that asks one of them
    for kind in ("TABLE", "SEQUENCE"):
        names = re.findall(rf"^CREATE {kind} (\w+)", SCHEMA, re.MULTILINE)
        op.execute(f"DROP {kind} {', '.join(names)}")
