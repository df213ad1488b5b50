"""Copying the log of verdicts as it was at a moment, and preparing what a replay of the copy then fills.

A verdict that was revoked since counts in the copy. What its revocation removed is derived anew; until that is done
it waits there as ``pending``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core.constants import Constants
from app.core.verdict import Expansion
from app.storage.database import Reader, Writer
from app.storage.log import verdicts
from app.storage.lookups import each
from app.storage.undo.copies import Copy, counted, rows_of


@dataclass(frozen=True, slots=True)
class RevokedSince:
    """A verdict that counts in the copy and was revoked since.

    Attributes:
        question: as it was asked.
        question_id: the question that it taught, whose row may be gone.
        expansions: that it brought.
        constants: noises and caps by which it was applied.
    """

    id: int
    question: str
    question_id: int
    expansions: Sequence[Expansion]
    constants: Constants


def revoked_since(reader: Reader, source: int, until: datetime) -> list[RevokedSince]:
    """The verdicts that counted at ``until`` and were revoked since, in the order in which they were applied."""
    rows = reader.rows(
        f"""
        SELECT event.id, judged.question, event.question_id, event.observation_noise_positive,
               event.observation_noise_negative, event.process_noise, event.daily_share, event.contested_share,
               event.daily_comparisons
        FROM feedback_event event
        {each("judged_query judged", "judged.id = event.query_id", collection="%(source)s")}
        WHERE {counted("event")} AND event.status = 'revoked' ORDER BY event.applied_sequence
        """,
        {"source": source, "until": until},
    )
    brought = verdicts.expansions(reader, source, [row.id for row in rows])
    return [
        RevokedSince(
            id=row.id,
            question=row.question,
            question_id=row.question_id,
            expansions=brought.get(row.id, []),
            constants=Constants(
                positive=row.observation_noise_positive,
                negative=row.observation_noise_negative,
                process=row.process_noise,
                share=row.daily_share,
                contested=row.contested_share,
                comparisons=row.daily_comparisons,
            ),
        )
        for row in rows
    ]


def questions_by_hash(reader: Reader, source: int, hashes: Sequence[bytes]) -> dict[bytes, int]:
    """Text hash -> question, of those that the source has."""
    rows = reader.rows(
        "SELECT text_hash, id FROM question WHERE collection_id = %(source)s AND text_hash = ANY(%(hashes)s)",
        {"source": source, "hashes": list(hashes)},
    )
    return {bytes(row.text_hash): row.id for row in rows}


def events(reader: Reader, copy: Copy, after: int, limit: int) -> list[int]:
    """The next verdicts to copy, in order of acceptance."""
    rows = reader.rows(
        f"""
        SELECT event.id FROM feedback_event event WHERE {counted("event")} AND event.id > %(after)s
        ORDER BY event.id LIMIT %(limit)s
        """,
        copy.parameters(after=after, limit=limit),
    )
    return [row.id for row in rows]


def copy_generations(writer: Writer, copy: Copy) -> None:
    """Copy the evolutions that had happened by then."""
    writer.execute(
        rows_of(
            "key_generation",
            """
            FROM key_generation held
            WHERE held.collection_id = %(source)s AND held.created_at <= %(until)s
            """,
        ),
        copy.parameters(),
    )


def copy_events(writer: Writer, copy: Copy, ids: Sequence[int]) -> None:
    """Copy these verdicts with what they judge and all that the source still has of what they did."""
    parameters = copy.parameters(ids=list(ids))
    writer.execute(
        rows_of(
            "judged_query",
            """
            FROM judged_query held WHERE held.collection_id = %(source)s AND held.id IN (
                SELECT query_id FROM feedback_event event
                WHERE event.collection_id = %(source)s AND event.id = ANY(%(ids)s)
            ) ON CONFLICT DO NOTHING
            """,
        ),
        parameters,
    )
    writer.execute(
        rows_of(
            "feedback_event",
            "FROM feedback_event held WHERE held.collection_id = %(source)s AND held.id = ANY(%(ids)s)",
            status="CASE held.status WHEN 'revoked' THEN 'pending' ELSE held.status END",
            revoked_at="NULL",
        ),
        parameters,
    )
    of_event = "WHERE held.collection_id = %(source)s AND held.event_id = ANY(%(ids)s)"
    for table in ("verdict_sentence", "verdict_passage", "verdict_expansion", "memory_audit", "ranking_audit"):
        writer.execute(rows_of(table, f"FROM {table} held {of_event}"), parameters)
    # Evidence that later evolutions took in was waiting.
    made = """
        SELECT number FROM key_generation made WHERE made.collection_id = held.collection_id
            AND made.number = held.generation AND made.created_at <= %(until)s
    """
    writer.execute(
        rows_of("key_evidence", f"FROM key_evidence held {of_event}", generation=f"({made})"), parameters
    )
    credit = f"""
        FROM key_credit held
        JOIN passage ON passage.collection_id = held.collection_id AND passage.id = held.passage_id
            AND passage.created_at <= %(until)s
        {of_event}
    """
    writer.execute(
        rows_of(
            "expansion_unit",
            f"""
            FROM expansion_unit held
            WHERE held.collection_id = %(source)s AND held.id IN (SELECT held.unit_id {credit})
            ON CONFLICT DO NOTHING
            """,
        ),
        parameters,
    )
    writer.execute(rows_of("key_credit", credit), parameters)


def dated(reader: Reader, copy: Copy, sentences: Sequence[int]) -> set[int]:
    """Those of the sentences that have a time channel: an expression of their own, or one that it began as."""
    rows = reader.rows(
        """
        SELECT s.id FROM sentence s
        LEFT JOIN sentence_memory memory ON memory.collection_id = s.collection_id AND memory.sentence_id = s.id
            AND memory.channel = 'time'
        WHERE s.collection_id = %(source)s AND s.id = ANY(%(ids)s)
          AND coalesce(memory.time_expression_id, s.time_expression_id) IS NOT NULL
        """,
        copy.parameters(ids=list(sentences)),
    )
    return {row.id for row in rows}


def settle_restored(writer: Writer, copy: Copy, questions: Mapping[int, int]) -> None:
    """Have restored verdicts count, their evidence with the first evolution that came after them.

    Args:
        questions: event -> the question that it taught.
    """
    parameters = copy.parameters(ids=list(questions), questions=list(questions.values()))
    writer.execute(
        """
        UPDATE feedback_event event SET status = 'applied', question_id = taught.question
        FROM unnest(%(ids)s::bigint[], %(questions)s::bigint[]) AS taught(id, question)
        WHERE event.collection_id = %(target)s AND event.id = taught.id
        """,
        parameters,
    )
    writer.execute(
        """
        UPDATE key_evidence evidence SET generation = (
            SELECT min(made.number) FROM key_generation made
            WHERE made.collection_id = %(target)s AND made.created_at >= event.applied_at
        )
        FROM feedback_event event
        WHERE evidence.collection_id = %(target)s AND evidence.event_id = ANY(%(ids)s) AND evidence.gate <> 'none'
          AND event.collection_id = %(target)s AND event.id = evidence.event_id
        """,
        parameters,
    )


def count_generations(writer: Writer, copy: Copy) -> None:
    """Have each evolution say how many of the verdicts that count it took in."""
    writer.execute(
        """
        UPDATE key_generation made SET events = (
            SELECT count(*) FROM key_evidence evidence
            WHERE evidence.collection_id = %(target)s AND evidence.generation = made.number
        ) WHERE made.collection_id = %(target)s
        """,
        copy.parameters(),
    )


def begin_memories(writer: Writer, copy: Copy, sentences: Sequence[int]) -> None:
    """Give these sentences the memories that verdicts touched, each as it began."""
    parameters = copy.parameters(ids=list(sentences))
    began = """
        FROM (
            SELECT DISTINCT sentence_id, channel FROM memory_audit WHERE collection_id = %(target)s
                AND sentence_id = ANY(%(ids)s) AND channel IN ('task', 'time')
        ) AS touched
        JOIN sentence s ON s.collection_id = %(source)s AND s.id = touched.sentence_id
        JOIN passage ON passage.collection_id = %(source)s AND passage.id = s.passage_id
            AND passage.created_at <= %(until)s
        LEFT JOIN sentence_memory memory ON memory.collection_id = %(source)s AND memory.sentence_id = s.id
            AND memory.channel = 'time'
        LEFT JOIN time_expression began ON touched.channel = 'time' AND began.collection_id = %(source)s
            AND began.id = coalesce(memory.time_expression_id, s.time_expression_id)
    """
    writer.execute(
        rows_of(
            "time_expression",
            f"""
            FROM time_expression held
            WHERE held.collection_id = %(source)s AND held.id IN (SELECT began.id {began})
            ON CONFLICT DO NOTHING
            """,
        ),
        parameters,
    )
    writer.execute(
        f"""
        INSERT INTO sentence_memory
            (collection_id, sentence_id, channel, vector, perplexity, update_count, time_expression_id)
        SELECT %(target)s, s.id, touched.channel, coalesce(began.embedding, s.embedding), 1, 0, began.id {began}
        WHERE touched.channel = 'task' OR began.id IS NOT NULL
        """,
        parameters,
    )


def begin_questions(writer: Writer, copy: Copy, questions: Sequence[int], gone: Mapping[int, bytes]) -> None:
    """Give the copy these questions, each with the sentences that verdicts spoke of, not yet supported.

    Args:
        gone: question -> text hash, of those that the source has no more.
    """
    parameters = copy.parameters(ids=list(questions))
    writer.execute(
        rows_of("question", "FROM question held WHERE held.collection_id = %(source)s AND held.id = ANY(%(ids)s)"),
        parameters,
    )
    writer.execute(
        """
        INSERT INTO question (collection_id, id, text_hash, text, embedding, created_at)
        SELECT DISTINCT ON (gone.id) %(target)s, gone.id, gone.text_hash, judged.question, judged.embedding,
               event.applied_at
        FROM unnest(%(gone)s::bigint[], %(hashes)s::bytea[]) AS gone(id, text_hash)
        JOIN feedback_event event ON event.collection_id = %(target)s AND event.question_id = gone.id
        JOIN judged_query judged ON judged.collection_id = %(target)s AND judged.id = event.query_id
        ORDER BY gone.id, event.applied_sequence
        """,
        parameters | {"gone": list(gone), "hashes": list(gone.values())},
    )
    writer.execute(
        """
        INSERT INTO question_support
            (collection_id, question_id, sentence_id, support, perplexity, update_count, complete)
        SELECT DISTINCT %(target)s, event.question_id, s.id, 0, 1, 0, false
        FROM feedback_event event
        JOIN memory_audit audit ON audit.collection_id = %(target)s AND audit.event_id = event.id
            AND audit.channel = 'recall'
        JOIN sentence s ON s.collection_id = %(source)s AND s.id = audit.sentence_id
        JOIN passage ON passage.collection_id = %(source)s AND passage.id = s.passage_id
            AND passage.created_at <= %(until)s
        WHERE event.collection_id = %(target)s AND event.question_id = ANY(%(ids)s)
        """,
        parameters,
    )


def units_credited(reader: Reader, copy: Copy, events: Sequence[int]) -> list[int]:
    """The copy's expansion units that these verdicts credit to passages, in id order."""
    rows = reader.rows(
        """
        SELECT DISTINCT unit_id FROM key_credit WHERE collection_id = %(target)s AND event_id = ANY(%(ids)s)
        ORDER BY unit_id
        """,
        copy.parameters(ids=list(events)),
    )
    return [row.unit_id for row in rows]


