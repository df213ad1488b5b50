"""Stored queries with what their answers were worth and what verdicts said of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from engram.storage.column_parameters import decode_vectors, integers
from engram.storage.database import Reader
from engram.storage.question.episodes import SUFFICIENCY
from engram.storage.row_lookups import WANTED_IDS, join_by_index

NEAREST_PASSAGES = 5


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A stored query.

    Attributes:
        sufficiency: that its answer had, in [0, 1]; None where features did not rank.
        denials: counting verdicts that call the answer not enough, or a thumb down; where none names what helped,
            also those that reject passages.
        supporting_event: the last counting verdict that names what helped, and when it came; None if there is none.
        nearest: the first passages of the answer; of a withheld one, the best candidates.
    """

    id: UUID
    question: str
    principal: str
    sufficiency: float | None
    created_at: datetime
    denials: int
    supporting_event: tuple[int, datetime] | None
    nearest: Sequence[int]


@dataclass(frozen=True, slots=True)
class PassageOrigin:
    """Document of a passage, or the passage's own id where it has none, and since when it has its text."""

    document: str
    text_since: datetime


def _names(roles: str) -> str:
    """SQL: whether a verdict names a sentence in one of these roles."""
    return f"""EXISTS (
        SELECT FROM verdict_sentence named WHERE named.collection_id = %(collection)s AND named.event_id = event.id
          AND named.role IN ({roles})
    )"""


_HELPED = f"""({_names("'supported', 'missed', 'likely'")} OR EXISTS (
    SELECT FROM verdict_passage helped WHERE helped.collection_id = %(collection)s AND helped.event_id = event.id
))"""
_DENIES = f"""(
    event.rating = 'down' OR event.retrieval_success IS FALSE OR (NOT event.partial AND NOT {_HELPED})
)"""
_REJECTS = f"""(
    event.partial AND event.rating IS NULL AND event.retrieval_success IS NULL AND {_names("'rejected'")}
)"""


def list_asked(
    reader: Reader, collection_id: int, space: int, since: datetime, limit: int
) -> tuple[list[AskedQuestion], NDArray[np.float32]]:
    """List the latest queries since a moment, the latest first, and their vectors, (n, d).

    Parts of other questions are left out, and queries with vectors of another space.
    """
    rows = reader.rows(
        f"""
        SELECT e.id, e.question, e.principal, (e.answer ->> '{SUFFICIENCY}')::float8 AS sufficiency, e.created_at,
               coalesce(nullif(e.shown, '{{}}'), e.ranked, '{{}}') AS nearest,
               vector_send(e.embedding) AS vector, said.denials, said.supporting_event,
               said.supported_at
        FROM (
            SELECT * FROM episode WHERE collection_id = %(collection)s AND created_at >= %(since)s
              AND space = %(space)s AND NOT is_part
            ORDER BY created_at DESC, id DESC LIMIT %(limit)s
        ) AS e
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE {_DENIES})
                   + CASE WHEN bool_or({_HELPED}) THEN 0 ELSE count(*) FILTER (WHERE {_REJECTS}) END AS denials,
                   max(event.id) FILTER (WHERE {_HELPED}) AS supporting_event,
                   max(event.received_at) FILTER (WHERE {_HELPED}) AS supported_at
            FROM (SELECT e.id) AS asked {join_by_index("feedback_event event", "event.query_id = asked.id")}
            WHERE event.status IN ('pending', 'applied')
        ) AS said
        ORDER BY e.created_at DESC, e.id DESC
        """,
        {"collection": collection_id, "since": since, "space": space, "limit": limit},
    )
    asked = [
        AskedQuestion(
            row.id,
            row.question,
            row.principal,
            row.sufficiency,
            row.created_at,
            row.denials,
            None if row.supporting_event is None else (row.supporting_event, row.supported_at),
            row.nearest[:NEAREST_PASSAGES],
        )
        for row in rows
    ]
    return asked, decode_vectors(b"".join(row.vector for row in rows) or None)


def load_origins(reader: Reader, collection_id: int, passages: Sequence[int]) -> dict[int, PassageOrigin]:
    """Return passage -> its origin, of those that the caller sees.

    The first document from its id on is the one of this id, see ``passages``.
    """
    rows = reader.rows(
        f"""
        SELECT p.id, coalesce(d.source, p.external_id) AS document, p.text_since
        FROM {WANTED_IDS} {join_by_index("passage p", "p.id = wanted.id")}
        {join_by_index("document d", "d.id >= p.document_id ORDER BY d.id LIMIT 1", outer=True)}
        """,
        {"collection": collection_id, "ids": integers(passages)},
    )
    return {row.id: PassageOrigin(row.document, row.text_since) for row in rows}
