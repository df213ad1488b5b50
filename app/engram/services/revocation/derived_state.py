"""Derived state: what other rooms keep of a collection, and have copied, verified, cleared and retired with it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from engram.services.revocation.verification_findings import Findings
from engram.storage.database import Reader, Writer
from engram.storage.erasure.erased_log import Selection
from engram.storage.revocation.copied_rows import Copy


class DerivedState:
    """State that one room keeps. A method that is not overridden does nothing.

    Attributes:
        verified_tables: tables that ``verify`` compares rows of.
    """

    verified_tables: Sequence[str] = ()

    def copy(self, writer: Writer, copy: Copy) -> None:
        """Complete a copy of a past moment, in its transaction.

        The copy has the corpus, the log and the memories that the log leads to.
        """

    def verify(self, reader: Reader, collection_id: int, findings: Findings) -> None:
        """Compare what is stored with what it follows from, on the snapshot of the verification."""

    def withdraw(self, writer: Writer, collection_id: int, events: Sequence[int]) -> None:
        """Withdraw what these applied verdicts taught, in the transaction that revokes them.

        Rows of sentences, keys and weights are locked then.
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
