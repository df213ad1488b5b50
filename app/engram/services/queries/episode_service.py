"""Answered queries, read again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from engram.core.auth.access_keys import AUDIT
from engram.services.auth.scope import Scope
from engram.services.queries.stored_answer import AnswerReading
from engram.storage.database import Database
from engram.storage.retrieval import episodes
from engram.storage.retrieval.episodes import TracedEpisode

MOST_QUERIES = 1_000
"""Queries of one trace that are listed, at most."""


@dataclass(frozen=True, slots=True)
class Episode:
    """An answered query as it can be read again; ``judged`` counts its verdicts, revoked ones included."""

    answer: Mapping[str, Any]
    trace: Mapping[str, Any]
    judged: int
    created_at: datetime


class EpisodeService:
    """Reads episodes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, scope: Scope, query_id: UUID) -> Episode:
        """An answered query, with the texts that there still are.

        Raises:
            NotFoundError: there is no such query, or none any more, or it is not for this principal to see.
        """
        with self._database.snapshot() as reader:
            stored = episodes.find(reader, scope.collection.id, query_id)
            if not scope.sees(stored.principal):
                raise episodes.build_missing_error(query_id)
            reading = AnswerReading(reader, scope.collection, stored)
        trace = reading.trace()
        if not scope.is_allowed(AUDIT):
            trace = {**trace, "recalled": [{**row, "past_question": None} for row in trace["recalled"]]}
        return Episode(reading.answer(), trace, stored.judged, stored.created_at)

    def list_trace_queries(self, scope: Scope, trace_id: str) -> list[TracedEpisode]:
        """List the queries of a trace that the principal may see, oldest first, at most ``MOST_QUERIES``."""
        with self._database.read() as reader:
            listed = episodes.list_by_trace(reader, scope.collection.id, trace_id, MOST_QUERIES)
        return [episode for episode in listed if scope.sees(episode.principal)]
