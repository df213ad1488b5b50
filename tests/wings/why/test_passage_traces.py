"""What a trace says of passages: duplicates, a reranker's factor, and the same when it is read again."""

import pytest

from engram.composition.container import Application
from engram.core.ranking.reranking import TRUST
from engram.services.question.query import Query
from tests.services.question.test_candidates import ask as ask_for_text
from tests.services.question.test_candidates import doubled
from tests.services.question.test_reranking import TOWNS, Start, ask, scores, server, start, towns
from tests.support.model_server import ModelServer

__all__ = ["doubled", "server", "start", "towns"]


def test_passages_are_read_again_as_they_were_traced(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    asked = Query(text="Where was Marie Curie born in 1867?", scope=scope, include=frozenset({"trace"}))
    answer = application.answers.question.serve(asked)
    read = application.answers.episodes.read(scope, answer.query_id)
    assert answer.trace is not None
    assert answer.trace.passages
    assert read.trace == answer.trace


def test_duplicates_have_the_rank_of_what_stands_for_them(application: Application, doubled: str) -> None:
    answer = ask_for_text(application, doubled, include=frozenset({"trace"}))
    assert answer.trace is not None
    assert answer.trace.passages is not None
    assert [row.passage_id for row in answer.trace.passages] == [hit.passage_id for hit in answer.passages]
    assert all(row.rank_without_memory is not None for row in answer.trace.passages)


def test_reranker_log_odds_are_a_visible_feature(start: Start, server: ModelServer, towns: str) -> None:
    with start(reranker_url=None) as services:
        plain = scores(ask(services, towns, top_k=12))
    with start() as services:
        answer = ask(services, towns, top_k=12, include=frozenset({"trace"}))
        assert answer.trace is not None
        assert answer.trace.passages is not None
        for row in answer.trace.passages:
            seen = row.features["reranker"]
            assert seen.weight == pytest.approx(TRUST)
            assert seen.value == pytest.approx(4.595 if row.passage_id == "Towng" else -4.595, abs=1e-3)
            assert row.score == pytest.approx(plain[row.passage_id] + seen.weight * seen.value, abs=1e-6)
            assert row.score == pytest.approx(
                sum(one.value * one.weight for one in row.features.values()), abs=1e-6
            )
        again = services.answers.episodes.read(services.auth.access.scope(towns), answer.query_id)
        assert again.trace == answer.trace
    assert {len(request.json["documents"]) for request in server.requests} == {len(TOWNS)}
    assert server.requests[0].json["documents"][0].startswith("Towna\nTowna lies on")
