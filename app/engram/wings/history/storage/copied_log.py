"""Copying the log of verdicts as it was at a moment, and preparing what a replay of the copy then fills.

A verdict that was revoked since counts in the copy. What its revocation removed is derived anew; until that is done
it waits there as ``pending``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.storage.database import Reader, Writer
from engram.storage.revocation.copied_rows import Copy, build_copy_statement, build_source_join
from engram.storage.row_lookups import alias_rows, id_rows, join_by_index
from engram.wings.history.storage.collection_copies import IDS, build_counting_condition


@dataclass(frozen=True, slots=True)
class RevokedSince:
    """A verdict that counts in the copy and was revoked since.

    Attributes:
        question: as it was asked.
        question_id: the question that it taught, whose row may be gone.
        constants: noises and caps by which it was applied.
    """

    id: int
    question: str
    question_id: int
    constants: NoiseAndCaps


def list_revoked_since(reader: Reader, source: int, until: datetime) -> list[RevokedSince]:
    """Return the verdicts that counted at ``until`` and were revoked since, in the order of application."""
    rows = reader.rows(
        f"""
        SELECT event.id, judged.question, event.question_id, event.observation_noise_positive,
               event.observation_noise_negative, event.process_noise, event.daily_share, event.contested_share,
               event.daily_weight_verdicts, event.standing
        FROM feedback_event event
        {join_by_index("judged_query judged", "judged.id = event.query_id", collection="%(source)s")}
        WHERE {build_counting_condition("event")} AND event.status = 'revoked' ORDER BY event.applied_sequence
        """,
        {"source": source, "until": until},
    )
    return [
        RevokedSince(
            id=row.id,
            question=row.question,
            question_id=row.question_id,
            constants=NoiseAndCaps(
                positive=row.observation_noise_positive,
                negative=row.observation_noise_negative,
                process=row.process_noise,
                share=row.daily_share,
                contested=row.contested_share,
                weight_verdicts=row.daily_weight_verdicts,
                standing=row.standing,
            ),
        )
        for row in rows
    ]


def questions_by_hash(reader: Reader, source: int, hashes: Sequence[bytes]) -> dict[bytes, int]:
    """Return text hash -> question, for the questions that the source has."""
    rows = reader.rows(
        f"""
        SELECT question.text_hash, question.id FROM {id_rows("hashes", "bytea", collection="%(source)s")}
        {build_source_join("question", "question.text_hash = wanted.id")}
        """,
        {"source": source, "hashes": list(hashes)},
    )
    return {bytes(row.text_hash): row.id for row in rows}


def events(reader: Reader, copy: Copy, after: int, limit: int) -> list[int]:
    """Return the next verdicts to copy after id ``after``, in order of acceptance."""
    rows = reader.rows(
        f"""
        SELECT event.id FROM feedback_event event WHERE {build_counting_condition("event")} AND event.id > %(after)s
        ORDER BY event.id LIMIT %(limit)s
        """,
        copy.parameters(after=after, limit=limit),
    )
    return [row.id for row in rows]


def copy_events(writer: Writer, copy: Copy, ids: Sequence[int]) -> None:
    """Copy these verdicts with the queries they judge, and all that the source still has of their effects."""
    parameters = copy.parameters(ids=list(ids))
    writer.execute(
        build_copy_statement(
            "judged_query",
            f"""
            FROM {IDS} {build_source_join("feedback_event event", "event.id = wanted.id")}
            {build_source_join("judged_query held", "held.id = event.query_id")} ON CONFLICT DO NOTHING
            """,
        ),
        parameters,
    )
    writer.execute(
        build_copy_statement(
            "feedback_event",
            f"FROM {IDS} {build_source_join('feedback_event held', 'held.id = wanted.id')}",
            status="CASE WHEN held.status = 'revoked' THEN 'pending' ELSE held.status END",
            revoked_at="NULL",
        ),
        parameters,
    )
    for table in ("verdict_sentence", "verdict_passage", "verdict_expansion", "memory_audit", "weight_audit"):
        writer.execute(build_copy_statement(table, _build_event_source(table)), parameters)


def _build_event_source(table: str) -> str:
    """Return the FROM clause of a table's rows about the events ``ids``."""
    return f"FROM {IDS} {build_source_join(f'{table} held', 'held.event_id = wanted.id')}"


