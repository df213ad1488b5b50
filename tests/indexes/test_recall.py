"""The recall of vector indexes on the real Postgres: what is measured, and what queries make of it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.composition.container import Application
from engram.composition.servers import HNSW_EF_SEARCH
from engram.services.key_search.dense_search import EXACT
from engram.services.maintenance import index_recall_guard
from engram.services.maintenance.index_maintenance import IndexHealth, IndexMaintenanceService, Thresholds
from engram.storage.column_parameters import vectors
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection, IndexRecall
from engram.storage.database import Reader
from engram.storage.maintenance import index_recall, vector_indexes
from engram.storage.question import passages_by_key
from engram.storage.question.query_focus import Focus, GraphLimits
from engram.wings.upkeep.storage import poor_indexes
from tests.support import state
from tests.support.encoder import HALF_PRECISION

ROWS = 1500
NEVER_REBUILD = Thresholds(dead_share=0.999, dead_rows=10**9)
PLAIN_LIMITS = GraphLimits(hub_limit=1000, candidate_limit=2000)
POOR = "WITH (m = 4, ef_construction = 8)"


def draw(count: int, seed: int) -> NDArray[np.float32]:
    """Unit vectors in all directions, which no graph finds easily, (count, 384)."""
    drawn = np.random.default_rng(seed).normal(size=(count, 384))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), dtype=np.float32)


def maintain(application: Application, least: float, *, force: bool = False) -> Mapping[str, IndexHealth]:
    """Index -> what a run of maintenance found."""
    service = IndexMaintenanceService(
        application.database, NEVER_REBUILD, memory_mb=64, exact_search_limit=ROWS - 1, least_recall=least
    )
    reports = service.run(force=force)
    assert reports is not None
    return {report.index: report for report in reports}


def read(application: Application, name: str) -> Collection:
    with application.database.read() as reader:
        return collections.find(reader, name)


def grow(application: Application, name: str, rows: int, seed: int) -> None:
    """Write as many passages with drawn vectors, each with a sentence of another vector."""
    with application.database.write() as writer:
        target = collections.open_for_writing(writer, name, application.models.encoder.id).collection.id
        given = {
            "c": target,
            "seed": seed,
            "passages": vectors(list(draw(rows, seed))),
            "sentences": vectors(list(draw(rows, seed + 1))),
        }
        writer.execute(
            """
            WITH written AS (
                INSERT INTO passage (collection_id, external_id, text, language, content_hash, embedding)
                SELECT %(c)s, %(seed)s || '-' || n, 'A text.', 'en', ''::bytea, v
                FROM unnest(%(passages)s::vector[]) WITH ORDINALITY AS drawn(v, n) RETURNING id, external_id
            )
            INSERT INTO sentence (collection_id, passage_id, position, text, embedding)
            SELECT %(c)s, written.id, 0, 'A text.', v
            FROM unnest(%(sentences)s::vector[]) WITH ORDINALITY AS drawn(v, n)
            JOIN written ON written.external_id = %(seed)s || '-' || n
            """,
            given,
        )
        collections.add_counts(writer, target, passages=rows, sentences=rows, entities=0, lexical_length=0.0)


def measure_recall(reader: Reader, target: Collection) -> float:
    """The share of the ten nearest that a query finds of 40 directions drawn."""
    found = 0
    for vector in draw(40, seed=77):
        focus = Focus(target, vector, limits=PLAIN_LIMITS)
        exact = set(passages_by_key.find_nearest_passages(reader, replace(focus, limits=EXACT), 10))
        found += len(exact & set(passages_by_key.find_nearest_passages(reader, focus, 10)))
    return found / 400


@pytest.fixture
def poor(application: Application, collection: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A collection whose index finds little with the breadth of search that is configured."""
    monkeypatch.setitem(vector_indexes.BUILDS, "passage", POOR)
    grow(application, collection, ROWS, seed=1)
    maintain(application, least=0.0)
    assert read(application, collection).indexed == ["passage"]
    return collection


def name_index(application: Application, name: str) -> str:
    return f"passage_hnsw_{read(application, name).id}"


