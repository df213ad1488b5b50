"""Observers of passages: when they are called, in which order, and what they see."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from engram.composition.container import Application
from engram.services.corpus.graph_builder import IndexService
from engram.services.corpus.passage_drafts import PassageDraft
from engram.services.corpus.passage_intake import IngestService
from engram.services.corpus.passage_observer import LostSentences, ObservedBatch, PlacedSentences, TextChange
from engram.storage.corpus import passages
from engram.storage.corpus.collections import Collection
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
    on_prepare: Callable[[], None] = lambda: None

    def prepare(self, collection: Collection, drafts: Sequence[PassageDraft]) -> "RecordedBatch":
        self.calls.append((self.name, "prepare", [draft.external_id for draft in drafts]))
        self.on_prepare()
        return RecordedBatch(self, collection.id)

    @contextmanager
    def removal(self, writer: Writer, collection_id: int, passage: int, sentences: Sequence[int]) -> Iterator[None]:
        self.calls.append((self.name, "enter", list_texts(writer, collection_id, passage)))
        yield
        self.calls.append((self.name, "leave", list_texts(writer, collection_id, passage)))

    def follow(self, writer: Writer, collection_id: int, places: Mapping[int, int]) -> None:
        self.calls.append((self.name, "follow", len(places)))


@dataclass
class RecordedBatch(ObservedBatch):
    recorder: Recorder
    collection_id: int

    def before(self, writer: Writer, lost: LostSentences) -> None:
        texts = [list_texts(writer, self.collection_id, passage) for passage in lost.texts]
        self.recorder.calls.append((self.recorder.name, "before", len(lost.removed), texts))

    def after(self, writer: Writer, lost: LostSentences, placed: PlacedSentences) -> None:
        stored = {
            sentence.id: sentence.text
            for sentence in passages.list_sentences(writer, self.collection_id, placed.passages.values())
        }
        said = {place: stored[sentence] for place, sentence in placed.sentences.items()}
        self.recorder.calls.append((self.recorder.name, "after", [*lost.texts.values()], said))

    def committed(self) -> None:
        self.recorder.calls.append((self.recorder.name, "committed"))


def list_texts(writer: Writer, collection_id: int, passage: int) -> list[str]:
    return sorted(sentence.text for sentence in passages.list_sentences(writer, collection_id, [passage]))


@pytest.fixture
def observers() -> list[Recorder]:
    calls: list[tuple[object, ...]] = []
    return [Recorder("first", calls), Recorder("second", calls)]


def put(application: Application, name: str, observers: Sequence[Recorder], *bodies: dict[str, str]) -> None:
    index = IndexService(
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


def test_observers_follow_each_batch_one_after_another(
    application: Application, collection: str, observers: list[Recorder]
) -> None:
    put(application, collection, observers, BEES)
    said = {("bees", 0): "Bees fly.", ("bees", 1): "Bees sting."}
    assert observers[0].calls == [
        ("first", "prepare", ["bees"]),
        ("second", "prepare", ["bees"]),
        ("first", "before", 0, []),
        ("second", "before", 0, []),
        ("first", "after", [], said),
        ("second", "after", [], said),
        ("first", "committed"),
        ("second", "committed"),
    ]


def test_lost_sentences_stand_before_and_are_gone_after(
    application: Application, collection: str, observers: list[Recorder]
) -> None:
    put(application, collection, [], BEES)
    put(application, collection, observers[:1], CHANGED)
    text = TextChange("Bees fly. Bees sting.", "Bees\nBees fly. Bees dance.")
    assert observers[0].calls == [
        ("first", "prepare", ["bees"]),
        ("first", "before", 1, [["Bees fly.", "Bees sting."]]),
        ("first", "after", [text], {("bees", 0): "Bees fly.", ("bees", 1): "Bees dance."}),
        ("first", "committed"),
    ]


def test_a_batch_is_prepared_again_if_the_graph_changed_meanwhile(
    application: Application, collection: str, observers: list[Recorder]
) -> None:
    put(application, collection, [], BEES)

    def remove_once() -> None:
        if state.passages(application, collection):
            application.corpus.ingest.delete_passage(application.auth.access.scope(collection), "bees")

    observers[0].on_prepare = remove_once
    put(application, collection, observers[:1], CHANGED)
    assert [call[1] for call in observers[0].calls] == ["prepare", "prepare", "before", "after", "committed"]


def test_unchanged_passages_are_not_observed(
    application: Application, collection: str, observers: list[Recorder]
) -> None:
    put(application, collection, [], BEES)
    put(application, collection, observers[:1], BEES)
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
