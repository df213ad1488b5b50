"""Names are embedded after the passages that brought them can be found."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engram.composition.container import Application
from engram.services.corpus.entity_embedding import EntityEmbedder
from engram.services.encoders.encoder import Encoder
from engram.services.question.query import Query
from tests.support import state
from tests.support.jobs import runner

PASSAGES = (
    {"id": "mill", "title": "Old Mill", "text": "The Old Mill was built by Ada Lund. It grinds rye."},
    {"id": "bridge", "title": "Muhammad Bridge", "text": "Muhammad Bridge crosses the Elbe at Torgau."},
)
WAITING_NAMES = "SELECT name FROM entity WHERE collection_id = %(id)s AND embedding IS NULL ORDER BY name"


class Heard:
    """The real encoder, and what it was given."""

    def __init__(self, application: Application) -> None:
        self._embedder = application.models.embedder
        self.model, self.fingerprint = self._embedder.model, self._embedder.fingerprint
        self.dimension = self._embedder.dimension
        self.texts: list[str] = []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._embedder.count_tokens(texts)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        return self._embedder.embed(texts)


def list_waiting(application: Application, collection: str) -> list[str]:
    scope = application.auth.access.scope(collection)
    with application.database.read() as reader:
        return [row.name for row in reader.rows(WAITING_NAMES, {"id": scope.collection.id})]


def ingest_without_names(application: Application, collection: str) -> int:
    """The passages can be found, and no name is embedded; the collection."""
    state.stage_passages(application, collection, *PASSAGES)
    runner(application, ingest=application.corpus.index).run_ready()
    return application.auth.access.scope(collection).collection.id


def ask_by_names(application: Application, collection: str, text: str) -> tuple[list[str], list[str]]:
    """Names of entities it is aligned to, and passages found."""
    scope = application.auth.access.scope(collection)
    found = application.retrieval.retrieve.find(
        application.retrieval.retrieve.plan(Query(text=text, scope=scope, top_k=2))
    )
    return [entity.name for entity in found.entities], [external_id for _, external_id, _ in found.shown_passages]


def test_passages_are_found_before_names_are_embedded(application: Application, collection: str) -> None:
    ingest_without_names(application, collection)
    assert set(list_waiting(application, collection)) >= {"ada lund", "old mill", "torgau"}
    assert ask_by_names(application, collection, "Who built the Old Mill?") == (["Old Mill"], ["mill", "bridge"])


def test_a_name_spelt_otherwise_needs_no_embedding(application: Application, collection: str) -> None:
    ingest_without_names(application, collection)
    names, shown = ask_by_names(application, collection, "Which river does Muhamad Bridge cross?")
    assert names == ["Muhammad Bridge"]
    assert shown[0] == "bridge"


def test_a_name_that_none_bears_is_compared_with_what_is_embedded_by_then(
    application: Application, collection: str
) -> None:
    identifier = ingest_without_names(application, collection)
    question = "Who owns the Ancient Windmill?"
    assert ask_by_names(application, collection, question)[0] == []
    assert application.corpus.names.run(collection_id=identifier) > 0
    assert list_waiting(application, collection) == []
    assert ask_by_names(application, collection, question)[0] == ["Old Mill"]


def test_each_name_is_embedded_once(application: Application, collection: str) -> None:
    identifier = ingest_without_names(application, collection)
    heard = Heard(application)
    names = EntityEmbedder(application.database, Encoder(heard))
    count = len(list_waiting(application, collection))
    assert names.run(collection_id=identifier) == count
    assert names.run(collection_id=identifier) == 0
    assert len(heard.texts) == count


def test_another_encoders_names_are_left_alone(application: Application, collection: str) -> None:
    identifier = ingest_without_names(application, collection)
    heard = Heard(application)
    heard.fingerprint = "another"
    assert EntityEmbedder(application.database, Encoder(heard)).run(collection_id=identifier) == 0
    assert heard.texts == []
    assert list_waiting(application, collection) != []


def test_entity_embedding_stops_on_request(application: Application, collection: str) -> None:
    identifier = ingest_without_names(application, collection)
    assert application.corpus.names.run(lambda: True, collection_id=identifier) == 0
    assert list_waiting(application, collection) != []


def test_doing_what_is_ready_names_as_well(application: Application, collection: str) -> None:
    state.stage_passages(application, collection, *PASSAGES)
    application.jobs.runner.run_ready()
    assert list_waiting(application, collection) == []


def test_a_worker_leaves_names_to_the_one_that_is_at_it(application: Application, collection: str) -> None:
    identifier = ingest_without_names(application, collection)
    with application.database.hold_lock("names") as held:
        assert held
        assert application.corpus.names.run(collection_id=identifier, one_thread=True) == 0
    assert application.corpus.names.run(collection_id=identifier, one_thread=True) > 0
