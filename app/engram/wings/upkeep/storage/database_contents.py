"""Contents of a database for a backup: versions, tables, row counts, other connections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engram.storage.database import Administrator, Reader
from engram.storage.row_lookups import NOT_DELETED


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of the server, of pgvector and of the schema; None if absent."""

    postgres: str
    pgvector: str | None
    schema: str | None


@dataclass(frozen=True, slots=True)
class CollectionEncoder:
    """A collection, and the encoder that made its vectors."""

    name: str
    passages: int
    encoder_model: str
    encoder_fingerprint: str


def versions(reader: Reader) -> Versions:
    """Return the installed versions and the schema's revision."""
    row = reader.row(
        """
        SELECT current_setting('server_version') AS postgres,
               (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
               to_regclass('alembic_version') IS NOT NULL AS migrated
        """
    )
    schema = reader.scalar("SELECT version_num FROM alembic_version") if row.migrated else None
    return Versions(row.postgres, row.pgvector, schema)


def tables(reader: Reader) -> list[str]:
    """The tables by name; of partitioned ones the whole."""
    rows = reader.rows(
        """
        SELECT relname::text AS name FROM pg_class
        WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = current_schema()::regnamespace
        ORDER BY relname
        """
    )
    return [row.name for row in rows]


def count_rows(reader: Reader, names: Sequence[str]) -> Mapping[str, int]:
    """Count the rows of each table."""
    return {name: reader.scalar(f'SELECT count(*) FROM "{name}"') for name in names}


def collections(reader: Reader) -> list[CollectionEncoder]:
    """The collections, in the order of their names."""
    rows = reader.rows(
        f"""
        SELECT name, passage_count, encoder_model, encoder_fingerprint FROM collection WHERE {NOT_DELETED}
        ORDER BY name
        """
    )
    return [
        CollectionEncoder(row.name, row.passage_count, row.encoder_model, row.encoder_fingerprint) for row in rows
    ]


def export_snapshot(reader: Reader) -> str:
    """The name by which other sessions see what this transaction sees, while it lasts."""
    name: str = reader.scalar("SELECT pg_export_snapshot()")
    return name


def count_other_sessions(reader: Reader) -> int:
    """Count the other connections to this database."""
    count: int = reader.scalar(
        """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
        """
    )
    return count


def analyse(administrator: Administrator) -> None:
    """Tell the planner of what was put back, which brings no statistics along."""
    administrator.execute("ANALYZE")
