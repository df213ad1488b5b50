"""Generations of tuned question encoders: stored, served, withdrawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from engram.storage.column_parameters import integers
from engram.storage.corpus import current_vectors
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, join_by_index


@dataclass(frozen=True, slots=True)
class Loan:
    """The generation of another collection whose adapter a generation borrows."""

    lender_id: int
    number: int


@dataclass(frozen=True, slots=True)
class EncoderGeneration:
    """One attempt to tune a collection's question encoder.

    Attributes:
        usable: whether its adapter is stored.
        accepted: whether held-out verdicts accepted it.
        reason: the decision in words.
        figures: what held-out verdicts said; empty if nothing was learned.
        judged_count: judged questions of the collection at the time.
        question_count: judged questions that it was learned from, or if it is borrowed, that accepted it.
        verdict_count: verdicts behind these.
        loan: where it is from; None: from the collection's own verdicts.
    """

    number: int
    usable: bool
    encoder_fingerprint: str
    accepted: bool
    reason: str
    figures: Mapping[str, Any]
    judged_count: int
    question_count: int
    verdict_count: int
    created_at: datetime
    withdrawn_at: datetime | None
    loan: Loan | None


@dataclass(frozen=True, slots=True)
class StoredAdapter:
    """An adapter's bytes, and the fingerprint of the encoder that it was learned for."""

    content: bytes
    encoder_fingerprint: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The counts that say whether a collection's tuning is due.

    Attributes:
        is_on: whether the collection may be tuned.
        judged_count: its judged questions.
        last_count: the same at the last attempt to learn for its present encoder that was not withdrawn, if there
            is one.
    """

    is_on: bool
    judged_count: int
    last_count: int | None


_SELECT = """
    SELECT number, adapter IS NOT NULL AS usable, encoder_fingerprint, accepted, reason, figures, judged_count,
           question_count, verdict_count, created_at, withdrawn_at, lender_id, lent_number
    FROM tuning_generation WHERE collection_id = %(collection)s
