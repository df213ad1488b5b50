"""The strict reading of what the tree planner is replied."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from engram.providers.llm.replies import (
    Line,
    Number,
    QuestionText,
    Reply,
    UnusableReplyError,
    as_amount,
    convert_to_lower_case,
    read,
    to_ids,
)
from engram.wings.sessions.core.rewards import HIGHEST_RATING

RefinementVerdict = Literal["correct", "partial", "incorrect", "unsupported"]


@dataclass(frozen=True, slots=True)
class DerivedFinding:
    """Finding from evidence, with the ids of its sentences; the text is empty without a finding."""

    text: str
    cited: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RefinedAnswer:
    """An answer that was checked, as it should be; ``verdict`` is on the one before."""

    verdict: RefinementVerdict
    text: str
    cited: tuple[int, ...]


class FindingReply(Reply):
    """A conclusion from evidence."""

    conclusion: Annotated[Line, Field(max_length=2_000)]
    cited: list[Number]


class RewordedReply(Reply):
    """A question in other words."""

    reworded: Annotated[QuestionText, Field(min_length=1)]


class RefinedReply(Reply):
    """An answer that was checked."""

    reasoned: ClassVar[bool] = True
    verdict: Annotated[RefinementVerdict, BeforeValidator(convert_to_lower_case)]
    answer: Annotated[Line, Field(max_length=2_000)]
    cited: list[Number]


def _as_rating(value: Any) -> Any:
    """Read "7/10" as 7."""
    return as_amount(value.strip().removesuffix("/10") if isinstance(value, str) else value)


class RatingReply(Reply):
    """A rating of an answer."""

    reasoned: ClassVar[bool] = True
    rating: Annotated[float, BeforeValidator(_as_rating), Field(ge=0.0, le=HIGHEST_RATING, allow_inf_nan=False)]


def read_reworded(text: str) -> str:
    """Read a question in other words."""
    return read(RewordedReply, text).reworded


def read_finding(text: str, ids: Sequence[int]) -> DerivedFinding:
    """Read what follows; what is concluded from nothing is not usable."""
    reply = read(FindingReply, text)
    if reply.conclusion and not reply.cited:
        raise UnusableReplyError("cited: a conclusion rests on at least one sentence")
    return DerivedFinding(reply.conclusion, to_ids("cited", reply.cited, ids) if reply.conclusion else ())


def read_refined(text: str, ids: Sequence[int]) -> RefinedAnswer:
    """Read the checked answer."""
    reply = read(RefinedReply, text)
    if reply.verdict == "correct" and not reply.answer:
        raise UnusableReplyError("answer: empty although the verdict is correct")
    return RefinedAnswer(reply.verdict, reply.answer, to_ids("cited", reply.cited, ids))


def read_rating(text: str) -> float:
    """Read a rating from 0 to 10."""
    return read(RatingReply, text).rating
