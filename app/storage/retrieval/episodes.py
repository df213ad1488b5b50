"""Episodes: answered queries with their traces, which feedback refers to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from app.errors import NotFoundError
from app.storage.database import Reader, Writer
from app.storage.parameters import Numbers


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """An episode to write.

    Attributes:
        activated: sentences that were selected in any hop, which a verdict judges unless it is partial.
        answer: the response as it was given.
        trace: how it came about.
        ranked: the best candidates, shown or not, with their ``features`` (n, k) as a verdict on the ranking needs
            them; None where it would not speak of the ranking alone.
        strategy: how passages were looked for.
        arm: of the collection's experiment; None for none.
        explored: passages that exploration put into the answer.
    """

    id: UUID
    question: str
    embedding: NDArray[np.float32]
    time_constraint: str | None
    time_embedding: NDArray[np.float32] | None
    memory: str
    profile: str
    activated: Sequence[int]
    answer: dict[str, Any]
    trace: dict[str, Any]
    ranked: NDArray[np.int64] | None = None
    features: NDArray[np.float32] | None = None
    strategy: str = "graph"
    arm: str | None = None
    explored: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class StoredEpisode:
    """An episode as it can be read again; ``judged`` is how many verdicts refer to it, revoked ones included."""

    id: UUID
    question: str
    activated: list[int]
    answer: dict[str, Any]
    trace: dict[str, Any]
    judged: int
    created_at: datetime


def insert(writer: Writer, collection_id: int, episode: EpisodeRow) -> None:
    """Write an episode."""
    writer.execute(
        """
        INSERT INTO episode (collection_id, id, question, embedding, time_constraint, time_embedding, memory,
                             profile, strategy, activated, answer, trace, ranked, features, arm, explored)
        VALUES (%(collection)s, %(id)s, %(question)s, %(embedding)s, %(time_constraint)s, %(time_embedding)s,
                %(memory)s, %(profile)s, %(strategy)s, %(activated)s, %(answer)s, %(trace)s, %(ranked)s,
                %(features)s, %(arm)s, %(explored)s)
        """,
        {
            "collection": collection_id,
            "id": episode.id,
            "question": episode.question,
            "embedding": episode.embedding,
            "time_constraint": episode.time_constraint,
            "time_embedding": episode.time_embedding,
            "memory": episode.memory,
            "profile": episode.profile,
            "strategy": episode.strategy,
            "activated": list(episode.activated),
            "answer": Jsonb(episode.answer),
            "trace": Jsonb(episode.trace),
            "ranked": None if episode.ranked is None else Numbers(episode.ranked),
            "features": None if episode.features is None else episode.features.astype("<f4").tobytes(),
            "arm": episode.arm,
            "explored": list(episode.explored) or None,
        },
    )


_REFERRING = """
    FROM feedback_event event WHERE event.collection_id = episode.collection_id AND event.query_id = episode.id
"""
_SELECT = f"""
    SELECT id, question, activated, answer, trace, (SELECT count(*) {_REFERRING}) AS judged, created_at
    FROM episode
"""


def find(reader: Reader, collection_id: int, episode: UUID) -> StoredEpisode:
    """The episode.

    Raises:
        NotFoundError: there is none with this id in the collection.
    """
    row = reader.row(
        f"{_SELECT} WHERE collection_id = %(collection)s AND id = %(id)s",
        {"collection": collection_id, "id": episode},
    )
    if row is None:
        raise missing(episode)
    return StoredEpisode(*row)


def missing(episode: UUID) -> NotFoundError:
    """What is raised where there is no such episode."""
    return NotFoundError(f"There is no query {episode} in this collection.")


def unjudged(reader: Reader, collection_id: int, window_hours: float, limit: int) -> list[StoredEpisode]:
    """Recent episodes that no feedback refers to, oldest first."""
    rows = reader.rows(
        f"""
        {_SELECT}
        WHERE collection_id = %(collection)s AND NOT EXISTS (SELECT {_REFERRING})
          AND created_at > now() - make_interval(secs => %(seconds)s)
        ORDER BY created_at LIMIT %(limit)s
        """,
        {"collection": collection_id, "seconds": window_hours * 3600.0, "limit": limit},
    )
    return [StoredEpisode(*row) for row in rows]
