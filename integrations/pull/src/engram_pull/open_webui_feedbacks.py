"""Feedback of Open WebUI: the export that an administrator downloads, as a file or from the API."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from engram_pull.product_http import MissingRouteError, ProductError, ProductHttp
from engram_pull.product_scores import (
    TEN,
    Rating,
    Score,
    ScoreShapeError,
    map_records,
    moment,
    reason_text,
    text_field,
)

PRODUCT = "open-webui"
EXPORT, LIST = "/api/v1/evaluations/feedbacks/all/export", "/api/v1/evaluations/feedbacks/all"
MODEL_REASONS = frozenset(
    "dont_like_the_style too_verbose not_factually_correct didnt_fully_follow_instructions "
    "refused_when_it_shouldnt_have being_lazy".split()
)
"""Reasons of a thumb down that blame the model: as `wrong_answer` they teach retrieval nothing."""


def score_of_feedback(record: Mapping[str, Any]) -> Score | None:
    """Map a feedback; None if it belongs to no message, or compares models.

    The thumb counts: 1 is up and -1 is down. Without one, ``details.rating`` counts on its scale from 1 to 10. A
    reason that blames the model becomes `wrong_answer`; else the comment is the reason.

    Raises:
        ScoreShapeError: the record does not have the published shape.
    """
    data, meta = _object(record, "data"), _object(record, "meta")
    message_id = meta.get("message_id")
    if not isinstance(message_id, str) or not message_id or meta.get("arena"):
        return None
    rating = _read_rating(data)
    comment, tag, user = data.get("comment"), data.get("reason"), record.get("user_id")
    if rating == "down" and tag in MODEL_REASONS:
        reason: str | None = "wrong_answer"
    else:
        reason = reason_text(rating, comment if isinstance(comment, str) else None)
    return Score(
        score_id=text_field(record, "id"),
        trace_id=message_id,
        rating=rating,
        reason=reason,
        author=user if isinstance(user, str) else None,
        scored_at=moment(record, "created_at"),
        updated_at=moment(record, "updated_at", "created_at"),
    )


def _object(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = record.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise ScoreShapeError(f"{name}: {value!r} is no object")
    return value or {}


def _read_rating(data: Mapping[str, Any]) -> Rating | None:
    thumb = data.get("rating")
    if thumb is None:
        details = data.get("details")
        degree = details.get("rating") if isinstance(details, Mapping) else None
        if degree is None:
            return None
        if isinstance(degree, bool) or not isinstance(degree, int | float):
            raise ScoreShapeError(f"details.rating: {degree!r} is no number")
        return TEN.convert_value(degree)
    if str(thumb) in ("1", "-1"):
        return "up" if str(thumb) == "1" else "down"
    if str(thumb) == "0":
        return None
    raise ScoreShapeError(f"rating: {thumb!r} is neither 1 nor -1")


@dataclass
class OpenWebUiFeedbacks:
    """Reads the export: ``source`` is a file, or the API with an administrator's key."""

    source: Path | ProductHttp
    skipped: dict[str, str] = field(default_factory=dict)
    product: str = PRODUCT

    def read(self, since: datetime | None) -> list[Score]:
        """List all feedback of the export.

        Raises:
            ProductError: the file or the server cannot be read, or has another shape.
        """
        return map_records(self._records(), score_of_feedback, self.skipped)

    def confirm_missing(self, score_ids: Collection[str]) -> set[str]:
        """Return all of the ids: an export is whole."""
        return set(score_ids)

    def find_queries(self, score: Score) -> list[str]:
        """Return ids of queries that the product itself names; the export names none."""
        return []

    def _records(self) -> list[Mapping[str, Any]]:
        if isinstance(self.source, Path):
            try:
                records = json.loads(self.source.read_text(encoding="utf-8"))
            except ValueError as error:
                raise ProductError(f"{self.source}: {error}") from error
        else:
            try:
                records = self.source.get(EXPORT)
            except MissingRouteError:
                records = self.source.get(LIST)  # as versions before the export had it
        if not isinstance(records, list) or not all(isinstance(record, Mapping) for record in records):
            raise ProductError("Open WebUI's feedback is a list of objects; this is something else.")
        return records
