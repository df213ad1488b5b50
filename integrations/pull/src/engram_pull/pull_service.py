"""The service as a pull needs it: traces, ratings and the ledger, by the client."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from engram_client import Engram, NotFoundError
from engram_client.requests import PulledScoreIn
from engram_pull.product_scores import Rating

TRACE_ID = re.compile(r"[!-~]{1,200}")
"""The form of the service's trace ids; no query has another one."""


@dataclass(frozen=True, slots=True)
class LedgerScore:
    """A score as it was last sent; ``rating`` None: its rating was revoked."""

    score_id: str
    judge: str
    rating: Rating | None
    digest: str
    revision: int
    scored_at: datetime
    queries: Sequence[str]


class PullService:
    """Talks to the client's collection on behalf of one pull."""

    def __init__(self, client: Engram, source: str) -> None:
        self._client = client
        self._source = source

    def ledger(self, since: datetime | None) -> dict[str, LedgerScore]:
        """Return what was sent of scores given at ``since`` or later, by score id."""
        rows = self._client.pulled_scores(self._source, since=None if since is None else _iso(since))
        return {
            row.score_id: LedgerScore(
                row.score_id,
                row.judge,
                row.rating,
                row.digest,
                row.revision,
                datetime.fromisoformat(row.scored_at),
                row.queries,
            )
            for row in rows
        }

    def store(self, scores: Sequence[LedgerScore]) -> None:
        """Note what was sent."""
        rows: list[PulledScoreIn] = [
            {**asdict(score), "scored_at": _iso(score.scored_at)}  # type: ignore[typeddict-item]
            for score in scores
        ]
        self._client.put_pulled_scores(self._source, rows)

    def queries_of_trace(self, trace_id: str) -> list[str]:
        """Return the ids of the trace's queries, oldest first."""
        if not TRACE_ID.fullmatch(trace_id):
            return []
        return [str(query.query_id) for query in self._client.trace(trace_id)]

    def has_query(self, query_id: str) -> bool:
        """Return whether the collection has the query."""
        try:
            self._client.episode(query_id)
        except NotFoundError:
            return False
        return True

    def rate(self, query_id: str, rating: Rating | None, reason: str | None, judge: str, key: str) -> bool:
        """Send a rating, None to revoke it; False if the query is gone, as old queries go."""
        up = None if rating is None else rating == "up"
        try:
            self._client.thumb(query_id, up, reason=reason, judge=judge, idempotency_key=key)
        except NotFoundError:
            return False
        return True


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
