"""Moving the rows of a collection into another database.

Rows keep their ids, which callers know: an id need be unique in its collection only. The one exception are sets of
readers, since a caller's sets are looked up over all collections of its tenant. They get the next free ids of the
other database.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from psycopg.abc import Buffer
from psycopg.types.json import Jsonb
from sqlalchemy import Column, Table

from engram.context.errors import ConfigurationError
from engram.storage import moved_collections
from engram.storage.corpus.collection_lock import EXCLUSIVE, lock_row
from engram.storage.database import Administrator, Reader, Writer
from engram.storage.postgres_errors import MOVE_CONSTRAINT
from engram.storage.tables import metadata

SET_SEQUENCE = "reader_set_id_seq"
"""Sequence of the ids of sets of readers."""
_NOT_TAKEN = ("id", "deleted_at", "move", "indexed", "index_recall")
"""Columns of ``collection`` that belong to the database it is in."""
_KEY_COLUMNS = [column.name for column in metadata.tables["access_key"].columns if column.name != "id"]
_LOCK_MS = 500
_REFUSE = f"""
    CREATE OR REPLACE FUNCTION refuse_moving_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF coalesce(NEW.collection_id, OLD.collection_id) = TG_ARGV[0]::bigint THEN
            RAISE EXCEPTION 'The collection is being moved to another database; try again later.'
                USING ERRCODE = 'object_in_use', CONSTRAINT = '{MOVE_CONSTRAINT}';
        END IF;
        RETURN coalesce(NEW, OLD);
    END $$
"""


@dataclass(frozen=True, slots=True)
class HeldCollection:
    """A collection's row, hidden or not.

    Attributes:
        move: its move; empty: it stays here.
        indexed: tables with a vector index of its rows.
    """

    id: int
    move: Mapping[str, Any]
    indexed: list[str]
    encoder_dimension: int

    @property
    def stage(self) -> str | None:
        """Stage of its move; None: it stays here."""
        return self.move.get("stage")


@dataclass(frozen=True, slots=True)
class TableDigest:
    """Number of a collection's rows in a table, and the sum of their hashes."""

    rows: int
    hashes: int


def list_tables(reader: Reader) -> list[Table]:
    """List the tables with rows of collections, each after those it refers to.

    Raises:
        ConfigurationError: the database has one that this version does not know.
    """
    known = [table for table in metadata.sorted_tables if "collection_id" in table.columns]
    rows = reader.rows(
        """
        SELECT c.relname::text AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace
          AND a.attname = 'collection_id'
        """
    )
    if unknown := sorted({row.name for row in rows} - {table.name for table in known}):
        raise ConfigurationError(f"Nobody knows how to move the rows of {', '.join(unknown)}.")
    return known


def identify(reader: Reader) -> tuple[int, str]:
    """Return the server's system identifier and the database's name, which no other database has both of."""
    row = reader.row("SELECT system_identifier, current_database()::text AS name FROM pg_control_system()")
    return row.system_identifier, row.name


def find(reader: Reader, name: str, tenant: str) -> HeldCollection | None:
    """Find a tenant's collection by its name, also a hidden one."""
    row = reader.row(
        """
        SELECT id, coalesce(move, '{}') AS move, indexed, encoder_dimension FROM collection
        WHERE tenant = %(tenant)s AND name = %(name)s
        """,
        {"tenant": tenant, "name": name},
    )
    return None if row is None else HeldCollection(*row)


def list_open(reader: Reader) -> list[str]:
    """Names of the collections that are hidden for a move which is not over."""
    statement = f"SELECT name FROM collection WHERE move ->> 'stage' <> '{moved_collections.MOVED}' ORDER BY name"
    return [row.name for row in reader.rows(statement)]


def hide(writer: Writer, collection_id: int, move: Mapping[str, Any]) -> bool:
    """Hide a collection that is about to move; waits for transactions that hold it. False: it is gone."""
    if lock_row(writer, collection_id, EXCLUSIVE) is None:
        return False
    writer.execute(
        "UPDATE collection SET deleted_at = now(), move = %(move)s WHERE id = %(id)s",
        {"id": collection_id, "move": Jsonb(dict(move))},
    )
    return True


def wait_briefly(administrator: Administrator) -> None:
    """Have statements give up soon on a table that others hold: more others wait behind whoever waits."""
    administrator.scalar("SELECT set_config('lock_timeout', %(wait)s, false)", {"wait": f"{_LOCK_MS}ms"})


def make_refusal(administrator: Administrator) -> None:
    """Make the function of the triggers of ``refuse_writes``."""
    administrator.execute(_REFUSE)


