"""What verdicts taught about whole questions: which sentences supported them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.storage.database import Reader, Writer
from app.storage.graph import Focus


@dataclass(frozen=True, slots=True)
class PastSupport:
    """A sentence that supported a past question near to the present one."""

    question_id: int
    question: str
    similarity: float
    shares_entity: bool
    sentence_id: int
    passage_id: int
    support: float
    perplexity: float
    complete: bool


# Supported rather than rejected: see ``core.recall.net_support``.
_SUPPORTED = "2 * {row}.support > 1 - {row}.perplexity"


def recall(reader: Reader, focus: Focus, entities: Sequence[int], gate: float, questions: int) -> list[PastSupport]:
    """Supports of the ``questions`` nearest past questions whose cosine is at least ``gate``.

    A past question shares an entity if one of its supporting sentences names one of ``entities``.
    """
    rows = reader.rows(
        f"""
        WITH near AS (
            SELECT id, text, -(embedding <#> %(q)s) AS similarity FROM question
            WHERE collection_id = %(collection)s ORDER BY embedding <#> %(q)s LIMIT %(questions)s
        )
        SELECT near.id, near.text, near.similarity, EXISTS (
                   SELECT FROM question_support any_of
                   JOIN entity_sentence link ON link.collection_id = %(collection)s
                       AND link.sentence_id = any_of.sentence_id AND link.entity_id = ANY(%(entities)s::bigint[])
                   WHERE any_of.collection_id = %(collection)s AND any_of.question_id = near.id
                     AND {_SUPPORTED.format(row="any_of")}
               ), s.id, s.passage_id, known.support, known.perplexity,
               known.complete
        FROM near
        JOIN question_support known ON known.collection_id = %(collection)s AND known.question_id = near.id
        JOIN sentence s ON s.collection_id = %(collection)s AND s.id = known.sentence_id
        {"JOIN passage p ON p.collection_id = s.collection_id AND p.id = s.passage_id" if focus.metadata else ""}
        WHERE near.similarity >= %(gate)s AND {_SUPPORTED.format(row="known")}
        {"AND p.metadata @> %(metadata)s" if focus.metadata else ""}
        ORDER BY near.similarity DESC, near.id, s.id
        """,
        focus.parameters(entities=list(entities), gate=gate, questions=questions),
    )
    return [PastSupport(*row) for row in rows]


def lock_question(
    writer: Writer, collection_id: int, text_hash: bytes, text: str, embedding: NDArray[np.float32]
) -> int:
    """The question with this text, made if it is new, locked until the transaction ends."""
    values = {"collection": collection_id, "hash": text_hash, "text": text, "embedding": embedding}
    writer.execute(
        """
        INSERT INTO question (collection_id, text_hash, text, embedding)
        VALUES (%(collection)s, %(hash)s, %(text)s, %(embedding)s) ON CONFLICT DO NOTHING
        """,
        values,
    )
    question: int = writer.scalar(
        "SELECT id FROM question WHERE collection_id = %(collection)s AND text_hash = %(hash)s FOR UPDATE",
        values,
    )
    return question


def supports_of(
    reader: Reader, collection_id: int, question_id: int, sentences: Sequence[int]
) -> dict[int, tuple[float, float, int, bool]]:
    """Sentence -> (support, perplexity, update count, complete), for those with a row."""
    rows = reader.rows(
        """
        SELECT sentence_id, support, perplexity, update_count, complete FROM question_support
        WHERE collection_id = %(collection)s AND question_id = %(question)s
          AND sentence_id = ANY(%(sentences)s)
        """,
        {"collection": collection_id, "question": question_id, "sentences": list(sentences)},
    )
    return {row[0]: (row[1], row[2], row[3], row[4]) for row in rows}


def store_supports(
    writer: Writer, collection_id: int, question_id: int, rows: Sequence[tuple[int, float, float, int, bool]]
) -> None:
    """Write (sentence, support, perplexity, update count, complete) rows."""
    columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
    writer.execute(
        """
        INSERT INTO question_support
            (collection_id, question_id, sentence_id, support, perplexity, update_count, complete)
        SELECT %(collection)s, %(question)s, row.* FROM unnest(
            %(sentences)s::bigint[], %(supports)s::float8[], %(perplexities)s::float8[], %(counts)s::int[],
            %(complete)s::boolean[]
        ) AS row
        ON CONFLICT (collection_id, question_id, sentence_id) DO UPDATE SET
            support = excluded.support, perplexity = excluded.perplexity, update_count = excluded.update_count,
            complete = excluded.complete
        """,
        {
            "collection": collection_id,
            "question": question_id,
            **dict(zip(("sentences", "supports", "perplexities", "counts", "complete"), columns, strict=True)),
        },
    )
