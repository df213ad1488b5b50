"""The schema can be distributed by collection: what Citus demands of one, of the catalogue.

A table is distributed by a column that stands in its primary key and in every unique one; its foreign keys carry
that column on both sides, or lead to a table that is on all nodes; the column never changes; and what numbers rows
is bigint, the only kind of identity that nodes can give without asking each other.
"""

import re
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from sqlalchemy import ForeignKeyConstraint

from engram.composition.container import Application
from engram.context.errors import ConfigurationError
from engram.storage import citus_distribution
from engram.storage.database import Writer
from engram.storage.question.nearest_neighbours import build_index_condition
from engram.storage.row_lookups import bind_to_node, id_rows, insert_by_statement
from tests.support.citus import CITUS
from tests.support.storage_files import list_storage_files

REFERENCE, LOCAL = set(citus_distribution.REFERENCE), set(citus_distribution.LOCAL)
TABLES = "relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND NOT relispartition"


@pytest.fixture(scope="module")
def tables(application: Application) -> set[str]:
    with application.database.read() as reader:
        rows = reader.rows(f"SELECT relname FROM pg_class WHERE {TABLES} AND relname <> 'alembic_version'")
    return {row.relname for row in rows}


def test_every_table_is_of_collections_or_a_named_exception(application: Application, tables: set[str]) -> None:
    with application.database.read() as reader:
        rows = reader.rows(
            f"""
            SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
            WHERE {TABLES} AND attname = 'collection_id' AND attnotnull
            """
        )
    assert (
        {row.relname for row in rows}
        == tables - REFERENCE - LOCAL
        == set(citus_distribution.list_collection_tables())
    )


def test_every_key_has_the_collection(application: Application) -> None:
    with application.database.read() as reader:
        rows = reader.rows(
            f"""
            SELECT DISTINCT relname FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
            WHERE {TABLES} AND indisunique AND NOT EXISTS (
                SELECT FROM pg_attribute
                WHERE attrelid = indrelid AND attname = 'collection_id' AND attnum = ANY(indkey[:indnkeyatts - 1])
            )
            """
        )
    assert {row.relname for row in rows} == REFERENCE | LOCAL | {"alembic_version"}


def test_every_foreign_key_stays_within_the_collection_or_leads_to_what_is_everywhere(
    application: Application,
) -> None:
    with application.database.read() as reader:
        rows = reader.rows(
            """
            SELECT conname, conrelid::regclass::text AS of, confrelid::regclass::text AS onto,
                (SELECT array_agg(a.attname || '>' || b.attname)
                 FROM unnest(conkey, confkey) AS k (x, y)
                 JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = k.x
                 JOIN pg_attribute b ON b.attrelid = confrelid AND b.attnum = k.y) AS pairs
            FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid  -- which shows no shards of the coordinator
            WHERE contype = 'f' AND conparentid = 0 AND connamespace = 'public'::regnamespace
            """
        )
    assert len(rows) > 30
    for row in rows:
        if row.onto not in REFERENCE:
            assert "collection_id>collection_id" in row.pairs, row.conname
        assert row.of not in REFERENCE or row.onto in REFERENCE, row.conname


def test_generated_row_ids_are_bigints(application: Application) -> None:
    with application.database.read() as reader:
        rows = reader.rows(
            f"""
            SELECT relname, attname, atttypid::regtype::text AS type
            FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
            WHERE {TABLES} AND (attidentity <> '' OR pg_get_serial_sequence(relname, attname) IS NOT NULL)
            """
        )
    assert rows
    assert {row.type for row in rows} == {"bigint"}


def test_no_table_has_a_trigger_of_its_own(application: Application) -> None:
    with application.database.read() as reader:
        rows = reader.rows(
            f"""
            SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
            WHERE NOT tgisinternal AND {TABLES}
            """
        )
    assert [row.tgname for row in rows] == []


