"""Reads of exploration: facts about candidates, and the text to show of a passage."""

from collections.abc import Iterable, Sequence

from engram.storage.corpus.passages import StoredSentence
from engram.storage.database import Reader
from engram.storage.half_vectors import HALVED_QUESTION
from engram.storage.question.query_focus import Vector
from engram.storage.row_lookups import WANTED_IDS, join_by_index

RECENT = 200
"""Answers that are looked through for passages that they explored or activated."""


def touches(reader: Reader, collection_id: int, passages: Sequence[int]) -> dict[int, int]:
    """Passage -> how often verdicts spoke of its sentences, and recent answers activated one or explored it.

    Passages that nothing touched are left out.
    """
    rows = reader.rows(
        f"""
        WITH candidate AS MATERIALIZED (
            SELECT s.id AS sentence_id, s.passage_id FROM {WANTED_IDS}
            {join_by_index("sentence s", "s.passage_id = wanted.id")}
        ), recent AS (
            SELECT id, activated, explored FROM episode WHERE collection_id = %(collection)s
            ORDER BY created_at DESC LIMIT %(recent)s
        ), touch AS (
            SELECT passage_id, sum(support.update_count) AS times FROM candidate
            {join_by_index("question_support support", "support.sentence_id = candidate.sentence_id")}
            GROUP BY passage_id
            UNION ALL
            SELECT passage_id, count(DISTINCT recent.id) AS times
            FROM recent, unnest(recent.activated) AS activated(sentence_id) JOIN candidate USING (sentence_id)
            GROUP BY passage_id
            UNION ALL
            SELECT passage_id, count(*) AS times FROM recent, unnest(recent.explored) AS explored(passage_id)
            WHERE passage_id = ANY(%(ids)s) GROUP BY passage_id
        )
        SELECT passage_id, sum(times)::bigint AS times FROM touch GROUP BY passage_id
        """,
        {"collection": collection_id, "ids": list(passages), "recent": RECENT},
    )
    return {row.passage_id: row.times for row in rows}


def find_nearest_sentences(
    reader: Reader, collection_id: int, question: Vector, passages: Iterable[int]
) -> dict[int, StoredSentence]:
    """Passage -> its sentence nearest to the question (d,); equally near ones in reading order."""
    rows = reader.rows(
        f"""
        SELECT DISTINCT ON (s.passage_id) s.id, s.passage_id, s.position, s.text
        FROM {WANTED_IDS} {join_by_index("sentence s", "s.passage_id = wanted.id")}
        ORDER BY s.passage_id, s.embedding <#> {HALVED_QUESTION}, s.position
        """,
        {"collection": collection_id, "ids": list(passages), "q": question},
    )
    return {row.passage_id: StoredSentence(**row._asdict()) for row in rows}
