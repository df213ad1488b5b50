"""Counts of passages by filter and field."""

from typing import Any

import pytest

from tests.conftest import Ingest
from tests.support.strict_client import TestClient

METADATA: list[dict[str, Any]] = [
    {"department": "hr", "year": 2024, "tags": ["a", "b", "a"]},
    {"department": "hr", "year": 2023, "tags": []},
    {"department": "it", "year": 2024, "tags": "a"},
    {"department": None, "year": 2024, "tags": ["b", None]},
    {},
]


@pytest.fixture
def counted(ingest: Ingest, collection: str) -> str:
    ingest(*({"id": str(n), "text": f"Text {n}.", "metadata": one} for n, one in enumerate(METADATA)))
    return collection


def count(http: TestClient, collection: str, **wanted: Any) -> dict[str, Any]:
    answer = http.post(f"/collections/{collection}/passages:count", json=wanted)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert body.pop("collection") == collection
    return body


def list_groups(counts: dict[str, Any]) -> list[tuple[Any, int]]:
    return [(group["value"], group["passages"]) for group in counts["groups"]]


def test_groups_are_the_values_of_a_field(http: TestClient, counted: str) -> None:
    assert count(http, counted) == {"passages": 5, "groups": [], "without": 0, "more": False}
    by_department = count(http, counted, by="department")
    assert list_groups(by_department) == [("hr", 2), ("it", 1)]
    assert (by_department["passages"], by_department["without"], by_department["more"]) == (5, 2, False)
    assert list_groups(count(http, counted, by="year")) == [(2024, 3), (2023, 1)]


def test_a_list_counts_once_for_each_element(http: TestClient, counted: str) -> None:
    by_tag = count(http, counted, by="tags")
    assert (list_groups(by_tag), by_tag["without"]) == ([("a", 2), ("b", 2)], 2)


def test_a_filter_narrows_what_is_counted(http: TestClient, counted: str) -> None:
    late = count(http, counted, by="department", filter={"year": {"$gte": 2024}})
    assert (late["passages"], list_groups(late), late["without"]) == (3, [("hr", 1), ("it", 1)], 1)
    none = count(http, counted, by="department", filter={"year": 1900})
    assert none == {"passages": 0, "groups": [], "without": 0, "more": False}


def test_the_largest_groups_come_first(http: TestClient, counted: str) -> None:
    first = count(http, counted, by="department", limit=1)
    assert (list_groups(first), first["more"], first["without"]) == ([("hr", 2)], True, 2)


def test_only_visible_passages_are_counted(http: TestClient, ingest: Ingest, collection: str) -> None:
    ingest(
        {"id": "open", "text": "Open.", "metadata": {"kind": "open"}, "readers": None},
        {"id": "pay", "text": "Paid.", "metadata": {"kind": "secret"}, "readers": ["user:ana"]},
    )
    ana, bo = (count(http, collection, by="kind", **{"as": [one]}) for one in ("user:ana", "user:bo"))
    assert (ana["passages"], list_groups(ana)) == (2, [("open", 1), ("secret", 1)])
    assert (bo["passages"], list_groups(bo)) == (1, [("open", 1)])
