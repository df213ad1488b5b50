"""Passages of several languages in one collection: what is recognised, what is given, and what finds what."""

from typing import Any

import pytest

from engram.composition.container import Application
from tests.support.strict_client import TestClient

PASSAGES = [
    {"id": "de", "text": "Die Häuser der alten Stadt wurden nach dem Brand von 1842 aus rotem Backstein gebaut."},
    {"id": "en", "text": "The houses of the old town were built of red brick after the great fire of 1842."},
    {"id": "zh", "text": "一八四二年大火之后，老城的房屋用红砖重建。产品编号GX-4411由工厂生产。"},
    {"id": "th", "text": "บ้านในเมืองเก่าสร้างด้วยอิฐแดงหลังไฟไหม้ใหญ่"},
    {"id": "hi", "text": "पुराने शहर के मकान बड़ी आग के बाद लाल ईंटों से बनाए गए थे।"},
]


def store(http: TestClient, application: Application, collection: str, *passages: dict[str, Any]) -> None:
    response = http.post("/passages", json={"collection": collection, "passages": list(passages)})
    assert response.status_code == 202, response.text
    application.jobs.runner.run_ready()


def read(http: TestClient, collection: str, passage: str) -> Any:
    return http.get(f"/passages/{passage}", params={"collection": collection}).json()


def ask(http: TestClient, collection: str, question: str) -> Any:
    body = {"collection": collection, "query": question, "arm": {"strategy": "lexical"}, "include": ["trace"]}
    return http.post("/query", json=body).json()


@pytest.fixture
def mixed(http: TestClient, application: Application, collection: str) -> str:
    store(http, application, collection, *PASSAGES)
    return collection


def test_each_passage_has_the_language_that_it_is_written_in(http: TestClient, mixed: str) -> None:
    listed = http.get(f"/collections/{mixed}/passages").json()["passages"]
    assert {passage["id"]: passage["language"] for passage in listed} == {one["id"]: one["id"] for one in PASSAGES}
    assert read(http, mixed, "th")["language"] == "th"
    assert http.get(f"/collections/{mixed}").json()["languages"] == dict.fromkeys(("de", "en", "zh", "th", "hi"), 1)
    http.delete("/passages/de", params={"collection": mixed})
    assert http.get(f"/collections/{mixed}").json()["languages"] == dict.fromkeys(("en", "zh", "th", "hi"), 1)


@pytest.mark.parametrize(
    ("question", "language", "passage"),
    [
        ("Welches Haus in welchen Städten wurde gebaut?", "de", "de"),
        ("Which house was built in the towns?", "en", "en"),
        ("老城的房屋是什么时候重建的？", "zh", "zh"),
        ("บ้านในเมืองเก่าสร้างด้วยอะไร", "th", "th"),
        ("पुराने शहर का मकान किससे बनाया गया था और कब?", "hi", "hi"),
        ("GX-4411", None, "zh"),
    ],
)
def test_a_question_finds_the_passage_of_its_words(
    http: TestClient, mixed: str, question: str, language: str | None, passage: str
) -> None:
    answer = ask(http, mixed, question)
    first = answer["passages"][0]
    assert (first["passage_id"], first["language"]) == (passage, passage)
    assert answer["trace"]["language"] == language
    assert answer["trace"]["lexical_terms"] > 0


def test_a_question_too_short_to_tell_has_the_language_of_its_collection(
    http: TestClient, application: Application, collection: str
) -> None:
    store(http, application, collection, PASSAGES[0])
    trace = ask(http, collection, "Backstein 1842")["trace"]
    assert (trace["language"], trace["lexical_terms"]) == ("de", 2)


def test_a_given_language_counts(http: TestClient, application: Application, collection: str) -> None:
    german, english = PASSAGES[:2]
    store(http, application, collection, german | {"language": "nl"}, english)
    assert [read(http, collection, one)["language"] for one in ("de", "en")] == ["nl", "en"]
    store(http, application, collection, german)
    assert read(http, collection, "de")["language"] == "de"


def test_a_collection_s_language_is_that_of_passages_that_come_without_one(
    http: TestClient, application: Application, collection: str
) -> None:
    german, english = PASSAGES[:2]
    store(http, application, collection, german)
    changed = http.patch(f"/collections/{collection}", json={"language": "fr"}).json()
    assert (changed["language"], changed["languages"]) == ("fr", {"de": 1})
    store(http, application, collection, german, english | {"language": "en"})
    assert [read(http, collection, one)["language"] for one in ("de", "en")] == ["fr", "en"]
    cleared = http.patch(f"/collections/{collection}", json={"language": None}).json()
    assert (cleared["language"], cleared["languages"]) == (None, {"fr": 1, "en": 1})
