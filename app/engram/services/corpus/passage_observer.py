"""Observers of passages: what is made of passages elsewhere follows when their text changes or goes."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from engram.storage.database import Writer


@dataclass(frozen=True, slots=True)
class TextChange:
    """The text of a passage, with its title, as it was and as it is."""

    before: str
    after: str


class PassageObserver(Protocol):
    """Follows the passages of all collections.

    Observers are called one after another, always in the same order, so that their locks are taken in that order.
    An observer that serialises its own writers locks when it is entered: the collection's graph is locked already,
    and no sentence is. The lock of learning (``collections.lock_learning``) comes after this.
    """

    def change(
        self, writer: Writer, collection_id: int, changes: Mapping[int, TextChange]
    ) -> AbstractContextManager[None]:
        """Follow passages that lose sentences, in the transaction that writes them.

        Entered while these sentences stand, left once they are gone and the new ones are stored.

        Args:
            changes: passage -> its text.
        """
        ...

    def removal(self, writer: Writer, collection_id: int, passage: int) -> AbstractContextManager[None]:
        """Follow the removal of a passage, in the transaction that removes it.

        Entered while its sentences stand, left once they are gone.
        """
        ...
