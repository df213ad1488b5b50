"""No byte of an answer tells of a passage that its caller may not read, whatever is asked.

A corpus whose passages have words, names, ids and metadata of their own is asked over every route of the OpenAPI
document, by callers with and without principals, while passages get other readers and verdicts come and go. A word
of a hidden passage that the caller did not send is a leak. So is a difference between the answers to a request that
names what is hidden and to the same request that names what there never was.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from engram.composition.container import Application, Servers
from engram.composition.wings import list_installed_wings
from engram.config.settings import Settings
from engram.runtime.api_process import create_app, list_required_scopes, list_routers
from tests.api import operations
from tests.readers.conftest import SCOPES, Client, Put, fill
from tests.readers.leaks import (
    PLAIN_QUESTION,
    REQUESTS,
    SEED,
    Caller,
    World,
    draw_readers,
    draw_request,
    explore,
    leaked,
    passage,
    send,
    settle,
    tokens_of,
)
from tests.support.modelled import ModelApplications
from tests.support.openai_server import keyword_handler
from tests.support.strict_client import TestClient


def test_no_answer_has_a_word_of_a_hidden_passage(
    world: World, copied: World, callers: Sequence[Caller], admin: TestClient
) -> None:
    leaks = list(explore(random.Random(SEED), [world, copied], callers, admin))
    assert leaks == []
    assert world.asked + copied.asked == REQUESTS


BOUND = {
    operation
    for route, need in list_required_scopes(list_routers(list_installed_wings()))
    for operation in ((method, route.path_format) for method in route.methods)
    if need.readers == "bound" and operation in operations.OPERATIONS
}
"""What goes by readers; other operations take `admin` or `ingest`, or are refused where passages have readers."""
TRIES = 16
ENOUGH = 4
"""Requests to an operation that answered one."""


def test_every_operation_that_goes_by_readers_answers_without_what_is_hidden(
    put: Put, admin: TestClient, client: Client, keyed: Application, settings: Settings, own: Servers
) -> None:
    """A new route whose requests are all refused here would leak unnoticed: draw_request has to know it."""
    readers = [None, ["group:a"], ["group:b"]]
    world = World("leaks-walk", {number: readers[number % 3] for number in range(300, 306)})
    fill(world, put, admin)
    scopes = [*SCOPES, "moderate", "llm", "audit", "ingest"]
    key = client("group:a", scopes=scopes).headers
    modelled = ModelApplications(settings, own, keyed)
    served = create_app(modelled.application(keyword_handler, access="keys"))
    ana = Caller(TestClient(served, raise_server_exceptions=False, headers=key), frozenset({"group:a"}))
    dice = random.Random(SEED)
    told, answered = [], set()
    order = ["POST", "GET", "PUT", "PATCH", "DELETE"]
    for operation in sorted(
        BOUND, key=lambda one: ("/reset" in one[1], order.index(one[0]), "feedback" in one[1], one)
    ):
        for tried, number in enumerate((300, *dice.choices(range(300, 306), k=TRIES))):
            if operation in answered and tried >= ENOUGH:
                break
            method, url, arguments = draw_request(dice, ana, world, number, tokens_of(number), operation=operation)
            answer = send(ana, method, url, arguments)
            world.note_ids(answer)
            ana.said += f"{url} {json.dumps(arguments)}"
            told += [(operation, token) for token in leaked(answer, ana.said, world, ana)]
            if answer.is_success:
                answered.add(operation)
    modelled.open.close()
    assert told == []
    assert not (missing := sorted(BOUND - answered)), "\n".join(map(str, missing))
    assert len(answered) > 30


def test_what_is_hidden_is_answered_like_what_there_never_was(world: World, callers: Sequence[Caller]) -> None:
    dice = random.Random(SEED)
    told = []
    for _ in range(REQUESTS // 8):
        caller = dice.choice(callers)
        hidden = world.hidden(caller)
        if not hidden:
            continue
        number = dice.choice(hidden)
        own, never = tokens_of(number), tokens_of(number + 5_000)
        state = dice.getstate()
        method, url, arguments = draw_request(dice, caller, world, number, own, plain=True)
        changing = ("feedback", "session", "revise")
        if "{sentence_id}" in url or method == "DELETE" or any(one in url for one in changing):
            continue
        after = dice.getstate()
        dice.setstate(state)
        _, other_url, other_arguments = draw_request(dice, caller, world, number, never, plain=True)
        dice.setstate(after)
        if url == other_url and arguments | {"headers": None} == other_arguments | {"headers": None}:
            continue  # it names nothing
        answers = [
            settle(send(caller, method, *request).text, words)
            for request, words in (((url, arguments), own), ((other_url, other_arguments), never))
        ]
        if answers[0] != answers[1]:
            told.append(
                f"{method} {url} {json.dumps(arguments)} as {sorted(caller.names)}:\n{answers[0]}\n{answers[1]}"
            )
    assert told == []


@pytest.mark.parametrize("strategy", ["graph", "dense", "lexical"])
def test_an_answer_has_the_passages_that_it_had_without_the_hidden_ones(
    put: Put, admin: TestClient, client: Client, strategy: str
) -> None:
    dice = random.Random(SEED)
    readers = {number: draw_readers(dice) for number in range(100, 140)}
    ana = Caller(client("user:ana"), frozenset({"user:ana"}))
    put(f"all-{strategy}", *(passage(number, given) for number, given in readers.items()))
    put(f"seen-{strategy}", *(passage(number, None) for number, given in readers.items() if ana.sees(given)))
    body = {"query": PLAIN_QUESTION, "top_k": 100, "arm": {"strategy": strategy, "memory": "off"}}
    found = []
    for who, name in ((ana.client, f"all-{strategy}"), (admin, f"seen-{strategy}")):
        answer = who.post("/query", json=body | {"collection": name}).json()
        shown = {one["passage_id"]: one["score"] for one in answer["passages"]}
        found.append(shown if strategy == "dense" else set(shown))  # the profile goes by shares of all passages
    assert found[0] == found[1]
    assert len(found[0]) == sum(map(ana.sees, readers.values()))


IDS = re.compile(r"(^|_)(id|ids|ms|seconds|created|created_at)$")
ASKED = {"/query", "/query/compare", "/queries:batch", "/expand", "/v1/rerank", "/retrieval", "/facts/search"}


def list_counts(value: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Whole numbers and lengths of lists in an answer, by where they stand."""
    if isinstance(value, dict):
        for key, one in value.items():
            if not IDS.search(key):
                yield from list_counts(one, f"{path}.{key}")
    elif isinstance(value, list):
        yield path, len(value)
        for one in value:
            yield from list_counts(one, f"{path}[]")
    elif isinstance(value, int):
        yield path, value