"""


def load_page(reader: Reader, collection_id: int, before: int | None, limit: int) -> list[EncoderGeneration]:
    """Load generations before number ``before``, the latest first."""
    rows = reader.rows(
        f"{_SELECT} AND (%(before)s::bigint IS NULL OR number < %(before)s) ORDER BY number DESC LIMIT %(limit)s",
        {"collection": collection_id, "before": before, "limit": limit},
    )
    return [_build_generation(row) for row in rows]


def list_all(reader: Reader, collection_id: int) -> list[EncoderGeneration]:
    """List all generations of a collection, the earliest first."""
    rows = reader.rows(f"{_SELECT} ORDER BY number", {"collection": collection_id})
    return [_build_generation(row) for row in rows]


def find(reader: Reader, collection_id: int, number: int) -> EncoderGeneration | None:
    """Find a generation; None if there is none of this number."""
    row = reader.row(f"{_SELECT} AND number = %(number)s", {"collection": collection_id, "number": number})
    return None if row is None else _build_generation(row)


def find_serving(reader: Reader, collection_id: int) -> int:
    """Find the generation that serves; 0: the encoder as it is."""
    number: int | None = reader.scalar(
        "SELECT question_generation FROM question_memory WHERE collection_id = %(collection)s",
        {"collection": collection_id},
    )
    return number or 0


def lock_loan(writer: Writer, loan: Loan) -> None:
    """Keep a generation from being withdrawn by its collection until the transaction ends."""
    writer.execute(
        "SELECT FROM tuning_generation WHERE collection_id = %(collection)s AND number = %(number)s FOR SHARE",
        {"collection": loan.lender_id, "number": loan.number},
    )


def list_borrowed(reader: Reader, lender_id: int, numbers: Sequence[int]) -> dict[int, list[int]]:
    """Return collection -> its generations with an adapter that it borrowed from these, in order."""
    rows = reader.rows(
        """
        SELECT collection_id, array_agg(number ORDER BY number) AS numbers FROM tuning_generation
        WHERE lender_id = %(lender)s AND lent_number = ANY(%(numbers)s) AND adapter IS NOT NULL
        GROUP BY collection_id ORDER BY collection_id
        """,
        {"lender": lender_id, "numbers": list(numbers)},
    )
    return {row.collection_id: row.numbers for row in rows}


def load_adapter(reader: Reader, collection_id: int, number: int) -> StoredAdapter | None:
    """Load the adapter of a generation; None if it has none."""
    row = reader.row(
        """
        SELECT adapter, encoder_fingerprint FROM tuning_generation
        WHERE collection_id = %(collection)s AND number = %(number)s AND adapter IS NOT NULL
        """,
        {"collection": collection_id, "number": number},
    )
    return None if row is None else StoredAdapter(bytes(row.adapter), row.encoder_fingerprint)


def add(
    writer: Writer,
    collection_id: int,
    *,
    adapter: bytes | None,
    encoder_fingerprint: str,
    accepted: bool,
    reason: str,
    figures: Mapping[str, Any],
    judged_count: int,
    question_count: int,
    events: Sequence[int],
    loan: Loan | None,
) -> int:
    """Store an attempt, with the verdicts of an adapter that is kept; return its number.

    Processes keep adapters by number, so a number is never used again.

    Args:
        events: verdicts that it was learned from.
    """
    number: int = writer.scalar(
        """
        INSERT INTO tuning_state (collection_id, last_number) VALUES (%(collection)s, 1)
        ON CONFLICT (collection_id) DO UPDATE SET last_number = tuning_state.last_number + 1
        RETURNING last_number
        """,
        {"collection": collection_id},
    )
    writer.execute(
        """
        INSERT INTO tuning_generation
            (collection_id, number, adapter, encoder_fingerprint, accepted, reason, figures, judged_count,
             question_count, verdict_count, lender_id, lent_number)
        VALUES (%(collection)s, %(number)s, %(adapter)s, %(fingerprint)s, %(accepted)s, %(reason)s, %(figures)s,
                %(judged)s, %(questions)s, %(verdicts)s, %(lender)s, %(lent)s)
        """,
        {
            "collection": collection_id,
            "number": number,
            "adapter": adapter,
            "fingerprint": encoder_fingerprint,
            "accepted": accepted,
            "reason": reason,
            "figures": Jsonb(dict(figures)),
            "judged": judged_count,
            "questions": question_count,
            "verdicts": len(events),
            "lender": None if loan is None else loan.lender_id,
            "lent": None if loan is None else loan.number,
        },
    )
    if adapter is not None:
        writer.execute(
            """
            INSERT INTO tuning_verdict (collection_id, generation, event_id)
            SELECT %(collection)s, %(number)s, unnest(%(events)s::bigint[])
            """,
            {"collection": collection_id, "number": number, "events": integers(events)},
        )
    return number


def list_generations_of(reader: Reader, collection_id: int, events: Sequence[int]) -> list[int]:
    """List the numbers of the generations with an adapter learned from any of these verdicts, in order."""
    rows = reader.rows(
        f"""
        SELECT DISTINCT taught.generation
        FROM {WANTED_IDS} {join_by_index("tuning_verdict taught", "taught.event_id = wanted.id")}
        ORDER BY taught.generation
        """,
        {"collection": collection_id, "ids": integers(events)},
    )
    return [row.generation for row in rows]


def find_exposed(reader: Reader, collection_id: int) -> list[int]:
    """Find the generations whose verdicts support a passage that has readers by now, in order."""
    rows = reader.rows(
        f"""
        SELECT DISTINCT taught.generation
        FROM (
            SELECT collection_id, generation, event_id FROM tuning_verdict WHERE collection_id = %(collection)s
        ) AS taught
        {join_by_index("feedback_event event", "event.id = taught.event_id")}
        {join_by_index("question_support held", "held.question_id = event.question_id")}
        {join_by_index("sentence s", "s.id = held.sentence_id")}
        {join_by_index("passage p", "p.id = s.passage_id AND p.reader_set_id IS NOT NULL")}
        ORDER BY taught.generation
        """,
        {"collection": collection_id},
    )
    return [row.generation for row in rows]


def withdraw(writer: Writer, collection_id: int, numbers: Sequence[int]) -> None:
    """Remove the adapters of these generations; if one of them serves, the last one before it serves, or none.

    Whoever calls it holds ``collections.lock_learning`` exclusively.
    """
    parameters = {"collection": collection_id, "numbers": list(numbers)}
    writer.execute(
        """
        UPDATE tuning_generation SET adapter = NULL, withdrawn_at = now()
        WHERE collection_id = %(collection)s AND number = ANY(%(numbers)s) AND adapter IS NOT NULL
        """,
        parameters,
    )
    writer.execute(
        "DELETE FROM tuning_verdict WHERE collection_id = %(collection)s AND generation = ANY(%(numbers)s)",
        parameters,
    )
    serving = find_serving(writer, collection_id)
    if serving in numbers:
        earlier = find_last_usable(writer, collection_id, before=serving)
        current_vectors.serve_question_generation(writer, collection_id, earlier)


def find_last_usable(reader: Reader, collection_id: int, before: int | None = None) -> int:
    """Find the last generation with an adapter for the collection's present encoder; 0: there is none.

    Args:
        before: only generations of lower numbers count; None: all do.
    """
    number: int | None = reader.scalar(
        """
        SELECT max(number) FROM tuning_generation
        WHERE collection_id = %(collection)s AND adapter IS NOT NULL AND encoder_fingerprint = (
            SELECT encoder_fingerprint FROM collection WHERE id = %(collection)s
        ) AND (%(before)s::bigint IS NULL OR number < %(before)s)
        """,
        {"collection": collection_id, "before": before},
    )
    return number or 0


def load_progress(reader: Reader, collection_id: int) -> Progress:
    """Load what says whether a collection's tuning is due."""
    row = reader.row(
        """
        SELECT coalesce((SELECT is_on FROM tuning_state WHERE collection_id = %(collection)s), true) AS is_on,
               (SELECT count(*) FROM question WHERE collection_id = %(collection)s) AS judged_count,
               (
                   SELECT judged_count FROM tuning_generation
                   WHERE collection_id = %(collection)s AND withdrawn_at IS NULL AND lender_id IS NULL
                     AND encoder_fingerprint = (
                       SELECT encoder_fingerprint FROM collection WHERE id = %(collection)s
                   )
                   ORDER BY number DESC LIMIT 1
               ) AS last_count
        """,
        {"collection": collection_id},
    )
    return Progress(**row._asdict())


