"""Samples that the spread of a collection's questions is measured on (``engram.core.ranking.same_need``)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.question_memory import LEAST_VOTING_SUPPORT
from engram.storage.column_parameters import decode_column, decode_vectors, integers
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.passages import SPREAD_IDS, SPREAD_PASSAGES
from engram.storage.database import Reader
from engram.storage.learning.question_supports import build_seen_condition, load_question_texts
from engram.storage.retrieval.nearest_neighbours import nearness
from engram.storage.row_lookups import WANTED_IDS, join_by_index


@dataclass(frozen=True, slots=True)
class QuestionSample:
    """Judged questions with the least text hashes: which these are depends on no order of verdicts.

    Attributes:
        size: questions of the sample, n.
        ids: of the sample, then of its neighbours that are not in it.
        texts: of each of ``ids``.
        evidence: passages that verdicts support for each of ``ids``.
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


def load_question_sample(reader: Reader, collection: Collection, limit: int, neighbours: int) -> QuestionSample:
    """Load ``limit`` judged questions, or all that there are, and the nearest judged questions of each.

    Args:
        neighbours: of each question, found by the index of questions where there is one.
    """
    sampled, _, vectors = load_question_vectors(reader, collection.id, limit)
    near = nearness(collection, "question", "embedding", "sampled.embedding", alias="near.")
    pairs = reader.row(
        f"""
        WITH sampled AS MATERIALIZED (
            SELECT id, embedding, collection_id FROM question
            WHERE collection_id = %(collection)s ORDER BY text_hash LIMIT %(limit)s
        )
        SELECT array_send(array_agg(sampled.id)) AS questions, array_send(array_agg(near.id)) AS neighbours,
               array_send(array_agg(near.similarity)) AS similarity
        FROM sampled CROSS JOIN LATERAL (
            SELECT near.id, -({near.distance}) AS similarity FROM question near
            WHERE {near.rows} AND near.id <> sampled.id {build_seen_condition("near")}
            ORDER BY {near.order} LIMIT %(neighbours)s
        ) AS near
        """,
        {"collection": collection.id, "limit": limit, "neighbours": neighbours},
    )
    questions, others = decode_column(pairs.questions, np.int64), decode_column(pairs.neighbours, np.int64)
    ids = list(dict.fromkeys([*sampled, *others.tolist()]))
    place = {question: at for at, question in enumerate(ids)}
    texts = load_question_texts(reader, collection.id, ids)
    others_vectors = load_vectors(reader, collection.id, ids[len(sampled) :])
    return QuestionSample(
        len(sampled),
        ids,
        [texts[question] for question in ids],
        _load_evidence(reader, collection.id, ids),
        np.concatenate([vectors, others_vectors]) if len(others_vectors) else vectors,
        np.array([place[question] for question in questions.tolist()], dtype=np.intp),
        np.array([place[question] for question in others.tolist()], dtype=np.intp),
        decode_column(pairs.similarity, np.float64),
    )


def load_question_vectors(
    reader: Reader, collection_id: int, limit: int
) -> tuple[list[int], list[str], NDArray[np.float32]]:
    """Load ids, texts and vectors, (n, d), of the ``limit`` judged questions with the least text hashes."""
    row = reader.row(
        """
        SELECT array_agg(id ORDER BY text_hash) AS ids, array_agg(text ORDER BY text_hash) AS texts,
               string_agg(vector_send(embedding), ''::bytea ORDER BY text_hash) AS vectors
        FROM (
            SELECT * FROM question WHERE collection_id = %(collection)s ORDER BY text_hash LIMIT %(limit)s
        ) AS sampled
        """,
        {"collection": collection_id, "limit": limit},
    )
    return row.ids or [], row.texts or [], decode_vectors(row.vectors)


def _load_evidence(reader: Reader, collection_id: int, questions: Sequence[int]) -> list[frozenset[int]]:
    """Passages that verdicts support for each question more likely than not, of those that the caller may see."""
    supported = reader.row(
        f"""
        SELECT array_send(array_agg(held.question_id)) AS questions, array_send(array_agg(s.passage_id)) AS passages
        FROM {WANTED_IDS} {join_by_index("question_support held", "held.question_id = wanted.id")}
        {join_by_index("sentence s", "s.id = held.sentence_id")}
        WHERE 2 * held.support - (1 - held.perplexity) >= %(least)s
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
