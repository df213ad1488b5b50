"""A question to several collections: one list, an episode in each, and verdicts on each one's passages."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any
from unittest.mock import patch

import pytest

from engram.api.refusals import Refusals
from engram.api.throttle import Bounds, Throttle
from engram.composition.container import Application
from engram.services.answers.joint_answers import MOST_COLLECTIONS, SEARCHES_AT_ONCE
from engram.services.auth.rate_limits import Rates
from engram.services.encoders.encoder import Encoder
from engram.services.question.pipeline import QuestionPipeline
from engram.services.question.query import Query
from engram.storage.rate_buckets import Buckets
from tests.conftest import Ingest
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born, and what does the Louvre show?"
LOUVRE = {"id": "louvre", "title": "Louvre", "text": "The Louvre shows the Mona Lisa. The Louvre is in Paris."}


@pytest.fixture
def paris(ingest: Ingest, curie: str) -> str:
    ingest(LOUVRE, into=f"{curie}-paris")
    return f"{curie}-paris"


def ask(http: TestClient, **more: Any) -> dict[str, Any]:
    response = http.post("/query", json={"query": QUESTION} | more)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_passages_of_all_are_in_one_list(http: TestClient, curie: str, paris: str) -> None:
    answer = ask(http, collections=[curie, paris], top_k=6, include=["trace"])
    alone = {name: ask(http, collection=name) for name in (curie, paris)}
    assert len(answer["passages"]) == 6
    assert {hit["collection"] for hit in answer["passages"]} == {curie, paris}
    assert [one["collection"] for one in answer["collections"]] == [curie, paris]
    assert all(one["trace"] is not None for one in answer["collections"])
    assert answer["sufficiency"] == max(one["sufficiency"] for one in alone.values())
    for name, single in alone.items():
        own = [hit["passage_id"] for hit in answer["passages"] if hit["collection"] == name]
        assert own == [hit["passage_id"] for hit in single["passages"]][: len(own)]
        stored = http.get(f"/queries/{answer['query_id']}", params={"collection": name}).json()
        assert [hit["passage_id"] for hit in stored["passages"]] == own


def test_a_verdict_teaches_the_collection_that_it_names(
    http: TestClient, application: Application, curie: str, paris: str
) -> None:
    answer = ask(http, collections=[paris, curie], top_k=6)
    judged = next(hit for hit in answer["passages"] if hit["collection"] == paris)
    verdict = {
        "query_id": answer["query_id"],
        "collection": paris,
        "supporting": [judged["sentences"][0]["sentence_id"]],
        "wait": True,
    }
    receipt = http.post("/feedback", json=verdict, headers={"idempotency-key": answer["query_id"]}).json()
    assert (receipt["collection"], receipt["status"]) == (paris, "applied")
    assert receipt["changes"]
    assert http.get("/feedback", params={"collection": curie}).json()["feedback"] == []


def test_the_list_is_ordered_by_probability(application: Application, curie: str, paris: str) -> None:
    scopes = [application.auth.access.scope(name) for name in (curie, paris)]
    joint = application.answers.joint.serve([Query(text=QUESTION, scope=scope) for scope in scopes])
    sufficiency = [one.sufficiency or 0 for one in joint.answers]
    values = [hit.score + math.log(sufficiency[at] / (1 - sufficiency[at])) for at, hit in joint.passages]
    assert values == sorted(values, reverse=True)
    by_rank = application.answers.joint.serve(
        [Query(text=QUESTION, scope=scope, strategy="lexical") for scope in scopes]
    )
    assert {place for place, _ in by_rank.passages[:2]} == {0, 1}


def test_the_question_is_embedded_once(application: Application, curie: str, paris: str) -> None:
    queries = [Query(text=QUESTION, scope=application.auth.access.scope(name)) for name in (curie, paris)]
    with patch.object(Encoder, "embed_both", autospec=True, side_effect=Encoder.embed_both) as embed:
        application.answers.joint.serve(queries)
    assert embed.call_count == 1


def test_all_questions_share_the_searches_at_once_and_none_begins_after_a_failure(
    application: Application, curie: str
) -> None:
    scope = application.auth.access.scope(curie)
    queries = [Query(text=QUESTION, scope=scope)] * MOST_COLLECTIONS
    begun: list[int] = []
    running = 0

    def fail(*_: object) -> None:
        nonlocal running
        running += 1
        begun.append(running)
        time.sleep(0.05)
        running -= 1
        raise LookupError

    with patch.object(QuestionPipeline, "retrieve", side_effect=fail), ThreadPoolExecutor(4) as asking:
        failed = [asking.submit(copy_context().run, application.answers.joint.serve, queries) for _ in range(4)]
        assert {type(one.exception()) for one in failed} == {LookupError}
    assert running == 0
    assert max(begun) <= SEARCHES_AT_ONCE
    assert len(begun) < len(failed) * MOST_COLLECTIONS


def test_each_collection_counts_towards_the_rate_limit(http: TestClient, curie: str, paris: str) -> None:
    rates = Rates(Buckets("redis://127.0.0.1:1/0"), 0.001, 3)  # which counts in this process alone
    limited = TestClient(Throttle(http.app, Bounds(0, 0, 0, 1.0), rates, Refusals(1, 0.0)))
    body = {"query": QUESTION, "collections": [curie, paris]}
    answers = [limited.post("/query", json=body) for _ in range(2)]
    assert [one.status_code for one in answers] == [200, 429]
    assert answers[0].headers["ratelimit"].startswith('"requests";r=1;')
    assert answers[1].json()["type"] == "urn:engram:problem:too-many-requests"
    assert answers[1].headers["retry-after"] == "1000"


@pytest.mark.parametrize(("collections", "status"), [(["{0}", "{0}"], 422), (["{0}", "never-made"], 404)])
def test_what_cannot_be_asked(http: TestClient, curie: str, collections: list[str], status: int) -> None:
    body = {"query": QUESTION, "collections": [name.format(curie) for name in collections]}
    assert http.post("/query", json=body).status_code == status
