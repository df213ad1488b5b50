"""What verdicts taught about whole questions: which sentences supported them."""

from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Support:
    """How surely a sentence supports a question; ``support`` and ``perplexity`` lie in [0, 1]."""

    question_id: int
    sentence_id: int
    support: float
    perplexity: float
    update_count: int
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


def replace_supports(
    writer: Writer, collection_id: int, changed: Sequence[Support], gone: Sequence[tuple[int, int]]
) -> None:
    """Write these supports, which are there already, and remove those of the (question, sentence) ``gone``."""
    writer.execute(
        """
        UPDATE question_support SET support = new.support, perplexity = new.perplexity,
            update_count = new.update_count, complete = new.complete
        FROM unnest(
            %(questions)s::bigint[], %(sentences)s::bigint[], %(supports)s::float8[], %(perplexities)s::float8[],
            %(counts)s::int[], %(complete)s::boolean[]
        ) AS new(question_id, sentence_id, support, perplexity, update_count, complete)
        WHERE question_support.collection_id = %(collection)s AND question_support.question_id = new.question_id
          AND question_support.sentence_id = new.sentence_id
        """,
        {
            "collection": collection_id,
            "questions": [row.question_id for row in changed],
            "sentences": [row.sentence_id for row in changed],
            "supports": [row.support for row in changed],
            "perplexities": [row.perplexity for row in changed],
            "counts": [row.update_count for row in changed],
            "complete": [row.complete for row in changed],
        },
    )
    writer.execute(
        """
        DELETE FROM question_support known
        USING unnest(%(questions)s::bigint[], %(sentences)s::bigint[]) AS gone(question_id, sentence_id)
        WHERE known.collection_id = %(collection)s AND known.question_id = gone.question_id
          AND known.sentence_id = gone.sentence_id
        """,
        {
            "collection": collection_id,
            "questions": [question for question, _ in gone],
            "sentences": [sentence for _, sentence in gone],
        },
    )


def questions_of(reader: Reader, collection_id: int, events: Sequence[int]) -> dict[int, list[int]]:
    """Question -> sentences that the events' verdicts said something of for it, by the audit."""
    rows = reader.rows(
        """
        SELECT event.question_id, audit.sentence_id FROM feedback_event event
        LEFT JOIN memory_audit audit ON audit.collection_id = event.collection_id AND audit.event_id = event.id
            AND audit.channel = 'recall'
        WHERE event.collection_id = %(collection)s AND event.id = ANY(%(ids)s) AND event.question_id IS NOT NULL
        """,
        {"collection": collection_id, "ids": list(events)},
    )
    found: dict[int, set[int]] = {}
    for question, sentence in rows:
        found.setdefault(question, set()).update(() if sentence is None else (sentence,))
    return {question: sorted(sentences) for question, sentences in sorted(found.items())}


def put_questions(
    writer: Writer, collection_id: int, put: Mapping[int, tuple[str, NDArray[np.float32]]], gone: Sequence[int]
) -> None:
    """Have these questions read as given, where they do not yet, and remove those ``gone`` with their supports."""
    writer.execute(
        """
        UPDATE question SET text = new.text, embedding = new.embedding
        FROM unnest(%(ids)s::bigint[], %(texts)s::text[], %(embeddings)s::vector[]) AS new(id, text, embedding)
        WHERE question.collection_id = %(collection)s AND question.id = new.id
          AND (question.text <> new.text OR question.embedding <> new.embedding)
        """,
        {
            "collection": collection_id,
            "ids": list(put),
            "texts": [text for text, _ in put.values()],
            "embeddings": [embedding for _, embedding in put.values()],
        },
    )
    writer.execute(
        "DELETE FROM question WHERE collection_id = %(collection)s AND id = ANY(%(ids)s)",
        {"collection": collection_id, "ids": list(gone)},
    )
