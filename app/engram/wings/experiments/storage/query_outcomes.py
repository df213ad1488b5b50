"""Outcomes of queries by their verdicts: one row of plain numbers per query."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from engram.storage.database import Reader
from engram.storage.row_lookups import join_by_index

PAGE = 2_000
BEGINNING = datetime(1, 1, 2, tzinfo=UTC), UUID(int=0)

Place = tuple[datetime, UUID]
"""When a query was answered, and its id: the order in which pages follow each other."""


def page(
    reader: Reader,
    collection_id: int,
    *,
    since: datetime | None,
    before: datetime | None,
    after: Place,
    generation_threshold: float,
) -> Sequence[Any]:
    """A page of the collection's queries in the order in which they were answered, those after ``after``.

    Rows have created_at, id, arm, hops, total_ms, ever_judged, judged, and what the verdict says, of those that
    count, that was applied last: success, recall, reciprocal_rank and generated, each null where it does not say.

    - ever_judged, judged: whether a verdict was accepted, and whether one counts.
    - success: the verdict's word, else whether it supports a passage of the answer; null if it is partial and
      supports nothing.
    - recall: passages of the answer, over all passages, that it supports or calls missed.
    - reciprocal_rank: of the first of them in the answer; 0 if none is there.
    - generated: the verdict's word, else whether its score reaches the threshold.

    Passages that are gone by now are left out.
    """
    return reader.rows(
        f"""
        SELECT e.created_at, e.id, e.arm, e.hops::float8 AS hops, e.total_ms::float8 AS total_ms,
            EXISTS (
                SELECT FROM feedback_event event
                WHERE event.collection_id = %(collection)s AND event.query_id = e.id
            ) AS ever_judged, said.id IS NOT NULL AS judged,
            CASE
                WHEN said.retrieval_success IS NOT NULL THEN said.retrieval_success
                WHEN found.supported > 0 THEN found.supported_found > 0
                WHEN NOT said.partial AND (
                    found.named > 0
                    OR NOT EXISTS (
                        SELECT FROM verdict_sentence named
                        WHERE named.collection_id = %(collection)s AND named.event_id = said.id
                          AND named.role IN ('supported', 'missed')
                    ) AND NOT EXISTS (
                        SELECT FROM verdict_passage helped
                        WHERE helped.collection_id = %(collection)s AND helped.event_id = said.id
                    )
                ) THEN false
            END::int::float8 AS success,
            found.found::float8 / nullif(found.named, 0) AS recall,
            CASE WHEN found.named > 0 THEN coalesce(1.0 / found.first, 0) END::float8 AS reciprocal_rank,
            coalesce(said.generation_success, said.generation_score >= %(threshold)s)::int::float8 AS generated
        FROM (
            SELECT id, created_at, arm, hops, total_ms, shown FROM episode
            WHERE collection_id = %(collection)s
              AND created_at >= coalesce(%(since)s::timestamptz, '-infinity')
              AND created_at < coalesce(%(before)s::timestamptz, 'infinity')
              AND (created_at, id) > (%(after_time)s::timestamptz, %(after_id)s::uuid)
            ORDER BY created_at, id LIMIT %(limit)s
        ) e
        LEFT JOIN LATERAL (
            SELECT id, partial, retrieval_success, generation_success, generation_score FROM feedback_event event
            WHERE event.collection_id = %(collection)s AND event.query_id = e.id
              AND event.status = 'applied' AND event.rating IS DISTINCT FROM 'withdrawn'
            ORDER BY event.applied_sequence DESC LIMIT 1
        ) said ON true
        LEFT JOIN LATERAL (
            SELECT count(*) AS named, count(hit.position) AS found, min(hit.position) AS first,
                count(*) FILTER (WHERE word.supported) AS supported,
                count(hit.position) FILTER (WHERE word.supported) AS supported_found
            FROM (
                SELECT passage_id, bool_or(supported) AS supported FROM (
                    SELECT s.passage_id, named.role = 'supported' AS supported
                    FROM verdict_sentence named {join_by_index("sentence s", "s.id = named.sentence_id")}
                    WHERE named.collection_id = %(collection)s AND named.event_id = said.id
                      AND named.role IN ('supported', 'missed')
                    UNION ALL
                    SELECT helped.passage_id, true FROM verdict_passage helped
                    WHERE helped.collection_id = %(collection)s AND helped.event_id = said.id
                ) AS spoken GROUP BY passage_id
            ) AS word {join_by_index("passage p", "p.id = word.passage_id")}
            LEFT JOIN unnest(e.shown) WITH ORDINALITY AS hit(passage_id, position)
                ON hit.passage_id = word.passage_id
        ) found ON said.id IS NOT NULL
        ORDER BY e.created_at, e.id
        """,
        {
            "collection": collection_id,
            "since": since,
            "before": before,
            "after_time": after[0],
            "after_id": after[1],
            "threshold": generation_threshold,
            "limit": PAGE,
        },
    )
