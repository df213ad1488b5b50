"""Episodes: answered queries as ids and numbers, which feedback refers to.

What an answer said is read again from the corpus: a text that was deleted is in no answer any more.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from engram.context.errors import NotFoundError
from engram.core.ranking.reranking import RerankedFeatures
from engram.storage.column_parameters import Numbers, integers
from engram.storage.corpus import collections
from engram.storage.corpus.collection_lock import SHARED_LOCK, row_lock
from engram.storage.corpus.collections import QUERY
from engram.storage.database import Reader, Writer
from engram.storage.moved_collections import check_not_moved
from engram.storage.row_lookups import NOT_DELETED, WANTED_IDS, id_rows, join_by_index
from engram.storage.written_names import WRITTEN_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRow:
    """An episode to write.

    Attributes:
        id: of version 7; there must be a partition for its week, see ``weeks``.
        filter: what metadata its passages had to have; None for all.
        activated: sentences that were selected in any hop, which a verdict judges unless it is partial.
        shown: passages of the answer, in order.
        answer, trace: what was answered and how it came about, in ids and numbers.
        ranked: the best candidates, shown or not; None where a verdict would not speak of the ranking alone.
        best_features: of the first of them, (k,).
        answer_features: features of the answer for the sufficiency model, (k,); None where a verdict would not
            speak of the first of ``ranked``.
        reranked: what a reranker said of ``ranked``; None where none did, or where ``ranked`` is None.
        strategy: how passages were looked for.
        arm: of the collection's experiment; None for none.
        explored: passages that exploration put into the answer.
        principal: whose request it was.
        space: of the collection's, that its vectors are of.
        trace_id: the caller's id of the trace that it belongs to; None for none.
        is_part: whether a session asked it as a sub-question.
    """

    id: UUID
    question: str
    embedding: NDArray[np.float32]
    time_constraint: str | None
    time_embedding: NDArray[np.float32] | None
    memory: str
    profile: str
    strategy: str
    filter: Mapping[str, Any] | None
    activated: Sequence[int]
    shown: Sequence[int]
    hops: int
    total_ms: float
    answer: Mapping[str, Any]
    trace: Mapping[str, Any]
    ranked: NDArray[np.int64] | None = None
    best_features: NDArray[np.float32] | None = None
    answer_features: NDArray[np.float32] | None = None
    reranked: RerankedFeatures | None = None
    arm: str | None = None
    explored: Sequence[int] = ()
    principal: str = "local"
    space: int = 0
    trace_id: str | None = None
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class StoredEpisode:
    """An episode as it can be read again; ``judged`` is how many verdicts refer to it, revoked ones included."""

    id: UUID
    question: str
    memory: str
    profile: str
    strategy: str
    filter: dict[str, Any] | None
    activated: list[int]
    shown: list[int]
    explored: list[int]
    hops: int
    arm: str | None
    principal: str
    answer: dict[str, Any]
    trace: dict[str, Any]
    trace_id: str | None
    judged: int
    created_at: datetime


COLLAPSED_KEY = "collapsed"
"""Of an answer: passage that was left out as a duplicate -> the one that stood for it. Absent if there is none."""
NAME_DIGEST, TEXT_DIGEST = "name_digest", "text_digest"
"""Of a shown passage in an answer: digests of its external id and of its text, see ``digest_text``."""
SUFFICIENCY = "sufficiency"
"""Key in an answer: probability that its first five passages hold all evidence; null where features do not rank."""
_WITHOUT_DISK_WAIT = "AND set_config('synchronous_commit', 'off', true) IS NOT NULL"
"""Of a statement that writes: its transaction does not wait for the disk. In it, since to say so before is one more
statement of each query."""


def digest_text(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def insert(writer: Writer, collection_id: int, episode: EpisodeRow, *, durable: bool = True) -> None:
    """Write an episode.

    Args:
        durable: whether the commit waits for the disk. Else a crash of the server may lose it, until
            something durable was committed after it, as a verdict on it is.

    Raises:
        NotFoundError: the collection is gone.
        CollectionMovingError, CollectionMovedError: it is hidden for its move.
    """
    written = writer.execute(
        f"""
        INSERT INTO episode (collection_id, id, question, embedding, time_constraint, time_embedding, memory,
                             profile, strategy, filter, activated, shown, explored, hops, total_ms, arm,
                             principal, answer, trace, ranked, best_features, answer_features, reranker, reranked,
                             space, trace_id, is_part)
        SELECT c.id, %(id)s, %(question)s, %(embedding)s, %(time_constraint)s, %(time_embedding)s,
               %(memory)s, %(profile)s, %(strategy)s, %(filter)s, %(activated)s, %(shown)s, %(explored)s, %(hops)s,
               %(total_ms)s, %(arm)s, %(principal)s, %(answer)s, %(trace)s, %(ranked)s, %(best_features)s,
               %(answer_features)s, %(reranker)s, %(reranked)s, %(space)s, %(trace_id)s, %(is_part)s
        FROM collection c WHERE c.id = %(collection)s AND {NOT_DELETED} {"" if durable else _WITHOUT_DISK_WAIT}
        {row_lock(writer, SHARED_LOCK)}
        """,
        {
            "collection": collection_id,
            "id": episode.id,
            "question": episode.question,
            "embedding": episode.embedding,
            "time_constraint": episode.time_constraint,
            "time_embedding": episode.time_embedding,
            "space": episode.space,
            "trace_id": episode.trace_id,
            "is_part": episode.is_part,
            "memory": episode.memory,
            "profile": episode.profile,
            "strategy": episode.strategy,
            "filter": None if episode.filter is None else Jsonb(dict(episode.filter)),
            "activated": integers(episode.activated),
            "shown": integers(episode.shown),
            "explored": integers(episode.explored) if episode.explored else None,
            "hops": episode.hops,
            "total_ms": episode.total_ms,
            "arm": episode.arm,
            "principal": episode.principal,
            "answer": Jsonb(episode.answer),
            "trace": Jsonb(episode.trace),
            "ranked": None if episode.ranked is None else Numbers(episode.ranked),
            "best_features": None
            if episode.best_features is None
            else episode.best_features.astype("<f4").tobytes(),
            "answer_features": None
            if episode.answer_features is None
            else episode.answer_features.astype("<f4").tobytes(),
            "reranker": None if episode.reranked is None else episode.reranked.prior,
            "reranked": None if episode.reranked is None else episode.reranked.features.astype("<f4").tobytes(),
        },
    )
    if not written:
        check_not_moved(writer, collection_id)
        raise NotFoundError("The collection was deleted meanwhile.")


_REFERRING = """
    FROM feedback_event event WHERE event.collection_id = %(collection)s AND event.query_id = episode.id
