"""Read judged questions with their passages, and vectors of passages, to tune a question encoder.

Passages that have readers are left out, and so are questions that a verdict supported or rejected one of them for:
what is tuned serves everybody.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.storage.column_parameters import decode_column, decode_vectors, integers
from engram.storage.database import Reader
from engram.storage.erasure.erased_log import ERASED_QUESTION
from engram.storage.row_lookups import WANTED_IDS, id_rows, join_by_index


@dataclass(frozen=True, slots=True)
class JudgedSupport:
    """The verdicts on one sentence for a judged question.

    Attributes:
        is_open: whether everybody may read its passage.
        statements: for each text that the sentence had, each judge's last word: 1 for support, 0 for rejection.
    """

    question_id: int
    text: str
    passage_id: int
    is_open: bool
    support: float
    perplexity: float
    acceptance: float
    statements: Sequence[Sequence[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class AppliedVerdict:
    """One application of a verdict.

    A verdict that is anonymised keeps its id and is applied again, with other words and another ``sequence``.
    """

    id: int
    sequence: int


@dataclass(frozen=True, slots=True)
class PassageVectors:
    """Passages in the order of their ids.

    Attributes:
        ids: (n,).
        vectors: unit-length base keys, (n, d).
    """

    ids: NDArray[np.int64]
    vectors: NDArray[np.float32]


def load_supports(reader: Reader, collection_id: int, limit: int) -> list[JudgedSupport]:
    """Load the supports of the newest ``limit`` judged questions, the newest question first.

    Questions whose words were erased are left out: the name in place of them teaches nothing.
    """
    rows = reader.rows(
        f"""
        SELECT newest.id AS question_id, newest.text, s.passage_id, p.reader_set_id IS NULL AS is_open,
               held.support, held.perplexity, held.acceptance, held.judge_statements AS statements
        FROM (
            SELECT id, text, collection_id FROM question
            WHERE collection_id = %(collection)s AND NOT starts_with(text, %(erased)s)
            ORDER BY id DESC LIMIT %(limit)s
        ) AS newest
        {join_by_index("question_support held", "held.question_id = newest.id")}
        {join_by_index("sentence s", "s.id = held.sentence_id")}
        {join_by_index("passage p", "p.id = s.passage_id")}
        ORDER BY newest.id DESC, held.sentence_id
        """,
        {"collection": collection_id, "limit": limit, "erased": ERASED_QUESTION},
    )
    return [JudgedSupport(**row._asdict()) for row in rows]


def list_events(reader: Reader, collection_id: int, questions: Sequence[int]) -> list[AppliedVerdict]:
    """List the verdicts that count for these questions, in the order of their ids."""
    rows = reader.rows(
        f"""
        SELECT event.id, event.applied_sequence AS sequence FROM {WANTED_IDS}
        {join_by_index("feedback_event event", "event.question_id = wanted.id AND event.status = 'applied'")}
        ORDER BY event.id
        """,
        {"collection": collection_id, "ids": integers(questions)},
    )
    return [AppliedVerdict(**row._asdict()) for row in rows]


def concern_hidden_passages(reader: Reader, collection_id: int, questions: Sequence[int]) -> bool:
    """Tell whether a verdict on one of these questions concerns a passage that has readers."""
    row = reader.row(
        f"""
        SELECT 1 FROM {WANTED_IDS}
        {join_by_index("question_support held", "held.question_id = wanted.id")}
        {join_by_index("sentence s", "s.id = held.sentence_id")}
        {join_by_index("passage p", "p.id = s.passage_id AND p.reader_set_id IS NOT NULL")}
        LIMIT 1
        """,
        {"collection": collection_id, "ids": integers(questions)},
    )
    return row is not None


def load_passages(reader: Reader, collection_id: int, step: int, wanted: Sequence[int]) -> PassageVectors:
    """Load the base keys of the open passages whose id is a multiple of ``step``, and of those that are wanted."""
    row = reader.row(
        """
        SELECT array_send(array_agg(id ORDER BY id)) AS ids,
               string_agg(vector_send(embedding::vector), ''::bytea ORDER BY id) AS vectors
        FROM passage
        WHERE collection_id = %(collection)s AND reader_set_id IS NULL
          AND (id %% %(step)s = 0 OR id = ANY(%(wanted)s))
        """,
        {"collection": collection_id, "step": step, "wanted": list(wanted)},
    )
    return PassageVectors(decode_column(row.ids, np.int64), decode_vectors(row.vectors))


def count_judged(reader: Reader, collection_id: int) -> int:
    """Count the judged questions of a collection."""
    judged: int = reader.scalar(
        "SELECT count(*) FROM question WHERE collection_id = %(collection)s", {"collection": collection_id}
    )
    return judged


def list_asked_questions(reader: Reader, collection_id: int, limit: int) -> list[str]:
    """List the texts of the newest ``limit`` answered queries, each text once, the newest first."""
    rows = reader.rows(
        """
        SELECT question FROM episode WHERE collection_id = %(collection)s AND NOT is_part
        ORDER BY id DESC LIMIT %(limit)s
        """,
        {"collection": collection_id, "limit": limit},
    )
    return list(dict.fromkeys(row.question for row in rows))


def load_text_hashes(reader: Reader, collection_id: int, passages: Sequence[int]) -> dict[int, int]:
    """Load passage -> hash of its text."""
    rows = reader.rows(
        f"""
        SELECT p.id, hashtextextended(p.text, 0) AS hash
        FROM {WANTED_IDS} {join_by_index("passage p", "p.id = wanted.id")}
        """,
        {"collection": collection_id, "ids": integers(passages)},
    )
    return {row.id: row.hash for row in rows}


def find_text_hashes(reader: Reader, collection_id: int, hashes: Sequence[int]) -> set[int]:
    """Find those of the hashes that the text of a passage has."""
    rows = reader.rows(
        f"""
        SELECT wanted.id AS hash
        FROM {WANTED_IDS} {join_by_index("passage p", "hashtextextended(p.text, 0) = wanted.id")}
        """,
        {"collection": collection_id, "ids": integers(hashes)},
    )
    return {row.hash for row in rows}


def find_judged_hashes(reader: Reader, collection_id: int, hashes: Sequence[bytes]) -> set[bytes]:
    """Find those of the text hashes that judged questions have."""
    judged = join_by_index("question q", "q.text_hash = wanted.id")
    rows = reader.rows(
        f"SELECT q.text_hash FROM {id_rows('hashes', 'bytea')} {judged}",
        {"collection": collection_id, "hashes": list(hashes)},
    )
    return {bytes(row.text_hash) for row in rows}
