"""Verdicts as the log keeps them, written and read in one version."""

from collections.abc import Sequence
from typing import Any

from engram.core.learning.logged_verdict import Expansion, LikelySupport, LoggedVerdict
from engram.storage.column_parameters import integers
from engram.storage.database import Reader

VERSION = 4
"""Version of the verdicts that are written and read; verdicts of another are refused."""
SUPPORTED, MISSED, REJECTED, LIKELY = "supported", "missed", "rejected", "likely"


def read(reader: Reader, collection_id: int, events: Sequence[int]) -> dict[int, LoggedVerdict]:
    """Event -> its verdict, of those of the events that there are.

    Raises:
        ValueError: one of them is of a version that is not known here.
    """
    rows = reader.rows(
        """
        SELECT event.*, said.*, helped.*, brought.*
        FROM unnest(%(ids)s::bigint[]) AS wanted(id)
        CROSS JOIN LATERAL (
            SELECT id, version, partial, retrieval_success, generation_success, generation_score, confidence,
                   spared, on_session, rating, reason
            FROM feedback_event WHERE collection_id = %(collection)s AND id = wanted.id OFFSET 0
        ) AS event
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(sentence_id ORDER BY sentence_id), '{}') AS named,
                   coalesce(array_agg(role ORDER BY sentence_id), '{}') AS roles,
                   coalesce(array_agg(coalesce(examined, 1) ORDER BY sentence_id), '{}') AS examined
            FROM verdict_sentence WHERE collection_id = %(collection)s AND event_id = wanted.id
        ) AS said
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(passage_id ORDER BY passage_id), '{}') AS passages
            FROM verdict_passage WHERE collection_id = %(collection)s AND event_id = wanted.id
        ) AS helped
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(method ORDER BY place), '{}') AS methods,
                   coalesce(array_agg(text ORDER BY place), '{}') AS texts
            FROM verdict_expansion WHERE collection_id = %(collection)s AND event_id = wanted.id
        ) AS brought
        """,
        {"collection": collection_id, "ids": integers(events)},
    )
    return {row.id: _verdict(row) for row in rows}


def _verdict(row: Any) -> LoggedVerdict:
    if row.version != VERSION:
        raise ValueError(f"feedback {row.id} is a verdict of version {row.version}, which is not known here")
    sentence_roles = list(zip(row.named, row.roles, row.examined, strict=True))
    examined = tuple(part for _, role, part in sentence_roles if role == REJECTED)
    return LoggedVerdict(
        supports=tuple(sentence for sentence, role, _ in sentence_roles if role in (SUPPORTED, MISSED)),
        rejects=tuple(sentence for sentence, role, _ in sentence_roles if role == REJECTED),
        missed=tuple(sentence for sentence, role, _ in sentence_roles if role == MISSED),
        partial=row.partial,
        retrieval_success=row.retrieval_success,
        generation_success=row.generation_success,
        generation_score=row.generation_score,
        passages=tuple(row.passages),
        spared=tuple(row.spared),
        expansions=tuple(map(Expansion, row.methods, row.texts)),
        confidence=row.confidence,
        on_session=row.on_session,
        examined=examined if min(examined, default=1.0) < 1.0 else (),
        likely=tuple(LikelySupport(sentence, part) for sentence, role, part in sentence_roles if role == LIKELY),
        rating=row.rating,
        reason=row.reason,
    )


def roles(verdict: LoggedVerdict) -> dict[int, str]:
    """Sentence that the verdict names -> what it says of it, as it is written."""
    missed = dict.fromkeys(verdict.missed, MISSED)
    likely = dict.fromkeys((one.sentence_id for one in verdict.likely), LIKELY)
    return dict.fromkeys(verdict.supports, SUPPORTED) | missed | dict.fromkeys(verdict.rejects, REJECTED) | likely


def expansions(reader: Reader, collection_id: int, events: Sequence[int]) -> dict[int, list[Expansion]]:
    """Event -> the expansions that came with it, in their order, of those of the events that brought any."""
    rows = reader.rows(
        """
        SELECT brought.event_id, brought.method, brought.text
        FROM unnest(%(ids)s::bigint[]) AS wanted(id)
        CROSS JOIN LATERAL (
            SELECT event_id, place, method, text FROM verdict_expansion
            WHERE collection_id = %(collection)s AND event_id = wanted.id OFFSET 0
        ) AS brought
        ORDER BY brought.event_id, brought.place
        """,
        {"collection": collection_id, "ids": list(events)},
    )
    expansions_by_event: dict[int, list[Expansion]] = {}
    for row in rows:
        expansions_by_event.setdefault(row.event_id, []).append(Expansion(row.method, row.text))
    return expansions_by_event
