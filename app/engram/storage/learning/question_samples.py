"""Samples that the spread of a collection's questions is measured on (``engram.core.ranking.same_need``)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.storage.column_parameters import decode_column, decode_vectors, integers
from engram.storage.database import Reader
from engram.storage.learning.question_supports import SUPPORTED
from engram.storage.row_lookups import WANTED_IDS, join_by_index

HASH_RANGE = 2**64
"""The first eight bytes of a text hash lie below it."""


@dataclass(frozen=True, slots=True)
class QuestionSample:
    """Judged questions with the least text hashes: which these are depends on no order of verdicts.

    Attributes:
        ids, texts: (n,).
        vectors: (n, d).
        evidence: passages that verdicts support for each.
        population: judged questions in all, estimated by how densely the hashes lie, at least n.
    """

    ids: Sequence[int]
    texts: Sequence[str]
    vectors: NDArray[np.float32]
    evidence: Sequence[frozenset[int]]
    population: float


def load_question_sample(reader: Reader, collection_id: int, limit: int) -> QuestionSample:
    """Load ``limit`` > 1 judged questions, or all that there are."""
    row = reader.row(
        """
        SELECT array_agg(id ORDER BY text_hash) AS ids, array_agg(text ORDER BY text_hash) AS texts,
               string_agg(vector_send(embedding), ''::bytea ORDER BY text_hash) AS vectors,
               (array_agg(text_hash ORDER BY text_hash DESC))[1] AS last
        FROM (
            SELECT * FROM question WHERE collection_id = %(collection)s ORDER BY text_hash LIMIT %(limit)s
        ) AS sampled
        """,
        {"collection": collection_id, "limit": limit},
    )
    ids = row.ids or []
    supported = reader.row(
        f"""
        SELECT array_send(array_agg(held.question_id)) AS questions, array_send(array_agg(s.passage_id)) AS passages
        FROM {WANTED_IDS} {join_by_index("question_support held", "held.question_id = wanted.id")}
        {join_by_index("sentence s", "s.id = held.sentence_id")}
        WHERE {SUPPORTED.format(row="held")}
        """,
        {"collection": collection_id, "ids": integers(ids)},
    )
    evidence: dict[int, set[int]] = {question: set() for question in ids}
    pairs = zip(
        decode_column(supported.questions, np.int64).tolist(),
        decode_column(supported.passages, np.int64).tolist(),
        strict=True,
    )
    for question, passage in pairs:
        evidence[question].add(passage)
    population = float(len(ids))
    if len(ids) == limit:
        # The k-th least of N uniform numbers lies at k / (N + 1).
        population = max(population, (limit - 1) * HASH_RANGE / max(int.from_bytes(row.last[:8]), 1))
    return QuestionSample(
        ids,
        row.texts or [],
        decode_vectors(row.vectors),
        [frozenset(evidence[question]) for question in ids],
        population,
    )


def load_passage_sample(reader: Reader, collection_id: int, limit: int) -> NDArray[np.float32]:
    """Load the base keys of about ``limit`` passages, (m, d): the first one from each of so many ids on."""
    row = reader.row(
        f"""
        WITH ends AS (
            SELECT (SELECT min(id) FROM passage WHERE collection_id = %(collection)s) AS first,
                   (SELECT max(id) FROM passage WHERE collection_id = %(collection)s) AS last
        ), starts AS (
            SELECT first + step * greatest((last - first) / %(limit)s, 1) AS id
            FROM ends CROSS JOIN generate_series(0, %(limit)s - 1) AS step
            WHERE first + step * greatest((last - first) / %(limit)s, 1) <= last
        )
        SELECT string_agg(vector_send(sampled.embedding::vector), ''::bytea ORDER BY sampled.id) AS vectors FROM (
            SELECT DISTINCT ON (p.id) p.id, p.embedding FROM starts
            {join_by_index("passage p", "p.id >= starts.id ORDER BY p.id LIMIT 1")}
        ) AS sampled
        """,
        {"collection": collection_id, "limit": limit},
    )
    return decode_vectors(row.vectors)


def project_questions(
    reader: Reader, collection_id: int, questions: Sequence[int], direction: NDArray[np.float64]
) -> dict[int, float]:
    """Return the inner product of each question's vector with a direction, (d,)."""
    rows = reader.rows(
        f"""
        SELECT question.id, -(question.embedding <#> %(direction)s) AS along
        FROM {WANTED_IDS} {join_by_index("question", "question.id = wanted.id")}
        """,
        {
            "collection": collection_id,
            "ids": integers(questions),
            "direction": direction.astype(np.float32),
        },
    )
    return {row.id: row.along for row in rows}
