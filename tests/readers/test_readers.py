"""Who sees a passage: by key, by `as`, by change."""

import hashlib
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.core.auth.access_keys import SCOPES
from engram.core.ranking import exact_search
from engram.core.ranking.neighbour_vote import NEIGHBOURS
from engram.services.question import caches, plan
from engram.storage.corpus import reader_sets
from engram.storage.database import observe_sql
from tests.api import operations
from tests.readers.conftest import Client, Put
from tests.support import state
from tests.support.citus import CITUS
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
PASSAGES: list[dict[str, Any]] = [
    {"id": "open", "title": "Marie Curie", "text": "Marie Curie was born in Warsaw in 1867."},
    {
        "id": "hr",
        "title": "Marie Curie",
        "text": "Marie Curie was born near Zanzibar Lodge, says the file.",
        "readers": ["group:hr"],
    },
    {"id": "ana", "text": "Marie Curie met Ana in Warsaw.", "readers": ["user:ana", "group:staff"]},
    {"id": "nobody", "text": "Marie Curie was born in Xanadu Hall.", "readers": []},
]
ALL = {"open", "hr", "ana", "nobody"}


@pytest.fixture(scope="module")
def docs(put: Put) -> str:
    put("docs", *PASSAGES)
    return "docs"


def ask(client: TestClient, collection: str, **more: Any) -> set[str]:
    answer = client.post("/query", json={"query": QUESTION, "collection": collection, "top_k": 10, **more})
    assert answer.status_code == 200, answer.text
    return {passage["passage_id"] for passage in answer.json()["passages"]}


@pytest.mark.parametrize("strategy", ["graph", "dense", "lexical", "hybrid"])
@pytest.mark.parametrize("profile", ["default", "paper"])
def test_a_key_sees_passages_that_its_principals_may_read(
    docs: str, client: Client, admin: TestClient, strategy: str, profile: str
) -> None:
    arm = {"arm": {"strategy": strategy, "profile": profile}}
    assert ask(client(), docs, **arm) == {"open"}
    assert ask(client("group:hr"), docs, **arm) == {"open", "hr"}
    assert ask(client("user:ana", "group:hr"), docs, **arm) == {"open", "hr", "ana"}
    assert ask(client("group:nurses"), docs, **arm) == {"open"}
    assert ask(admin, docs, **arm) == ALL


def test_no_name_of_a_hidden_passage_is_in_a_trace(docs: str, client: Client) -> None:
    body = {
        "query": "Who was in Zanzibar Lodge or Xanadu Hall?",
        "collection": docs,
        "include": ["trace", "entities"],
    }
    answer = client("user:ana").post("/query", json=body | {"query": "Marie Curie in the lodge"})
    assert answer.status_code == 200
    assert not any(name in answer.text for name in ("Zanzibar", "Xanadu"))
    named = client("user:ana").post("/query", json=body).json()
    assert [name["name"] for name in named["entities"] if "anadu" in name["name"] or "Zan" in name["name"]] == []


def test_a_frontend_asks_for_whom_it_authenticated(docs: str, client: Client, local: TestClient) -> None:
    frontend = client("group:hr", scopes=["query", "act-as"])
    assert ask(frontend, docs, **{"as": ["user:ana"]}) == {"open", "ana"}
    assert ask(frontend, docs, **{"as": []}) == {"open"}
    assert ask(frontend, docs) == {"open", "hr"}
    assert ask(local, docs) == ALL
    assert ask(local, docs, **{"as": ["group:staff"]}) == {"open", "ana"}
    body = {"query": QUESTION, "collection": docs, "as": ["user:ana"]}
    refused = client("group:hr").post("/query", json=body)
    assert (refused.status_code, refused.json()["scope"]) == (403, "act-as")
    assert client(scopes=["admin"]).post("/query", json=body | {"as": ["ana"]}).status_code == 422
    assert ask(client(scopes=["admin"]), docs, **{"as": ["user:ana"]}) == {"open", "ana"}


def test_a_passage_is_read_for_somebody(docs: str, client: Client) -> None:
    frontend = client("group:hr", scopes=["read", "act-as"])

    def read(passage: str, asked: str | None = None) -> int:
        params = {"collection": docs} | ({} if asked is None else {"as": asked})
        return frontend.get(f"/passages/{passage}", params=params).status_code

    assert [read("hr"), read("hr", "user:ana"), read("hr", "")] == [200, 404, 404]
    assert [read("ana"), read("ana", "user:ana"), read("open", "")] == [404, 200, 200]
    refused = client("group:hr").get("/passages/open", params={"collection": docs, "as": "user:ana"})
    assert (refused.status_code, refused.json()["scope"]) == (403, "act-as")


