"""The strict reading of what the tree planner and judges of reasoning are replied."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from engram.core.planning.rewards import HIGHEST_RATING, OUTCOME, PATH, Grade
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

RefinementVerdict = Literal["correct", "partial", "incorrect", "unsupported"]
_Graded = Annotated[Grade, BeforeValidator(convert_to_lower_case)]


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


class StepGradesReply(Reply):
    """Grades of a step."""

    relevance: _Graded
    sufficiency: _Graded
    coherence: _Graded
    factuality: _Graded


class OutcomeGradesReply(Reply):
    """Grades of an outcome."""

    coherence: _Graded
    completeness: _Graded
    consistency: _Graded
    agreement: _Graded | None = None


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


def read_step_grades(text: str) -> dict[str, Grade]:
    """Read the grades of a step, by criterion."""
    reply = read(StepGradesReply, text)
    return {name: getattr(reply, name) for name in PATH}


def read_outcome_grades(text: str, *, accepted: bool) -> dict[str, Grade]:
    """Read the grades of an outcome, by criterion; ``accepted``: whether agreement was to be graded."""
    reply = read(OutcomeGradesReply, text)
    if accepted and reply.agreement is None:
        raise UnusableReplyError("agreement: is missing")
    return {name: getattr(reply, name) for name in (OUTCOME if accepted else OUTCOME[:-1])}
