"""The ledger of a pull: which scores of another product were sent as ratings."""

from collections.abc import Sequence
from datetime import datetime

from engram.services.auth.scope import Scope
from engram.storage.corpus import collections
from engram.storage.database import Database
from engram.wings.frontends.storage import pulled_scores
from engram.wings.frontends.storage.pulled_scores import PulledScore

__all__ = ["PullLedger", "PulledScore"]


class PullLedger:
    """Reads and writes what a principal's pulls sent; the ratings themselves come in as verdicts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self, scope: Scope, source: str, *, since: datetime | None, after: str, limit: int
    ) -> list[PulledScore]:
        """List the scores of a source given at ``since`` or later, in id order, those after ``after``."""
        with self._database.read() as reader:
            return pulled_scores.page(
                reader, scope.collection.id, scope.principal.name, source, since=since, after=after, limit=limit
            )

    def put(self, scope: Scope, source: str, scores: Sequence[PulledScore]) -> None:
        """Store scores in place of what was stored of them, all in one transaction.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
        """
        target = scope.collection
        ordered = sorted(scores, key=lambda score: score.score_id)  # two writers lock rows in one order
        with self._database.write() as writer:
            if not collections.lock_against_deletion(writer, target.id):
                raise collections.build_gone_error(target.name)
            pulled_scores.put(writer, target.id, scope.principal.name, source, ordered)
