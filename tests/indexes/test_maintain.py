"""Index maintenance on the real Postgres: what is counted, what is healed, and what goes on meanwhile."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from engram.services.maintenance.index_maintenance import IndexHealth, IndexMaintenanceService, Thresholds
from engram.services.question.query import Query
from engram.storage.corpus import collections
from engram.storage.database import Writer
from engram.storage.maintenance import vector_indexes
from engram.storage.question import passages_by_key
from engram.storage.question.query_focus import Focus, GraphLimits
from tests.support import state
from tests.support.processes import eventually
from tests.support.threads import ThreadPoolExecutor

Ingest = Callable[..., Mapping[str, Any]]
NEVER_REBUILD = Thresholds(dead_share=0.999, dead_rows=10**9)
LIMITS = GraphLimits(hub_limit=1000, candidate_limit=2000)
PATIENCE_SECONDS = 120.0
RANDOM = "l2_normalize((SELECT array_agg(random() - 0.5 + 0 * (i + {row})) FROM generate_series(1, 384) i)::vector)"


def service(application: Application, thresholds: Thresholds = NEVER_REBUILD) -> IndexMaintenanceService:
    return IndexMaintenanceService(application.database, thresholds, memory_mb=64, exact_search_limit=0)


def run(maintain: IndexMaintenanceService, *, force: bool = False) -> dict[str, IndexHealth]:
    """Index -> what was found and done."""
    reports = maintain.run(force=force)
    assert reports is not None
    return {report.index: report for report in reports}


@pytest.fixture
def healthy(application: Application) -> None:
    """No index has a dead entry."""
    run(service(application), force=True)
    assert {report.dead for report in run(service(application)).values()} <= {0}


@pytest.fixture
def filled(application: Application, collection: str, healthy: None) -> Iterator[str]:
    """A collection of 300 passages with random vectors, none of them dead, until the end of the test."""
    with application.database.write() as writer:
        target = collections.open_for_writing(writer, collection, application.models.encoder.id).collection.id
        writer.execute(
            f"""
            INSERT INTO passage (collection_id, external_id, text, language, content_hash, embedding)
            SELECT %(c)s, 'r' || n, 'A text.', 'en', ''::bytea, {RANDOM.format(row="n")}
            FROM generate_series(1, 300) AS n
            """,
            {"c": target},
        )
        collections.add_counts(writer, target, passages=300, sentences=0, entities=0, lexical_length=0.0)
    run(service(application))
    yield collection
    with suppress(NotFoundError):
        application.corpus.ingest.delete_collection(application.auth.access.scope(collection))
    run(service(application))
    with application.database.administer() as administrator:
        vector_indexes.vacuum(
            administrator, "passage"
        )  # which an index made later would be told to have to give back


def find_passage_index(application: Application, name: str) -> str:
    """The vector index of a collection's passages."""
    with application.database.read() as reader:
        return f"passage_hnsw_{collections.find(reader, name).id}"


def replace_vectors(application: Application, name: str, passages: int) -> None:
    """Make as many dead entries."""
    with application.database.write() as writer:
        replaced = writer.execute(
            f"""
            UPDATE passage SET embedding = {RANDOM.format(row="id")} WHERE (collection_id, id) IN (
                SELECT p.collection_id, p.id FROM passage p JOIN collection c ON c.id = p.collection_id
                WHERE c.name = %(name)s ORDER BY p.id LIMIT %(passages)s
            )
            """,
            {"name": name, "passages": passages},
        )
    assert replaced == passages


def leftovers(application: Application) -> list[str]:
    with application.database.read() as reader:
        return vector_indexes.leftovers(reader)


def list_building(application: Application) -> list[str]:
    """Indexes of passages that are being built anew, or were when the build was given up."""
    return [name for name in leftovers(application) if re.fullmatch(r"passage_hnsw_\d+_ccnew", name)]


def search_index(application: Application, name: str, vector: np.ndarray[Any, Any]) -> list[int]:
    """The passages nearest to ``vector``, through the HNSW index: sorting a small collection is ruled out."""
    with application.database.read() as reader:
        reader.scalar("SELECT set_config('enable_sort', 'off', false)")
        target = collections.find(reader, name)
        focus = Focus(target, vector, limits=LIMITS)
        found = list(passages_by_key.find_nearest_passages(reader, focus, 10))
        reader.scalar("SELECT set_config('enable_sort', 'on', false)")
    return found