def test_an_admin_of_one_collection_sees_all_of_that_alone(put: Put, docs: str, client: Client) -> None:
    put("other", *PASSAGES)
    key = client(scopes={"other": ["admin"], "docs": ["query"]})
    assert ask(key, "other") == ALL
    assert ask(key, docs) == {"open"}


def test_reads_lists_and_counts_go_by_readers(docs: str, client: Client, admin: TestClient) -> None:
    ana = client("user:ana")
    where = {"params": {"collection": docs}}
    assert [ana.get(f"/passages/{one}", **where).status_code for one in ("open", "ana", "hr")] == [200, 200, 404]
    missing, hidden = (ana.get(f"/passages/{one}", **where).json()["detail"] for one in ("absent", "nobody"))
    assert missing.replace("absent", "nobody") == hidden
    listed = ana.get(f"/collections/{docs}/passages").json()["passages"]
    assert [(passage["id"], passage["readers"]) for passage in listed] == [("ana", None), ("open", None)]
    told = admin.get(f"/collections/{docs}/passages").json()["passages"]
    assert {one["id"]: one["readers"] for one in told} == {
        "ana": [["group:staff", "user:ana"]],
        "hr": [["group:hr"]],
        "nobody": [[]],
        "open": [None],
    }
    for path, counts in {
        f"/collections/{docs}": lambda body: (body["passage_count"], sum(body["languages"].values())),
        f"/v1/vector_stores/{docs}": lambda body: (body["file_counts"]["total"],) * 2,
    }.items():
        assert counts(ana.get(path).json()) == (2, 2)
        assert counts(admin.get(path).json()) == (4, 4)
    assert client("user:ana", scopes=["ingest"]).delete("/passages/nobody", **where).status_code == 404


def test_ingest_changes_readers_without_embedding(put: Put, client: Client, admin: TestClient) -> None:
    one = {"id": "one", "text": "Marie Curie was born in Warsaw in 1867."}
    put("changed", one | {"readers": ["group:hr"]})
    assert (ask(client("group:hr"), "changed"), ask(client(), "changed")) == ({"one"}, set())
    put("changed", one)  # as before
    assert (ask(client("group:hr"), "changed"), ask(client(), "changed")) == ({"one"}, set())
    put("changed", one | {"text": "Marie Curie was born in Warsaw on the Vistula. She left."})
    assert (ask(client("group:hr"), "changed"), ask(client(), "changed")) == ({"one"}, set())
    put("changed", one | {"readers": ["group:it"]})
    assert (ask(client("group:hr"), "changed"), ask(client("group:it"), "changed")) == (set(), {"one"})
    put("changed", one | {"readers": None})
    assert ask(client(), "changed") == {"one"}


REFUSED = [
    ("GET", "/collections/{name}/keys"),
    ("GET", "/collections/{name}/generations"),
    ("GET", "/collections/{name}/lift"),
    ("GET", "/collections/{name}/tuning"),
    ("GET", "/access/quotas"),
    ("GET", "/audit"),
    ("POST", "/entities/{entity_id}/merge"),
    ("PUT", "/predicates"),
    ("POST", "/collections/{name}/evolve"),
    ("POST", "/feedback/revoke"),
    ("PUT", "/collections/{name}/judges/{judge}"),
]
"""docs/readers.md names them."""


@pytest.mark.parametrize(("method", "path"), [one for one in REFUSED if one in operations.OPERATIONS])
def test_routes_that_do_not_go_by_readers_take_admin(docs: str, client: Client, method: str, path: str) -> None:
    arguments = operations.well_formed(method, path, docs)
    url = operations.url(path.replace("{name}", docs).replace("{entity_id}", "1"))
    refused = client("user:ana", scopes=sorted(set(SCOPES) - {"admin"})).request(method, url, **arguments)
    assert (refused.status_code, refused.json()["scope"]) == (403, "admin"), refused.text
    if method == "GET":
        assert client(scopes=["admin"]).get(url, **arguments).status_code == 200
    if method == "GET" and "{name}" in path:
        assert client(scopes={docs: ["admin"]}).get(url).status_code == 200


