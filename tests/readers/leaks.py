"""Requests of all kinds to a corpus whose passages have readers, and what is told of hidden ones in the answers."""

import base64
import json
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx

from engram.wings.importing.services.file_tokens import FOLDER, FileToken, Step
from tests.api import operations
from tests.support.strict_client import TestClient

REQUESTS = int(os.environ.get("ENGRAM_EVALUATION_LEAK_REQUESTS", "200"))
"""How many are made; docs/readers.md says how many were tried at once."""
SEED = int(os.environ.get("ENGRAM_EVALUATION_LEAK_SEED", "1"))
READERS = ["group:a", "group:b", "group:c", "user:ana", "user:bo"]
PASSAGES = 30
COLLECTION = "leaks"
UNTRIED = {("POST", "/passages"), ("POST", "/documents"), ("POST", "/api/v1/files/"), ("DELETE", "/access/tenant")}
"""Ingest goes by no readers, and has tests of its own."""
EXPLANATION = ("GET", "/collections/{name}/readers")
"""Its `as` is whom it explains, not who asks."""
PLAIN_QUESTION = "Where did Marie Curie meet somebody on the river?"
FACTS = 100
"""Ids of facts and entities that are asked for; a passage states three facts."""
KEPT_IDS = 20
CHANGED_EVERY = 25
"""Requests after which a passage gets other readers."""
UNASKED_EVERY = 3
"""Of so many passages one has words that no question has, so that who reads others' questions never sees them."""
COMPARISON = ("POST", "/documents:compare")
KNOWLEDGE = operations.KNOWLEDGE
SYNC = {
    COMPARISON,
    ("GET", KNOWLEDGE),
    ("GET", f"{KNOWLEDGE}/files"),
    ("POST", f"{KNOWLEDGE}/sync/diff"),
    ("POST", f"{KNOWLEDGE}/sync/cleanup"),
    ("POST", f"{KNOWLEDGE}/dirs/create"),
    ("GET", "/api/v1/files/{file_id}/process/status"),
}
"""What a sync of documents calls and readers bound."""


def tokens_of(number: int) -> dict[str, str]:
    """Words that no other passage has."""
    letters = "".join(chr(ord("a") + int(digit)) for digit in f"{number * 7919 % 100000:05}")
    return {
        "id": f"id{letters}q",
        "title": f"Ti{letters}x",
        "word": f"wo{letters}z",
        "name": f"Na{letters}k",
        "value": f"va{letters}v",
    }


def passage(number: int, readers: Sequence[str] | None) -> dict[str, Any]:
    own = tokens_of(number)
    return {
        "id": own["id"],
        "title": own["title"],
        "text": f"{own['title']} was born in {own['name']}. Marie Curie met {own['name']} in Warsaw. "
        f"The {own['word']} lies near {own['name']} on the river.",
        "metadata": {"topic": own["value"], "source": f"{own['id']}.pdf"},
        "readers": None if readers is None else list(readers),
    }


def document(own: Mapping[str, str]) -> dict[str, str]:
    """The document that the passage with these words is made of."""
    return {"source": f"{FOLDER}/{own['id']}", "digest": own["word"]}


COPY = "leaks-copy"
BESIDE = "leaks-beside"
"""A collection without hidden passages, which is asked together with another one."""


@dataclass
class Caller:
    """Somebody who asks: a client, what it is among the readers, and what else it may.

    Attributes:
        acts: whether it sends `as`.
        audits: whether it may read what others asked.
        syncs: whether it does nothing but sync documents.
    """

    client: TestClient
    names: frozenset[str]
    acts: bool = False
    audits: bool = False
    syncs: bool = False
    said: str = ""
    """All that it sent: a stored query shows its question again."""

    def sees(self, readers: Sequence[str] | None) -> bool:
        return readers is None or bool(self.names & set(readers))


@dataclass
class World:
    """A collection, and who may read its passages."""

    name: str
    readers: dict[int, Sequence[str] | None]
    ids: dict[str, list[str]] = field(default_factory=dict)
    """Of what answers named last: "query_id" -> ids."""
    sentences: dict[int, list[int]] = field(default_factory=dict)
    asked: int = 0
    questions: str = ""
    """All questions, as callers sent them, with their filters."""

    def hidden(self, caller: Caller) -> list[int]:
        return [number for number, readers in self.readers.items() if not caller.sees(readers)]

    def note_ids(self, answer: httpx.Response) -> None:
        """Keep the first id of each kind that an answer has, for later requests."""
        for name, found in reversed(re.findall(r'"(\w+_id)":"?([0-9a-f-]+)', answer.text)):
            if answer.is_success:
                self.ids[name] = [*self.ids.get(name, [])[-KEPT_IDS:], found]

    def draw_id(self, dice: random.Random, name: str, other: object) -> str:
        """Draw an id that an answer named, or else another one."""
        return dice.choice(self.ids.get(name) or [str(other)])


def draw_readers(dice: random.Random) -> Sequence[str] | None:
    return dice.choice([None, (), *(dice.sample(READERS, dice.randint(1, 3)) for _ in range(6))])


