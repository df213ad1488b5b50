"""A score of another product, in the words of a rating: what all products' scores are mapped to."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from engram_pull.product_http import PullError

Rating = Literal["up", "down"]
Record = Mapping[str, Any]
REASONS = ("wrong_answer", "missing", "irrelevant", "outdated")
"""Reasons of a thumb down that the service gives a meaning; any other text is logged only."""
REASON_CHARACTERS = 1_000
NEUTRAL_SHARE = 0.2
"""Share of a numeric scale, around its middle, that is neither a thumb up nor a thumb down."""
UP_WORDS = frozenset(
    "up,thumbs up,thumbsup,thumb up,like,liked,good,positive,yes,true,correct,helpful,great,👍".split(",")
)
DOWN_WORDS = frozenset(
    "down,thumbs down,thumbsdown,thumb down,dislike,disliked,bad,negative,no,false,incorrect,wrong,unhelpful,"
    "not helpful,👎".split(",")
)
JUDGE_CHARACTERS = 200
_ODD_IN_JUDGE = re.compile(r"[^a-z0-9._@+:/-]+")


class ScoreShapeError(ValueError):
    """A record of the product does not have the published shape."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A numeric scale; ``low`` is the worst value and ``high`` the best."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"a scale goes up, not from {self.low:g} to {self.high:g}")

    def convert_value(self, value: float) -> Rating | None:
        """Up from the upper 40% of the scale, down from the lower 40%, None between.

        Raises:
            ScoreShapeError: the value is outside the scale.
        """
        if not self.low <= value <= self.high:
            raise ScoreShapeError(f"{value:g} is outside the scale {self.low:g}:{self.high:g}; set --scale")
        distance = (value - (self.low + self.high) / 2) / (self.high - self.low)
        if abs(distance) < NEUTRAL_SHARE / 2:
            return None
        return "up" if distance > 0 else "down"


TEN = Scale(1.0, 10.0)


@dataclass(frozen=True, slots=True)
class Score:
    """A score, mapped to a rating.

    Attributes:
        score_id: the product's id of it.
        trace_id: the trace or message that it is for.
        rating: None: the score is no thumb, or was taken back.
        reason: why, as the service takes it; None for none.
        author: the product's id of the person; None if it is unknown.
        scored_at: when it was given; updated_at: when it was last changed.
        conversation_id: of the message, where the product has one.
    """

    score_id: str
    trace_id: str
    rating: Rating | None
    reason: str | None
    author: str | None
    scored_at: datetime
    updated_at: datetime
    conversation_id: str | None = None


def word_rating(word: str) -> Rating | None:
    """The rating that a category's name is; None for other words."""
    plain = " ".join(re.split(r"[\s_-]+", word.strip().lower()))
    return "up" if plain in UP_WORDS else "down" if plain in DOWN_WORDS else None


def reason_text(rating: Rating | None, comment: str | None) -> str | None:
    """The comment as a reason, cut to what the service takes; a thumb up has no reason of a thumb down."""
    text = " ".join((comment or "").replace("\x00", " ").split())[:REASON_CHARACTERS]
    if rating is None or not text or (rating == "up" and text in REASONS):
        return None
    return text.encode("utf-8", "replace").decode()


def judge_name(product: str, author: str | None) -> str:
    """The judge that a person's ratings are of: the product, and the person if known."""
    plain = _ODD_IN_JUDGE.sub("-", (author or "").strip().lower()).strip("-")
    return f"{product}:{plain}"[:JUDGE_CHARACTERS] if plain else product


def normalise_judge(name: str) -> str:
    """The service's spelling of a judge's name: lower case, single spaces.

    Raises:
        PullError: it has a character that names have not, or too many.
    """
    plain = " ".join(name.lower().split())
    if len(plain) > JUDGE_CHARACTERS or not re.fullmatch(r"[a-z0-9][a-z0-9 ._@+:/-]*", plain):
        raise PullError(f"--judge {name!r}: a name has up to 200 of a to z, digits, spaces and . _ @ + : / -")
    return plain


def digest(judge: str, score: Score) -> str:
    """SHA-256 of everything that the rating says, in hexadecimal; a score whose digest changed is sent again."""
    content = [judge, score.trace_id, score.rating, score.reason]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def moment(record: Mapping[str, Any], *names: str) -> datetime:
    """The first of these fields that is set, as a moment in UTC: ISO 8601, or seconds since 1970.

    Raises:
        ScoreShapeError: none is set, or it is no moment.
    """
    value = next((record[name] for name in names if record.get(name) is not None), None)
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        parsed = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError) as error:
        raise ScoreShapeError(f"{names[0]}: {value!r} is no date and time") from error
    return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def text_field(record: Mapping[str, Any], name: str) -> str:
    """A field that must be text and not empty.

    Raises:
        ScoreShapeError: it is not.
    """
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise ScoreShapeError(f"{name}: {value!r} is no text")
    return value


def map_records(
    records: Iterable[Record],
    map_record: Callable[[Record], Score | None],
    skipped: dict[str, str],
) -> list[Score]:
    """Map a product's records to scores, the last one for each id.

    An id that appears twice keeps the place of its first record.

    Args:
        map_record: maps one record; None if it is no score.
        skipped: is emptied, and gets the id of each record that could not be mapped, with the cause.
    """
    skipped.clear()
    scores: dict[str, Score] = {}
    for record in records:
        try:
            score = map_record(record)
        except ScoreShapeError as error:
            skipped[str(record.get("id"))] = str(error)
            continue
        if score is not None:
            scores[score.score_id] = score
    return list(scores.values())