def has_keys(reader: Reader, copy: Copy) -> bool:
    """Whether the copy has anything of which keys could evolve, or did."""
    found: bool = reader.scalar(
        """
        SELECT EXISTS (SELECT FROM key_evidence WHERE collection_id = %(target)s)
            OR EXISTS (SELECT FROM key_generation WHERE collection_id = %(target)s)
        """,
        copy.parameters(),
    )
    return found


def count_judged(reader: Reader, copy: Copy) -> int:
    """Sentences that the copy's verdicts speak of."""
    return _count(reader, copy, "DISTINCT sentence_id", "memory_audit")


def count_questions(reader: Reader, copy: Copy) -> int:
    """Questions that the copy's verdicts taught."""
    return _count(reader, copy, "DISTINCT question_id", "feedback_event")


def count_keyed(reader: Reader, copy: Copy) -> int:
    """Passages that the copy's verdicts credit expansions to."""
    return _count(reader, copy, "DISTINCT passage_id", "key_credit")


def _count(reader: Reader, copy: Copy, what: str, table: str) -> int:
    found: int = reader.scalar(
        f"SELECT count({what}) FROM {table} WHERE collection_id = %(target)s", copy.parameters()
    )
    return found


def learned(reader: Reader, copy: Copy) -> dict[str, int]:
    """How much the copy learned: table -> rows."""
    tables = ("sentence_memory", "question", "question_support", "ranking_audit", "key_credit", "passage_key")
    counts = ", ".join(f"(SELECT count(*) FROM {table} WHERE collection_id = %(target)s)" for table in tables)
    return dict(zip(tables, reader.row(f"SELECT {counts}", copy.parameters()), strict=True))