def refuse_writes(administrator: Administrator, table: Table, collection_id: int) -> None:
    """Have a table refuse every change of the collection's rows, whoever asks for it.

    Whoever wrote to the table before has ended then.
    """
    administrator.execute(
        f"""
        CREATE OR REPLACE TRIGGER moving_{int(collection_id)} BEFORE INSERT OR UPDATE OR DELETE ON {table.name}
        FOR EACH ROW EXECUTE FUNCTION refuse_moving_row('{int(collection_id)}')
        """
    )


def allow_writes(administrator: Administrator, table: Table, collection_id: int) -> None:
    """Undo ``refuse_writes``."""
    administrator.execute(f"DROP TRIGGER IF EXISTS moving_{int(collection_id)} ON {table.name}")


def drop_refusal(administrator: Administrator) -> None:
    """Remove what ``make_refusal`` made, unless another collection moves as well."""
    administrator.execute(
        """
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgfoid = to_regproc('refuse_moving_row')) THEN
                DROP FUNCTION IF EXISTS refuse_moving_row();
            END IF;
        END $$
        """
    )


def read_row(reader: Reader, collection_id: int) -> dict[str, Any]:
    """Read the rows that a collection needs in another database: its own, its tenant's and its encoder's."""
    row = reader.row(
        """
        SELECT to_jsonb(c) AS collection, to_jsonb(t) AS tenant, to_jsonb(e) AS encoder
        FROM collection c JOIN tenant t ON t.name = c.tenant
        LEFT JOIN encoder e ON e.fingerprint = c.encoder_fingerprint
        WHERE c.id = %(id)s
        """,
        {"id": collection_id},
    )
    documents: dict[str, Any] = row._asdict()
    return documents


def read_sequences(reader: Reader) -> dict[str, int]:
    """Sequence -> its last number."""
    rows = reader.rows(
        """
        SELECT sequencename::text AS name, last_value FROM pg_sequences
        WHERE schemaname = current_schema() AND last_value IS NOT NULL
        """
    )
    return {row.name: row.last_value for row in rows}


def advance(writer: Writer, sequence: str, numbers: int) -> int:
    """Advance a sequence by so many numbers; its last number before."""
    writer.execute(f"ALTER SEQUENCE {sequence} INCREMENT BY 1")  # whose lock keeps others from drawing numbers
    last = writer.scalar(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}")
    if numbers:
        writer.scalar(f"SELECT setval('{sequence}', %(next)s)", {"next": last + numbers})
    return int(last)


def open_arrival(writer: Writer, documents: Mapping[str, Any], move: Mapping[str, Any]) -> None:
    """Make the hidden row of a collection that arrives, in place of one that tells where it lived meanwhile."""
    own = documents["collection"]
    for table, key in (("tenant", "name"), ("encoder", "fingerprint")):
        if documents[table] is not None:
            writer.execute(
                f"""
                INSERT INTO {table} SELECT * FROM jsonb_populate_record(NULL::{table}, %(row)s)
                ON CONFLICT ({key}) DO NOTHING
                """,
                {"row": Jsonb(documents[table])},
            )
    moved_collections.forget(writer, own["tenant"], own["name"])
    columns = _list_taken_columns()
    writer.execute(
        f"""
        INSERT INTO collection ({columns}, deleted_at, move)
        SELECT {columns}, now(), %(move)s FROM jsonb_populate_record(NULL::collection, %(row)s)
        """,
        {"row": Jsonb(own), "move": Jsonb(dict(move))},
    )


def _list_taken_columns() -> str:
    return ", ".join(
        column.name for column in metadata.tables["collection"].columns if column.name not in _NOT_TAKEN
    )


def compute_digest(reader: Reader, table: Table, collection_id: int, set_offset: int = 0) -> TableDigest:
    """Compute a digest of the collection's rows in a table, as they are once ids of sets of readers are moved."""
    values = ", ".join(_hash_input(column, set_offset) for column in _list_columns(table))
    row = reader.row(
        f"""
        SELECT count(*) AS rows, coalesce(sum(hash_record_extended(ROW({values}), 0)), 0) AS hashes
        FROM {table.name} WHERE collection_id = %(collection)s
        """,
        {"collection": collection_id},
    )
    return TableDigest(row.rows, int(row.hashes))


def copy_out(reader: Reader, table: Table, source_id: int, target_id: int, set_offset: int) -> Iterator[Buffer]:
    """Read the collection's rows of a table as those of the arriving collection, row by row."""
    values = ", ".join(_shift_set_id(column, set_offset) for column in _list_columns(table))
    return reader.copy_out(
        f"""
        COPY (SELECT {int(target_id)}::bigint, {values} FROM {table.name} WHERE collection_id = {int(source_id)})
        TO STDOUT (FORMAT BINARY)
        """
    )


def copy_in(writer: Writer, table: Table, rows: Iterable[Buffer]) -> None:
    """Write what ``copy_out`` reads."""
    columns = ", ".join(_quote(column) for column in _list_columns(table))
    writer.copy_in(f"COPY {table.name} (collection_id, {columns}) FROM STDIN (FORMAT BINARY)", rows)


