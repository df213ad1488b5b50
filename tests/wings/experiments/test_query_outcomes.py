"""Pages of answered queries with what verdicts say of them."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from engram.composition.container import Application
from engram.wings.experiments.storage import query_outcomes
from tests.conftest import Ingest
from tests.support import state


def page(application: Application, name: str, **bounds: Any) -> Any:
    with application.database.read() as reader:
        return query_outcomes.page(
            reader,
            state.collection_id(application, name),
            **(
                {"since": None, "before": None, "after": query_outcomes.BEGINNING, "generation_threshold": 0.5}
                | bounds
            ),
        )


def add_episode(application: Application, name: str, *shown: str) -> UUID:
    ids = state.passages(application, name)
    return state.add_episode(application, name, "Where?", [], shown=[ids[passage] for passage in shown])


def find_first_sentence(application: Application, name: str, passage: str) -> int:
    return next(iter(state.sentences(application, name, passage).values()))


def test_a_collection_without_queries_has_no_page(application: Application, curie: str) -> None:
    assert page(application, curie) == []


def test_pages_follow_each_other_in_the_order_of_the_answers(
    application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_outcomes, "PAGE", 2)
    queries = [add_episode(application, curie) for _ in range(5)]
    found, after = [], query_outcomes.BEGINNING
    while rows := page(application, curie, after=after):
        assert len(rows) <= 2
        found += [row.id for row in rows]
        after = rows[-1].created_at, rows[-1].id
    assert found == queries


def test_bounds_take_in_the_first_moment_and_leave_out_the_last(application: Application, curie: str) -> None:
    queries = [add_episode(application, curie) for _ in range(3)]
    times = [row.created_at for row in page(application, curie)]
    assert [row.id for row in page(application, curie, since=times[1])] == queries[1:]
    assert [row.id for row in page(application, curie, before=times[1])] == queries[:1]
    assert page(application, curie, since=datetime(2100, 1, 1, tzinfo=UTC)) == []


def test_queries_of_other_collections_are_not_there(application: Application, curie: str, ingest: Ingest) -> None:
    other = f"{curie}-other"
    ingest({"id": "curie", "text": "Marie Curie was born in Warsaw."}, into=other)
    theirs, ours = add_episode(application, other, "curie"), add_episode(application, curie, "curie")
    state.judge(application, other, theirs, [find_first_sentence(application, other, "curie")], wait=True)
    (row,) = page(application, curie)
    assert (row.id, row.ever_judged, row.judged, row.success) == (ours, False, False, None)


def test_figures_are_of_the_passages_that_the_verdict_names(application: Application, curie: str) -> None:
    query = add_episode(application, curie, "tokyo", "warsaw", "curie")
    named = [find_first_sentence(application, curie, passage) for passage in ("warsaw", "vistula")]
    state.judge(application, curie, query, named, wait=True, generation_score=0.5)
    (row,) = page(application, curie)
    assert (row.judged, row.success, row.generated) == (True, 1.0, 1.0)
    assert row.recall == 1 / 2  # warsaw of warsaw and vistula
    assert row.reciprocal_rank == 1 / 2  # warsaw came second
    (stricter,) = page(application, curie, generation_threshold=0.6)
    assert stricter.generated == 0.0


def test_last_applied_verdict_decides_the_outcome(application: Application, curie: str) -> None:
    query = add_episode(application, curie, "curie")
    sentence = find_first_sentence(application, curie, "curie")
    state.judge(application, curie, query, [sentence], wait=True)
    state.judge(application, curie, query, retrieval_success=False)
    (waiting,) = page(application, curie)
    assert (waiting.ever_judged, waiting.judged, waiting.success) == (True, True, 1.0)
    state.judge(application, curie, query, retrieval_success=False, wait=True)
    (row,) = page(application, curie)
    assert (row.success, row.recall, row.reciprocal_rank) == (0.0, None, None)


def test_a_passage_that_is_gone_is_neither_found_nor_missed(application: Application, curie: str) -> None:
    query = add_episode(application, curie, "tokyo", "curie")
    named = [find_first_sentence(application, curie, passage) for passage in ("curie", "vistula")]
    state.judge(application, curie, query, named, wait=True)
    application.corpus.ingest.delete_passage(application.auth.access.scope(curie), "vistula")
    (row,) = page(application, curie)
    assert (row.recall, row.reciprocal_rank) == (1.0, 1 / 2)
