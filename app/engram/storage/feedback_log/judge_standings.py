"""Agreement of judges with judges in good standing, by the log."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from engram.core.learning.caps import is_contested
from engram.core.learning.judge_standing import JudgeStanding
from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.core.learning.states import SentenceRevisions, question_hash
from engram.storage.column_parameters import integers, vectors
from engram.storage.database import Reader
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.row_lookups import join_by_index

LATEST_VERDICTS = 1_000
"""Verdicts of a judge that it is known by."""
NEAR_QUESTIONS = 8
"""Other questions that a verdict's words on a sentence are held against, the nearest ones."""


def standings(
    reader: Reader, collection_id: int, judge_days: Collection[tuple[str, str]]
) -> dict[tuple[str, str], JudgeStanding]:
    """(Judge, day as 2026-05-01) -> how it agreed until that day began, in UTC.

    The words of judges in good standing are those that a question's supports keep; where they are of two minds
    about a sentence, it tells nothing.
    """
    ordered_days = sorted(judge_days)
    spoke = "audit.event_id = event.id AND audit.channel = 'recall'"
    rows = reader.rows(
        f"""
        SELECT asked.judge, asked.day, count(*) FILTER (WHERE word.agreed) AS agreed,
               count(*) FILTER (WHERE NOT word.agreed) AS disagreed
        FROM unnest(%(judges)s::text[], %(days)s::text[]) AS asked(judge, day)
        CROSS JOIN LATERAL (
            SELECT DISTINCT ON (event.question_id, audit.sentence_id)
                   (audit.target = 1) = (others.balance > 0) AS agreed
            FROM (
                SELECT id, question_id, applied_sequence FROM feedback_event
                WHERE collection_id = %(collection)s AND judge = asked.judge AND status = 'applied'
                  AND received_at < asked.day::timestamp AT TIME ZONE 'UTC'
                ORDER BY received_at DESC LIMIT %(latest)s
            ) AS event
            {join_by_index("memory_audit audit", spoke)}
            {
            join_by_index(
                "question_support known",
                "known.question_id = event.question_id AND known.sentence_id = audit.sentence_id",
            )
        }
            CROSS JOIN LATERAL (
                SELECT sum(2 * (spoken.one->>1)::integer - 1) AS balance
                FROM jsonb_array_elements(known.judge_statements -> audit.revision) AS spoken(one)
                WHERE spoken.one->>0 <> asked.judge
            ) AS others
            WHERE others.balance > 0 OR others.balance < 0 AND audit.target = 1
            ORDER BY event.question_id, audit.sentence_id, event.applied_sequence DESC
        ) AS word
        GROUP BY asked.judge, asked.day
        """,
        {
            "collection": collection_id,
            "judges": [judge for judge, _ in ordered_days],
            "days": [day for _, day in ordered_days],
            "latest": LATEST_VERDICTS,
        },
    )
    by_judge_day = {(row.judge, row.day): JudgeStanding(row.agreed, row.disagreed) for row in rows}
    return {key: by_judge_day.get(key, JudgeStanding()) for key in ordered_days}


@dataclass(frozen=True, slots=True)
class OpposedWord:
    """Word of others on a sentence for a near question, which an event goes against.

    Attributes:
        event: that goes against it.
        similarity: cosine of the event's question and the other one.
    """

    event: int
    question_id: int
    question: str
    similarity: float


def find_opposed_words(
    reader: Reader, collection_id: int, events: Sequence[PendingEvent], constants: Mapping[int, NoiseAndCaps]
) -> list[OpposedWord]:
    """Find what others said otherwise of a sentence, for the ``NEAR_QUESTIONS`` nearest other questions of each.

    Args:
        constants: event -> constants by which it is applied.
    """
    named = [(at, sentence) for at, event in enumerate(events) for sentence in sorted(event.targets)]
    rows = reader.rows(
        """
        SELECT spoken.place, spoken.id AS sentence_id, near.*
        FROM (
            SELECT %(collection)s::bigint AS collection_id, place, id
            FROM unnest(%(places)s::bigint[], %(sentences)s::bigint[]) AS named(place, id)
        ) AS spoken
        JOIN unnest(%(numbers)s::bigint[], %(hashes)s::bytea[], %(embeddings)s::vector[])
            AS asked(place, text_hash, embedding) USING (place)
        CROSS JOIN LATERAL (
            SELECT known.judge_statements, s.revised_at, s.revision_likeness, other.id AS question_id,
                   other.text AS question, -(other.embedding <#> asked.embedding) AS similarity
            FROM question_support known
            JOIN question other ON other.collection_id = known.collection_id AND other.id = known.question_id
            JOIN sentence s ON s.collection_id = known.collection_id AND s.id = known.sentence_id
            WHERE known.collection_id = spoken.collection_id AND known.sentence_id = spoken.id
              AND other.text_hash <> asked.text_hash
            ORDER BY other.embedding <#> asked.embedding, other.id LIMIT %(near)s
        ) AS near
        """,
        {
            "collection": collection_id,
            "places": integers(place for place, _ in named),
            "sentences": integers(sentence for _, sentence in named),
            "numbers": integers(range(len(events))),
            "hashes": [question_hash(event.question) for event in events],
            "embeddings": vectors([event.embedding for event in events]),
            "near": NEAR_QUESTIONS,
        },
    )
    opposed = []
    for row in rows:
        event = events[row.place]
        judge = constants[event.id].name_for_caps(event.judge)
        text = SentenceRevisions(row.revised_at or (), row.revision_likeness or ()).find_text(event.answered_at)
        statements = tuple(map(tuple, chain.from_iterable(row.judge_statements[text.revision : text.revision + 1])))
        if is_contested(statements, judge, event.targets[row.sentence_id]):
            opposed.append(OpposedWord(event.id, row.question_id, row.question, row.similarity))
    return opposed
