"""Runs migrations: online only, one at a time, and never waiting long for a lock that queries hold."""

from collections.abc import Collection
from typing import Any

from alembic import context
from alembic.migration import MigrationContext
from alembic.util import CommandError
from sqlalchemy import Connection, NullPool, create_engine, text

from engram.composition.wings import load_tables
from engram.config.settings import Settings
from engram.storage.connection_pools import add_driver
from engram.storage.tables import metadata

LOCK_KEY = 0x456E6772616D  # "Engram": two deployments starting at once migrate one after the other


def _refuse_strangers(connection: Connection) -> None:
    """A database that another line of the schema made is left as it is."""
    known = {script.revision for script in context.script.walk_revisions()}
    strangers = set(MigrationContext.configure(connection).get_current_heads()) - known
    if strangers:
        raise CommandError(
            f"this database has schema {min(strangers)} of another version of Engram, which this one cannot take "
            "over; name an empty one, and ingest again"
        )


def _record_oldest_code(ctx: object, step: object, heads: Collection[Any], run_args: object) -> None:
    """Have services know whether they work on the schema, in the transaction that makes it so."""
    for head in heads:
        module = context.script.get_revision(head).module
        context.execute(f"COMMENT ON TABLE alembic_version IS '{module.oldest_code}'")


def run() -> None:
    settings = Settings()
    url = context.config.attributes.get("url") or (
        settings.database_url and settings.database_url.get_secret_value()
    )
    if not url:
        raise SystemExit("DATABASE_URL is not set; `engram migrate` finds the embedded Postgres by itself.")
    engine = create_engine(add_driver(url), poolclass=NullPool)  # nobody stays connected
    with engine.connect() as connection:
        connection.execute(text("SET statement_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": LOCK_KEY})
        connection.execute(text("SET lock_timeout = '10s'"))
        connection.commit()
        try:
            _refuse_strangers(connection)
            connection.rollback()  # what a look began; each migration has a transaction of its own
            load_tables()
            context.configure(
                connection=connection,
                target_metadata=metadata,
                transaction_per_migration=True,
                on_version_apply=_record_oldest_code,
            )
            with context.begin_transaction():
                context.run_migrations()
            context.config.attributes["reached"] = MigrationContext.configure(connection).get_current_revision()
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": LOCK_KEY})
            connection.commit()
    engine.dispose()


run()