@contextmanager
def hold_up_rebuild(application: Application, should_stop: Callable[[], bool]) -> Iterator["Future[Any]"]:
    """A forced run that is building the passages' index and waits for a transaction that writes to the table.

    The transaction ends with the block.
    """
    with ThreadPoolExecutor(1) as pool:
        with application.database.write() as writer:
            writer.execute("UPDATE passage SET title = title WHERE false")
            running = pool.submit(service(application).run, force=True, should_stop=should_stop)
            eventually(lambda: bool(list_building(application)) or running.done())
            assert not running.done()
            yield running
        running.result()


class TestDeadRowCounts:
    def test_deleted_and_replaced_rows_are_counted(self, application: Application, filled: str) -> None:
        found = run(service(application))[find_passage_index(application, filled)]
        replace_vectors(application, filled, 70)
        with application.database.write() as writer:
            gone = writer.execute("DELETE FROM passage WHERE external_id = ANY(%(ids)s)", {"ids": ["r290", "r291"]})
        after = run(service(application))[find_passage_index(application, filled)]

        assert gone == 2
        assert (found.dead, after.dead) == (0, 72)
        assert after.live == found.live - 2
        assert after.share == pytest.approx(72 / (after.live + 72))

    def test_neither_a_vacuum_nor_lost_statistics_hide_them(self, application: Application, filled: str) -> None:
        replace_vectors(application, filled, 70)
        before = run(service(application))[find_passage_index(application, filled)]
        with application.database.administer() as administrator:
            administrator.execute("VACUUM passage")
            vacuumed = administrator.scalar("SELECT pg_stat_get_dead_tuples('passage'::regclass)")
            after_vacuum = run(service(application))[find_passage_index(application, filled)]
            administrator.scalar("SELECT pg_stat_reset()")
            after_reset = run(service(application))[find_passage_index(application, filled)]

        assert vacuumed == 0
        assert before.dead == after_vacuum.dead == after_reset.dead == 70

    def test_every_table_with_such_an_index_and_no_other_is_kept_from_vacuuming_it(
        self, application: Application, curie: str, filled: str
    ) -> None:
        run(service(application))
        with application.database.read() as reader:
            tables = {index.table for index in vector_indexes.indexes(reader)}
            kept = reader.rows("SELECT relname FROM pg_class WHERE 'vacuum_index_cleanup=off' = ANY(reloptions)")

        assert {"passage", "entity"} <= tables
        assert tables == {row[0] for row in kept}


