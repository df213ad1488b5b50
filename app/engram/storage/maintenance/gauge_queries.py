"""Counts for metrics over all collections: pending, parked, indexed and stored rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from engram.storage.database import Reader
from engram.storage.row_lookups import NOT_DELETED


@dataclass(frozen=True, slots=True)
class Jobs:
    """Number of open jobs of one kind and status."""

    kind: str
    status: str
    count: int


@dataclass(frozen=True, slots=True)
class Indexes:
    """Vector indexes of a table: how many, how many of these are not valid nor being built, and bytes of all."""

    table: str
    count: int
    invalid: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Verdicts that wait and that are parked; collections; bytes of the database."""

    pending: int
    parked: int
    collections: int
    database_bytes: int


def counts(reader: Reader) -> Counts:
    """Counted by partial indexes, which hold nothing else."""
    row = reader.row(
        f"""
        SELECT (SELECT count(*) FROM feedback_event WHERE status = 'pending') AS pending,
               (SELECT count(*) FROM feedback_event WHERE status = 'parked') AS parked,
               (SELECT count(*) FROM collection WHERE {NOT_DELETED}) AS collections,
               pg_database_size(current_database()) AS bytes
        """
    )
    return Counts(row.pending, row.parked, row.collections, row.bytes)


def open_jobs(reader: Reader) -> Sequence[Jobs]:
    """Jobs that are not over."""
    rows = reader.rows(
        """
        SELECT kind, status, count(*) AS count FROM job WHERE status IN ('queued', 'running') GROUP BY kind, status
        UNION ALL
        SELECT kind, status, count(*) FROM job WHERE status = 'receiving' GROUP BY kind, status
        ORDER BY kind, status
        """
    )
    return [Jobs(row.kind, row.status, row.count) for row in rows]


def vector_indexes(reader: Reader) -> Sequence[Indexes]:
    """The HNSW indexes of each table that has some."""
    rows = reader.rows(
        """
        SELECT t.relname::text AS name, count(*) AS count,
               count(*) FILTER (WHERE NOT x.indisvalid AND building.index_relid IS NULL) AS invalid,
               sum(pg_relation_size(i.oid))::bigint AS bytes
        FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_am method ON method.oid = i.relam
        JOIN pg_class t ON t.oid = x.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
        LEFT JOIN pg_stat_progress_create_index building ON building.index_relid = i.oid
        WHERE method.amname = 'hnsw' AND n.nspname = current_schema()
        GROUP BY t.relname ORDER BY t.relname
        """
    )
    return [Indexes(row.name, row.count, row.invalid, row.bytes) for row in rows]
