"""Tables that grow are analysed, so that plans made while they were empty are made again."""

from uuid import uuid4

from engram.composition.container import Application
from engram.storage.maintenance import table_statistics
from tests.support import state


def pages(application: Application, table: str) -> int:
    with application.database.read() as reader:
        found: int = reader.scalar(
            "SELECT relpages FROM pg_class WHERE oid = %(table)s::regclass", {"table": table}
        )
    return found


def test_a_table_that_outgrew_its_statistics_is_analysed_once(application: Application, curie: str) -> None:
    application.maintenance.statistics.run()
    known = pages(application, "question")
    with application.database.write() as writer:
        writer.execute(
            """
            INSERT INTO question (collection_id, text_hash, text, embedding)
            SELECT %(c)s, int8send(n), repeat('x', 2000), array_fill(1, ARRAY[384])::vector
            FROM generate_series(1, %(rows)s) AS n
            """,
            {"c": state.collection_id(application, curie), "rows": 4 * table_statistics.GROWTH * max(known, 8)},
        )
    with application.database.read() as reader:
        assert "question" in table_statistics.list_outgrown(reader)
    assert "question" in application.maintenance.statistics.run()
    assert pages(application, "question") > known
    assert "question" not in application.maintenance.statistics.run()


def test_unchanged_tables_are_not_analysed(application: Application) -> None:
    application.maintenance.statistics.run()
    assert application.maintenance.statistics.run() == []


def test_a_table_that_was_empty_when_it_was_analysed_is_analysed_once_it_has_rows(application: Application) -> None:
    table, insert = f"emptied_{uuid4().hex}", "INSERT INTO {} SELECT repeat('x', 2000) FROM generate_series(1, 200)"
    with application.database.administer() as administrator:
        administrator.execute(f"CREATE TABLE {table} (text text) WITH (autovacuum_enabled = off)")
        try:
            administrator.execute(insert.format(table))
            administrator.execute(f"DELETE FROM {table}")
            administrator.execute(f"ANALYZE {table}")
            assert pages(application, table) >= table_statistics.LEAST_PAGES  # it has none more afterwards
            assert table not in table_statistics.list_outgrown(administrator)
            administrator.execute(insert.format(table))
            administrator.execute("SELECT pg_stat_force_next_flush()")
            assert table in table_statistics.list_outgrown(administrator)
            assert table in application.maintenance.statistics.run()
            assert table not in application.maintenance.statistics.run()
        finally:
            administrator.execute(f"DROP TABLE {table}")
