"""Names and titles that complete what is typed."""

from tests.conftest import Ingest
from tests.support.strict_client import TestClient

SUGGESTED = {
    "po": {"Poland", "Polonium"},
    "The VIST": {"Vistula"},
    "tokyo b": {"Tokyo Bay"},
    "p": set(),
    "x-": set(),  # past questions are none of it
    "%": set(),
    "": set(),
}


def test_names_begin_with_the_prefix(http: TestClient, curie: str) -> None:
    http.post("/query", json={"collection": curie, "query": "What are X-rays?"}).raise_for_status()
    path = f"/collections/{curie}/suggestions"
    found = {prefix: http.get(path, params={"prefix": prefix}).json()["suggestions"] for prefix in SUGGESTED}
    assert {prefix: set(names) for prefix, names in found.items()} == SUGGESTED
    assert http.get(path, params={"prefix": "po", "limit": 1}).json()["suggestions"] == ["Poland"]


def test_only_names_that_a_person_may_read_are_suggested(http: TestClient, ingest: Ingest, collection: str) -> None:
    ingest({"id": "pay", "text": "Marie Curie earns 7,000 crowns.", "readers": ["user:ana"]})
    path, asked = f"/collections/{collection}/suggestions", {"prefix": "mar"}
    found = {name: http.get(path, params=asked | {"as": f"user:{name}"}).json() for name in ("ana", "bo")}
    assert [found[name]["suggestions"] for name in ("ana", "bo")] == [["marie curie"], []]