def record_copied(writer: Writer, collection_id: int, table: Table, rows: int) -> None:
    """Record that the arriving collection has its rows of a table."""
    writer.execute(
        """
        UPDATE collection SET move = jsonb_set(move, ARRAY['tables', %(table)s::text], to_jsonb(%(rows)s::bigint))
        WHERE id = %(id)s
        """,
        {"id": collection_id, "table": table.name, "rows": rows},
    )


def analyse(administrator: Administrator, table: Table) -> None:
    """Tell the planner of the rows that came."""
    administrator.execute(f"ANALYZE {table.name}")


def show_arrival(writer: Writer, move_id: str, own: Mapping[str, Any]) -> int | None:
    """Have the arrived collection be found; its id, None if it was shown before.

    Args:
        own: its row at the source.
    """
    columns = _list_taken_columns()
    shown: int | None = writer.scalar(
        f"""
        UPDATE collection SET ({columns}) = (
            SELECT {columns} FROM jsonb_populate_record(NULL::collection, %(row)s)
        ), deleted_at = NULL, move = NULL
        WHERE move ->> 'id' = %(move)s RETURNING id
        """,
        {"row": Jsonb(dict(own)), "move": move_id},
    )
    return shown


def set_stage(writer: Writer, collection_id: int, stage: str) -> None:
    """Record how far the move is."""
    writer.execute(
        "UPDATE collection SET move = move || jsonb_build_object('stage', %(stage)s::text) WHERE id = %(id)s",
        {"id": collection_id, "stage": stage},
    )


def release(writer: Writer, collection_id: int) -> None:
    """Leave the rows to the removal of deleted collections, and a new row to tell where the collection lives."""
    columns = "tenant, name, encoder_model, encoder_fingerprint, encoder_dimension, deleted_at, move"
    row = writer.row(f"SELECT {columns} FROM collection WHERE id = %(id)s", {"id": collection_id})
    writer.execute("UPDATE collection SET name = '/' || id, move = NULL WHERE id = %(id)s", {"id": collection_id})
    writer.execute(
        f"""
        INSERT INTO collection ({columns})
        VALUES (%(tenant)s, %(name)s, %(encoder_model)s, %(encoder_fingerprint)s, %(encoder_dimension)s,
                %(deleted_at)s, %(move)s)
        """,
        row._asdict() | {"move": Jsonb(row.move | {"stage": moved_collections.MOVED})},
    )


def stay(writer: Writer, collection_id: int) -> None:
    """Have a collection be found again whose move is given up."""
    writer.execute("UPDATE collection SET deleted_at = NULL, move = NULL WHERE id = %(id)s", {"id": collection_id})


def read_keys(reader: Reader, tenant: str) -> list[dict[str, Any]]:
    """Read the tenant's access keys that count: columns but the id."""
    rows = reader.rows(
        f"""
        SELECT {", ".join(_KEY_COLUMNS)} FROM access_key
        WHERE tenant = %(tenant)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) ORDER BY id
        """,
        {"tenant": tenant},
    )
    return [row._asdict() for row in rows]


def write_key(writer: Writer, key: Mapping[str, Any]) -> int:
    """Write an access key unless it is there; how many were written."""
    values = ", ".join(f"%({name})s" for name in _KEY_COLUMNS)
    return writer.execute(
        f"""
        INSERT INTO access_key ({", ".join(_KEY_COLUMNS)}) VALUES ({values})
        ON CONFLICT (digest) DO NOTHING
        """,
        {**key, "scopes": Jsonb(key["scopes"])},
    )


def discard_arrival(writer: Writer, move_id: str) -> None:
    """Leave what arrived of a collection to the removal of deleted ones."""
    writer.execute(
        "UPDATE collection SET name = '/' || id, move = NULL WHERE move ->> 'id' = %(move)s", {"move": move_id}
    )


def _list_columns(table: Table) -> list["Column[Any]"]:
    return [column for column in table.columns if column.name != "collection_id"]


def _quote(column: "Column[Any]") -> str:
    return f'"{column.name}"'


def _shift_set_id(column: "Column[Any]", set_offset: int) -> str:
    """The column's value in the other database."""
    of_set = column.name == "reader_set_id" or (column.table.name, column.name) == ("reader_set", "id")
    return f"{_quote(column)} + {int(set_offset)}::bigint" if of_set else _quote(column)


def _hash_input(column: "Column[Any]", set_offset: int) -> str:
    """Return the same value as something that Postgres can hash, which vectors are not."""
    kind = str(column.type).partition("(")[0].lower()
    return f"{kind}_send({_quote(column)})" if kind in {"vector", "halfvec"} else _shift_set_id(column, set_offset)