def settle_restored(writer: Writer, copy: Copy, questions: Mapping[int, int]) -> None:
    """Make restored verdicts count.

    Args:
        questions: event -> the question that it taught.
    """
    # Rows that are changed are joined to others: by this name ``bind_to_node`` names the collection at each.
    parameters = {"collection": copy.target, "ids": list(questions), "questions": list(questions.values())}
    taught = "unnest(%(ids)s::bigint[], %(questions)s::bigint[]) AS taught(id, question_id)"
    writer.execute(
        f"""
        UPDATE feedback_event event SET status = 'applied', question_id = new.question_id
        FROM {alias_rows(taught)}
        WHERE event.collection_id = new.collection_id AND event.id = new.id
        """,
        parameters,
    )


def begin_questions(writer: Writer, copy: Copy, questions: Sequence[int], removed: Mapping[int, bytes]) -> None:
    """Give the copy these questions, each with the sentences that verdicts spoke of, not yet supported.

    Args:
        removed: question -> text hash, of those that the source has no more.
    """
    parameters = copy.parameters(ids=list(questions))
    writer.execute(
        build_copy_statement("question", f"FROM {IDS} {build_source_join('question held', 'held.id = wanted.id')}"),
        parameters,
    )
    writer.execute(
        f"""
        INSERT INTO question (collection_id, id, text_hash, text, embedding, created_at)
        SELECT DISTINCT ON (gone.id) %(target)s, gone.id, gone.text_hash, judged.question, judged.embedding,
               event.applied_at
        FROM unnest(%(gone)s::bigint[], %(hashes)s::bytea[]) AS gone(id, text_hash)
        {join_by_index("feedback_event event", "event.question_id = gone.id", collection="%(target)s")}
        {join_by_index("judged_query judged", "judged.id = event.query_id", collection="%(target)s")}
        ORDER BY gone.id, event.applied_sequence
        """,
        parameters | {"gone": list(removed), "hashes": list(removed.values())},
    )
    writer.execute(
        f"""
        INSERT INTO question_support
            (collection_id, question_id, sentence_id, support, perplexity, acceptance, update_count, complete)
        SELECT DISTINCT %(target)s, event.question_id, s.id, 0, 1, 0, 0, false
        FROM {id_rows("ids", collection="%(target)s")}
        {join_by_index("feedback_event event", "event.question_id = wanted.id", collection="%(target)s")}
        {join_by_index("memory_audit audit", "audit.event_id = event.id", collection="%(target)s")}
        {join_by_index("sentence s", "s.id = audit.sentence_id", collection="%(target)s")}
        WHERE audit.channel = 'recall'
        """,
        parameters,
    )


def count_removed_sentences(reader: Reader, copy: Copy) -> int:
    """Count the sentences that the copy's verdicts speak of and that do not exist any more."""
    judged = "SELECT DISTINCT sentence_id AS id FROM memory_audit WHERE collection_id = %(target)s"
    removed: int = reader.scalar(
        f"""
        SELECT count(*) FROM ({judged}) AS judged
        {join_by_index("sentence s", "s.id = judged.id", outer=True, collection="%(target)s")}
        WHERE s.id IS NULL
        """,
        copy.parameters(),
    )
    return removed


def count_questions(reader: Reader, copy: Copy) -> int:
    """Questions that the copy's verdicts taught."""
    question_count: int = reader.scalar(
        "SELECT count(DISTINCT question_id) FROM feedback_event WHERE collection_id = %(target)s", copy.parameters()
    )
    return question_count


def count_learned_rows(reader: Reader, copy: Copy, further: Sequence[str]) -> dict[str, int]:
    """Count the copy's learned rows by table, those of ``further`` tables last."""
    tables = ("question", "question_support", "weight_audit", *further)
    counts = ", ".join(
        f"(SELECT count(*) FROM {table} WHERE collection_id = %(target)s) AS {table}" for table in tables
    )
    return dict(reader.row(f"SELECT {counts}", copy.parameters())._asdict())