def test_no_statement_moves_a_row_to_another_collection() -> None:
    moved = re.compile(r"\bSET\b(?:(?!\bWHERE\b|\bFROM\b|\bRETURNING\b)[^;])*?\bcollection_id\s*=", re.IGNORECASE)
    for file in list_storage_files():
        for statement in re.findall(r'"""(.*?)"""', file.read_text(encoding="utf-8"), re.DOTALL):
            if re.search(r"\bUPDATE\b", statement):
                assert not moved.search(statement), (file.name, statement)
    assert moved.search("UPDATE passage SET text = 'x', collection_id = 3 WHERE id = 1")


def statements() -> list[tuple[str, str]]:
    """(file, statement) of storage."""
    return [
        (file.name, statement)
        for file in list_storage_files()
        for statement in re.findall(r'"""(.*?)"""', file.read_text(encoding="utf-8"), re.DOTALL)
        if re.search(r"\b(UPDATE|INSERT|DELETE)\b", statement)
    ]


VOLATILE = r"(clock_timestamp|random|nextval|gen_random_uuid)\("
UNSTABLE = rf"(now\(|{VOLATILE})"
REFUSED = (
    # In a CASE or a COALESCE of what is written.
    re.compile(rf"\b(CASE\b(?:(?!\bEND\b).)*|coalesce\([^()]*){UNSTABLE}", re.DOTALL),
    # In what a conflict does.
    re.compile(rf"\bDO UPDATE SET\b(?:(?!\bWHERE\b|\bRETURNING\b).)*{UNSTABLE}", re.DOTALL),
    # With what a conflict does a parameter of it is lost, of a table that is on the coordinator.
    re.compile(rf"\bINSERT INTO ({'|'.join(sorted(LOCAL))})\b.*\bSELECT\b.*\bON CONFLICT\b", re.DOTALL),
    # Refused nowhere, but sent to the node as another expression.
    re.compile(r"\bUPDATE\b.*\bCASE \w+ WHEN '", re.DOTALL),
    # Of columns, where what it makes depends on settings.
    re.compile(rf"\bUPDATE (?!{'|'.join(LOCAL)})\w+ .*\bconcat_ws\(", re.DOTALL),
    # In a change of what is there, if its value may differ within the statement.
    re.compile(
        rf"\bUPDATE (?!{'|'.join(LOCAL)})\w+ (\w+ )?SET\b(?:(?!\bFROM\b|\bWHERE\b|\bINSERT\b).)*{VOLATILE}",
        re.DOTALL,
    ),
)


@pytest.mark.parametrize("refused", REFUSED)
def test_no_statement_has_a_function_where_citus_refuses_one(refused: re.Pattern[str]) -> None:
    for file, statement in statements():
        if "{drawn}" not in statement:
            assert not refused.search(statement), (file, statement)
    wrong = (
        "UPDATE job SET at = CASE status WHEN 'queued' THEN now() END",
        "INSERT INTO job VALUES (1) ON CONFLICT (id) DO UPDATE SET at = now()",
        "INSERT INTO quota_usage SELECT 1 WHERE %(quota)s > 1 ON CONFLICT (day) DO NOTHING",
        "UPDATE job SET error = NULL WHERE concat_ws(' ', payload, error) ~ 'a'",
        "UPDATE sentence s SET returned_at = clock_timestamp() FROM wanted",
    )
    assert any(refused.search(one) for one in wrong)


def test_exists_subqueries_select_a_column_on_citus() -> None:
    """Citus joins what the nodes say, and makes no row of none."""
    looked = re.compile(r"EXISTS \(SELECT FROM (\w+)\b([^()]*)\)")
    assert looked.findall("EXISTS (SELECT FROM job WHERE status = 1)") == [("job", " WHERE status = 1")]
    for file in list_storage_files():
        for name, rest in looked.findall(file.read_text(encoding="utf-8")):
            assert name not in citus_distribution.list_collection_tables() or "collection_id" in rest, (
                file.name,
                name,
                rest,
            )


def test_foreign_keys_are_expected_as_they_are_put_on_again() -> None:
    keys = {
        key.name: key
        for table in citus_distribution.build_distributed_schema().tables.values()
        for key in table.constraints
        if isinstance(key, ForeignKeyConstraint) and table.name not in LOCAL
    }
    assert {"entity_sentence_entity_fkey", "collection_tenant_fkey"} <= keys.keys()
    assert {key.initially for key in keys.values()} == {"DEFERRED"}
    assert "collection" not in {key.referred_table.name for key in keys.values()}


