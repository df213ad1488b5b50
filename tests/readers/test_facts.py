"""Facts go by readers: one is seen by a source that is seen, and believed by such sources alone."""

import re
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.readers.conftest import Client, Put, state_facts
from tests.support.strict_client import TestClient

pytestmark = pytest.mark.wing("facts")
OPEN = {"id": "open", "title": "Ada Lovelace", "text": "Ada Lovelace was born in London. She married William King."}
HIDDEN = [
    {"id": "rival", "title": "Ada Lovelace", "text": "Ada Lovelace was born in Paris."},
    {"id": "same", "title": "ADA LOVELACE", "text": "ADA LOVELACE was born in LONDON."},
    {"id": "more", "title": "Ada Lovelace", "text": "Ada Lovelace died in Marylebone."},
]
UNSTABLE = re.compile(r'"[a-z_]*_?(id|at|ids)":("[^"]*"|\[[\d, ]*\]|\d+)|"(of_fact|collection)":("[^"]*"|\d+)')


@pytest.fixture
def make(put: Put, admin: TestClient) -> Any:
    """Makes a collection of these passages, which state facts."""

    def run(*passages: Mapping[str, Any]) -> str:
        name = f"facts-{uuid4().hex[:8]}"
        put(name, *passages)
        for passage in passages:
            state_facts(admin, name, passage)
        return name

    return run


@pytest.fixture
def docs(make: Any) -> str:
    return str(make(*(one | {"readers": ["group:hr"]} for one in reversed(HIDDEN)), OPEN))


def search(client: TestClient, collection: str, **more: Any) -> Any:
    body = {"query": "Where was Ada Lovelace born, and where did she die?", "collection": collection, **more}
    found = client.post("/facts/search", json=body)
    assert found.status_code == 200, found.text
    return found.json()


def objects(found: Any) -> dict[str, float]:
    return {one["object"].title(): one["belief"] for one in found["facts"]}


def read_all(client: TestClient, collection: str) -> list[str]:
    """What every route tells of the facts, without ids and times."""
    where = {"params": {"collection": collection}}
    found = search(client, collection)
    told = [search(client, collection, min_belief=0.6), search(client, collection, include_closed=True), found]
    for one in sorted(found["facts"], key=lambda one: str(one["object"])):
        told.append(client.get(f"/facts/{one['fact_id']}", **where).json())
    entity = client.get(f"/entities/{found['starts'][0]['entity_id']}", **where).json()
    told += [entity | {"facts": sorted(entity["facts"], key=lambda one: str(one["object"]))}]
    told.append(client.get("/predicates", **where).json())
    return [UNSTABLE.sub("-", str(one).replace("'", '"').replace('": ', '":')) for one in told]


def test_facts_are_those_of_a_collection_without_the_hidden_passages(
    docs: str, make: Any, client: Client, admin: TestClient
) -> None:
    alone = make(OPEN)
    strangers = client("group:staff", scopes=["query", "read"])
    put_nobody = make({"id": "other", "text": "Pisa lies on the Arno.", "readers": ["group:hr"]}, OPEN)
    assert objects(search(strangers, docs)) == objects(search(admin, alone))
    assert read_all(strangers, docs) == read_all(strangers, alone) == read_all(strangers, put_nobody)
    assert "Paris" in str(read_all(client("group:hr", scopes=["query", "read"]), docs))


def test_belief_is_by_visible_sources_as_readers_change(docs: str, client: Client, admin: TestClient) -> None:
    staff, hr = client("group:staff"), client("group:hr")
    where = {"params": {"collection": docs}}
    alone = objects(search(staff, docs))
    assert objects(search(hr, docs)) == objects(search(admin, docs))
    twice = objects(search(hr, docs))["London"]
    assert twice > alone["London"]
    (birth,) = {one["predicate"] for one in search(hr, docs)["facts"] if one["object"] == "Paris"}
    admin.put("/predicates", json={"collection": docs, "predicate": birth, "functional": True}).raise_for_status()
    assert objects(search(hr, docs))["London"] < twice
    assert objects(search(staff, docs)) == alone
    admin.patch("/passages/rival", json={"readers": ["group:staff"]}, **where).raise_for_status()
    assert objects(search(staff, docs))["London"] < alone["London"]
    admin.patch("/passages/open", json={"readers": []}, **where).raise_for_status()
    assert set(objects(search(staff, docs))) == {"Paris"}
    fact = search(admin, docs)["facts"][0]["fact_id"]
    admin.patch("/passages/rival", json={"readers": []}, **where).raise_for_status()
    missing = staff.get("/facts/999999", **where)
    for path in (f"/facts/{fact}", "/entities/999999"):
        assert staff.get(path, **where).status_code == missing.status_code == 404


