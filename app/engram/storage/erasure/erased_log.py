"""The log and the answered queries, as an erasure selects and removes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid4

from engram.storage.database import Reader, Writer
from engram.storage.tables.table_base import NOBODY

ErasedKind = Literal["query", "judge", "principal", "span"]
ERASED_QUESTION = "An erased question ("
"""Begins the name that takes the place of an erased question's words; a random number follows."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The person or text that an erasure is about.

    Attributes:
        name: of the judge or the principal.
        queries: ids, of kind ``query``.
        since, before: of kind ``span``: what came from ``since`` on and before ``before``; None: no bound.
    """

    kind: ErasedKind
    name: str | None = None
    queries: Sequence[UUID] = ()
    since: datetime | None = None
    before: datetime | None = None

    def parameters(self, collection_id: int) -> dict[str, Any]:
        """The parameters of ``events``, ``asked`` and ``during``."""
        return {
            "collection": collection_id,
            "name": self.name,
            "queries": list(self.queries),
            "since": self.since,
            "before": self.before,
            "first_id": _lowest_id(self.since, "00000000-0000-0000-0000-000000000000"),
            "end_id": _lowest_id(self.before, "ffffffff-ffff-ffff-ffff-ffffffffffff"),
        }

    @property
    def asked(self) -> str | None:
        """SQL that is true of the ids and principals of the erased queries; None: there are none."""
        return {
            "query": "id = ANY(%(queries)s::uuid[])",
            "judge": None,
            "principal": "principal = %(name)s",
            "span": "id >= %(first_id)s::uuid AND id < %(end_id)s::uuid",
        }[self.kind]

    @property
    def events(self) -> str:
        """SQL that is true of the erased verdicts, rows of ``feedback_event``."""
        of_queries = (
            f"query_id IN (SELECT id FROM judged_query WHERE collection_id = %(collection)s AND {self.asked})"
        )
        return {
            "query": of_queries,
            "judge": "judge = %(name)s",
            "principal": f"(principal = %(name)s OR judge = %(name)s OR {of_queries})",
            "span": f"({self.during('received_at')} OR {of_queries})",
        }[self.kind]

    def during(self, column: str) -> str:
        """SQL that is true of a moment of the span."""
        return (
            f"({column} >= coalesce(%(since)s::timestamptz, '-infinity') "
            f"AND {column} < coalesce(%(before)s::timestamptz, 'infinity'))"
        )


def _lowest_id(moment: datetime | None, otherwise: str) -> UUID:
    """The lowest UUID of version 7 of a moment."""
    return UUID(otherwise) if moment is None else UUID(f"{int(moment.timestamp() * 1000):012x}" + "0" * 20)


def delete_episodes(writer: Writer, collection_id: int, selection: Selection, limit: int) -> int:
    """Delete at most ``limit`` of the selected answered queries; how many."""
    if selection.asked is None:
        return 0
    return writer.execute(
        f"""
        DELETE FROM episode WHERE collection_id = %(collection)s AND id IN (
            SELECT id FROM episode WHERE collection_id = %(collection)s AND {selection.asked} LIMIT %(limit)s
        )
        """,
        selection.parameters(collection_id) | {"limit": limit},
    )


def list_events(reader: Reader, collection_id: int, selection: Selection, after: int, limit: int) -> list[int]:
    """The selected verdicts after ``after``, in order of acceptance, also revoked ones."""
    rows = reader.rows(
        f"""
        SELECT id FROM feedback_event WHERE collection_id = %(collection)s AND id > %(after)s AND {selection.events}
        ORDER BY id LIMIT %(limit)s
        """,
        selection.parameters(collection_id) | {"after": after, "limit": limit},
    )
    return [row.id for row in rows]


def find_aged_events(reader: Reader, before: datetime, limit: int) -> tuple[int, list[int]] | None:
    """Find a collection with verdicts from before a moment that still name somebody, and ``limit`` of these."""
    row = reader.row(
        f"""
        SELECT collection_id, array_agg(id ORDER BY id) AS ids FROM (
            SELECT collection_id, id FROM feedback_event
            WHERE received_at < %(before)s AND principal <> '{NOBODY}' ORDER BY received_at LIMIT %(limit)s
        ) AS aged GROUP BY collection_id ORDER BY collection_id LIMIT 1
        """,
        {"before": before, "limit": limit},
    )
    return None if row is None else (row.collection_id, list(row.ids))


def delete_events(writer: Writer, collection_id: int, events: Sequence[int]) -> int:
    """Delete verdicts that count no more, with what was said in them, and queries that no other verdict judges."""
    parameters = {"collection": collection_id, "events": list(events)}
    rows = writer.rows(
        """
        DELETE FROM feedback_event WHERE collection_id = %(collection)s AND id = ANY(%(events)s::bigint[])
        RETURNING query_id
        """,
        parameters,
    )
    _delete_unjudged(writer, collection_id, list({row.query_id for row in rows}))
    return len(rows)


def _delete_unjudged(writer: Writer, collection_id: int, queries: Sequence[UUID]) -> None:
    writer.execute(
        """
        DELETE FROM judged_query judged WHERE judged.collection_id = %(collection)s
          AND judged.id = ANY(%(queries)s::uuid[]) AND NOT EXISTS (
            SELECT FROM feedback_event event
            WHERE event.collection_id = judged.collection_id AND event.query_id = judged.id
          )
        """,
        {"collection": collection_id, "queries": list(queries)},
    )


def forget_words(
    writer: Writer, collection_id: int, event: int, query: UUID, judge: str, selection: Selection
) -> bool:
    """Have a verdict that was revoked wait again, of a random judge and on a query without words.

    The query's vector becomes the mean of the sentences that the verdict supports.

    Args:
        query: id of the query without words.
        judge: name of the random judge.

    Returns:
        Whether the verdict supports a sentence that still exists; if not, nothing is changed.
    """
    parameters = selection.parameters(collection_id) | {
        "event": event,
        "query": query,
        "judge": judge,
        "nobody": NOBODY,
        "key": f"erased-{uuid4().hex}",
        "hash": uuid4().bytes,
        "words": f"{ERASED_QUESTION}{uuid4().hex})",
    }
    old = writer.scalar(
        "SELECT query_id FROM feedback_event WHERE collection_id = %(collection)s AND id = %(event)s", parameters
    )
    copied = writer.execute(
        """
        INSERT INTO judged_query
            (collection_id, id, question, embedding, profile, activated, answered_at, ranked, answer_features,
             sufficiency, reranker, reranked, space, principal)
        SELECT held.collection_id, %(query)s, %(words)s, mean.vector, held.profile, held.activated,
               held.answered_at, held.ranked, held.answer_features, held.sufficiency, held.reranker, held.reranked,
               held.space, %(nobody)s
        FROM judged_query held CROSS JOIN LATERAL (
            SELECT l2_normalize(avg(s.embedding::vector)) AS vector FROM verdict_sentence said
            JOIN sentence s ON s.collection_id = said.collection_id AND s.id = said.sentence_id
            WHERE said.collection_id = %(collection)s AND said.event_id = %(event)s AND said.role <> 'rejected'
        ) AS mean
        WHERE held.collection_id = %(collection)s AND held.id = %(old)s AND mean.vector IS NOT NULL
        """,
        parameters | {"old": old},
    )
    if not copied:
        return False
    writer.execute(
        "DELETE FROM verdict_expansion WHERE collection_id = %(collection)s AND event_id = %(event)s", parameters
    )
    named = {"judge": "judge = %(name)s", "principal": "(principal = %(name)s OR judge = %(name)s)"}.get(
        selection.kind, "true"
    )
    writer.execute(
        f"""
        UPDATE feedback_event SET query_id = %(query)s, idempotency_key = %(key)s, body_hash = %(hash)s,
            judge = CASE WHEN {named} THEN %(judge)s ELSE judge END, principal = %(nobody)s,
            trusted = trusted OR coalesce(standing, 0) >= 1, status = 'pending', attempts = 0, error = NULL,
            applied_at = NULL, applied_sequence = NULL, question_id = NULL, observation_noise_positive = NULL,
            observation_noise_negative = NULL, process_noise = NULL, daily_share = NULL, contested_share = NULL,
            daily_weight_verdicts = NULL, standing = NULL, revoked_at = NULL
        WHERE collection_id = %(collection)s AND id = %(event)s
        """,
        parameters,
    )
    _delete_unjudged(writer, collection_id, [old])
    return True


def rename_judge(writer: Writer, collection_id: int, name: str, random_name: str | None) -> int:
    """Give the settings of a judge to another name, or delete them."""
    parameters = {"collection": collection_id, "name": name, "random": random_name}
    if random_name is None:
        return writer.execute(
            "DELETE FROM judge WHERE collection_id = %(collection)s AND name = %(name)s", parameters
        )
    return writer.execute(
        "UPDATE judge SET name = %(random)s WHERE collection_id = %(collection)s AND name = %(name)s", parameters
    )


def delete_unjudged_queries(writer: Writer, collection_id: int, selection: Selection) -> int:
    """Delete the selected queries of the log that no verdict is about any more."""
    if selection.asked is None:
        return 0
    return writer.execute(
        f"""
        DELETE FROM judged_query judged WHERE judged.collection_id = %(collection)s AND {selection.asked}
          AND NOT EXISTS (
            SELECT FROM feedback_event event
            WHERE event.collection_id = judged.collection_id AND event.query_id = judged.id
          )
        """,
        selection.parameters(collection_id),
    )


def find_name_rows(reader: Reader, collection_id: int, kind: ErasedKind) -> list[str]:
    """The names of the judges or of the principals of whom the log knows."""
    column = "judge" if kind == "judge" else "principal"
    tables = (
        ("feedback_event",) if kind == "judge" else ("feedback_event", "judged_query", "episode", "idempotency")
    )
    union = " UNION ".join(
        f"SELECT {column} AS name FROM {table} WHERE collection_id = %(collection)s" for table in tables
    )
    return [row.name for row in reader.rows(union, {"collection": collection_id})]


def count_rows(removed: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are not 0."""
    return {table: count for table, count in removed.items() if count}
