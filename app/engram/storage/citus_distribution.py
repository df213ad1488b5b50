"""The schema spread over the nodes of a Citus cluster, by collection.

All rows of a collection live on one node, in shards of which those of one number belong together, so that joins and
foreign keys never leave it. ``tenant`` and ``collection`` are on every node: small, written seldom, and referred to
by every row. What belongs to tenants alone stays where it is, on the coordinator.
"""

from dataclasses import dataclass

from sqlalchemy import MetaData

from engram.context.errors import ConfigurationError
from engram.migrations import rules
from engram.storage.database import READER_ROLE, TENANT_ROLE, Reader, Writer
from engram.storage.tables.table_base import metadata

REFERENCE = ("tenant", "collection")
"""Tables on all nodes, each before the tables that refer to it."""
LEFT_OFF = "collection"
"""Foreign keys that lead to it are left off."""
LOCAL = ("access_key", "quota_usage", "audit_log", "encoder")
"""On the coordinator only."""
NODE_SETTINGS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
    "hnsw.iterative_scan": "relaxed_order",
}
"""What ``Database`` sets on its own connections and workers do not get from it: each node's database has it."""
DEFERRABLE_CLAUSE = "DEFERRABLE INITIALLY DEFERRED"
LOCK = 0x456E6772616D  # as migrations: nobody changes the schema meanwhile


@dataclass(frozen=True, slots=True)
class DistributionResult:
    """Result of a distribution.

    Attributes:
        tables: number of tables that were distributed by collection.
        references: number of tables that were put on every node.
        foreign_keys: number of foreign keys that were taken off and put on again. Those onto ``LEFT_OFF`` are taken
            off for good and do not count.
    """

    tables: int
    references: int
    foreign_keys: int


def is_distributed(reader: Reader) -> bool:
    """Whether the database is a coordinator's whose tables are distributed."""
    if reader.scalar("SELECT to_regclass('pg_catalog.pg_dist_partition')") is None:
        return False
    statement = "SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'collection'::regclass)"
    return bool(reader.scalar(statement))


def list_collection_tables() -> list[str]:
    """Tables with rows of collections, each after those it refers to."""
    return [table.name for table in metadata.sorted_tables if "collection_id" in table.columns]


def build_distributed_schema() -> MetaData:
    """The schema as ``distribute`` leaves it: foreign keys as it puts them on again, without those it does not.

    A table of the coordinator that refers to one on all nodes is kept as a shard there, with its comment.
    """
    spread = MetaData()
    for table in metadata.sorted_tables:
        copy = table.to_metadata(spread)
        if copy.name in LOCAL:
            copy.comment = None
            continue
        for key in copy.foreign_key_constraints:
            if key.referred_table.name == LEFT_OFF:
                copy.constraints.remove(key)
            key.deferrable, key.initially = True, "DEFERRED"
    return spread


def distribute(writer: Writer, *, hnsw_ef_search: int) -> DistributionResult:
    """Distribute what is not distributed yet, in one transaction: all of it or nothing.

    Existing rows move to the nodes where they belong. Once it is committed, ``open_policies``.

    Args:
        hnsw_ef_search: candidates that a search through an HNSW index keeps; set for each node's database.

    Raises:
        ConfigurationError: the database has no extension citus.
    """
    if writer.scalar("SELECT to_regclass('pg_catalog.pg_dist_partition')") is None:
        raise ConfigurationError(
            "The database has no extension citus: make it on each node and add the workers "
            "(citus_set_coordinator_host, citus_add_node) before."
        )
    writer.row("SELECT pg_advisory_xact_lock(%(key)s)", {"key": LOCK})
    # Citus must move tables that refer to each other one after the other.
    writer.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
    distributed_tables = {
        row.name for row in writer.rows("SELECT logicalrelid::regclass::text AS name FROM pg_dist_partition")
    }
    references = [name for name in REFERENCE if name not in distributed_tables]
    tables = [name for name in list_collection_tables() if name not in distributed_tables]
    _close_policies(writer, [*references, *tables])
    writer.execute(f"DROP VIEW IF EXISTS {', '.join(rules.VIEWS)}")
    foreign_keys = _list_foreign_keys(writer, [*references, *tables])
    for key in foreign_keys:
        writer.execute(f"ALTER TABLE {key.table} DROP CONSTRAINT {key.name}")
    for name in references:
        writer.row("SELECT create_reference_table(%(name)s)", {"name": name})
    first = list_collection_tables()[0]
    for name in tables:
        writer.row(
            "SELECT create_distributed_table(%(name)s, 'collection_id', colocate_with => %(colocate_with)s)",
            {"name": name, "colocate_with": "none" if name == first else first},
        )
    restored_keys = [key for key in foreign_keys if key.onto != LEFT_OFF]
    for key in restored_keys:
        # Citus carries out a statement with several parts one part at a time; a deferred key is checked at the end.
        writer.execute(f"ALTER TABLE {key.table} ADD CONSTRAINT {key.name} {key.definition} {DEFERRABLE_CLAUSE}")
    _set_on_nodes(writer, NODE_SETTINGS | {"hnsw.ef_search": str(hnsw_ef_search)})
    for view in rules.VIEWS_OF_ALL.split(";"):
        writer.execute(view)
    writer.execute(rules.GRANTS)
    return DistributionResult(len(tables), len(references), len(restored_keys))


