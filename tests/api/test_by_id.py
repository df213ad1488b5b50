"""What is found by its id alone, several questions in one request, and ids and names where people put them."""

import uuid
from typing import Any

import pytest

from engram.composition.container import Application
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"


def post_query(http: TestClient, collection: str, **more: Any) -> dict[str, Any]:
    answer = http.post("/query", json={"query": QUESTION, "collection": collection} | more)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def post_verdict(http: TestClient, collection: str, query_id: str, **more: Any) -> dict[str, Any]:
    body = {"query_id": query_id, "collection": collection, "none_helped": True, "wait": True} | more
    answer = http.post("/feedback", json=body, headers={"idempotency-key": str(uuid.uuid4())})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


class TestIdsWithoutCollection:
    def test_a_query_and_a_verdict(self, http: TestClient, curie: str) -> None:
        query = post_query(http, curie)["query_id"]
        found = http.get(f"/queries/{query}").json()
        assert found == http.get(f"/queries/{query}", params={"collection": curie}).json()
        assert found["collection"] == curie
        event = post_verdict(http, curie, query)["feedback_id"]
        assert http.get(f"/feedback/{event}").json()["collection"] == curie

    def test_a_job_is_read_and_cancelled(self, http: TestClient, collection: str) -> None:
        job = http.post(
            "/passages", json={"collection": collection, "passages": [{"id": "a", "text": "A."}]}
        ).json()
        assert http.get(f"/jobs/{job['job_id']}").json()["collection"] == collection
        assert http.post(f"/jobs/{job['job_id']}/cancel").json()["status"] == "cancelled"

    @pytest.mark.wing("sessions")
    def test_a_session_is_read_followed_gone_on_with_and_cancelled(self, http: TestClient, curie: str) -> None:
        body = {"collection": curie, "question": QUESTION, "planner": "caller"}
        path = f"/sessions/{http.post('/sessions', json=body).json()['session_id']}"
        went_on = http.post(f"{path}/rounds", json={"question": QUESTION, "wait": True}).json()
        assert (went_on["collection"], [one["queries"] for one in went_on["rounds"]]) == (curie, [[QUESTION]])
        assert http.get(path).json() == went_on
        assert http.get(f"{path}/events").text.startswith("event: round")
        assert http.delete(path).json() == went_on
        for where in ("no-such-collection", "default"):
            elsewhere = http.post(f"{path}/rounds", json={"question": QUESTION, "collection": where})
            assert elsewhere.status_code == 404

    def test_a_collection_that_is_named_is_the_only_one_looked_into(self, http: TestClient, curie: str) -> None:
        query = post_query(http, curie)["query_id"]
        for where in ("no-such-collection", "default"):
            assert http.get(f"/queries/{query}", params={"collection": where}).status_code == 404

    @pytest.mark.parametrize(
        "path", [f"/{what}/{uuid.UUID(int=0)}" for what in ("jobs", "queries", "sessions")] + ["/feedback/1"]
    )
    @pytest.mark.wing("sessions")
    def test_unknown_id_is_404(self, path: str, http: TestClient) -> None:
        answer = http.get(path.replace("/1", f"/{2**62}"))
        assert answer.status_code == 404
        assert answer.json()["detail"].startswith("There is no ")
        assert http.get(path.rsplit("/", 1)[0] + "/x").json()["detail"].count("path.") == 1

    def test_of_a_collection_and_its_copy_the_collection(
        self, http: TestClient, application: Application, collection: str
    ) -> None:
        body = {"collection": collection, "passages": [{"id": "a", "text": "A."}]}
        job = http.post("/passages", json=body).json()["job_id"]
        parameters = {"name": collection, "copy": f"{collection}-b", "job": job}
        with application.database.write() as writer:
            writer.execute(
                """
                INSERT INTO collection (name, encoder_model, encoder_fingerprint, encoder_dimension, past)
                SELECT %(copy)s, encoder_model, encoder_fingerprint, encoder_dimension,
                       jsonb_build_object('of', name)
                FROM collection WHERE name = %(name)s
                """,
                parameters,
            )
            writer.execute(
                """
                INSERT INTO job
                SELECT (jsonb_populate_record(job, jsonb_build_object('collection_id', copy.id))).*
                FROM job, collection copy WHERE job.id = %(job)s AND copy.name = %(copy)s
                """,
                parameters,
            )
        assert http.get(f"/jobs/{job}").json()["collection"] == collection
        with application.database.write() as writer:
            writer.execute("UPDATE collection SET past = NULL WHERE name = %(copy)s", parameters)
        refused = http.get(f"/jobs/{job}")
        assert refused.status_code == 422
        assert f"in each of {collection}, {collection}-b" in refused.json()["detail"]
        for name in (collection, f"{collection}-b"):
            assert http.delete(f"/collections/{name}").status_code == 204