def test_every_count_is_that_of_a_collection_without_the_hidden_passages(put: Put, client: Client) -> None:
    shown = [passage(number, None) for number in range(200, 206)]
    hidden = [passage(number, ["group:a"]) for number in range(206, 212)]
    copies = [one | {"id": f"copy-{one['id']}", "readers": ["group:a"]} for one in shown]
    put("counts-all", *hidden, *copies, *shown)
    put("counts-seen", *shown)
    member, stranger = client("group:a"), client(scopes=["query", "read", "judge", "llm"])
    found = member.post("/query", json={"query": PLAIN_QUESTION, "collection": "counts-all"}).json()
    named = [{"passage_id": hidden[0]["id"], "text": hidden[0]["text"].split(". ")[-1]}]
    verdict = {"query_id": found["query_id"], "collection": "counts-all", "supporting": named, "wait": True}
    given = member.post("/feedback", json=verdict, headers={"idempotency-key": str(uuid4())})
    assert given.status_code == 200, given.text
    told, compared = [], 0
    for method, path in operations.OPERATIONS:
        if method != "GET" and path not in ASKED:
            continue
        counts = []
        for name in ("counts-all", "counts-seen"):
            arguments = json.loads(json.dumps(operations.well_formed(method, path, name), default=str))
            if path == "/queries:batch":
                for one in arguments["json"]["queries"]:
                    one["collection"] = name
            if path in ("/query", "/query/compare"):
                arguments["json"] |= {"top_k": 50, "query": PLAIN_QUESTION}
            if "passage_id" in arguments.get("params", {}):
                arguments["params"]["passage_id"] = shown[0]["id"]
            url = path.replace("{name}", name).replace("{passage_id}", quote(str(shown[0]["id"])))
            answer = stranger.request(method, operations.url(url), **arguments)
            is_json = "json" in answer.headers["content-type"]
            counts.append((answer.status_code, list(list_counts(answer.json())) if is_json else []))
        compared += counts[0][0] == 200
        if counts[0] != counts[1]:
            told.append((method, path, *counts))
    assert told == []
    assert compared > 15