def judge(client: TestClient, collection: str, query: str, **verdict: Any) -> Any:
    body = {"query_id": query, "collection": collection, "wait": True, **verdict}
    return client.post("/feedback", json=body, headers={"idempotency-key": str(uuid4())})


def test_what_one_cannot_see_cannot_be_judged(docs: str, client: Client, admin: TestClient) -> None:
    asked = admin.post("/query", json={"query": QUESTION, "collection": docs, "include": ["sentences"]}).json()
    sentences = {one["passage_id"]: one["sentences"][0]["sentence_id"] for one in asked["passages"]}
    ana = client("user:ana")
    own = ana.post("/query", json={"query": QUESTION, "collection": docs}).json()["query_id"]
    for verdict, absent in [
        ({"supporting": [sentences["hr"]]}, {"supporting": [10**9]}),
        ({"supporting": [{"passage_id": "hr"}]}, {"supporting": [{"passage_id": "absent"}]}),
        ({"rating": "up", "cited": ["hr"]}, {"rating": "up", "cited": ["absent"]}),
    ]:
        refused, unknown = judge(ana, docs, own, **verdict), judge(ana, docs, own, **absent)
        assert refused.status_code == unknown.status_code == 422, refused.text
        assert (
            refused.json()["detail"].replace("hr", "absent").replace(str(sentences["hr"]), str(10**9))
            == (unknown.json()["detail"])
        )
    taken = judge(ana, docs, own, supporting=[sentences["ana"]])
    assert (taken.status_code, taken.json()["status"]) == (200, "applied"), taken.text
    assert [change["sentence_id"] for change in taken.json()["changes"]] != []
    assert (
        client("user:ana").delete(f"/feedback/{taken.json()['feedback_id']}?collection={docs}").status_code == 200
    )


def test_questions_with_hidden_evidence_neither_vote_nor_take_a_place(
    put: Put, client: Client, admin: TestClient
) -> None:
    """More questions than vote are nearer, and answered by what the caller may not see."""
    reader = client()

    def recall(collection: str) -> list[dict[str, Any]]:
        answer = reader.post(
            "/query",
            json={"query": "Where exactly was Marie Curie born?", "collection": collection, "include": ["trace"]},
        )
        kept = ("supporters", "others", "learned_from")
        return [{name: one[name] for name in kept} for one in answer.json()["trace"]["recalled"]]

    def teach(collection: str, question: str, passage: str) -> None:
        query = admin.post("/query", json={"query": question, "collection": collection}).json()["query_id"]
        assert judge(admin, collection, query, supporting_passages=[passage]).status_code == 200

    others = [
        "The Vistula flows through Warsaw.",
        "Polonium is a metal.",
        "Lyon lies on the Rhône.",
        "Tea has caffeine.",
    ]
    put("votes", *PASSAGES, *({"id": f"other-{at}", "text": text} for at, text in enumerate(others)))
    teach("votes", QUESTION, "open")
    assert recall("votes") == [{"supporters": 1, "others": 0, "learned_from": 0}]
    for number in range(NEIGHBOURS + 4):
        teach("votes", f"Where exactly was Marie Curie born, file {number}?", "hr")
    assert recall("votes") == [{"supporters": 1, "others": 0, "learned_from": 0}]


def test_a_thumb_on_an_answer_that_was_asked_for_somebody_is_the_callers_own(docs: str, client: Client) -> None:
    frontend = client(scopes=["query", "judge", "read", "act-as"])
    people = {"as": ["user:ana"]}
    asked = frontend.post("/query", json={"query": QUESTION, "collection": docs, **people}).json()
    assert {one["passage_id"] for one in asked["passages"]} == {"open", "ana"}
    query = asked["query_id"]
    assert judge(frontend, docs, query, rating="up").status_code == 404  # it was asked for somebody
    assert judge(frontend, docs, query, rating="up", **{"as": []}).status_code == 404  # who may not see "ana"
    refused = judge(frontend, docs, query, rating="up", cited=["hr"], **people)
    assert (refused.status_code, "'hr'" in refused.json()["detail"]) == (422, True), refused.text

    first = judge(frontend, docs, query, rating="up", cited=["ana"], **people)
    second = judge(frontend, docs, query, rating="down", **people)

    assert (first.status_code, first.json()["status"]) == (200, "applied"), first.text
    assert first.json()["changes"] != []
    assert second.status_code == 200, second.text
    where = {"params": {"collection": docs}}
    assert frontend.get(f"/feedback/{first.json()['feedback_id']}", **where).json()["status"] == "revoked"
    assert frontend.delete(f"/feedback/{second.json()['feedback_id']}", **where).json()["status"] == "revoked"