def test_a_hidden_fact_is_judged_like_none_and_a_visible_one_for_all(
    docs: str, client: Client, admin: TestClient, local: TestClient
) -> None:
    staff, hr = client("group:staff"), client("group:hr")
    known = {one["object"].title(): one["fact_id"] for one in search(hr, docs)["facts"]}

    def judge(who: TestClient, **revision: Any) -> Any:
        body = {"collection": docs, "revisions": [revision]}
        return who.post("/facts/revise", json=body, headers={"idempotency-key": str(uuid4())})

    for fact in (known["Paris"], 999_999):
        for revision in (
            {"action": "contradict", "fact_id": fact},
            {"action": "supersede", "fact_id": known["London"], "by": fact},
        ):
            refused = judge(staff, **revision)
            assert (refused.status_code, refused.json()["detail"]) == (404, f"There is no fact {fact}.")
    before = objects(search(staff, docs))
    assert judge(hr, action="confirm", fact_id=known["London"], reason="Paris is wrong.").status_code == 200
    assert objects(search(staff, docs))["London"] > before["London"]
    ended = judge(local, action="supersede", fact_id=known["London"], by=known["Paris"])
    assert ended.status_code == 200, ended.text
    where = {"params": {"collection": docs}}
    closed = [who.get(f"/facts/{known['London']}", **where).json()["closed_reason"] for who in (hr, admin, staff)]
    assert closed == ["superseded", "superseded", None]
    seen = staff.get(f"/facts/{known['London']}", **where)
    assert "Paris" not in seen.text
    assert {"kind": "confirm", "by": None, "text": None}.items() <= seen.json()["history"][-1].items()
    assert "Paris is wrong." in hr.get(f"/facts/{known['London']}", **where).text


def test_what_is_stated_of_a_hidden_passage_is_seen_with_it(
    docs: str, keyed: Application, client: Client, admin: TestClient
) -> None:
    writer = client(scopes=["ingest", "query", "read"])
    fact = {"subject": "Ada Lovelace", "predicate": "pet", "object": "Puff"}
    for source in ("rival", "letter"):
        stated = writer.post("/facts", json={"collection": docs, "source": source, "facts": [fact]})
        assert stated.status_code == 200, stated.text
        fact = fact | {"object": "Tom"}
        seen = objects(search(client("group:staff"), docs, query="Which pet had Ada Lovelace?"))
        assert ("Puff" in seen, "Tom" in seen) == (False, source == "letter")
    assert {"Puff", "Tom"} <= set(objects(search(admin, docs, query="Which pet had Ada Lovelace?")))


@pytest.mark.parametrize("keyless", [False, True])
def test_a_frontend_asks_and_judges_facts_for_its_user(
    docs: str, client: Client, local: TestClient, *, keyless: bool
) -> None:
    frontend = local if keyless else client("group:hr", scopes=["query", "read", "judge", "act-as"])
    hr, staff = client("group:hr"), client("group:staff")
    assert search(hr, docs)["facts"] != search(staff, docs)["facts"]
    for names, own in ((["group:hr"], hr), (["group:staff"], staff), ([], client())):
        assert search(frontend, docs, **{"as": names}) == search(own, docs)
    entity = search(hr, docs)["starts"][0]["entity_id"]
    fact = {one["object"].title(): one["fact_id"] for one in search(hr, docs)["facts"]}["Paris"]
    for path in (f"/facts/{fact}", f"/entities/{entity}", "/predicates"):
        for group, own in (("group:hr", hr), ("group:staff", staff), ("", client())):
            asked = frontend.get(path, params={"collection": docs, "as": group})
            expected = own.get(path, params={"collection": docs})
            assert (asked.status_code, without_id(asked.json())) == (
                expected.status_code,
                without_id(expected.json()),
            )
    assert staff.get(f"/facts/{fact}", params={"collection": docs}).status_code == 404
    revision = {"collection": docs, "revisions": [{"action": "confirm", "fact_id": fact}]}
    key = {"headers": {"idempotency-key": str(uuid4())}}
    refused = frontend.post("/facts/revise", json=revision | {"as": ["group:staff"]}, **key)
    assert (refused.status_code, refused.json()["detail"]) == (404, f"There is no fact {fact}.")
    taken = frontend.post("/facts/revise", json=revision | {"as": ["group:hr"]}, **key)
    assert taken.status_code == 200, taken.text
    assert objects(search(hr, docs))["Paris"] == taken.json()["facts"][0]["belief"]


def without_id(body: Any) -> Any:
    return {key: value for key, value in body.items() if key != "request_id"}


def test_facts_are_asked_for_others_with_the_scope_for_that(docs: str, client: Client) -> None:
    hr, where = client("group:hr"), {"collection": docs, "as": "group:staff"}
    body = {"collection": docs, "as": ["group:staff"]}
    revision = {"revisions": [{"action": "confirm", "fact_id": 1}]}
    for refused in (
        hr.post("/facts/search", json=body | {"subject": "Ada Lovelace"}),
        hr.post("/facts/revise", json=body | revision, headers={"idempotency-key": str(uuid4())}),
        *(hr.get(path, params=where) for path in ("/facts/1", "/entities/1", "/predicates")),
    ):
        assert (refused.status_code, refused.json()["scope"]) == (403, "act-as")
