"""Observers of passages: when they are called, in which order, and what they see."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from engram.composition.container import Application
from engram.services.corpus.graph_builder import GraphBuilder
from engram.services.corpus.passage_intake import IngestService
from engram.services.corpus.passage_observer import TextChange
from engram.storage.corpus import passages
from engram.storage.database import Writer
from tests.support import state
from tests.support.jobs import runner

BEES = {"id": "bees", "title": "Bees", "text": "Bees fly. Bees sting."}
CHANGED = BEES | {"text": "Bees fly. Bees dance."}


@dataclass
class Recorder:
    """Notes each call, by its own name, with the texts of the sentences that stand then."""

    name: str
    calls: list[tuple[object, ...]]

    @contextmanager
    def change(self, writer: Writer, collection_id: int, changes: Mapping[int, TextChange]) -> Iterator[None]:
        ((passage, text),) = changes.items()
        self.calls.append((self.name, "enter", list_texts(writer, collection_id, passage)))
        yield
        self.calls.append((self.name, "leave", list_texts(writer, collection_id, passage), text))

    @contextmanager
    def removal(self, writer: Writer, collection_id: int, passage: int) -> Iterator[None]:
        self.calls.append((self.name, "enter", list_texts(writer, collection_id, passage)))
        yield
        self.calls.append((self.name, "leave", list_texts(writer, collection_id, passage)))


def list_texts(writer: Writer, collection_id: int, passage: int) -> list[str]:
    return sorted(sentence.text for sentence in passages.list_sentences(writer, collection_id, [passage]))


@pytest.fixture
def observers() -> list[Recorder]:
    calls: list[tuple[object, ...]] = []
    return [Recorder("first", calls), Recorder("second", calls)]


def put(application: Application, name: str, observers: Sequence[Recorder], *bodies: dict[str, str]) -> None:
    index = GraphBuilder(
        application.database,
        application.models.encoder,
        application.models.language,
        application.corpus.kinds,
        batch_size=3,
        replay_sentences=application.corpus.replay_sentences,
        observers=observers,
    )
    state.stage_passages(application, name, *bodies)
    assert runner(application, ingest=index).run_ready() == 1


def test_a_change_is_entered_while_lost_sentences_stand_and_left_once_they_are_gone(
    application: Application, collection: str, observers: list[Recorder]
) -> None:
    put(application, collection, [], BEES)
    put(application, collection, observers, CHANGED)
    text = TextChange("Bees fly. Bees sting.", "Bees\nBees fly. Bees dance.")
    before, after = ["Bees fly.", "Bees sting."], ["Bees dance.", "Bees fly."]
    assert observers[0].calls == [
        ("first", "enter", before),
        ("second", "enter", before),
        ("second", "leave", after, text),
        ("first", "leave", after, text),
    ]


@pytest.mark.parametrize("again", [BEES, BEES | {"text": "Bees fly. Bees sting. Bees dance."}])
def test_passages_that_lose_no_sentence_are_not_observed(
    application: Application, collection: str, observers: list[Recorder], again: dict[str, str]
) -> None:
    put(application, collection, observers[:1], BEES)
    put(application, collection, observers[:1], again)
    assert observers[0].calls == []


def test_a_removal_is_entered_while_sentences_stand_and_left_once_they_are_gone(
    application: Application, collection: str, observers: list[Recorder]
) -> None:
    put(application, collection, [], BEES)
    ingest = IngestService(application.database, application.models.encoder, observers)
    ingest.delete_passage(application.auth.access.scope(collection), "bees")
    sentences = ["Bees fly.", "Bees sting."]
    assert observers[0].calls == [
        ("first", "enter", sentences),
        ("second", "enter", sentences),
        ("second", "leave", []),
        ("first", "leave", []),
    ]