def test_an_answer_is_read_again_without_what_was_hidden_since(put: Put, client: Client, admin: TestClient) -> None:
    put("later", *PASSAGES)
    frontend = client(scopes=["query", "act-as"])
    body = {"query": QUESTION, "collection": "later", "include": ["trace"], "as": ["user:ana"]}
    first = frontend.post("/query", json=body).json()
    assert {one["passage_id"] for one in first["passages"]} == {"open", "ana"}
    where = {"params": {"collection": "later"}}
    assert frontend.get(f"/queries/{first['query_id']}", **where).status_code == 404  # it was asked for somebody
    put("later", PASSAGES[2] | {"readers": ["group:hr"]})
    again = admin.get(f"/queries/{first['query_id']}", **where).json()
    assert {one["passage_id"] for one in again["passages"]} == {"open", "ana"}
    own = client("user:ana").post("/query", json=body | {"as": None}).json()
    assert {one["passage_id"] for one in own["passages"]} == {"open"}


def test_readers_are_changed_and_explained(put: Put, client: Client, admin: TestClient) -> None:
    put("patched", *PASSAGES)
    writer = client("group:hr", scopes=["query", "read", "ingest"])
    where = {"params": {"collection": "patched"}}
    assert writer.patch("/passages/ana", json={"readers": None}, **where).status_code == 404
    changed = writer.patch("/passages/hr", json={"readers": ["user:eve", "group:hr", "user:eve"]}, **where)
    assert changed.json() == {"collection": "patched", "readers": ["group:hr", "user:eve"]}
    assert ask(client("user:eve"), "patched") == {"open", "hr"}
    assert writer.patch("/passages/hr", json={"readers": ["eve"]}, **where).status_code == 422
    path = "/collections/patched/readers"
    told = admin.get(path, params={"passage_id": "hr", "as": ["user:eve", "group:it"]}).json()
    assert (told["visible"], told["matched"], told["readers"]) == (True, ["user:eve"], ["group:hr", "user:eve"])
    assert not admin.get(path, params={"passage_id": "hr", "as": ["user:ana"]}).json()["visible"]
    assert admin.get(path, params={"passage_id": "open"}).json()["visible"]
    assert writer.get(path, params={"passage_id": "hr"}).status_code == 403


def test_a_new_part_of_a_document_has_the_readers_of_the_others(
    put: Put, client: Client, admin: TestClient
) -> None:
    parts = [{"id": f"pay.pdf#{n}", "text": f"Marie Curie earned {n}.", "document": "pay.pdf"} for n in (1, 2)]
    put("parts", parts[0] | {"readers": ["group:hr", "group:it"]})
    put("parts", *parts)
    assert (ask(client(), "parts"), ask(client("group:it"), "parts")) == (set(), {"pay.pdf#1", "pay.pdf#2"})
    where = {"params": {"collection": "parts"}}
    changed = admin.patch("/documents/pay.pdf", json={"readers": ["group:hr"]}, **where)
    assert changed.json() == {"collection": "parts", "source": "pay.pdf", "changed": 2}
    assert (ask(client("group:it"), "parts"), ask(client("group:hr"), "parts")) == (
        set(),
        {"pay.pdf#1", "pay.pdf#2"},
    )
    unknown = admin.patch("/documents/other.pdf", json={"readers": []}, **where)
    assert unknown.status_code == 404


