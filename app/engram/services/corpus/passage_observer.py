"""Observers of passages: what is made of passages elsewhere follows when they are written or removed."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from engram.services.corpus.passage_drafts import PassageDraft
from engram.storage.corpus.collections import Collection
from engram.storage.database import Writer


@dataclass(frozen=True, slots=True)
class TextChange:
    """The text of a passage, with its title, as it was and as it is."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class LostSentences:
    """Sentences that passages of a batch no longer have.

    Attributes:
        removed: these sentences.
        texts: passage that loses some -> its text.
    """

    removed: Sequence[int]
    texts: Mapping[int, TextChange]


@dataclass(frozen=True, slots=True)
class PlacedSentences:
    """Passages of a batch, as they are stored.

    Attributes:
        passages: external id -> passage.
        sentences: external id, position in the passage -> sentence.
    """

    passages: Mapping[str, int]
    sentences: Mapping[tuple[str, int], int]


class ObservedBatch:
    """Acts of an observer on one batch of passages. A method that is not overridden does nothing."""

    def before(self, writer: Writer, lost: LostSentences) -> None:
        """Act while sentences that go still stand.

        An observer that serialises its own writers locks here: the collection's graph is locked already, and no
        sentence is. The lock of learning (``collections.lock_learning``) comes after this, here or in ``after``.
        """

    def after(self, writer: Writer, lost: LostSentences, placed: PlacedSentences) -> None:
        """Act once the batch's sentences are stored and the lost ones are gone, in the same transaction."""

    def committed(self) -> None:
        """Act when the transaction has ended well. A process that dies before leaves this out."""


class PassageObserver(Protocol):
    """Follows the passages of all collections.

    Observers are called one after another, always in the same order, so that their locks are taken in that order.
    """

    def prepare(self, collection: Collection, drafts: Sequence[PassageDraft]) -> ObservedBatch:
        """Read what a batch of passages says. No transaction is open.

        Writes nothing: the same passages are prepared again if the graph changes before they are written.
        """
        ...

    def removal(
        self, writer: Writer, collection_id: int, passage: int, sentences: Sequence[int]
    ) -> AbstractContextManager[None]:
        """Follow the removal of a passage with its sentences, in the transaction that removes them.

        Entered while they stand and the collection's graph is locked, left once they are gone.
        """
        ...

    def follow(self, writer: Writer, collection_id: int, places: Mapping[int, int]) -> None:
        """Follow sentences into the passages that they are about to stand in; the collection's graph is locked.

        Args:
            places: sentence -> its passage from now on.
        """
        ...
