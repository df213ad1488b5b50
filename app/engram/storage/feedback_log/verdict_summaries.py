"""Short forms of verdicts for lists: the question, the rating, and what each verdict names."""

from collections.abc import Sequence
from dataclasses import dataclass

from engram.storage.column_parameters import integers
from engram.storage.database import Reader
from engram.storage.row_lookups import join_by_index


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """Question, rating and named sentences of a verdict.

    Attributes:
        asker: principal whose query is judged; None once the query is deleted, and the log has only its copy.
        sentences: the first ``limit`` that the verdict names, in id order; ``roles`` has what it says of each, and
            ``likeness`` how alike each is to the text that was judged, in (0, 1].
        sentences_cut: whether it names more.
        passages: those that helped as a whole, in id order.
    """

    question: str
    asker: str | None
    rating: str | None
    reason: str | None
    sentences: tuple[int, ...]
    roles: tuple[str, ...]
    likeness: tuple[float, ...]
    sentences_cut: bool
    passages: tuple[int, ...]


def read(reader: Reader, collection_id: int, events: Sequence[int], limit: int) -> dict[int, StoredSummary]:
    """Read event -> the summary of its verdict, for those of the events that exist.

    Args:
        limit: sentences of each verdict, at least 1.
    """
    rows = reader.rows(
        f"""
        SELECT event.id, event.rating, event.reason, judged.question, asked.principal AS asker,
               named.sentences, named.roles, named.likeness, helped.passages
        FROM unnest(%(ids)s::bigint[]) AS wanted(id)
        {join_by_index("feedback_event event", "event.id = wanted.id")}
        {join_by_index("judged_query judged", "judged.id = event.query_id")}
        {join_by_index("episode asked", "asked.id = event.query_id", outer=True)}
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(sentence_id ORDER BY sentence_id), '{{}}') AS sentences,
                   coalesce(array_agg(role ORDER BY sentence_id), '{{}}') AS roles,
                   coalesce(array_agg(coalesce((
                       SELECT exp(sum(ln(revision.likeness)))
                       FROM sentence s, unnest(s.revised_at, s.revision_likeness) AS revision(at, likeness)
                       WHERE s.collection_id = %(collection)s AND s.id = first.sentence_id
                         AND revision.at > judged.answered_at
                   ), 1) ORDER BY sentence_id), '{{}}') AS likeness
            FROM (
                SELECT sentence_id, role FROM verdict_sentence
                WHERE collection_id = %(collection)s AND event_id = wanted.id
                ORDER BY sentence_id LIMIT %(limit)s
            ) AS first
        ) AS named
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(passage_id ORDER BY passage_id), '{{}}') AS passages
            FROM verdict_passage WHERE collection_id = %(collection)s AND event_id = wanted.id
        ) AS helped
        """,
        {"collection": collection_id, "ids": integers(events), "limit": limit + 1},
    )
    return {
        row.id: StoredSummary(
            question=row.question,
            asker=row.asker,
            rating=row.rating,
            reason=row.reason,
            sentences=tuple(row.sentences[:limit]),
            roles=tuple(row.roles[:limit]),
            likeness=tuple(row.likeness[:limit]),
            sentences_cut=len(row.sentences) > limit,
            passages=tuple(row.passages),
        )
        for row in rows
    }