class TestIndexRebuilds:
    def test_maintenance_repairs_indexes_after_reingestion(
        self, application: Application, ingest: Ingest, collection: str, healthy: None
    ) -> None:
        bodies = [
            {"id": f"p{n}", "text": f"Station {n} lies on the river. It was built in {1800 + n}."}
            for n in range(40)
        ]
        ingest(*bodies)
        thresholds = Thresholds(dead_share=0.0001, dead_rows=40)

        run(service(application))
        ingest(*({**body, "text": f"{body['text']} It is closed."} for body in bodies))
        first = run(service(application, thresholds))[find_passage_index(application, collection)]
        second = run(service(application, thresholds))[find_passage_index(application, collection)]

        assert (first.dead, first.healed) == (40, True)
        assert first.bytes_after < first.bytes_before
        assert (second.dead, second.healed, second.live) == (0, False, first.live)
        assert second.bytes_before == second.bytes_after == first.bytes_after
        answer = application.answers.question.answer(
            Query(text="When was station 7 built?", scope=application.auth.access.scope(collection))
        )
        assert answer.passages

    def test_both_thresholds_must_be_reached(self, application: Application, filled: str) -> None:
        replace_vectors(application, filled, 50)
        found = run(service(application))[find_passage_index(application, filled)]
        assert (found.dead, found.healed) == (50, False)

        for thresholds, healed in (
            (Thresholds(found.share + 1e-6, 50), False),
            (Thresholds(found.share, 51), False),
            (Thresholds(found.share, 50), True),
        ):
            report = run(service(application, thresholds))[find_passage_index(application, filled)]
            assert (report.dead, report.healed) == (50, healed)

    def test_force_builds_every_index_anew(self, application: Application, curie: str, filled: str) -> None:
        reports = run(service(application), force=True)

        with application.database.read() as reader:
            entities = f"entity_hnsw_{collections.find(reader, curie).id}"
        assert {
            find_passage_index(application, curie),
            find_passage_index(application, filled),
            entities,
        } <= reports.keys()
        assert all(report.healed for report in reports.values())

    def test_an_index_of_an_earlier_version_gives_way(self, application: Application, filled: str) -> None:
        name = find_passage_index(application, filled)
        collection_id = int(name.rsplit("_", 1)[1])
        with application.database.administer() as administrator:
            vector_indexes.drop(administrator, name)
            administrator.execute(
                f"CREATE INDEX {name} ON passage USING hnsw ((embedding::halfvec(384)) halfvec_ip_ops) "
                f"WHERE collection_id = {collection_id}"
            )
        assert leftovers(application) == [name]
        with application.database.read() as reader:
            vector = reader.scalar(f"SELECT embedding FROM passage WHERE collection_id = {collection_id} LIMIT 1")
        assert len(search_index(application, filled, vector.to_numpy())) == 10  # though it is of no use

        run(service(application))

        assert leftovers(application) == []
        with application.database.read() as reader:
            assert name in {index.name for index in vector_indexes.indexes(reader)}
            assert "passage" in collections.find(reader, filled).indexed

    def test_queries_and_writes_go_on_meanwhile(self, application: Application, curie: str, filled: str) -> None:
        with application.database.read() as reader:
            target = collections.find(reader, filled).id
            rows = reader.rows(
                "SELECT id, embedding FROM passage WHERE collection_id = %(c)s AND external_id >= 'r5'",
                {"c": target},
            )
        vectors = {row.id: row.embedding.to_numpy() for row in rows}
        over = threading.Event()
        asked: list[int] = []

        def repeat_until_over(step: Callable[[], None]) -> None:
            """Repeat ``step`` until another part is done, or fails; so that no part waits for one that failed."""
            try:
                while not over.is_set():
                    step()
            finally:
                over.set()

        def maintain() -> None:
            assert run(service(application), force=True)[find_passage_index(application, filled)].healed
            if len(asked) >= 3 * len(vectors):
                over.set()

        def search() -> None:
            for vector in vectors.values():
                search_index(application, filled, vector)
                asked.append(1)

        def ask() -> None:
            assert application.answers.question.answer(
                Query(text="Where was Marie Curie born?", scope=application.auth.access.scope(curie))
            ).passages

        def write() -> None:
            with application.database.write() as writer:
                touch(writer, target)
            over.wait(0.05)  # a writer that never pauses kills entries faster than any index stays good

        state.together(*(partial(repeat_until_over, step) for step in (maintain, search, ask, write)))

        assert len(asked) >= 3 * len(vectors)

    def test_rows_kept_for_an_old_transaction_are_healed_once(self, application: Application, filled: str) -> None:
        maintain = service(application, Thresholds(dead_share=0.0001, dead_rows=60))
        with application.database.write() as old:
            old.execute(
                "INSERT INTO collection (name, encoder_model, encoder_fingerprint, encoder_dimension) "
                "VALUES (%(name)s, '', '', 384)",
                {"name": f"{filled}-old"},
            )
            replace_vectors(application, filled, 60)
            first, second = (
                run(maintain)[find_passage_index(application, filled)],
                run(maintain)[find_passage_index(application, filled)],
            )
        third = run(maintain)[find_passage_index(application, filled)]
        replace_vectors(application, filled, 60)
        fourth = run(maintain)[find_passage_index(application, filled)]

        assert (first.dead, first.healed) == (60, True)
        assert (second.dead, second.healed) == (0, False)
        assert (third.dead, third.healed) == (0, False)
        assert (fourth.dead, fourth.healed) == (60, True)