class TestRecallMeasurement:
    def test_index_recall_is_not_measured_without_a_target(self, application: Application, poor: str) -> None:
        report = maintain(application, least=0.0)[name_index(application, poor)]
        assert (report.recall, report.breadth) == (None, None)
        assert read(application, poor).index_recall == {}

    def test_an_index_that_finds_too_little_is_searched_more_broadly(
        self, application: Application, poor: str
    ) -> None:
        report = maintain(application, least=0.75)[name_index(application, poor)]
        measured = read(application, poor).index_recall["passage"]
        assert (report.recall, report.breadth) == (measured.recall, measured.breadth)
        assert measured.configured == HNSW_EF_SEARCH < measured.breadth
        assert measured.recall >= 0.75
        assert measured.rows == ROWS

    def test_an_index_that_finds_enough_is_searched_as_before(self, application: Application, poor: str) -> None:
        report = maintain(application, least=0.01)[name_index(application, poor)]
        assert report.breadth == HNSW_EF_SEARCH
        assert report.recall is not None
        assert 0.01 <= report.recall < 0.75  # or the other tests would show nothing

    def test_unreachable_recall_target_is_reported(self, application: Application, poor: str) -> None:
        report = maintain(application, least=0.9999)[name_index(application, poor)]
        measured = read(application, poor).index_recall["passage"]
        assert report.breadth == index_recall_guard.MAX_BREADTH
        with application.database.read() as reader:
            assert [row[:2] for row in poor_indexes.list_poor_indexes(reader, 1.0) if row[0] == poor] == [
                (poor, "passage")
            ]
            assert [row for row in poor_indexes.list_poor_indexes(reader, measured.recall) if row[0] == poor] == []

    def test_questions_that_were_asked_come_before_what_is_drawn(
        self, application: Application, curie: str
    ) -> None:
        for question in ("Who?", "Where?", "Who?", "When?"):
            state.add_episode(application, curie, question, [])
        with application.database.read() as reader:
            target = collections.find(reader, curie)
            asked = index_recall.sample_questions(reader, target, 10)
            latest = index_recall.sample_questions(reader, target, 2)
            drawn = index_recall.draw_rows(reader, target, "passage", 7, seed=3)
        own = application.models.embedder.embed(["When?", "Who?", "Where?"])  # the latest first
        assert np.allclose(np.stack(asked), own, atol=1e-6)
        assert np.allclose(np.stack(latest), own[:2], atol=1e-6)
        held = np.stack([json.loads(row["embedding"]) for row in state.rows(application, curie, "sentence")])
        assert len(drawn) == 7
        assert np.allclose(np.max(np.stack(drawn) @ held.T, axis=1), 1.0, atol=HALF_PRECISION)

    def test_equals_may_stand_for_each_other(self) -> None:
        assert index_recall.count_matches([-0.9, -0.5, -0.5], [-0.9, -0.5, -0.5]) == 3
        assert index_recall.count_matches([-0.9, -0.5], [-0.9, -0.5 + 1e-8]) == 2
        assert index_recall.count_matches([-0.9, -0.5], [-0.9, -0.4]) == 1
        assert index_recall.count_matches([], []) == 0


class TestSearchBreadth:
    def test_queries_find_what_the_guard_has_seen_to(self, application: Application, poor: str) -> None:
        with application.database.read() as reader:
            before = measure_recall(reader, collections.find(reader, poor))
        maintain(application, least=0.75)
        with application.database.read() as reader:
            after = measure_recall(reader, collections.find(reader, poor))
            assert reader.scalar("SHOW hnsw.ef_search") == str(HNSW_EF_SEARCH)
        assert before < 0.65
        assert after > 0.7

    def test_a_greater_breadth_that_is_configured_holds(self, application: Application, poor: str) -> None:
        target = read(application, poor)
        vector = draw(1, seed=5)[0]
        with application.database.snapshot() as reader:
            reader.scalar("SELECT set_config('hnsw.ef_search', '600', true)")
            index_recall.measure_nearest(
                reader, index_recall.replace_breadth(target, "passage", 200), "passage", vector, exact=False
            )
            assert index_recall.breadth(reader) == 600
            index_recall.measure_nearest(
                reader, index_recall.replace_breadth(target, "passage", 800), "passage", vector, exact=False
            )
            assert index_recall.breadth(reader) == 800


class TestMeasurementLifetime:
    @pytest.fixture
    def measured(self, application: Application, poor: str) -> IndexRecall:
        maintain(application, least=0.75)
        return read(application, poor).index_recall["passage"]

    def measure_again(
        self, application: Application, name: str, least: float = 0.75, *, force: bool = False
    ) -> IndexRecall:
        maintain(application, least, force=force)
        return read(application, name).index_recall["passage"]

    def test_it_is_not_measured_twice(self, application: Application, poor: str, measured: IndexRecall) -> None:
        assert self.measure_again(application, poor) == measured
        assert self.measure_again(application, poor, least=0.5) == measured

    def test_it_is_measured_again_where_more_is_wanted(
        self, application: Application, poor: str, measured: IndexRecall
    ) -> None:
        assert self.measure_again(application, poor, least=measured.recall + 0.001).breadth > measured.breadth

    def test_it_is_measured_again_once_the_collection_has_grown(
        self, application: Application, poor: str, measured: IndexRecall
    ) -> None:
        grow(application, poor, ROWS // 5, seed=20)
        assert self.measure_again(application, poor) == measured
        grow(application, poor, ROWS // 5, seed=30)
        assert self.measure_again(application, poor).rows == ROWS + 2 * (ROWS // 5)

    def test_an_index_built_anew_is_measured_anew(
        self, application: Application, poor: str, measured: IndexRecall, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert self.measure_again(application, poor, force=True).measured_at > measured.measured_at

    def test_it_is_measured_again_after_a_week(
        self, application: Application, poor: str, measured: IndexRecall
    ) -> None:
        long_ago = (datetime.now(UTC) - timedelta(days=8)).isoformat()
        with application.database.write() as writer:
            old = IndexRecall(measured.recall, measured.breadth, measured.configured, measured.rows, long_ago)
            collections.set_index_recall(writer, read(application, poor), "passage", old)
        assert self.measure_again(application, poor).measured_at >= measured.measured_at

    def test_recall_measurement_of_a_dropped_index_is_discarded(
        self, application: Application, poor: str, measured: IndexRecall
    ) -> None:
        target = read(application, poor)
        with application.database.write() as writer:
            collections.record_indexed(writer, target.id, [])
            collections.set_index_recall(writer, target, "passage", measured)  # too late
        assert read(application, poor).index_recall == {}
