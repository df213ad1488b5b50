"""Evolving keys over HTTP: seen, steered, and refused where there is nothing to see or steer."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.api.operations import assert_refused
from tests.conftest import Ingest
from tests.support import state
from tests.support.strict_client import TestClient

QUESTION = "Which river is the longest of its country?"
RIVER = {"method": "hyde", "text": "The longest river of the country flows past the capital into the sea."}
WATER = {"method": "facets", "text": "longest rivers, waterways, ships, sailing to the capital"}
Teach = Callable[..., dict[str, Any]]


@pytest.fixture
def teach(http: TestClient, curie: str) -> Teach:
    """Judges a question's evidence as found, with expansions; gives the receipt."""

    def send(*expansions: dict[str, str], passage: str = "vistula", **more: Any) -> dict[str, Any]:
        query = http.post("/query", json={"collection": curie, "query": QUESTION}).json()
        body = {"collection": curie, "query_id": query["query_id"], "wait": True}
        body |= {"supporting_passages": [passage], "expansions": list(expansions)} | more
        receipt = http.post("/feedback", json=body, headers={"idempotency-key": str(uuid4())})
        assert receipt.status_code == 200, receipt.text
        document: dict[str, Any] = receipt.json()
        return document

    return send


def rollback(http: TestClient, name: str, generation: Any) -> Any:
    return http.post(f"/collections/{name}/rollback", json={"generation": generation})


def test_keys_evolve_and_go_back(http: TestClient, curie: str, teach: Teach) -> None:
    standing = http.get(f"/collections/{curie}/keys").json()
    nothing = {
        "waiting": 0,
        "batch_events": 0,
        "batch_gain": 0.0,
        "best_gain": 0.0,
        "stale_batches": 0,
        "due": None,
    }
    assert standing == {"collection": curie, "generation": 0} | nothing
    gain = teach(RIVER)["keys"]["gain"]
    waiting = {"generation": 0, "waiting": 1, "batch_events": 1, "batch_gain": gain}
    assert http.get(f"/collections/{curie}/keys").json() == standing | waiting
    evolved = http.post(f"/collections/{curie}/evolve").json()
    assert (evolved["collection"], evolved["changed"], evolved["serving"]) == (curie, True, 1)
    made = evolved["generation"]
    named = ("number", "parent", "active", "reason", "events", "passages")
    assert [made[name] for name in named] == [1, 0, True, "requested", 1, 1]
    assert made["rules"].keys() == {"strength", "term_strength", "units", "capacity"}
    assert http.get(f"/collections/{curie}/keys").json() == standing | {"generation": 1}
    back = rollback(http, curie, 0)
    assert (back.status_code, back.json()) == (200, standing)
    page = http.get(f"/collections/{curie}/generations").json()
    assert page == {"collection": curie, "generations": [made | {"active": False}], "next_before": None}
    assert rollback(http, curie, 1).json()["generation"] == 1
    assert http.get(f"/collections/{curie}/generations").json()["generations"] == [made]


def test_repeated_evolution_changes_nothing(
    http: TestClient, application: Application, curie: str, teach: Teach
) -> None:
    nothing = {"collection": curie, "changed": False, "serving": 0, "generation": None}
    assert http.post(f"/collections/{curie}/evolve").json() == nothing
    teach(RIVER)
    http.post(f"/collections/{curie}/evolve")
    before = state.snapshot(application, curie, ("passage_key", "evolved_posting", "key_generation"))
    assert http.post(f"/collections/{curie}/evolve").json() == nothing | {"serving": 1}
    assert state.snapshot(application, curie, ("passage_key", "evolved_posting", "key_generation")) == before


def test_generations_are_listed_page_by_page(http: TestClient, curie: str, teach: Teach) -> None:
    for number in range(1, 6):
        teach(RIVER if number % 2 else WATER)
        assert http.post(f"/collections/{curie}/evolve").json()["serving"] == number
    seen: list[int] = []
    before: int | None = None
    while True:
        params = {"limit": 2} | ({} if before is None else {"before": before})
        page = http.get(f"/collections/{curie}/generations", params=params).json()
        seen += [made["number"] for made in page["generations"]]
        before = page["next_before"]
        if before is None:
            break
    assert seen == [5, 4, 3, 2, 1]


def test_a_key_with_what_is_behind_it(http: TestClient, curie: str, teach: Teach) -> None:
    given = teach(RIVER, judge="reader")
    http.post(f"/collections/{curie}/evolve")
    shown = http.get("/passages/vistula/key", params={"collection": curie}).json()
    assert (shown["passage_id"], shown["collection"], shown["generation"]) == ("vistula", curie, 1)
    assert (shown["evolved"], shown["key_generation"], shown["key_building"]) == (True, 1, "full")
    assert 0 < shown["displacement"] <= shown["displacement_bound"]
    assert shown["cosine"] == pytest.approx(1 - shown["displacement"] ** 2 / 2, abs=1e-5)
    (unit,) = shown["units"]
    assert (unit["method"], unit["text"], unit["in_key"]) == (RIVER["method"], RIVER["text"], True)
    served, added = ({term["term"]: term["increment"] for term in found["terms"]} for found in (shown, unit))
    assert len(served) == shown["term_count"] > 0
    assert added == pytest.approx(served, abs=1e-5)
    (credit,) = given["keys"]["credits"]
    assert credit == {"passage_id": "vistula", "unit_id": unit["unit_id"], "gain": credit["gain"], "weight": 1.0}
    assert unit["score"] == credit["gain"]
    assert unit["events"] == [
        {
            "feedback_id": given["feedback_id"],
            "judge": "reader",
            "query_id": given["query_id"],
            "question": QUESTION,
            "gain": credit["gain"],
            "weight": 1.0,
            "status": "taken in",
            "generation": 1,
        }
    ]
    base = http.get("/passages/tokyo/key", params={"collection": curie}).json()
    assert (base["evolved"], base["key_generation"], base["units"]) == (False, None, [])
    limited = http.get("/passages/vistula/key", params={"collection": curie, "limit": 1}).json()
    assert limited == shown