class TestBatch:
    def test_each_question_has_its_answer_or_its_problem(self, http: TestClient, curie: str) -> None:
        queries = [
            {"query": QUESTION, "collection": curie, "top_k": 2},
            {"query": QUESTION, "collection": "no-such-collection"},
            {"query": "What is the capital of Japan?", "collection": curie, "arm": {"strategy": "dense"}},
        ]
        first, second, third = http.post("/queries:batch", json={"queries": queries}).json()["answers"]
        assert first["answer"]["passages"][0]["passage_id"] == "curie"
        assert len(first["answer"]["passages"]) == 2
        assert (second["answer"], second["problem"]["status"]) == (None, 404)
        assert third["answer"]["passages"][0]["passage_id"] == "tokyo"
        assert third["problem"] is None
        assert post_verdict(http, curie, first["answer"]["query_id"])["status"] == "applied"


class TestPassages:
    def test_the_collection_stands_in_the_body(self, http: TestClient, collection: str) -> None:
        body = {"collection": collection, "passages": [{"id": "a", "text": "A."}]}
        assert http.post("/passages", json=body).json()["collection"] == collection
        again = http.post("/passages", json=body, params={"collection": collection})
        assert (again.status_code, again.json()["collection"]) == (202, collection)
        other = http.post("/passages", json=body, params={"collection": "another"})
        assert other.status_code == 422
        assert "the query says 'another'" in other.json()["detail"]

    def test_numbers_are_ids_and_unknown_fields_are_named(
        self, http: TestClient, application: Application, collection: str
    ) -> None:
        lines = b'{"id": 17, "text": "Seventeen is prime."}\n{"id": true, "text": "No."}\n{"id": "b", "txt": "No."}'
        job = http.post(
            "/passages",
            content=lines,
            params={"collection": collection},
            headers={"content-type": "application/x-ndjson"},
        ).json()["job_id"]
        application.jobs.runner.run_ready()
        done = http.get(f"/jobs/{job}").json()
        assert (done["created"], done["rejected"]) == (1, 2)
        assert "id: " in done["errors"][0]["reason"]
        assert "txt: is no field here; what is your own belongs into metadata" in done["errors"][1]["reason"]
        (listed,) = http.get(f"/collections/{collection}/passages").json()["passages"]
        assert listed["id"] == "17"

    def test_a_list_in_pages(self, http: TestClient, curie: str) -> None:
        path = f"/collections/{curie}/passages"
        first = http.get(path, params={"limit": 3}).json()
        assert [one["id"] for one in first["passages"]] == ["curie", "polonium", "tokyo"]
        rest = http.get(path, params={"limit": 3, "after": first["next_after"]}).json()
        assert [one["id"] for one in rest["passages"]] == ["vistula", "warsaw"]
        assert rest["next_after"] is None

    @pytest.mark.parametrize(
        ("path", "rows"),
        [
            ("/access/keys", "keys"),
            ("/documents?collection={}", "documents"),
            ("/feedback?collection={}", "feedback"),
            ("/feedback?collection={}&before=9000000000", "feedback"),
            ("/collections/{}/jobs", "jobs"),
            ("/collections/{}/judges", "judges"),
            ("/collections/{}/passages", "passages"),
        ],
    )
    def test_a_page_with_the_last_row_is_the_last(
        self, http: TestClient, application: Application, curie: str, path: str, rows: str
    ) -> None:
        for number in range(2):
            http.post(
                "/access/keys", json={"name": f"key {number}", "scopes": {curie: ["read"]}}
            ).raise_for_status()
            line = {"id": f"note{number}.txt#1", "document": f"note{number}.txt", "text": "The office is in Basel."}
            http.post("/passages", json={"collection": curie, "passages": [line]}).raise_for_status()
            post_verdict(http, curie, post_query(http, curie)["query_id"], judge=f"judge {number}")
        application.jobs.runner.run_ready()

        def load(limit: int) -> tuple[int, list[Any]]:
            page = http.get(f"{path.format(curie)}{'&' if '?' in path else '?'}limit={limit}").json()
            return len(page[rows]), [value for name, value in page.items() if name.startswith("next_") and value]

        count, following = load(1_000)
        assert count >= 2
        assert following == []
        assert load(count) == (count, [])
        shown, following = load(count - 1)
        assert (shown, len(following)) == (count - 1, 1)

    def test_a_sentence_s_id_as_text(self, http: TestClient, curie: str) -> None:
        answer = post_query(http, curie)
        sentence = answer["passages"][0]["sentences"][0]["sentence_id"]
        body = {"none_helped": False, "supporting": [str(sentence)]}
        receipt = post_verdict(http, curie, answer["query_id"], **body)
        assert {change["sentence_id"] for change in receipt["changes"]} == {sentence}
