"""Times of an ingest by the model: a sentence that it fails keeps the time of the rules, and the job says so."""

import json
from typing import Any

import pytest

from engram.composition.container import Application
from tests.support.modelled import ModelApplications
from tests.support.openai_server import Reply
from tests.support.strict_client import TestClient

LINES = [
    {"id": "curie", "text": "Marie Curie discovered polonium in 1898. She moved to Paris in her youth."},
    {"id": "vistula", "text": "The Vistula froze in 1929."},
]


def ingest(client: TestClient, collection: str) -> dict[str, Any]:
    """The job of the lines at its end."""
    accepted = client.post(f"/passages?collection={collection}", json={"passages": LINES})
    assert accepted.status_code == 202
    client.app.state.services.jobs.runner.run_ready()  # type: ignore[attr-defined]
    job: dict[str, Any] = client.get(accepted.json()["status_url"]).json()
    return job


def times(application: Application, collection: str) -> dict[str, str | None]:
    scope = application.auth.access.scope(collection)
    with application.database.read() as reader:
        rows = reader.rows(
            """
            SELECT s.text, t.text AS time
            FROM sentence s LEFT JOIN time_expression t
                ON (t.collection_id, t.id) = (s.collection_id, s.time_expression_id)
            WHERE s.collection_id = %(collection)s
            """,
            {"collection": scope.collection.id},
        )
    return {row.text: row.time for row in rows}


def answer_date(request: dict[str, Any]) -> str:
    text = request["messages"][1]["content"]
    return json.dumps({"time_constraint": "in her youth" if "in her youth" in text else None})


@pytest.mark.parametrize(
    ("failing", "detail"),
    [
        (Reply("The prompt was filtered.", status=400), "The prompt was filtered"),
        (Reply("I'm sorry, I can't help with that."), "no JSON object in the reply"),
    ],
)
def test_one_refused_sentence_goes_by_rules_and_the_job_says_so(
    modelled: ModelApplications, collection: str, application: Application, failing: Reply, detail: str
) -> None:
    def fail_on_polonium(request: dict[str, Any]) -> str | Reply:
        return failing if "polonium" in request["messages"][1]["content"] else answer_date(request)

    job = ingest(modelled(fail_on_polonium, llm_time_extraction=True), collection)

    assert (job["status"], job["created"], job["error"]) == ("succeeded", 2, None)
    warning = job["result"]["warnings"]["time-by-rules"]
    assert warning["count"] == 1
    assert detail in warning["detail"]
    assert times(application, collection) == {
        "Marie Curie discovered polonium in 1898.": "1898",
        "She moved to Paris in her youth.": "in her youth",
        "The Vistula froze in 1929.": None,  # as the model says
    }


def test_an_endpoint_that_is_away_is_not_asked_at_each_sentence(
    modelled: ModelApplications, collection: str, application: Application
) -> None:
    client = modelled(lambda _: Reply("overloaded", status=503), llm_time_extraction=True)

    job = ingest(client, collection)

    assert job["status"] == "succeeded"
    assert job["result"]["warnings"]["time-by-rules"]["count"] == 3
    assert len(modelled.server.requests) == 1
    assert times(application, collection)["The Vistula froze in 1929."] == "1929"


def test_a_model_that_refuses_every_sentence_is_left_alone(modelled: ModelApplications, collection: str) -> None:
    client = modelled(lambda _: "I'm sorry, I can't help with that.", llm_time_extraction=True)
    text = " ".join(f"The Vistula froze in {year}." for year in range(1900, 1930))
    accepted = client.post(f"/passages?collection={collection}", json={"passages": [{"id": "ice", "text": text}]})
    client.app.state.services.jobs.runner.run_ready()  # type: ignore[attr-defined]
    job = client.get(accepted.json()["status_url"]).json()
    assert job["result"]["warnings"]["time-by-rules"]["count"] == 30
    assert len(modelled.server.requests) == 2 * 10  # each is asked for once more


def test_a_time_that_no_word_of_the_sentence_gives_is_none_of_it(
    modelled: ModelApplications, collection: str, application: Application
) -> None:
    """A weak model copies the prompt's own example."""
    client = modelled(lambda _: '{"time_constraint": "before the merger"}', llm_time_extraction=True)

    job = ingest(client, collection)

    assert job["result"]["warnings"]["time-by-rules"]["count"] == 3
    assert times(application, collection)["The Vistula froze in 1929."] == "1929"


def test_without_failures_there_is_no_warning(modelled: ModelApplications, collection: str) -> None:
    assert ingest(modelled(answer_date, llm_time_extraction=True), collection)["result"] is None