def set_switch(writer: Writer, collection_id: int, *, is_on: bool) -> None:
    """Switch the tuning of a collection."""
    writer.execute(
        """
        INSERT INTO tuning_state (collection_id, is_on) VALUES (%(collection)s, %(is_on)s)
        ON CONFLICT (collection_id) DO UPDATE SET is_on = excluded.is_on
        """,
        {"collection": collection_id, "is_on": is_on},
    )


def delete_all(writer: Writer, collection_id: int) -> int:
    """Remove all generations of a collection; return how many."""
    return writer.execute(
        "DELETE FROM tuning_generation WHERE collection_id = %(collection)s", {"collection": collection_id}
    )


def list_wrong_verdicts(reader: Reader, collection_id: int, number: int) -> list[int]:
    """List the verdicts of a generation that do not count any more."""
    rows = reader.rows(
        f"""
        SELECT taught.event_id
        FROM (
            SELECT collection_id, event_id FROM tuning_verdict
            WHERE collection_id = %(collection)s AND generation = %(number)s
        ) AS taught
        {join_by_index("feedback_event event", "event.id = taught.event_id AND event.status <> 'applied'")}
        ORDER BY taught.event_id
        """,
        {"collection": collection_id, "number": number},
    )
    return [row.event_id for row in rows]


def count_verdicts(reader: Reader, collection_id: int, number: int) -> int:
    """Count the verdicts that are listed of a generation."""
    listed: int = reader.scalar(
        "SELECT count(*) FROM tuning_verdict WHERE collection_id = %(collection)s AND generation = %(number)s",
        {"collection": collection_id, "number": number},
    )
    return listed


def _build_generation(row: Any) -> EncoderGeneration:
    columns = row._asdict()
    lender, number = columns.pop("lender_id"), columns.pop("lent_number")
    return EncoderGeneration(**columns, loan=None if lender is None else Loan(lender, number))