def draw_request(
    dice: random.Random,
    caller: Caller,
    world: World,
    number: int,
    own: Mapping[str, str],
    *,
    plain: bool = False,
    operation: operations.Operation | None = None,
) -> tuple[str, str, dict[str, Any]]:
    """Draw a request that names things of a passage, in words that ``own`` gives; ``plain``: no text has them.

    An encoder tells any two words apart, whether or not a passage has them. ``operation``: None draws one too.
    """
    acting = [one for one in operations.OPERATIONS if one not in UNTRIED]
    if caller.syncs:
        acting = [one for one in acting if one in SYNC]
    if caller.acts:  # what takes no `as` is the key's own question
        acting = [one for one in acting if one != EXPLANATION and "as" in _fields(*one)]
    method, path = operation or dice.choice(acting)
    arguments = operations.well_formed(method, path, world.name)
    arguments = json.loads(json.dumps(arguments, default=str))
    asked = [
        PLAIN_QUESTION,
        f"Who met {own['name']} near the {own['word']}?",
        f"What is {own['title']}?",
        own["word"],
    ]
    question = dice.choice(asked[:1] if plain else asked)
    body = arguments.get("json")
    if body is not None:
        _fill(path, body, dice, world, own, question, dice.choice(world.sentences[number]))
        if path == "/query":
            body["include"] = dice.sample(["trace", "entities", "sentences", "context"], dice.randint(0, 4))
            body["top_k"] = dice.choice([1, 5, 50])
            body["arm"] = {
                "strategy": dice.choice(["graph", "dense", "lexical", "hybrid"]),
                "profile": dice.choice(["default", "paper"]),
            }
            if dice.random() < 0.2 and not plain:
                body["filter"] = {"topic": own["value"]}
            if dice.random() < 0.2:
                body["collections"] = dice.sample([world.name, BESIDE], 2)
        if path in ("/sessions", "/sessions/{session_id}/rounds"):
            body["wait"] = True  # else whoever follows it waits for ever where no worker runs
            if path == "/sessions":
                body["planner"] = dice.choice(["auto", "pool", "caller"])
            elif dice.random() < 0.5:
                named = {"passage_id": own["id"], "text": own["word"]}
                body["evidence"] = [dice.choice([named, dice.choice(world.sentences[number])])]
        if path == "/sessions/{session_id}/feedback" and dice.random() < 0.7:
            del body["none_helped"]
            body |= {"supporting": [dice.choice(world.sentences[number])], "wait": True}
        if caller.acts:
            for one in body.get("queries", [body]):
                one["as"] = sorted(caller.names)
        if path == "/queries:batch":
            for one in body["queries"]:
                one["collection"] = world.name
    url = path.replace("{name}", world.name).replace("{passage_id}", quote(own["id"]))
    if path.startswith("/documents/"):
        url = url.replace("{source}", quote(document(own)["source"], safe=""))
    for named in ("query_id", "session_id"):
        url = url.replace(f"{{{named}}}", world.draw_id(dice, named, uuid4()))
    url = url.replace("{sentence_id}", str(dice.choice(world.sentences[number])))
    token = FileToken(
        world.name, **document(own), step=Step.KEEP if caller.sees(world.readers[number]) else Step.DELETE
    )
    url = url.replace("{file_id}", token.write())
    if body and "file_ids" in body:
        body["file_ids"] = [token.write()]
    for numbered, highest in (("fact_id", FACTS), ("entity_id", FACTS), ("feedback_id", 60)):
        drawn = dice.randint(1, highest)
        url = url.replace(f"{{{numbered}}}", dice.choice([str(drawn), world.draw_id(dice, numbered, drawn)]))
    for numbered in ("{event_id}", "{key_id}"):
        url = url.replace(numbered, str(dice.randint(1, 60)))
    arguments.setdefault("headers", {})
    arguments["headers"]["idempotency-key"] = str(uuid4())
    params = arguments.setdefault("params", {})
    if "{" not in path and not body:
        params["collection"] = world.name
    if caller.acts and not body:
        params["as"] = sorted(caller.names) or [""]
    if "passage_id" in params:
        params["passage_id"] = own["id"]
    if path.endswith("/suggestions"):
        named = own[dice.choice(["title", "name"])]
        params["prefix"] = named[: -1 if plain else dice.randint(2, len(named) - 1)]
    return method, operations.url(url), arguments


def _fields(method: str, path: str) -> Sequence[str]:
    """Fields of an operation's body, those of queries in a batch included; parameters where it has no body."""
    operation = operations.DOCUMENT["paths"][path][method.lower()]
    if "requestBody" not in operation:
        return [parameter["name"] for parameter in operation.get("parameters", ())]
    content = operation["requestBody"].get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    fields = (
        operations.DOCUMENT["components"]["schemas"].get(reference.rpartition("/")[2], {}).get("properties", {})
    )
    return ["as"] if path == "/queries:batch" else list(fields)


