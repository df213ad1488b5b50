"""Sessions follow the passages that they read: see ``session_erasure``."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from engram.services.corpus.passage_drafts import PassageDraft
from engram.services.corpus.passage_observer import LostSentences, ObservedBatch, PlacedSentences
from engram.storage.corpus.collections import Collection
from engram.storage.database import Writer
from engram.wings.sessions.storage import session_erasure


class SessionObserver:
    """Erases what sessions made in words of passages that go or lose sentences."""

    def prepare(self, collection: Collection, drafts: Sequence[PassageDraft]) -> "SessionBatch":
        """Sessions read nothing of new passages."""
        return SessionBatch(collection.id)

    @contextmanager
    def removal(self, writer: Writer, collection_id: int, passage: int, sentences: Sequence[int]) -> Iterator[None]:
        """Erase what sessions made of the passage."""
        yield
        session_erasure.forget_passages(writer, collection_id, [passage])

    def follow(self, writer: Writer, collection_id: int, places: Mapping[int, int]) -> None:
        """Leave sessions as they are: the text is still there."""


class SessionBatch(ObservedBatch):
    """Traces in sessions of the passages of one batch."""

    def __init__(self, collection_id: int) -> None:
        self._collection_id = collection_id

    def after(self, writer: Writer, lost: LostSentences, placed: PlacedSentences) -> None:
        """Erase what sessions made of passages that lost sentences."""
        if lost.texts:
            session_erasure.forget_passages(writer, self._collection_id, list(lost.texts))
