"""Sessions follow the passages that they read: see ``session_erasure``."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from engram.services.corpus.passage_observer import TextChange
from engram.storage.database import Writer
from engram.wings.sessions.storage import session_erasure


class SessionObserver:
    """Erases what sessions made in words of passages that go or lose sentences."""

    @contextmanager
    def change(self, writer: Writer, collection_id: int, changes: Mapping[int, TextChange]) -> Iterator[None]:
        """Erase what sessions made of passages that lost sentences."""
        yield
        session_erasure.forget_passages(writer, collection_id, list(changes))

    @contextmanager
    def removal(self, writer: Writer, collection_id: int, passage: int) -> Iterator[None]:
        """Erase what sessions made of the passage."""
        yield
        session_erasure.forget_passages(writer, collection_id, [passage])