"""
_SELECT = f"""
    SELECT id, question, memory, profile, strategy, filter, activated, shown,
           coalesce(explored, '{{}}') AS explored, hops, arm, principal, answer, trace, trace_id,
           (SELECT count(*) {_REFERRING}) AS judged, created_at
    FROM episode
"""


def find(reader: Reader, collection_id: int, episode: UUID) -> StoredEpisode:
    """The episode.

    Raises:
        NotFoundError: there is none with this id in the collection, or none any more.
    """
    row = reader.row(
        f"{_SELECT} WHERE collection_id = %(collection)s AND id = %(id)s",
        {"collection": collection_id, "id": episode},
    )
    if row is None:
        raise build_missing_error(episode)
    return StoredEpisode(**row._asdict())


@dataclass(frozen=True, slots=True)
class TracedEpisode:
    """An episode found by the trace that it belongs to."""

    id: UUID
    question: str
    principal: str
    created_at: datetime


def list_by_trace(reader: Reader, collection_id: int, trace_id: str, limit: int) -> list[TracedEpisode]:
    """List the first ``limit`` episodes of a trace, oldest first."""
    rows = reader.rows(
        """
        SELECT id, question, principal, created_at FROM episode
        WHERE collection_id = %(collection)s AND trace_id = %(trace)s
        ORDER BY id LIMIT %(limit)s
        """,
        {"collection": collection_id, "trace": trace_id, "limit": limit},
    )
    return [TracedEpisode(**row._asdict()) for row in rows]


@dataclass(frozen=True, slots=True)
class EpisodeAnswer:
    """Question of an episode, with its selected sentences and shown passages."""

    question: str
    activated: Sequence[int]
    shown: Sequence[int]


def load_answered(reader: Reader, collection_id: int, ids: Sequence[UUID]) -> dict[UUID, EpisodeAnswer]:
    """Return those of these episodes that are stored."""
    rows = reader.rows(
        f"""
        SELECT e.id, e.question, e.activated, e.shown
        FROM {id_rows("ids", "uuid")} {join_by_index("episode e", "e.id = wanted.id")}
        """,
        {"collection": collection_id, "ids": list(ids)},
    )
    return {row.id: EpisodeAnswer(row.question, row.activated, row.shown) for row in rows}


def load_stand_ins(reader: Reader, collection_id: int, episode: UUID) -> dict[int, int]:
    """Passage that an answer left out as a duplicate -> the one that stood for it."""
    row = reader.row(
        f"""
        SELECT answer -> '{COLLAPSED_KEY}' AS held FROM episode
        WHERE collection_id = %(collection)s AND id = %(id)s
        """,
        {"collection": collection_id, "id": episode},
    )
    stand_ins = {} if row is None or row.held is None else row.held
    return {int(duplicate): passage for duplicate, passage in stand_ins.items()}


@dataclass(frozen=True, slots=True)
class ShownTexts:
    """Texts that an answer showed, as digests.

    Attributes:
        by_row: passage -> digest of its text, in the order shown.
        by_name: digest of the external id -> digest of the text.
        shown_at: when; None: there is no such answer.
    """

    by_row: Mapping[int, str]
    by_name: Mapping[str, str]
    shown_at: datetime | None


def load_shown_texts(reader: Reader, collection_id: int, episode: UUID) -> ShownTexts:
    """Return the texts of the passages that an answer showed."""
    row = reader.row(
        """
        SELECT shown, answer -> 'passages' AS hits, created_at FROM episode
        WHERE collection_id = %(collection)s AND id = %(id)s
        """,
        {"collection": collection_id, "id": episode},
    )
    hits = [] if row is None else list(zip(row.shown, row.hits, strict=True))
    return ShownTexts(
        {passage: hit[TEXT_DIGEST] for passage, hit in hits},
        {hit[NAME_DIGEST]: hit[TEXT_DIGEST] for _, hit in hits},
        None if row is None else row.created_at,
    )


def find_nearest_sentences(
    reader: Reader, collection_id: int, episode: UUID, passages: Collection[int]
) -> dict[int, list[int]]:
    """Passage -> its sentences, the nearest to the episode's question first, of those of the passages with any.

    Nothing where the collection has another encoder's vectors since the episode.
    """
    if not passages:
        return {}
    rows = reader.rows(
        f"""
        SELECT s.passage_id, array_agg(s.id ORDER BY s.embedding <#> asked.embedding, s.id) AS sentences
        FROM (
            SELECT embedding::halfvec FROM episode
            WHERE collection_id = %(collection)s AND id = %(episode)s
              AND space = (SELECT space FROM collection WHERE id = %(collection)s) OFFSET 0
        ) AS asked
        CROSS JOIN {WANTED_IDS} {join_by_index("sentence s", "s.passage_id = wanted.id")}
        GROUP BY s.passage_id
        """,
        {"collection": collection_id, "episode": episode, "ids": integers(sorted(passages))},
    )
    return {row.passage_id: row.sentences for row in rows}


def count_found_for_others(reader: Reader, collection_id: int, episode: UUID, principal: str) -> int:
    """Count what the reader sees of what a query of another than the principal found; 0 for its own queries."""
    count: int = reader.scalar(
        f"""
        WITH found AS MATERIALIZED (
            SELECT e.shown, e.activated FROM episode e
            WHERE e.collection_id = %(collection)s AND e.id = %(id)s AND e.principal <> %(principal)s
        )
        SELECT (SELECT count(*) FROM (SELECT unnest(shown) AS id FROM found) AS wanted
                {join_by_index("passage p", "p.id = wanted.id")})
             + (SELECT count(*) FROM (SELECT unnest(activated) AS id FROM found) AS wanted
                {join_by_index("sentence s", "s.id = wanted.id")})
        """,
        {"collection": collection_id, "id": episode, "principal": principal},
    )
    return count


def build_missing_error(episode: UUID) -> NotFoundError:
    """Make the error for an episode that does not exist."""
    return collections.build_missing_resource_error(QUERY, episode)


def list_unjudged(
    reader: Reader, collection_id: int, window_hours: float, limit: int, *, most_refusals: int
) -> list[StoredEpisode]:
    """List recent episodes without feedback; parts of questions are left out.

    Those that the judge failed on least come first, of these the oldest. Those refused ``most_refusals`` times or
    more are left out.
    """
    rows = reader.rows(
        f"""
        {_SELECT}
        WHERE collection_id = %(collection)s AND NOT EXISTS (SELECT {_REFERRING})
          AND NOT is_part AND created_at > now() - make_interval(secs => %(seconds)s)
          AND judge_refusals < %(refusals)s
        ORDER BY judge_failures, created_at LIMIT %(limit)s
        """,
        {
            "collection": collection_id,
            "seconds": window_hours * 3600.0,
            "limit": limit,
            "refusals": most_refusals,
        },
    )
    return [StoredEpisode(**row._asdict()) for row in rows]


def count_judge_failure(writer: Writer, collection_id: int, episode: UUID, *, refused: bool) -> None:
    """Count that the judge failed on an episode; ``refused``: by a refusal or an unusable reply."""
    writer.execute(
        """
        UPDATE episode SET judge_failures = least(judge_failures + 1, 32767),
            judge_refusals = least(judge_refusals + %(refused)s, 32767)
        WHERE collection_id = %(collection)s AND id = %(id)s
        """,
        {"collection": collection_id, "id": episode, "refused": int(refused)},
    )


def surfaces(reader: Reader, collection_id: int, entities: Sequence[int]) -> dict[int, str]:
    """Entity -> how it is written, of those that there still are."""
    rows = reader.rows(
        f"""
        SELECT id, {WRITTEN_NAME} AS surface FROM entity e
        WHERE collection_id = %(collection)s AND id = ANY(%(ids)s)
        """,
        {"collection": collection_id, "ids": list(entities)},
    )
    return {row.id: row.surface for row in rows}
