"""Samples that the spread of a collection's questions is measured on (``engram.core.ranking.same_need``)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from engram.context import tenancy
from engram.core.learning.states import question_hash
from engram.core.ranking.question_memory import LEAST_VOTING_SUPPORT
from engram.storage.column_parameters import decode_column, decode_vectors, integers
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.passages import SPREAD_IDS, SPREAD_PASSAGES
from engram.storage.database import Reader
from engram.storage.learning.question_supports import (
    NET_SUPPORT,
    build_seen_condition,
    build_seen_list,
    load_question_texts,
)
from engram.storage.question.nearest_neighbours import nearness
from engram.storage.row_lookups import WANTED_IDS, join_by_index

EPISODES_FOR_EACH = 4
"""Stored queries that are looked through for each question, since some ask the same and some were judged."""
_NET = NET_SUPPORT.format(row="held")
_SHOWED_HIDDEN = """AND NOT EXISTS (
    SELECT FROM unnest(e.shown) AS of_answer (passage_id)
    LEFT JOIN passage p ON p.collection_id = %(collection)s AND p.id = of_answer.passage_id
    WHERE p.id IS NULL
)"""


@dataclass(frozen=True, slots=True)
class QuestionSample:
    """Questions, each with the judged questions nearest to it.

    Attributes:
        size: questions of the sample, n.
        ids: of the sample, then of its neighbours that are not in it; asked ones have numbers below 0.
        texts: of each of ``ids``.
        evidence: passages that verdicts support for each of ``ids``; none of asked ones.
        vectors: of each of ``ids``, (k, d).
        rows: place in ``ids`` of the question of each pair of neighbours, (m,).
        neighbours: place in ``ids`` of its neighbour, (m,).
        similarity: cosine of each pair, (m,).
    """

    size: int
    ids: Sequence[int]
    texts: Sequence[str]
    evidence: Sequence[frozenset[int]]
    vectors: NDArray[np.float32]
    rows: NDArray[np.intp]
    neighbours: NDArray[np.intp]
    similarity: NDArray[np.float64]


def load_question_sample(
    reader: Reader, collection: Collection, until: int, limit: int, neighbours: int
) -> QuestionSample:
    """Load ``limit`` judged questions, or all that there are, and the nearest judged questions of each.

    They are those with the least text hashes: which these are depends on no order of verdicts.

    Args:
        until: the newest question that counts.
        neighbours: of each question, found by the index of questions where there is one.
    """
    sampled, texts, vectors = load_question_vectors(reader, collection.id, until, limit)
    near = nearness(collection, "question", "embedding", "sampled.embedding", alias="near.")
    pairs = reader.row(
        f"""
        WITH sampled AS MATERIALIZED (
            SELECT id, embedding, collection_id FROM question
            WHERE collection_id = %(collection)s AND id <= %(until)s ORDER BY text_hash LIMIT %(limit)s
        )
        SELECT array_send(array_agg(sampled.id)) AS questions, array_send(array_agg(near.id)) AS neighbours,
               array_send(array_agg(near.similarity)) AS similarity
        FROM sampled CROSS JOIN LATERAL (
            SELECT near.id, -({near.distance}) AS similarity FROM question near
            WHERE {near.rows} AND near.id <= %(until)s AND near.id <> sampled.id {build_seen_list("near")}
            ORDER BY {near.order} LIMIT %(neighbours)s
        ) AS near
        """,
        {"collection": collection.id, "until": until, "limit": limit, "neighbours": neighbours},
    )
    return _complete(reader, collection, sampled, texts, vectors, pairs)


def load_asked_sample(
    reader: Reader, collection: Collection, until: int, limit: int, neighbours: int
) -> QuestionSample:
    """Load the latest ``limit`` questions that were asked and never judged, and the nearest judged ones of each.

    Parts of other questions and vectors of another space are left out, and so is what was asked after ``until``:
    which questions these are changes with verdicts alone. A caller whom readers limit gets those
    whose answers showed nothing that is hidden from him.

    Args:
        until: the newest judged question that counts.
        neighbours: of each question, found by the index of questions where there is one.
    """
    texts = _load_latest_unjudged(reader, collection, until, limit)
    near = nearness(collection, "question", "embedding", "asked.embedding", alias="near.")
    row = reader.row(
        f"""
        WITH asked AS MATERIALIZED (
            SELECT -listed.place AS id, e.embedding, e.collection_id
            FROM unnest(%(asked)s::uuid[]) WITH ORDINALITY AS listed (id, place)
            {join_by_index("episode e", "e.id = listed.id")}
        ), pairs AS (
            SELECT asked.id AS question, near.id AS neighbour, near.similarity
            FROM asked CROSS JOIN LATERAL (
                SELECT near.id, -({near.distance}) AS similarity FROM question near
                WHERE {near.rows} AND near.id <= %(until)s {build_seen_list("near")}
                ORDER BY {near.order} LIMIT %(neighbours)s
            ) AS near
        )
        SELECT * FROM (
            SELECT string_agg(vector_send(embedding), ''::bytea ORDER BY id DESC) AS vectors FROM asked
        ) AS listed CROSS JOIN (
            SELECT array_send(array_agg(question)) AS questions, array_send(array_agg(neighbour)) AS neighbours,
                   array_send(array_agg(similarity)) AS similarity
            FROM pairs
        ) AS paired
        """,
        {"collection": collection.id, "until": until, "asked": list(texts), "neighbours": neighbours},
    )
    ids = range(-1, -len(texts) - 1, -1)
    return _complete(reader, collection, ids, list(texts.values()), decode_vectors(row.vectors), row)


def _load_latest_unjudged(reader: Reader, collection: Collection, until: int, limit: int) -> dict[UUID, str]:
    """Stored query -> question of the latest ``limit`` that the caller knows no verdict on, the newest first."""
    hidden = "" if tenancy.get_visibility().readers is None else _SHOWED_HIDDEN
    latest = reader.rows(
        f"""
        SELECT e.id, e.question FROM episode e
        WHERE e.collection_id = %(collection)s AND e.space = %(space)s AND NOT e.is_part AND e.created_at <= (
            SELECT created_at FROM question WHERE collection_id = %(collection)s AND id <= %(until)s
            ORDER BY id DESC LIMIT 1
        ) {hidden}
        ORDER BY e.created_at DESC, e.id DESC LIMIT {EPISODES_FOR_EACH} * %(limit)s
        """,
        {"collection": collection.id, "until": until, "space": collection.space, "limit": limit},
    )
    unjudged: dict[bytes, tuple[UUID, str]] = {}
    for query in latest:
        unjudged.setdefault(question_hash(query.question), (query.id, query.question))
    judged = reader.rows(
        f"""
        SELECT question.text_hash FROM question
        WHERE collection_id = %(collection)s AND text_hash = ANY(%(hashes)s) AND id + 0 <= %(until)s
          {build_seen_condition("question")}
        """,
        {"collection": collection.id, "until": until, "hashes": list(unjudged)},
    )
    for one in judged:
        del unjudged[bytes(one.text_hash)]
    return dict(islice(unjudged.values(), limit))


def _complete(
    reader: Reader,
    collection: Collection,
    sampled: Sequence[int],
    texts: Sequence[str],
    vectors: NDArray[np.float32],
    pairs: Any,
) -> QuestionSample:
    """Add the neighbours of a sample.

    Args:
        vectors: of the sample, (n, d).
        pairs: columns ``questions``, ``neighbours`` and ``similarity``.
    """
    questions, others = decode_column(pairs.questions, np.int64), decode_column(pairs.neighbours, np.int64)
    ids = list(dict.fromkeys([*sampled, *others.tolist()]))
    added = ids[len(sampled) :]
    place = {question: at for at, question in enumerate(ids)}
    added_texts = load_question_texts(reader, collection.id, added)
    others_vectors = load_vectors(reader, collection.id, added)
    return QuestionSample(
        len(sampled),
        ids,
        [*texts, *(added_texts[question] for question in added)],
        _load_evidence(reader, collection.id, ids),
        np.concatenate([vectors, others_vectors]) if len(others_vectors) else vectors,
        np.array([place[question] for question in questions.tolist()], dtype=np.intp),
        np.array([place[question] for question in others.tolist()], dtype=np.intp),
        decode_column(pairs.similarity, np.float64),
    )


def load_question_vectors(
    reader: Reader, collection_id: int, until: int, limit: int
) -> tuple[list[int], list[str], NDArray[np.float32]]:
    """Load ids, texts and vectors, (n, d), of the ``limit`` judged questions with the least text hashes.

    Args:
        until: the newest question that counts.
    """
    row = reader.row(
        """
        SELECT array_agg(id ORDER BY text_hash) AS ids, array_agg(text ORDER BY text_hash) AS texts,
               string_agg(vector_send(embedding), ''::bytea ORDER BY text_hash) AS vectors
        FROM (
            SELECT * FROM question WHERE collection_id = %(collection)s AND id <= %(until)s
            ORDER BY text_hash LIMIT %(limit)s
        ) AS sampled
        """,
        {"collection": collection_id, "until": until, "limit": limit},
    )
    return row.ids or [], row.texts or [], decode_vectors(row.vectors)


def _load_evidence(reader: Reader, collection_id: int, questions: Sequence[int]) -> list[frozenset[int]]:
    """Passages with a vote for each question (``question_memory.has_vote``), of those that the caller may see."""
    supported = reader.row(
        f"""
        SELECT array_send(array_agg(question_id)) AS questions, array_send(array_agg(passage_id)) AS passages
        FROM (
            SELECT held.question_id, s.passage_id, sum({_NET}) AS net,
                   sum(sum({_NET})) OVER (PARTITION BY held.question_id) AS of_question
            FROM {WANTED_IDS} {join_by_index("question_support held", "held.question_id = wanted.id")}
            {join_by_index("sentence s", "s.id = held.sentence_id")}
            GROUP BY held.question_id, s.passage_id
        ) AS supported
        WHERE net >= %(least)s OR (net > 0 AND of_question <= 2 * net)
        """,
        {"collection": collection_id, "ids": integers(questions), "least": LEAST_VOTING_SUPPORT},
    )
    evidence: dict[int, set[int]] = {question: set() for question in questions}
    pairs = zip(
        decode_column(supported.questions, np.int64).tolist(),
        decode_column(supported.passages, np.int64).tolist(),
        strict=True,
    )
    for question, passage in pairs:
        evidence[question].add(passage)
    return [frozenset(evidence[question]) for question in questions]


def load_passage_sample(reader: Reader, collection_id: int, limit: int) -> NDArray[np.float32]:
    """Load the base keys of about ``limit`` passages, (m, d): the first one from each of so many ids on."""
    row = reader.row(
        f"""
        WITH {SPREAD_IDS}
        SELECT string_agg(vector_send(sampled.embedding::vector), ''::bytea ORDER BY sampled.id) AS vectors FROM (
            SELECT DISTINCT ON (p.id) p.id, p.embedding FROM {SPREAD_PASSAGES}
        ) AS sampled
        """,
        {"collection": collection_id, "limit": limit},
    )
    return decode_vectors(row.vectors)


def load_vectors(reader: Reader, collection_id: int, questions: Sequence[int]) -> NDArray[np.float32]:
    """Load the vectors of these judged questions, each named once, in their order, (n, d)."""
    row = reader.row(
        f"""
        SELECT string_agg(vector_send(question.embedding), ''::bytea ORDER BY question.id) AS vectors
        FROM {WANTED_IDS} {join_by_index("question", "question.id = wanted.id")}
        """,
        {"collection": collection_id, "ids": integers(questions)},
    )
    return decode_vectors(row.vectors)[np.argsort(np.argsort(questions))]
