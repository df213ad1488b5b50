"""Scores of Langfuse: its public API, version 3 with cursors, and version 2 with pages for older servers."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from engram_pull.product_http import MissingRouteError, ProductError, ProductHttp
from engram_pull.product_scores import (
    Scale,
    Score,
    ScoreShapeError,
    map_records,
    moment,
    reason_text,
    text_field,
    word_rating,
)

PRODUCT = "langfuse"
PAGE = 100
"""Scores of a page, at most by the contract."""
V3, V2 = "/api/public/v3/scores", "/api/public/v2/scores"
FIELDS = "details,subject,annotation"
Version = Literal["v3", "v2"]


def score_of_record(record: Mapping[str, Any], scale: Scale) -> Score | None:
    """Map a score of either version; None if it is for no trace.

    BOOLEAN is a thumb. NUMERIC is up in the upper 40% of the scale and down in the lower 40%. CATEGORICAL is a
    thumb if its category is a word for one. TEXT and CORRECTION are no ratings. The comment is the reason.

    Raises:
        ScoreShapeError: the record does not have the published shape, or a number is outside the scale.
    """
    trace_id = _trace_id(record)
    if trace_id is None:
        return None
    rating = _read_rating(record, scale)
    comment = record.get("comment")
    author = record.get("authorUserId") or (record.get("trace") or {}).get("userId")
    return Score(
        score_id=text_field(record, "id"),
        trace_id=trace_id,
        rating=rating,
        reason=reason_text(rating, comment if isinstance(comment, str) else None),
        author=author if isinstance(author, str) else None,
        scored_at=moment(record, "timestamp", "createdAt"),
        updated_at=moment(record, "updatedAt", "timestamp"),
    )


def _trace_id(record: Mapping[str, Any]) -> str | None:
    """Version 3 names a subject, and an observation names its trace; version 2 names the trace."""
    subject = record.get("subject")
    if isinstance(subject, Mapping):
        trace_id = subject.get("id") if subject.get("kind") == "trace" else subject.get("traceId")
    else:
        trace_id = record.get("traceId")
    return trace_id if isinstance(trace_id, str) and trace_id else None


def _read_rating(record: Mapping[str, Any], scale: Scale) -> Literal["up", "down"] | None:
    kind, value = record.get("dataType"), record.get("value")
    if kind == "BOOLEAN":
        if isinstance(value, bool) or value in (0, 1):
            return "up" if value else "down"
        raise ScoreShapeError(f"value: {value!r} is no boolean")
    if kind == "NUMERIC":
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ScoreShapeError(f"value: {value!r} is no number")
        return scale.convert_value(float(value))
    if kind == "CATEGORICAL":
        word = record.get("stringValue") or value
        return word_rating(word) if isinstance(word, str) else None
    if kind in ("TEXT", "CORRECTION"):
        return None
    raise ScoreShapeError(f"dataType: {kind!r} is unknown")


@dataclass
class LangfuseScores:
    """Reads scores of some names.

    Attributes:
        names: of the scores that are thumbs; scores of evaluators have other names.
        scale: of numeric scores.
        skipped: id -> cause, of records of the last reading that could not be mapped.
    """

    http: ProductHttp
    names: Sequence[str]
    scale: Scale = field(default_factory=Scale)
    skipped: dict[str, str] = field(default_factory=dict)
    product: str = PRODUCT
    _version: Version | None = None

    def read(self, since: datetime | None) -> list[Score]:
        """List the scores given at ``since`` or later.

        Raises:
            ProductError: Langfuse cannot be reached, refuses, or answers in another shape.
        """
        where = {} if since is None else {"fromTimestamp": _iso(since)}
        return map_records(self._records(where), lambda record: score_of_record(record, self.scale), self.skipped)

    def confirm_missing(self, score_ids: Collection[str]) -> set[str]:
        """Return those of the ids that Langfuse does not have, each asked for by itself.

        A score that is left out of a list may still be there: pages shift while scores come and go.
        """
        missing = set(score_ids)
        waiting = sorted(score_ids)
        for start in range(0, len(waiting), PAGE):
            ids = ",".join(waiting[start : start + PAGE])
            where = {"id": ids} if self._version == "v3" else {"scoreIds": ids}
            missing -= {str(record.get("id")) for record in self._records(where)}
        return missing

    def find_queries(self, score: Score) -> list[str]:
        """Return ids of queries that the product itself names; Langfuse names none."""
        return []

    def _records(self, where: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        if self._version != "v2":
            try:
                yield from self._v3(where)
            except MissingRouteError:
                if self._version == "v3":
                    raise
                self._version = "v2"
            else:
                return
        yield from self._v2(where)

    def _v3(self, where: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        cursor: str | None = None
        while True:
            query = {"limit": str(PAGE), "fields": FIELDS, "name": ",".join(self.names), **where}
            page = self.http.get(V3, query if cursor is None else query | {"cursor": cursor})
            self._version = "v3"
            records, meta = _page(page)
            yield from records
            following = meta.get("cursor")
            if not following:
                return
            if following == cursor:
                raise ProductError("Langfuse answers the same cursor again.")
            cursor = str(following)

    def _v2(self, where: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        for name in self.names:
            number = 1
            while True:
                query = {"limit": str(PAGE), "page": str(number), "name": name, **where}
                records, meta = _page(self.http.get(V2, query))
                yield from records
                if number >= int(meta.get("totalPages") or 0):
                    break
                number += 1


def _page(page: Any) -> tuple[list[Mapping[str, Any]], Mapping[str, Any]]:
    if (
        not isinstance(page, Mapping)
        or not isinstance(page.get("data"), list)
        or not isinstance(page.get("meta"), Mapping)
        or not all(isinstance(record, Mapping) for record in page["data"])
    ):
        raise ProductError("Langfuse answers in another shape than its scores API.")
    return page["data"], page["meta"]


def _iso(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