@pytest.mark.parametrize("strategy", ["graph", "dense"])
def test_cached_keys_are_found_by_those_who_may_read_the_passages(
    docs: str, client: Client, admin: TestClient, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    monkeypatch.setattr(caches, "LEAST_PASSAGES", 1)
    monkeypatch.setattr(caches, "QUESTIONS_BEFORE_READ", 1)
    searched: list[Any] = []
    find_nearest = exact_search.find_nearest
    monkeypatch.setattr(exact_search, "find_nearest", lambda *given: searched.append(given) or find_nearest(*given))
    arm = {"arm": {"strategy": strategy}}
    for caller, seen in [(client("group:hr"), {"open", "hr"}), (admin, ALL), (client(), {"open"}), (admin, ALL)]:
        assert ask(caller, docs, **arm) == seen
    assert len(searched) >= 3


def test_whoever_may_ingest_replaces_what_it_does_not_see(
    put: Put, keyed: Application, client: Client, admin: TestClient
) -> None:
    put("blind", *PASSAGES)
    writer = client(scopes=["ingest", "read"])
    passage = {"id": "hr", "text": "Marie Curie was born in Warsaw on the Vistula."}
    accepted = writer.post("/passages", json={"collection": "blind", "passages": [passage]})
    assert accepted.status_code == 202, accepted.text
    keyed.jobs.runner.run_ready()
    job = accepted.json()["job_id"]
    assert writer.get(f"/jobs/{job}").json()["updated"] == 1
    refused = client("group:hr").get(f"/jobs/{job}")
    assert (refused.status_code, refused.json()["scope"]) == (403, "ingest")
    assert writer.get("/passages/hr", params={"collection": "blind"}).status_code == 404
    assert (ask(client("group:hr"), "blind"), ask(client(), "blind")) == ({"open", "hr"}, {"open"})
    assert client().get("/access/quotas").status_code == 403


@pytest.mark.parametrize(("most", "rows", "generation"), [(5_000, 0, 0), (1, 2_500, 0), (1, 2_500, 1), (1, 0, 0)])
@pytest.mark.parametrize("strategy", ["graph", "dense", "lexical"])
def test_few_visible_passages_of_an_indexed_collection_are_all_found(
    put: Put,
    keyed: Application,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    strategy: str,
    most: int,
    rows: int,
    generation: int,
) -> None:
    """By their ids; more than ``most`` by their sets of readers, also where keys evolved, or by the index."""
    monkeypatch.setattr(plan, "MOST_EXACT", most)
    monkeypatch.setattr(plan, "ROWS_PER_SEARCH", rows)
    name = f"indexed-{strategy}-{most}-{rows}-{generation}"
    texts = [f"Marie Curie was born in Warsaw, says witness {number}." for number in range(40)]
    passages = [
        {"id": f"p{number}", "text": text, "readers": ["group:hr" if number % 20 == 3 else "group:it"]}
        for number, text in enumerate(texts)
    ]
    put(name, *passages, {"id": "open", "text": "Marie Curie was born in Warsaw, says everyone."})
    with keyed.database.write() as writer:
        writer.execute(
            "UPDATE collection SET indexed = '{passage}', key_generation = %(generation)s WHERE name = %(name)s",
            {"name": name, "generation": generation},
        )
    sent: list[str] = []
    with observe_sql(lambda _connection, text, _parameters: sent.append(text)):
        found = ask(client("group:hr"), name, arm={"strategy": strategy}, collapse_duplicates=False)
    assert found == {"p3", "p23", "open"}
    by_sets = strategy != "lexical" and most == 1 and rows > 0 and CITUS is None
    assert any(reader_sets.PASSAGES_OF_CALLER in text for text in sent) == by_sets


def test_whom_a_frontend_asks_for_is_a_principal_that_can_be_erased(
    put: Put, keyed: Application, client: Client, admin: TestClient
) -> None:
    """docs/privacy.md says how its name is made."""
    put("asked", *PASSAGES)
    frontend = client(scopes=["query", "act-as"])
    question = "Where was Marie Skłodowska born?"
    for names in (["user:ana", "group:hr"], ["user:bo"]):
        body = {"query": question, "collection": "asked", "as": names}
        assert frontend.post("/query", json=body).status_code == 200
    digest = hashlib.sha256(b"group:hr\0user:ana").hexdigest()[:16]
    principal = f"{frontend.get('/access/me').json()['name']} as {digest}"
    assert principal in {row["principal"] for row in state.rows(keyed, "asked", "episode")}
    accepted = admin.delete(f"/collections/asked/principals/{quote(principal)}")
    assert accepted.status_code == 202, accepted.text
    keyed.jobs.runner.run_ready()
    (left,) = [row for row in state.rows(keyed, "asked", "episode") if row["question"] == question]
    assert left["principal"] != principal


@pytest.mark.parametrize("name", ["user:\x1f", "user:a\x1f", "user:\x01", "group:a\x7f", "user:" + "\u0958" * 195])
def test_a_name_that_no_reader_has_is_refused_at_once(admin: TestClient, name: str) -> None:
    """The last one is 395 characters long as Unicode composes it."""
    passages = [{"id": "odd", "text": "Marie Curie was born in Warsaw.", "readers": [name]}]
    refused = admin.post("/passages", json={"collection": "odd-readers", "passages": passages})
    assert refused.status_code == 422, refused.text
    assert "readers" in refused.json()["detail"]
