"""Derived state: what wings keep of a collection, and have copied, verified, cleared and retired with it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from engram.services.revocation.verification_findings import Findings
from engram.storage.database import Reader, Writer
from engram.storage.erasure.erased_log import Selection
from engram.storage.revocation.copied_rows import Copy

Report = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much."""


class DerivedState:
    """State that one wing keeps. A method that is not overridden does nothing.

    Attributes:
        verified_tables: tables that ``verify`` compares rows of.
        counted_tables: tables whose rows the report on a copy counts.
    """

    verified_tables: Sequence[str] = ()
    counted_tables: Sequence[str] = ()

    def copy_events(self, writer: Writer, copy: Copy, events: Sequence[int]) -> None:
        """Copy what the log says of these verdicts, which the copy has by now, in its transaction."""

    def copy(self, writer: Writer, copy: Copy, restored: Sequence[int], report: Report) -> bool:
        """Complete a copy of a past moment, in its transaction.

        The copy has the corpus, the log and the question memory that the log leads to.

        Args:
            restored: verdicts that were revoked since, and whose effects on verdicts were repeated in the copy.

        Returns:
            Whether the state can have been no other at that moment.
        """
        return True

    def verify(self, reader: Reader, collection_id: int, findings: Findings) -> None:
        """Compare what is stored with what it follows from, on the snapshot of the verification."""

    def withdraw(self, writer: Writer, collection_id: int, events: Sequence[int]) -> None:
        """Withdraw what these applied verdicts taught, in the transaction that revokes them.

        Rows of sentences are locked then, those of weights are not.
        """

    def rebase(self, writer: Writer, collection_id: int, passages: Sequence[int]) -> None:
        """Compute anew what follows from the base keys of these passages, in the transaction that changed them.

        ``collections.lock_graph`` holds the collection.
        """

    def replay_sentences(self, writer: Writer, collection_id: int, sentences: Sequence[int]) -> None:
        """Compute anew what follows from these sentences, in the transaction that changed them.

        Their texts were revised, or they are there again after a removal. The collection's graph and the right to
        learn are locked.

        Args:
            sentences: in id order.
        """

    def follow_encoder(self, writer: Writer, collection_id: int) -> None:
        """Compute anew what follows from vectors, in the transaction that exchanged those of all rows.

        The collection and the right to learn are locked.
        """

    def clear(self, writer: Writer, collection_id: int) -> Mapping[str, int]:
        """Remove what does not outlive the log, in the transaction that removes the log; table -> rows."""
        return {}

    def find_related_queries(self, reader: Reader, collection_id: int, queries: Sequence[UUID]) -> Sequence[UUID]:
        """Find queries that were made of these, and go with them in an erasure."""
        return ()

    def erase(
        self, writer: Writer, collection_id: int, selection: Selection, random_name: str
    ) -> Mapping[str, int]:
        """Erase what an erasure selects, in its last transaction; table -> rows.

        Args:
            random_name: stands for the name of the person where a row has to stay.
        """
        return {}

    def retire(self, writer: Writer, before: datetime, limit: int) -> int:
        """Remove at most ``limit`` things that ended before the moment; how many. Answered queries go by the same
        moment.
        """
        return 0