def test_only_foreign_keys_that_are_put_on_again_count() -> None:
    keys = [
        SimpleNamespace(table="passage", name="passage_collection_fkey", onto="collection", definition="FK 1"),
        SimpleNamespace(table="sentence", name="sentence_passage_fkey", onto="passage", definition="FK 2"),
    ]
    writer = Mock(spec=Writer)
    writer.rows.side_effect = lambda statement, *_: keys if "pg_constraint" in statement else []
    result = citus_distribution.distribute(writer, hnsw_ef_search=100)
    executed = [call.args[0] for call in writer.execute.call_args_list]
    assert [one for one in executed if "DROP CONSTRAINT" in one] == [
        "ALTER TABLE passage DROP CONSTRAINT passage_collection_fkey",
        "ALTER TABLE sentence DROP CONSTRAINT sentence_passage_fkey",
    ]
    assert [one for one in executed if "ADD CONSTRAINT" in one] == [
        "ALTER TABLE sentence ADD CONSTRAINT sentence_passage_fkey FK 2 DEFERRABLE INITIALLY DEFERRED"
    ]
    assert result.foreign_keys == 1


def test_a_look_up_names_the_collection_at_each_of_its_tables() -> None:
    statement = f"SELECT s.id FROM {id_rows('ids')} JOIN sentence s ON s.collection_id = wanted.collection_id"
    assert bind_to_node(statement).endswith(
        "ON s.collection_id = %(collection)s::bigint AND wanted.collection_id = %(collection)s::bigint"
    )
    of_all = "SELECT FROM job JOIN passage p ON p.collection_id = job.collection_id"
    assert bind_to_node(of_all) == of_all


def test_a_search_through_a_vector_index_names_the_collection_by_what_no_other_index_serves() -> None:
    own = build_index_condition(7, "p.")
    assert bind_to_node(f"SELECT FROM passage p WHERE {own} LIMIT 1").endswith(
        "(p.collection_id + 0) = 7 AND p.collection_id = 7.0 LIMIT 1"
    )
    made = f"\n CREATE INDEX ON passage USING hnsw (embedding) WHERE {build_index_condition(7)}"
    assert bind_to_node(made) == made


def test_no_statement_about_other_collections_calls_its_own_the_one_it_is_about() -> None:
    """``bind_to_node`` would look for the others within that."""
    others = re.compile(r"(<>|!=) %\(collection\)s")
    assert others.search("SELECT FROM job other WHERE other.collection_id <> %(collection)s")
    for file in list_storage_files():
        assert not others.search(file.read_text(encoding="utf-8")), file.name


@pytest.mark.parametrize(
    ("statement", "sent"),
    [
        ("INSERT INTO job (id) SELECT 1", "INSERT INTO job (id) SELECT 1 RETURNING collection_id "),
        ("INSERT INTO job (id) VALUES (1)", "INSERT INTO job (id) VALUES (1)"),
        ("INSERT INTO job SELECT 1 ON CONFLICT DO NOTHING", "INSERT INTO job SELECT 1 ON CONFLICT DO NOTHING"),
        (
            "WITH a AS (INSERT INTO job SELECT f(1)), b AS (INSERT INTO job SELECT 2 RETURNING id) SELECT 3",
            "WITH a AS (INSERT INTO job SELECT f(1) RETURNING collection_id ), "
            "b AS (INSERT INTO job SELECT 2 RETURNING id) SELECT 3",
        ),
    ],
)
def test_every_part_that_inserts_what_is_selected_returns_rows(statement: str, sent: str) -> None:
    assert insert_by_statement(statement) == sent


@pytest.mark.skipif(CITUS is not None, reason="the cluster is one")
def test_a_database_that_is_no_coordinators_is_left_as_it_is(application: Application) -> None:
    with application.database.write_long() as writer:
        assert not writer.distributed
        with pytest.raises(ConfigurationError, match="no extension citus"):
            citus_distribution.distribute(writer, hnsw_ef_search=100)
