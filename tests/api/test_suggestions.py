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


def test_traditional_and_simplified_chinese_complete_each_other(
    http: TestClient, ingest: Ingest, collection: str
) -> None:
    titles = {"臺灣鐵路", "台湾高铁", "東京"}
    ingest(*({"id": title, "title": title, "text": "列車由北往南。", "language": "zh"} for title in titles))
    suggested = {
        "台湾": {"臺灣鐵路", "台湾高铁"},
        "臺灣": {"臺灣鐵路", "台湾高铁"},
        "台灣鐵": {"臺灣鐵路"},
        "东京": {"東京"},
        "東西": set(),
        "台湾高铁臺灣": set(),
    }
    path = f"/collections/{collection}/suggestions"
    found = {prefix: http.get(path, params={"prefix": prefix}).json()["suggestions"] for prefix in suggested}
    assert {prefix: set(names) for prefix, names in found.items()} == suggested
