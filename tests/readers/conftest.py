"""Two applications of one database in which passages have readers: one needs keys, the other needs none."""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram.wings.importing.services.file_tokens import FOLDER
from tests.conftest import Heavy
from tests.readers.leaks import (
    BESIDE,
    COLLECTION,
    COPY,
    FACTS,
    PASSAGES,
    SEED,
    Caller,
    World,
    document,
    draw_readers,
    passage,
    tokens_of,
)
from tests.support.simple_facts import read_triples
from tests.support.strict_client import TestClient

SCOPES = ("query", "read", "judge")
Client = Callable[..., TestClient]


@pytest.fixture(scope="module")
def keyed(settings: Settings, own: Servers, heavy: Heavy) -> Iterator[Application]:
    services = Application(settings.model_copy(update={"access": "keys"}), own, consumer="readers")
    services.models.embedder, services.models.language = heavy
    yield services
    services.close()


@pytest.fixture(scope="module")
def client(keyed: Application) -> Client:
    """Makes a client whose key has these principals and scopes."""
    served = create_app(keyed)

    def make(*principals: str, scopes: Sequence[str] | Mapping[str, Sequence[str]] = SCOPES) -> TestClient:
        granted = scopes if isinstance(scopes, Mapping) else {"*": scopes}
        name = f"k{abs(hash((principals, str(granted)))):x}"
        made = keyed.auth.access_keys.make(LOCAL, AccessKeyRequest(name=name, scopes=granted, reads_as=principals))
        headers = {"authorization": f"Bearer {made.key}"}
        return TestClient(served, raise_server_exceptions=False, headers=headers)

    return make


@pytest.fixture(scope="module")
def admin(client: Client) -> TestClient:
    return client(scopes=["admin"])


@pytest.fixture(scope="module")
def local(settings: Settings, own: Servers, keyed: Application) -> Iterator[TestClient]:
    """A client of an application that needs no key."""
    services = Application(settings, own, consumer="readers-local")
    services.models.embedder, services.models.language = keyed.models.embedder, keyed.models.language
    yield TestClient(create_app(services), raise_server_exceptions=False)
    services.close()


Put = Callable[..., None]


@pytest.fixture(scope="module")
def put(keyed: Application, admin: TestClient) -> Put:
    """Ingest passages through the API."""

    def run(collection: str, *passages: Mapping[str, Any], documents: Sequence[Mapping[str, Any]] = ()) -> None:
        body = {"collection": collection, "passages": list(passages), "documents": list(documents)}
        accepted = admin.post("/passages", json=body)
        assert accepted.status_code == 202, accepted.text
        keyed.jobs.runner.run_ready()
        job = admin.get(f"/jobs/{accepted.json()['job_id']}", params={"collection": collection}).json()
        assert job["status"] == "succeeded", job

    return run


def state_facts(admin: TestClient, collection: str, passage: Mapping[str, Any]) -> None:
    """State the facts of a passage, with the passage for their source."""
    triples = read_triples(passage.get("title"), re.split(r"(?<=\.) ", passage["text"]))
    facts = [{"subject": one.subject, "predicate": one.predicate, "object": one.object} for one in triples]
    if facts:
        body = {"collection": collection, "source": passage["id"], "facts": facts}
        admin.post("/facts", json=body).raise_for_status()


def fill(world: World, put: Put, admin: TestClient) -> None:
    """Ingest the passages of a world, each a document, with the facts that they state; note their sentences."""
    put(
        world.name,
        *(
            passage(number, readers) | {"document": document(tokens_of(number))["source"]}
            for number, readers in world.readers.items()
        ),
        documents=[document(tokens_of(number)) | {"folder": FOLDER} for number in world.readers],
    )
    for number, readers in world.readers.items():
        state_facts(admin, world.name, passage(number, readers))
        shown = admin.get(f"/passages/{tokens_of(number)['id']}", params={"collection": world.name}).json()
        world.sentences[number] = [sentence["sentence_id"] for sentence in shown["sentences"]]


@pytest.fixture(scope="module")
def world(put: Put, admin: TestClient) -> World:
    dice = random.Random(SEED)
    world = World(COLLECTION, {number: draw_readers(dice) for number in range(PASSAGES)})
    put(COLLECTION, {"id": "first", "text": "Rome lies on the Tiber.", "readers": []})
    put(BESIDE, {"id": "beside", "text": "Marie Curie met Albert Einstein in Brussels."})
    fill(world, put, admin)
    found = admin.post("/facts/search", json={"collection": COLLECTION, "subject": tokens_of(0)["title"]}).json()
    assert found["facts"]
    assert all(one["fact_id"] <= FACTS for one in found["facts"])
    return world


@pytest.fixture(scope="module")
def copied(world: World, keyed: Application, admin: TestClient) -> World:
    """A copy of the collection, whose passages keep the readers that they had."""
    body = {"until": datetime.now(UTC).isoformat(), "into": COPY}
    made = admin.post(f"/collections/{COLLECTION}/replay", json=body)
    assert made.status_code == 202, made.text
    keyed.jobs.runner.run_ready()
    assert admin.get(f"/collections/{COPY}").json()["passage_count"] == PASSAGES + 1
    return replace(world, name=COPY, readers=dict(world.readers), ids={}, asked=0)


@pytest.fixture(scope="module")
def callers(client: Client, local: TestClient) -> list[Caller]:
    every = [*SCOPES, "moderate", "llm"]
    audit = [*every, "audit"]
    frontend = client(scopes=[*SCOPES, "act-as"])
    return [
        Caller(client(scopes=every), frozenset()),
        Caller(client("group:a", scopes=SCOPES), frozenset({"group:a"})),
        Caller(client("user:ana", "group:b", scopes=every), frozenset({"user:ana", "group:b"})),
        Caller(client(scopes={COLLECTION: SCOPES, COPY: SCOPES, BESIDE: ["admin"]}), frozenset()),
        Caller(client(scopes=audit), frozenset(), audits=True),
        Caller(client("group:a", "user:bo", scopes=audit), frozenset({"group:a", "user:bo"}), audits=True),
        Caller(client("group:b", scopes=["ingest"]), frozenset({"group:b"}), syncs=True),
        *(Caller(frontend, frozenset(names), acts=True) for names in ([], ["user:bo"], ["group:c", "group:a"])),
        *(Caller(local, frozenset(names), acts=True) for names in ([], ["user:ana"], ["group:b", "user:bo"])),
    ]
