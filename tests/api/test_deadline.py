"""No request keeps a thread for longer than requests may."""

import pytest

from engram.composition.container import Application
from engram.context import deadline
from engram.context.errors import DeadlineError
from engram.providers.language.language_protocol import NAMES_PER_QUESTION, NAMES_PER_SENTENCE
from engram.runtime.api_process import create_app
from engram.services.question.query import Query
from tests.api.conftest import Variant
from tests.api.operations import BODIES, assert_problem
from tests.conftest import Ingest
from tests.support import threads
from tests.support.strict_client import TestClient

TIMED = [path for path in ("/query", "/query/compare", "/answer", "/expand") if path in BODIES]
NAMES = [f"Person{chr(65 + at // 676)}{chr(65 + at // 26 % 26).lower()}{chr(97 + at % 26)}" for at in range(5_000)]


@pytest.mark.parametrize("path", TIMED)
def test_a_request_that_has_no_time_left_is_given_up(path: str, variant: Variant, curie: str) -> None:
    hasty = variant(query_timeout_seconds=1e-6, llm_base_url="http://127.0.0.1:1/v1")
    client = TestClient(create_app(hasty), raise_server_exceptions=False)
    answer = client.post(path, json=BODIES[path] | {"collection": curie})
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:engram:problem:deadline")
    assert_problem(answer)
    assert answer.headers["retry-after"]
    assert client.get("/collections").status_code == 200, "only the request itself had a deadline"


def test_a_statement_that_runs_is_cancelled(application: Application) -> None:
    """And its connection is good for nobody: the cancellation may come late."""
    caught: list[BaseException] = []

    def sleep() -> None:
        deadline.begin(0.3)
        try:
            with application.database.read() as reader:
                reader.scalar("SELECT pg_sleep(60)")
        except DeadlineError as error:
            caught.append(error)

    thread = threads.make_thread(sleep)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert len(caught) == 1
    for _ in range(20):
        with application.database.read() as reader:
            assert reader.scalar("SELECT 1") == 1


def test_a_sentence_is_linked_to_so_many_names(application: Application, ingest: Ingest, collection: str) -> None:
    text = "It was founded by " + ", ".join(NAMES[:1_000]) + "."
    ingest({"id": "crowd", "text": text, "sentences": [text]})
    scope = application.auth.access.scope(collection)
    with application.database.read() as reader:
        linked = reader.scalar(
            "SELECT count(*) FROM entity_sentence WHERE collection_id = %(c)s", {"c": scope.collection.id}
        )
    assert 1 < linked <= NAMES_PER_SENTENCE
    asked = Query(text=f"Who founded what {NAMES[0]} founded?", scope=scope)
    assert application.answers.question.answer(asked).passages[0].passage_id == "crowd"


def test_a_question_starts_from_so_many_names(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    plan = application.retrieval.retrieve.plan(Query(text="Who knows " + ", ".join(NAMES[:140]) + "?", scope=scope))
    assert 1 < len(plan.mentions) <= NAMES_PER_QUESTION
