"""Filters with operators, as routes take them."""

import json
from functools import partial
from typing import Any, Literal
from unicodedata import normalize

import pytest
from fastapi.testclient import TestClient

from engram.composition.container import Application
from tests.api.operations import METHODS

LONG = 2**63
JSON = {"content-type": "application/json"}
Form = Literal["NFC", "NFD"]


@pytest.mark.parametrize(
    "wrong", [{"n": {"$near": 5}}, {"$nor": [{"n": 1}]}, {"n": LONG}, {"n": {"$lt": LONG}}], ids=str
)
def test_wrong_filters_are_refused_wherever_one_filters(http: TestClient, curie: str, wrong: Any) -> None:
    asked = {"collection": curie, "query": "Who?", "filter": wrong}
    for path, body in (
        ("/query", asked),
        ("/queries:batch", {"queries": [asked]}),
        ("/query/compare", asked),
        ("/answer", asked),
        ("/sessions", {"collection": curie, "question": "Who?", "filter": wrong}),
    ):
        if path not in METHODS:  # its wing is off
            continue
        answer = http.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
        assert answer.status_code == 422, path
        assert answer.json()["detail"], path


def test_a_long_whole_number_of_metadata_is_refused_not_rounded(
    http: TestClient, application: Application, collection: str
) -> None:
    line = f'{{"id": "a", "text": "Ada.", "metadata": {{"n": {10 * LONG}}}}}'
    whole = http.post(
        "/passages",
        content=f'{{"collection": "{collection}", "passages": [{line}]}}',
        headers={"content-type": "application/json"},
    )
    assert whole.status_code == 422
    assert "64 bits" in whole.json()["detail"]
    lines = http.post(
        f"/passages?collection={collection}", content=line, headers={"content-type": "application/x-ndjson"}
    )
    application.jobs.runner.run_ready()
    assert "64 bits" in http.get(lines.json()["status_url"]).text


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("stored_form", ["NFC", "NFD"])
def test_spelling_of_marks_makes_no_difference(
    http: TestClient, application: Application, collection: str, stored_form: Form, form: Form
) -> None:
    """ "ü" may come as one character or as u and dots: in metadata, filters and the text of a verdict."""
    stored, asked = (partial(normalize, one) for one in (stored_form, form))
    sentence = "Ötzi was found by Erika Simon in the Ötztal."
    passage = {"id": "otzi", "text": stored(sentence), "metadata": {stored("Tal"): stored("Ötztal")}}
    sent = http.post("/passages", params={"collection": collection}, json={"passages": [passage]})
    assert sent.status_code == 202
    application.jobs.runner.run_ready()
    filters = [{"Tal": "Ötztal"}, {"Tal": {"$starts": "Ö"}}, {"$or": [{"Tal": {"$in": ["Ötztal"]}}]}]
    for document in filters:
        body = {"collection": collection, "query": asked("Who found Ötzi?"), "filter": document}
        composed = http.post("/query", content=asked(json.dumps(body, ensure_ascii=False)).encode(), headers=JSON)
        assert [hit["passage_id"] for hit in composed.json()["passages"]] == ["otzi"], document
    verdict = {
        "collection": collection,
        "query_id": composed.json()["query_id"],
        "supporting": [{"passage_id": "otzi", "text": asked(sentence)}],
    }
    judged = http.post("/feedback", json=verdict, headers={"idempotency-key": f"{stored_form}{form}"})
    assert judged.status_code == 202, judged.text