def _fill(
    path: str,
    body: dict[str, Any],
    dice: random.Random,
    world: World,
    own: Mapping[str, str],
    question: str,
    sentence: int,
) -> None:
    for key in ("query", "question"):
        if key in body:
            body[key] = question
    if "messages" in body:
        body["messages"][0]["content"] = question
    if path == "/facts/search":
        body |= dice.choice([{}, {"subject": own["title"]}, {"entities": [own["name"], "Paris"], "max_edges": 3}])
    if path == "/facts/revise":
        body["revisions"][0]["fact_id"] = int(world.draw_id(dice, "fact_id", dice.randint(1, FACTS)))
    if path == COMPARISON[1]:
        body |= {"folder": FOLDER, "documents": [document(own)]}
    elif "documents" in body:
        body["documents"] = [question, "Marie Curie met somebody in Warsaw."]
    for one in body.get("manifest", []):
        one |= {"filename": own["id"], "checksum": own["word"]}
    for one in body.get("queries", []):
        one["query"] = question
    if path.endswith("/passages:count"):
        body |= {"limit": 1_000, "filter": dice.choice([None, {"topic": own["value"]}])}
    if "readers" in body:
        body["readers"] = READERS[:1]
    if "source" in body:
        body["source"] = f"{own['id']}.pdf"
    if "query_id" in body and "query_id" in world.ids:
        del body["none_helped"]
        body["query_id"] = world.draw_id(dice, "query_id", None)
        named = dice.choice([{"passage_id": own["id"], "text": own["word"]}, sentence])
        body |= {"supporting": [named], "wait": dice.random() < 0.5}


def read_question(arguments: Mapping[str, Any]) -> str:
    """What a request asks, which is kept and shown to whoever audits."""
    body = arguments.get("json") or {}
    asked = ("query", "question", "queries", "messages", "filter")
    return json.dumps([body[field] for field in asked if field in body])


def send(caller: Caller, method: str, url: str, arguments: Mapping[str, Any]) -> httpx.Response:
    return caller.client.request(method, url, **arguments)


def leaked(answer: httpx.Response, sent: str, world: World, caller: Caller) -> list[str]:
    """Words of hidden passages in an answer that the request did not have."""
    told = _decode_ids(answer.text + json.dumps(dict(answer.headers))).lower()
    sent = _decode_ids(sent).lower()
    return [
        token
        for number in world.hidden(caller)
        for token in (word.lower() for word in tokens_of(number).values())
        if token in told and token not in sent
    ]


def _decode_ids(text: str) -> str:
    """Return the text with what ids of files say appended in clear: they are JSON in Base64."""
    ids = re.findall(r"WyJ[\w-]+", text)
    return text + "".join(base64.urlsafe_b64decode(one + "=" * (-len(one) % 4)).decode() for one in ids)


UNSTABLE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)"
    r'|"[a-z_]*_(ms|seconds)":[\d.]+|"(id|created)":("chatcmpl[^"]*"|\d+)'
)


def settle(text: str, own: Mapping[str, str]) -> str:
    """The answer without what differs each time, and without the words that were sent."""
    for name, word in own.items():
        text = re.sub(re.escape(word), name, text, flags=re.IGNORECASE)
    return UNSTABLE.sub("-", text)


def change_readers(dice: random.Random, world: World, admin: TestClient) -> None:
    number = dice.choice(list(world.readers))
    readers = draw_readers(dice)
    body = {"readers": None if readers is None else list(readers)}
    where = {"params": {"collection": COLLECTION}}
    changed = admin.patch(f"/passages/{tokens_of(number)['id']}", json=body, **where)
    assert changed.status_code == 200, changed.text
    world.readers[number] = readers


def explore(
    dice: random.Random,
    worlds: Sequence[World],
    callers: Sequence[Caller],
    admin: TestClient,
    requests: int = REQUESTS,
) -> Iterator[str]:
    """Make requests; what each leaked."""
    for at in range(requests):
        if at % CHANGED_EVERY == 0:
            change_readers(dice, worlds[0], admin)
        world = dice.choice(worlds)
        caller = dice.choice(callers)
        hidden = world.hidden(caller)
        about = dice.choice(hidden if hidden and dice.random() < 0.8 else list(world.readers))
        plain = about % UNASKED_EVERY == 0
        method, url, arguments = draw_request(dice, caller, world, about, tokens_of(about), plain=plain)
        answer = send(caller, method, url, arguments)
        world.asked += 1
        world.questions += read_question(arguments)
        sent = f"{url} {json.dumps(arguments)}"
        caller.said += sent
        assert answer.status_code < 500 or answer.status_code in (501, 502, 503), f"{method} {sent}: {answer.text}"
        repeated = "/queries/" in url or "/sessions" in url  # with the question that it had
        known = caller.said if repeated else sent
        if caller.audits:
            known += "".join(one.questions for one in worlds)
        for token in leaked(answer, known, world, caller):
            yield f"{token} in {method} {sent} as {sorted(caller.names)}: {answer.text[:500]}"
        world.note_ids(answer)
