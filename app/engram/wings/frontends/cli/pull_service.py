"""The service as a pull needs it: traces, ratings and the ledger over HTTP."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from http import HTTPStatus
from typing import Any

from engram.cli.http_client import Client, ClientError, build_path
from engram.wings.frontends.pulls.product_scores import Rating
from engram.wings.frontends.pulls.pull_run import LedgerScore

PAGE = 1_000
TRACE_ID = re.compile(r"[!-~]{1,200}")
"""The form of the service's trace ids; no query has another one."""


class PullService:
    """Talks to one collection on behalf of one pull."""

    def __init__(self, client: Client, collection: str, source: str) -> None:
        self._client = client
        self._collection = collection
        self._ledger = build_path("collections", collection, "pulls", source)

    def ledger(self, since: datetime | None) -> dict[str, LedgerScore]:
        """Return what was sent of scores given at ``since`` or later, by score id."""
        scores: dict[str, LedgerScore] = {}
        where: dict[str, Any] = {"limit": PAGE, "from": None if since is None else _iso(since)}
        while True:
            page = self._client.send("GET", self._ledger, params=where)
            for row in page["scores"]:
                row["scored_at"] = datetime.fromisoformat(row["scored_at"])
                scores[row["score_id"]] = LedgerScore(**row)
            if page["next_after"] is None:
                return scores
            where["after"] = page["next_after"]

    def store(self, scores: Sequence[LedgerScore]) -> None:
        """Note what was sent."""
        rows = [asdict(score) | {"scored_at": _iso(score.scored_at)} for score in scores]
        self._client.send("PUT", self._ledger, json={"scores": rows})

    def queries_of_trace(self, trace_id: str) -> list[str]:
        """Return the ids of the trace's queries, oldest first."""
        if not TRACE_ID.fullmatch(trace_id):
            return []
        traced = self._client.send("GET", "/queries", params={"collection": self._collection, "trace_id": trace_id})
        return [query["query_id"] for query in traced["queries"]]

    def has_query(self, query_id: str) -> bool:
        """Return whether the collection has the query."""
        try:
            self._client.send("GET", build_path("queries", query_id), params={"collection": self._collection})
        except ClientError as error:
            if error.extra.get("status_code") != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def rate(self, query_id: str, rating: Rating | None, reason: str | None, judge: str, key: str) -> bool:
        """Send a rating, None to revoke it; False if the query is gone, as old queries go."""
        body: dict[str, Any] = {
            "query_id": query_id,
            "collection": self._collection,
            "rating": rating,
            "judge": judge,
        }
        if reason is not None:
            body["reason"] = reason
        try:
            self._client.send("POST", "/feedback", json=body, key=key)
        except ClientError as error:
            if error.extra.get("status_code") != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
