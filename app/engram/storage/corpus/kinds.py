"""Reads for measuring the kind of a corpus, and the stored measures (see ``core.ranking.corpus_kind``)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.storage.corpus import collections
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import NOT_DELETED


@dataclass(frozen=True, slots=True)
class UnmeasuredCollection:
    """A collection whose kind may still change.

    Attributes:
        titles: whether its titles were never looked at.
        question_count: different questions that were looked at.
    """

    id: int
    titles: bool
    question_count: int


def list_unmeasured(reader: Reader, priors: Collection[str], most: int) -> list[UnmeasuredCollection]:
    """Collections that no verdict taught weights from these priors on, of fewer than ``most`` questions."""
    rows = reader.rows(
        f"""
        SELECT c.id, c.title_share IS NULL AND c.passage_count > 0 AS titles, c.question_count FROM collection c
        WHERE {NOT_DELETED} AND (c.question_count < %(most)s OR c.title_share IS NULL AND c.passage_count > 0)
          AND c.id NOT IN (SELECT b.collection_id FROM learned_weights b WHERE b.prior = ANY(%(priors)s))
        ORDER BY c.id
        """,
        {"priors": sorted(priors), "most": most},
    )
    return [UnmeasuredCollection(row.id, row.titles, row.question_count) for row in rows]


def count_queries(reader: Reader, collection_id: int, most: int) -> int:
    """Count the stored queries of a collection, up to ``most``."""
    counted: int = reader.scalar(
        """
        SELECT count(*) FROM (
            SELECT FROM episode e WHERE e.collection_id = %(collection)s
            ORDER BY e.created_at DESC, e.id DESC LIMIT %(most)s
        ) AS latest
        """,
        {"collection": collection_id, "most": most},
    )
    return counted


def load_best_candidates(reader: Reader, collection_id: int, columns: int, limit: int) -> list[NDArray[np.float32]]:
    """Return features of the best candidate, (columns,), for each distinct question among the latest queries.

    Args:
        columns: features of a candidate; queries with others are of another version, and left out.
        limit: queries that are looked at.
    """
    rows = reader.rows(
        """
        SELECT e.question, e.best_features FROM episode e
        WHERE e.collection_id = %(collection)s AND octet_length(e.best_features) = 4 * %(columns)s::integer
        ORDER BY e.created_at DESC, e.id DESC LIMIT %(limit)s
        """,
        {"collection": collection_id, "columns": columns, "limit": limit},
    )
    features = {row.question: row.best_features for row in rows}
    return [np.frombuffer(own, dtype="<f4") for own in features.values()]


@dataclass(frozen=True, slots=True)
class CorpusKindMeasures:
    """Measures to store of a collection; None keeps the stored value.

    Attributes:
        title_share: of its passages.
        question_share, question_count: of its questions.
    """

    title_share: float | None = None
    question_share: float | None = None
    question_count: int | None = None


def keep(writer: Writer, collection_id: int, measured: CorpusKindMeasures, priors: Sequence[str]) -> bool:
    """Keep what was measured, unless verdicts taught weights from these priors on, or are just being applied.

    Returns:
        Whether anything changed.
    """
    if not collections.lock_against_deletion(writer, collection_id) or not collections.try_lock_learning(
        writer, collection_id
    ):
        return False
    # By itself: Citus asks no distributed table in a statement that changes one that is on all nodes.
    if writer.scalar(
        """
        SELECT EXISTS (
            SELECT FROM learned_weights WHERE collection_id = %(id)s AND prior = ANY(%(priors)s::text[])
        )
        """,
        {"id": collection_id, "priors": list(priors)},
    ):
        return False
    changed = writer.execute(
        """
        UPDATE collection SET title_share = coalesce(%(titles)s::real, title_share),
            question_share = coalesce(%(questions)s::real, question_share),
            question_count = coalesce(%(count)s::integer, question_count)
        WHERE id = %(id)s
          AND (title_share, question_share, question_count) IS DISTINCT FROM
              (coalesce(%(titles)s::real, title_share), coalesce(%(questions)s::real, question_share),
               coalesce(%(count)s::integer, question_count))
        """,
        {
            "id": collection_id,
            "titles": measured.title_share,
            "questions": measured.question_share,
            "count": measured.question_count,
        },
    )
    return changed > 0


def forget_questions(writer: Writer, collection_id: int) -> None:
    """Forget the share of questions that name titles, so that titles decide until questions are looked at again."""
    writer.execute(
        "UPDATE collection SET question_share = NULL, question_count = 0 WHERE id = %(id)s", {"id": collection_id}
    )