class TestConcurrentRuns:
    def test_a_second_run_leaves_it_to_the_first(self, application: Application, filled: str) -> None:
        with hold_up_rebuild(application, lambda: False) as running:
            second = service(application).run(force=True)
            replace_vectors(application, filled, 10)
            assert not running.done()

        assert second is None
        assert {report.healed for report in running.result()} == {True}

    def test_a_stop_gives_up_the_build_and_the_next_run_clears_up(
        self, application: Application, filled: str
    ) -> None:
        stop = threading.Event()
        with hold_up_rebuild(application, stop.is_set) as running:
            stop.set()
            finished = running.result(PATIENCE_SECONDS)
            left, interrupted = leftovers(application), list_building(application)

        assert "passage" not in {report.table for report in finished}
        assert len(left) == 1
        assert left == interrupted
        reports = run(service(application))
        assert leftovers(application) == []
        assert not reports[find_passage_index(application, filled)].healed

    def test_an_index_that_is_not_valid_is_built_anew(self, application: Application, filled: str) -> None:
        index = find_passage_index(application, filled)
        with application.database.write() as writer:
            writer.execute(
                "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %(index)s::text::regclass",
                {"index": index},
            )

        healed = [report for report in run(service(application)).values() if report.healed]
        assert {report.table for report in healed} == {"passage"}
        assert index in {report.index for report in healed}
        assert not any(report.healed for report in run(service(application)).values())


def touch(writer: Writer, collection: int) -> None:
    """Replace the vectors of a few passages that nobody looks for."""
    writer.execute(
        f"""
        UPDATE passage SET embedding = {RANDOM.format(row="id")}
        WHERE collection_id = %(c)s AND external_id IN ('r1', 'r2', 'r3')
        """,
        {"c": collection},
    )


class TestIndexesBySize:
    """Which collections have vector indexes."""

    def build_service(self, application: Application, limit: int) -> IndexMaintenanceService:
        return IndexMaintenanceService(application.database, NEVER_REBUILD, memory_mb=64, exact_search_limit=limit)

    def list_indexed(self, application: Application, name: str) -> list[str]:
        with application.database.read() as reader:
            return list(collections.find(reader, name).indexed)

    def resize(self, application: Application, name: str, passages: int) -> None:
        with application.database.write() as writer:
            writer.execute(
                "UPDATE collection SET passage_count = %(rows)s WHERE name = %(name)s",
                {"name": name, "rows": passages},
            )

    def test_a_large_collection_gets_an_index_of_its_own_and_a_small_one_none(
        self, application: Application, ingest: Ingest, filled: str
    ) -> None:
        small = f"{filled}-small"
        ingest({"id": "a", "title": "Old Mill", "text": "It was built in 1790."}, into=small)
        run(service(application))
        assert self.list_indexed(application, small) == ["entity", "passage"]

        reports = run(self.build_service(application, 299))

        assert self.list_indexed(application, filled) == ["passage"]
        assert self.list_indexed(application, small) == []
        assert find_passage_index(application, filled) in reports
        assert find_passage_index(application, small) not in reports

    def test_an_index_goes_once_a_collection_is_half_as_large_or_gone(
        self, application: Application, filled: str
    ) -> None:
        index = find_passage_index(application, filled)
        maintain = self.build_service(application, 200)
        self.resize(application, filled, 101)
        assert index in run(maintain)
        self.resize(application, filled, 100)
        assert index not in run(maintain)
        assert self.list_indexed(application, filled) == []

        self.resize(application, filled, 300)
        assert index in run(maintain)
        application.corpus.ingest.delete_collection(application.auth.access.scope(filled))
        assert index not in run(maintain)

    def test_tables_without_a_vector_index_are_left_to_autovacuum(
        self, application: Application, filled: str
    ) -> None:
        assert run(self.build_service(application, 10**9)) == {}

        with application.database.read() as reader:
            kept = reader.rows("SELECT relname FROM pg_class WHERE 'vacuum_index_cleanup=off' = ANY(reloptions)")
        assert kept == []

    def test_it_is_searched_exactly_again_where_its_index_is_not_valid(
        self, application: Application, filled: str
    ) -> None:
        index = find_passage_index(application, filled)
        with application.database.write() as writer:
            writer.execute(
                "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %(index)s::text::regclass",
                {"index": index},
            )
        with application.database.read() as reader:
            vector = reader.scalar(
                "SELECT embedding FROM passage WHERE collection_id = %(c)s AND external_id = 'r7'",
                {"c": collections.find(reader, filled).id},
            ).to_numpy()

        assert len(search_index(application, filled, vector)) == 10
        run(service(application))
        assert self.list_indexed(application, filled) == ["passage"]