def test_a_verdict_says_what_its_expansions_came_to(http: TestClient, curie: str, teach: Teach) -> None:
    given = teach(RIVER, WATER)
    assert (given["keys"]["gate"], given["keys"]["status"], given["keys"]["generation"]) == (
        "retrieval",
        "waiting",
        None,
    )
    assert given["keys"]["credit_count"] == len(given["keys"]["credits"]) == 2
    http.post(f"/collections/{curie}/evolve")

    def read(receipt: dict[str, Any]) -> Any:
        return http.get(f"/feedback/{receipt['feedback_id']}", params={"collection": curie}).json()["keys"]

    assert read(given) == given["keys"] | {"status": "taken in", "generation": 1}
    rollback(http, curie, 0)
    assert read(given) == given["keys"] | {"status": "rolled back", "generation": 1}
    refused = {"gate": "none", "gain": 0.0, "status": None, "generation": None, "credits": [], "credit_count": 0}
    assert read(teach(RIVER, retrieval_success=False)) == refused
    assert read(teach(RIVER, retrieval_success=False, generation_score=0.9))["gate"] == "generation"
    assert read(teach()) is None
    listed = http.get("/feedback", params={"collection": curie}).json()["feedback"]
    assert {row["keys"] for row in listed} == {None}


@pytest.mark.parametrize("generation", [None, -1, 2**63, 10**400, 1.5, "1", True, [], {}])
def test_invalid_generation_is_refused(http: TestClient, curie: str, teach: Teach, generation: Any) -> None:
    teach(RIVER)
    http.post(f"/collections/{curie}/evolve")
    response = rollback(http, curie, generation)
    assert response.status_code == 422
    assert_refused(response)
    assert http.get(f"/collections/{curie}/keys").json()["generation"] == 1


def test_missing_keys_and_collections_are_404(http: TestClient, curie: str, collection: str) -> None:
    absent = f"{collection}-else"
    unknown = [
        rollback(http, curie, 1),
        rollback(http, curie, 2**63 - 1),
        rollback(http, absent, 0),
        http.post(f"/collections/{absent}/evolve"),
        http.get(f"/collections/{absent}/keys"),
        http.get(f"/collections/{absent}/generations"),
        http.get("/passages/nowhere/key", params={"collection": curie}),
        http.get("/passages/curie/key", params={"collection": absent}),
    ]
    for response in unknown:
        assert response.status_code == 404, response.request.url
        assert_refused(response)
    assert "no key generation 1" in unknown[0].json()["detail"]


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/passages/curie/key", {"limit": 0}),
        ("/passages/curie/key", {"limit": 101}),
        ("/passages/curie/key", {"collection": "a b"}),
        ("/passages//key", {}),
        ("/passages/%00/key", {}),
        ("/collections/{}/generations", {"before": 0}),
        ("/collections/{}/generations", {"before": 2**63}),
        ("/collections/{}/generations", {"before": "x"}),
        ("/collections/{}/generations", {"limit": 1_001}),
        ("/collections/a b/keys", {}),
        ("/collections/-/generations", {}),
    ],
)
def test_a_wrong_path_or_parameter_is_refused(
    http: TestClient, curie: str, path: str, params: dict[str, Any]
) -> None:
    response = http.get(path.format(curie), params={"collection": curie} | params)
    assert response.status_code == 422, response.text
    assert_refused(response)


def test_a_passage_whose_id_ends_like_a_key_route(http: TestClient, ingest: Ingest, collection: str) -> None:
    ids = ["a", "a/key", "a/key/key", "key", "/key", "/passages/key", "passages/key", "a/b"]
    ingest(*({"id": identity, "text": f"This is {identity}."} for identity in ids))
    params = {"collection": collection}

    def encode(identity: str) -> str:
        return identity.replace("/", "%2F")

    for identity in ids:
        assert http.get(f"/passages/{encode(identity)}", params=params).json()["id"] == identity
        assert http.get(f"/passages/{encode(identity)}/key", params=params).json()["passage_id"] == identity
    assert http.get("/passages/a/b", params=params).json()["id"] == "a/b"
    assert http.get("/passages/a/key", params=params).json()["passage_id"] == "a"
    assert http.get("/passages/a/key/key", params=params).json()["passage_id"] == "a/key"
    for path in ("/passages/a/key", "/passages/a%2Fkey/key"):
        response = http.delete(path, params=params)
        assert (response.status_code, response.headers["allow"]) == (405, "GET")
        assert_refused(response)
    assert http.delete("/passages/a%2Fkey", params=params).status_code == 204
    assert http.get("/passages/a%2Fkey", params=params).status_code == 404
    assert http.get("/passages/a", params=params).status_code == 200
