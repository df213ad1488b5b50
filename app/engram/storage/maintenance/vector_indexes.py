"""The HNSW indexes: which collections have one, how many of its entries are dead, and building it anew.

Small collections have none: they are searched exactly, and every row they write would pay for a graph that nobody
searches. A large one has an index of its own rows (a partial index), so that a search meets no rows of others.

An HNSW index keeps an entry for every version of a row until a VACUUM that cleans indexes takes it out, at a price
that grows with the graph: minutes where building the graph anew takes seconds. Autovacuum is therefore kept off
tables with such indexes (``vacuum_index_cleanup``), and what it leaves behind is counted here.

The count is that of dead row identifiers, which the table gives back only together with the index entries that
point to them. ANALYZE counts them, those of rows long pruned away included, on up to 30,000 pages read whole: all
of a table of up to 234 MB. The server's running statistics would not do without it: they start from nothing after a
crash, and every VACUUM that leaves the indexes alone sets ``n_dead_tup`` to 0. An update that makes no new index
entry (HOT) leaves no identifier once its page is pruned, which such a VACUUM sees to. Changed metadata alone make a
new version too, whose entry joins that of the same vector and does little harm: the count errs towards healing.
"""

from dataclasses import dataclass

from engram.context.errors import ConfigurationError
from engram.storage.database import Administrator, Reader
from engram.storage.question.nearest_neighbours import build_index_condition, build_index_key, operators
from engram.storage.row_lookups import NOT_DELETED

BUILDS = {
    # Of 290,000 passages .995 of the nearest ten are found so, and .955 with pgvector's 64, at the same cost of a
    # search; a build takes three times as long.
    "passage": "WITH (ef_construction = 200)",
    # Names are many and mostly met by their text: a lighter graph does.
    "entity": "WITH (m = 8, ef_construction = 32)",
    "question": "",
}
"""Tables that are searched by nearness, and how their graphs are built."""


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """An HNSW index of one collection's rows; the names can stand in a statement as they are."""

    name: str
    table: str
    collection_id: int
    valid: bool


@dataclass(frozen=True, slots=True)
class TableRows:
    """Number of rows of a table in a collection, and the dimension of its vectors."""

    collection_id: int
    table: str
    rows: int
    dimension: int


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
# What REINDEX CONCURRENTLY calls the index it builds, and the one it replaced; and indexes of an earlier version,
# whose condition, being another one, no query states any more.
_LEFTOVER = r"""(
    NOT x.indisvalid AND i.relname ~ '_cc(new|old)\d*$' OR pg_get_expr(x.indpred, x.indrelid) !~ '[+] 0'
)"""


def indexes(reader: Reader) -> list[VectorIndex]:
    """All HNSW indexes but leftovers, in the order of their tables.

    Raises:
        ConfigurationError: one of the tables belongs to another role, which alone may build its indexes anew.
    """
    rows = reader.rows(
        f"""
        SELECT i.oid::regclass::text AS name, t.oid::regclass::text AS table, x.indisvalid AS valid,
               substring(i.relname FROM '_hnsw_([0-9]+)$')::bigint AS collection_id,
               pg_has_role(t.relowner, 'USAGE') AS owned, pg_get_userbyid(t.relowner) AS owner
        {_INDEXES} AND NOT ({_LEFTOVER}) ORDER BY t.relname, i.relname
        """
    )
    for row in rows:
        if not row.owned:
            raise ConfigurationError(
                f"The indexes of table {row.table} can be maintained by its owner only, the role {row.owner}."
            )
    return [VectorIndex(row.name, row.table, row.collection_id, row.valid) for row in rows]


def count_searched_rows(reader: Reader) -> list[TableRows]:
    """Count the rows of each collection in each table that is searched by vector."""
    question_counts = reader.rows("SELECT collection_id, count(*) AS rows FROM question GROUP BY collection_id")
    questions = {row.collection_id: row.rows for row in question_counts}
    rows = reader.rows(
        f"SELECT id, passage_count, entity_count, encoder_dimension FROM collection WHERE {NOT_DELETED} ORDER BY id"
    )
    return [
        TableRows(row.id, table, count, row.encoder_dimension)
        for row in rows
        for table, count in (
            ("entity", row.entity_count),
            ("passage", row.passage_count),
            ("question", questions.get(row.id, 0)),
        )
    ]


def list_indexed_tables(reader: Reader) -> dict[int, list[str]]:
    """Collection -> its tables that queries search through an index."""
    return {row.id: row.indexed for row in reader.rows("SELECT id, indexed FROM collection ORDER BY id")}


def build(administrator: Administrator, table: str, collection_id: int, dimension: int, memory_mb: int) -> None:
    """Index a collection's rows while they are read and written to; what was interrupted is left as not valid.

    Args:
        dimension: of the collection's vectors. Those of more than 2,000 numbers are indexed in half precision.
    """
    if table not in BUILDS:
        raise ValueError(f"{table} is not searched by nearness")
    administrator.execute(f"ALTER TABLE {table} SET (vacuum_index_cleanup = off)")
    _prepare(administrator, memory_mb)
    administrator.execute(
        f"""
        CREATE INDEX CONCURRENTLY IF NOT EXISTS {table}_hnsw_{int(collection_id)}
        ON {table} USING hnsw ({build_index_key(table, "embedding", dimension)} {operators(table, dimension)})
        {BUILDS[table]}
        WHERE {build_index_condition(collection_id)}
        """
    )


def leave_to_autovacuum(administrator: Administrator, table: str) -> None:
    """Let autovacuum clean the indexes of a table that has no HNSW index any more."""
    administrator.execute(f"ALTER TABLE {table} RESET (vacuum_index_cleanup)")


def leftovers(reader: Reader) -> list[str]:
    """Names of what interrupted builds and earlier versions left: searched by nobody, yet every write pays."""
    rows = reader.rows(f"SELECT i.oid::regclass::text AS name {_INDEXES} AND {_LEFTOVER} ORDER BY 1")
    return [row.name for row in rows]


def list_being_built(reader: Reader) -> set[str]:
    """Names of indexes that somebody builds now, which are not valid meanwhile."""
    rows = reader.rows(
        """
        SELECT index_relid::regclass::text AS name FROM pg_stat_progress_create_index
        WHERE datname = current_database()
        """
    )
    return {row.name for row in rows}


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
    byte_count: int = reader.scalar("SELECT pg_relation_size(%(index)s::text::regclass)", {"index": index.name})
    return byte_count


def rebuild(administrator: Administrator, index: VectorIndex, memory_mb: int) -> None:
    """Build the index anew from the rows that are there, while it is searched and written to."""
    _prepare(administrator, memory_mb)
    administrator.execute(f"REINDEX INDEX CONCURRENTLY {index.name}")


def _prepare(administrator: Administrator, memory_mb: int) -> None:
    """Set the memory that a build may take."""
    administrator.scalar("SELECT set_config('maintenance_work_mem', %(size)s, false)", {"size": f"{memory_mb}MB"})
    # The other cores belong to queries; and workers would need the whole of that memory as shared memory, of which
    # a container often has 64 MB.
    administrator.scalar("SELECT set_config('max_parallel_maintenance_workers', '0', false)")


def vacuum(administrator: Administrator, table: str) -> None:
    """Give back the dead identifiers, right after every HNSW index of the table was built without them.

    The end of the table is not cut off, which would lock queries out.
    """
    administrator.execute(f"VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) {table}")
