"""Counts of passages by the values of a field, as callers see them."""

from collections.abc import Mapping
from typing import Any

from engram.services.auth.scope import Scope
from engram.storage.database import Database
from engram.storage.question import passage_counts
from engram.storage.question.passage_counts import PassageCounts


class PassageCountService:
    """Counts passages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self, scope: Scope, filter_: Mapping[str, Any] | None, by: str | None, limit: int) -> PassageCounts:
        """Count the passages that the principal sees and the filter lets through, by the values of field ``by``."""
        with self._database.read() as reader:
            return passage_counts.count(reader, scope.collection.id, filter_, by, limit)