def open_policies(writer: Writer) -> None:
    """Have row security show on all shards what it shows of tables that are not distributed.

    Until then, and on a shard that came to its node since, it shows nothing to connections that it binds. Nodes
    open connections of each role to each other. They lock the shards of ``tenant``, to which ``collection`` refers,
    and neither role has rights on these: Citus would demand the right to write them.

    Raises:
        ConfigurationError: a node did not do it.
    """
    for role in (TENANT_ROLE, READER_ROLE):
        if writer.scalar("SELECT 1 FROM pg_roles WHERE rolname = %(role)s", {"role": role}):
            writer.execute(f"ALTER ROLE {role} LOGIN")
            writer.execute(f"ALTER ROLE {role} SET citus.skip_advisory_lock_permission_checks = on")
    failed = writer.rows(
        "SELECT nodeid, result FROM run_command_on_all_nodes(%(command)s) WHERE NOT success",
        {"command": rules.OPEN_POLICIES_OF_SHARDS},
    )
    if failed:
        raise ConfigurationError(
            "Row security is not open: " + "; ".join(f"node {row.nodeid}: {row.result}" for row in failed)
        )


def count_closed_shards(reader: Reader) -> int:
    """Count the shards that show nothing to connections that row security binds, see ``open_policies``."""
    counts = reader.rows(
        "SELECT result FROM run_command_on_all_nodes(%(command)s)",
        {
            "command": """
                SELECT count(DISTINCT s.shardid) FROM pg_dist_shard s
                JOIN pg_dist_placement p ON p.shardid = s.shardid
                JOIN pg_policy closed ON closed.polrelid = to_regclass(shard_name(s.logicalrelid, s.shardid))
                JOIN pg_policy told ON told.polrelid = s.logicalrelid AND told.polname = closed.polname
                WHERE p.groupid = (SELECT groupid FROM pg_dist_local_group)
                  AND pg_get_expr(closed.polqual, closed.polrelid) = pg_get_expr(told.polqual, told.polrelid)
            """
        },
    )
    return sum(int(row.result) for row in counts)


@dataclass(frozen=True, slots=True)
class _ForeignKey:
    table: str
    name: str
    onto: str
    definition: str


def _list_foreign_keys(reader: Reader, tables: list[str]) -> list[_ForeignKey]:
    """List the foreign keys of these tables. Citus refuses to distribute a table whose other side is not yet."""
    rows = reader.rows(
        """
        SELECT conrelid::regclass::text AS "table", quote_ident(conname) AS name,
               confrelid::regclass::text AS onto, pg_get_constraintdef(oid) AS definition
        FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 AND conrelid = ANY(%(tables)s::regclass[])
        ORDER BY 1, 2
        """,
        {"tables": tables},
    )
    return [_ForeignKey(row.table, row.name, row.onto, row.definition) for row in rows]


def _close_policies(writer: Writer, tables: list[str]) -> None:
    """Have the policies of these tables ask no other table, which Citus takes on none that it distributes."""
    rows = writer.rows(
        """
        SELECT quote_ident(tablename) AS "table", quote_ident(policyname) AS name FROM pg_policies
        WHERE schemaname = current_schema() AND tablename = ANY(%(tables)s::text[]) ORDER BY 1, 2
        """,
        {"tables": tables},
    )
    for row in rows:
        writer.execute(f"ALTER POLICY {row.name} ON {row.table} USING ({rules.CLOSED})")


def _set_on_nodes(writer: Writer, settings: dict[str, str]) -> None:
    """Set these settings for each node's database; on the coordinator ``Database`` sets them per connection."""
    database = writer.scalar("SELECT quote_ident(current_database())")
    for name, value in settings.items():
        writer.execute(f"ALTER DATABASE {database} SET {name} = '{value}'")
    # The coordinator must know the collection when it plans: with generic plans it would refuse other clients.
    writer.execute("SET LOCAL citus.enable_ddl_propagation = off")
    writer.execute(f"ALTER DATABASE {database} RESET plan_cache_mode")
