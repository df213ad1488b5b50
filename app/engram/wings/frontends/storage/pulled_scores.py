"""Scores of other products that became ratings, as a pull last sent them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from engram.storage.database import Reader, Writer
from engram.storage.erasure.erased_log import Selection


@dataclass(frozen=True, slots=True)
class PulledScore:
    """A score as it was last sent.

    Attributes:
        score_id: the product's id of it.
        judge: whose rating it is.
        rating: "up" or "down"; None for a deleted score, whose rating was revoked.
        digest: of everything that the rating says.
        revision: how often it was sent, from 1.
        scored_at: when the product says that it was given.
        queries: that were rated.
    """

    score_id: str
    judge: str
    rating: str | None
    digest: str
    revision: int
    scored_at: datetime
    queries: list[UUID]


def page(
    reader: Reader,
    collection_id: int,
    principal: str,
    source: str,
    *,
    since: datetime | None,
    after: str,
    limit: int,
) -> list[PulledScore]:
    """List the scores of a source given at ``since`` or later, in order of their ids, those after ``after``."""
    rows = reader.rows(
        """
        SELECT score_id, judge, rating, digest, revision, scored_at, queries FROM pulled_score
        WHERE collection_id = %(collection)s AND principal = %(principal)s AND source = %(source)s
          AND score_id > %(after)s AND (%(since)s::timestamptz IS NULL OR scored_at >= %(since)s)
        ORDER BY score_id LIMIT %(limit)s
        """,
        {
            "collection": collection_id,
            "principal": principal,
            "source": source,
            "since": since,
            "after": after,
            "limit": limit,
        },
    )
    return [PulledScore(**row._asdict()) for row in rows]


def put(writer: Writer, collection_id: int, principal: str, source: str, scores: Sequence[PulledScore]) -> None:
    """Store scores in place of what was stored of them."""
    for score in scores:
        writer.execute(
            """
            INSERT INTO pulled_score (collection_id, principal, source, score_id, judge, rating, digest, revision,
                                      scored_at, queries)
            VALUES (%(collection)s, %(principal)s, %(source)s, %(score_id)s, %(judge)s, %(rating)s, %(digest)s,
                    %(revision)s, %(scored_at)s, %(queries)s)
            ON CONFLICT (collection_id, principal, source, score_id) DO UPDATE SET
                judge = excluded.judge, rating = excluded.rating, digest = excluded.digest,
                revision = excluded.revision, scored_at = excluded.scored_at, queries = excluded.queries,
                updated_at = excluded.updated_at
            """,
            {"collection": collection_id, "principal": principal, "source": source, **asdict(score)},
        )


def erase(writer: Writer, collection_id: int, selection: Selection) -> int:
    """Remove the scores that an erasure selects; how many."""
    selected = {
        "query": "queries && %(queries)s::uuid[]",
        "judge": "judge = %(name)s",
        "principal": "(principal = %(name)s OR judge = %(name)s)",
        "span": selection.during("scored_at"),
    }[selection.kind]
    return writer.execute(
        f"DELETE FROM pulled_score WHERE collection_id = %(collection)s AND {selected}",
        selection.parameters(collection_id),
    )
