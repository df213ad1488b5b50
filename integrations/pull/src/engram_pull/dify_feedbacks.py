"""Feedback of a Dify app: its service API lists all of it, the latest first."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from engram_pull.product_http import MissingRouteError, ProductError, ProductHttp
from engram_pull.product_scores import (
    Rating,
    Score,
    ScoreShapeError,
    map_records,
    moment,
    reason_text,
    text_field,
)

PRODUCT = "dify"
PAGE = 100
RATINGS: dict[str, Rating] = {"like": "up", "dislike": "down"}
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.ASCII)
"""Ids of queries are UUIDs of version 7; Dify's own are of version 4."""


def score_of_feedback(record: Mapping[str, Any]) -> Score:
    """Map a feedback: like is up, dislike is down, and its content is the reason.

    Raises:
        ScoreShapeError: the record does not have the published shape.
    """
    thumb = record.get("rating")
    if thumb is not None and thumb not in RATINGS:
        raise ScoreShapeError(f"rating: {thumb!r} is neither like nor dislike")
    rating = None if thumb is None else RATINGS[thumb]
    content, author = record.get("content"), record.get("from_end_user_id") or record.get("from_account_id")
    conversation = record.get("conversation_id")
    return Score(
        score_id=text_field(record, "id"),
        trace_id=text_field(record, "message_id"),
        rating=rating,
        reason=reason_text(rating, content if isinstance(content, str) else None),
        author=author if isinstance(author, str) else None,
        scored_at=moment(record, "created_at"),
        updated_at=moment(record, "updated_at", "created_at"),
        conversation_id=conversation if isinstance(conversation, str) else None,
    )


def query_ids(message: Mapping[str, Any]) -> list[str]:
    """Return the query ids in the ``document_id`` of a message's resources, each once, in their order."""
    resources = message.get("retriever_resources")
    ids = [
        match
        for resource in (resources if isinstance(resources, list) else [])
        if isinstance(resource, Mapping)
        for match in _UUID.findall(str(resource.get("document_id", "")).lower())
    ]
    return list(dict.fromkeys(ids))


@dataclass
class DifyFeedbacks:
    """Reads the feedback of the app that the API key belongs to."""

    http: ProductHttp
    skipped: dict[str, str] = field(default_factory=dict)
    product: str = PRODUCT

    def read(self, since: datetime | None) -> list[Score]:
        """List all feedback; Dify has no filter by time, and an old feedback may be changed.

        Raises:
            ProductError: Dify cannot be reached, refuses, or answers in another shape.
        """
        return map_records(self._records(), score_of_feedback, self.skipped)

    def confirm_missing(self, score_ids: Collection[str]) -> set[str]:
        """Return those of the ids that a second reading leaves out too; pages shift while feedback comes."""
        return set(score_ids) - {str(record.get("id")) for record in self._records()}

    def find_queries(self, score: Score) -> list[str]:
        """Return ids of queries that the rated message's resources name.

        Dify passes ``metadata.document_id`` of external knowledge on to the message. Its user is asked for first,
        since messages are listed by user.
        """
        if score.author is None or score.conversation_id is None:
            return []
        try:
            user = self.http.get(f"/end-users/{score.author}")
            session = user.get("session_id") if isinstance(user, Mapping) else None
            if not isinstance(session, str):
                return []
            message = self._message(score.conversation_id, session, score.trace_id)
        except MissingRouteError:
            return []  # feedback of an administrator, or a message that is gone
        return [] if message is None else query_ids(message)

    def _message(self, conversation: str, user: str, message_id: str) -> Mapping[str, Any] | None:
        first: str | None = None
        while True:
            where = {"conversation_id": conversation, "user": user, "limit": str(PAGE)}
            page = self.http.get("/messages", where if first is None else where | {"first_id": first})
            messages = _read_records(page)
            for message in messages:
                if message.get("id") == message_id:
                    return message
            earliest = str(messages[0].get("id")) if messages else first
            if not page.get("has_more") or earliest == first:
                return None
            first = earliest

    def _records(self) -> Iterator[Mapping[str, Any]]:
        number = 1
        while True:
            records = _read_records(self.http.get("/app/feedbacks", {"page": str(number), "limit": str(PAGE)}))
            yield from records
            if len(records) < PAGE:
                return
            number += 1


def _read_records(page: Any) -> list[Mapping[str, Any]]:
    """Return the records of a page.

    Raises:
        ProductError: the page has another shape.
    """
    if (
        not isinstance(page, Mapping)
        or not isinstance(page.get("data"), list)
        or not all(isinstance(record, Mapping) for record in page["data"])
    ):
        raise ProductError("Dify answers in another shape than its service API.")
    records: list[Mapping[str, Any]] = page["data"]
    return records
