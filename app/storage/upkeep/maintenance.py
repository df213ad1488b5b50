"""The health of the HNSW indexes: how many of their entries are dead, and building them anew.

An HNSW index keeps an entry for every version of a row until a VACUUM that cleans indexes takes it out, at a price
that grows with the graph: minutes where building the graph anew takes seconds. Autovacuum is therefore kept off
these indexes (``vacuum_index_cleanup`` in ``tables.py``), and what it leaves behind is counted here.

The count is that of dead row identifiers, which the table gives back only together with the index entries that
point to them. ANALYZE counts them, those of rows long pruned away included, on up to 30,000 pages read whole: all
of a table of up to 234 MB. The server's running statistics would not do without it: they start from nothing after a
crash, and every VACUUM that leaves the indexes alone sets ``n_dead_tup`` to 0. An update that makes no new index
entry (HOT) leaves no identifier once its page is pruned, which such a VACUUM sees to. Changed metadata alone make a
new version too, whose entry joins that of the same vector and does little harm: the count errs towards healing.
"""

from dataclasses import dataclass

from app.errors import ConfigurationError
from app.storage.database import Administrator, Reader


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """An HNSW index; the names can stand in a statement as they are."""

    name: str
    table: str
    valid: bool


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows of a table, and identifiers of rows that are gone."""

    live: int
    dead: int


_INDEXES = """
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_am method ON method.oid = i.relam
    JOIN pg_class t ON t.oid = x.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
    WHERE method.amname = 'hnsw' AND n.nspname = current_schema()
"""
# What REINDEX CONCURRENTLY calls the index it builds, and the one it replaced.
_LEFTOVER = r"NOT x.indisvalid AND i.relname ~ '_cc(new|old)\d*$'"


def indexes(reader: Reader) -> list[VectorIndex]:
    """All HNSW indexes but leftovers, in the order of their tables.

    Raises:
        ConfigurationError: one of the tables belongs to another role, which alone may build its indexes anew.
    """
    rows = reader.rows(
        f"""
        SELECT i.oid::regclass::text AS name, t.oid::regclass::text AS table, x.indisvalid AS valid,
               pg_has_role(t.relowner, 'USAGE') AS owned, pg_get_userbyid(t.relowner) AS owner
        {_INDEXES} AND NOT ({_LEFTOVER}) ORDER BY t.relname, i.relname
        """
    )
    for row in rows:
        if not row.owned:
            raise ConfigurationError(
                f"The indexes of table {row.table} can be maintained by its owner only, the role {row.owner}."
            )
    return [VectorIndex(row.name, row.table, row.valid) for row in rows]


def leftovers(reader: Reader) -> list[str]:
    """Names of what interrupted builds left behind: searched by nobody, yet every write pays for them."""
    rows = reader.rows(f"SELECT i.oid::regclass::text {_INDEXES} AND {_LEFTOVER} ORDER BY 1")
    return [row[0] for row in rows]


def drop(administrator: Administrator, name: str) -> None:
    """Remove an index; one that is still being built is waited for, and lives on under another name."""
    administrator.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


def count(administrator: Administrator, table: str) -> RowCounts:
    """Rows and dead identifiers of a table, counted now."""
    administrator.scalar("SELECT set_config('default_statistics_target', '100', false)")  # 30,000 pages
    administrator.execute(f"ANALYZE {table} (collection_id)")
    row = administrator.row(
        """
        SELECT pg_stat_get_live_tuples(%(table)s::text::regclass) AS live,
               pg_stat_get_dead_tuples(%(table)s::text::regclass) AS dead
        """,
        {"table": table},
    )
    return RowCounts(row.live, row.dead)


def size(reader: Reader, index: VectorIndex) -> int:
    """Bytes the index takes."""
    found: int = reader.scalar("SELECT pg_relation_size(%(index)s::text::regclass)", {"index": index.name})
    return found


def rebuild(administrator: Administrator, index: VectorIndex, memory_mb: int) -> None:
    """Build the index anew from the rows that are there, while it is searched and written to."""
    administrator.scalar("SELECT set_config('maintenance_work_mem', %(size)s, false)", {"size": f"{memory_mb}MB"})
    # The other cores belong to queries; and workers would need the whole of that memory as shared memory, of which
    # a container often has 64 MB.
    administrator.scalar("SELECT set_config('max_parallel_maintenance_workers', '0', false)")
    administrator.execute(f"REINDEX INDEX CONCURRENTLY {index.name}")


def vacuum(administrator: Administrator, table: str) -> None:
    """Give back the dead identifiers, right after every HNSW index of the table was built without them.

    The end of the table is not cut off, which would lock queries out.
    """
    administrator.execute(f"VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) {table}")
