"""Parsing of replies: the protocol's envelopes, and the JSON inside them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from engram.core.passage_keys.expansion import WordedMethod

_NO_TIME = frozenset({"", "none", "null"})
_PROBLEMS_SHOWN = 3
_EXCERPT_CHARACTERS = 200
_MOST_PARTS, _MOST_FACETS, _MOST_TERMS = 5, 8, 20
# How an error names the option it refuses. "temperature" is an everyday word, so only quoted it is a name.
_REFUSALS = {
    "temperature": re.compile("""['"`]temperature['"`]"""),
    "response_format": re.compile("response_format"),
}


class UnusableReplyError(ValueError):
    """The reply is not the JSON that was asked for; the message may be shown to the model and to people."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Sentences that carry the answer.

    ``judged`` holds the ids the model saw, which are fewer than those given where the evidence exceeded its
    cap: a sentence outside it was not found useless, it was not looked at, and must not be learned from.
    """

    supporting: tuple[int, ...]
    confidence: float | None
    judged: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DraftAnswer:
    """An answer from the evidence alone; ``text`` is empty if the evidence favours none.

    ``cited`` holds ids of the sentences the answer rests on. ``sufficient`` is the model's own word on
    whether they settle the question.
    """

    text: str
    cited: tuple[int, ...]
    sufficient: bool


@dataclass(frozen=True, slots=True)
class Grade:
    """Whether an answer is right: by its meaning alone, and with some allowance; the first implies the second."""

    strict: bool
    lenient: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of the model: completions received, retries included, and their tokens where reported."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


def _plain(text: str) -> str:
    # Postgres stores no NUL, and JSON can carry one.
    return text.replace("\x00", "").strip()


_Text = Annotated[str, AfterValidator(_plain)]


class Reply(BaseModel):
    """A reply as the model is asked for it."""

    # Models add fields of their own ("reasoning" is even asked for); a wrong type, however, is a wrong reply.
    model_config = ConfigDict(strict=True, extra="ignore")


class _TimeReply(Reply):
    time_constraint: Annotated[_Text, Field(max_length=200)] | None


class _SufficiencyReply(Reply):
    sufficient: bool


class _SupportReply(Reply):
    supporting: list[int]
    confidence: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)] | None = None


class _AnswerReply(Reply):
    answer: _Text
    cited: list[int]
    sufficient: bool


class _GradeReply(Reply):
    strict: bool
    lenient: bool


Line = Annotated[str, AfterValidator(lambda text: " ".join(_plain(text).split()))]
_Term = Annotated[Line, Field(max_length=200)]
QuestionText = Annotated[Line, Field(max_length=2_000)]


class _PassageReply(Reply):
    passage: Annotated[_Text, Field(min_length=1, max_length=10_000)]


class _QuestionReply(Reply):
    question: Annotated[QuestionText, Field(min_length=1)]


class _PartsReply(Reply):
    parts: list[QuestionText]


class _Facet(Reply):
    name: _Term
    terms: list[_Term]


class _FacetsReply(Reply):
    facets: list[_Facet]


class _TermsReply(Reply):
    terms: list[_Term]


class _ContrastReply(Reply):
    wanted: list[_Term]
    unwanted: list[_Term] = []


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message


class _Tokens(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Envelope(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _Tokens | None = None


class _Error(BaseModel):
    message: str


class _Failure(BaseModel):
    error: _Error


_ReplyT = TypeVar("_ReplyT", bound=BaseModel)


def read_completion(body: bytes) -> tuple[str, Usage]:
    """Read the model's text and its cost; a refusal without content is an empty text."""
    envelope = _validate(_Envelope, body)
    tokens = envelope.usage or _Tokens()
    usage = Usage(
        calls=1,
        prompt_tokens=tokens.prompt_tokens or 0,
        completion_tokens=tokens.completion_tokens or 0,
    )
    return envelope.choices[0].message.content or "", usage


def describe_failure(status: int, body: bytes, secret: str | None) -> str:
    """One sentence without its full stop: the endpoint's words, cut short and without the ``secret``."""
    if status in {401, 403}:
        # The endpoint's words are withheld: some quote parts of the key that they refuse.
        return f"The LLM endpoint refused the API key with status {status}"
    text = body.decode("utf-8", "replace")
    with suppress(ValidationError):
        text = _Failure.model_validate_json(body).error.message
    if secret:
        text = text.replace(secret, "***")
    words = " ".join(text.split())[:_EXCERPT_CHARACTERS].rstrip(".")
    return f"The LLM endpoint answered with status {status}" + (f": {words}" if words else "")


def refused_options(sent: Iterable[str], status: int, body: bytes) -> frozenset[str]:
    """Return those options of ``sent`` that the endpoint says it does not support."""
    if status not in {400, 422}:
        return frozenset()
    text = body.decode("utf-8", "replace")
    return frozenset(name for name in sent if _REFUSALS[name].search(text))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Read ``Retry-After``, a number of seconds or a date; None if it is absent or neither."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = (aware - datetime.now(UTC)).total_seconds()
    return max(seconds, 0.0) if isfinite(seconds) else None


def read_time_constraint(text: str) -> str | None:
    """Read the time phrase, or None where the model found none, in whichever words it says so."""
    phrase = read(_TimeReply, text).time_constraint
    return None if phrase is None or phrase.casefold() in _NO_TIME else phrase


def read_sufficiency(text: str) -> bool:
    """Read the yes or no."""
    return read(_SufficiencyReply, text).sufficient


def read_judgement(text: str, ids: Sequence[int]) -> Judgement:
    """Read the supporting sentences; ``ids[n - 1]`` is the id behind number ``n``."""
    reply = read(_SupportReply, text)
    return Judgement(
        supporting=to_ids("supporting", reply.supporting, ids),
        confidence=reply.confidence,
        judged=tuple(ids),
    )


def read_draft_answer(text: str, ids: Sequence[int]) -> DraftAnswer:
    """Read the answer; one that claims to be settled and says nothing contradicts itself."""
    reply = read(_AnswerReply, text)
    if reply.sufficient and not reply.answer:
        raise UnusableReplyError("answer: empty although sufficient is true")
    return DraftAnswer(text=reply.answer, cited=to_ids("cited", reply.cited, ids), sufficient=reply.sufficient)


def read_grade(text: str) -> Grade:
    """Read whether an answer is right.

    Raises:
        UnusableReplyError: it is said to be right strictly and wrong leniently.
    """
    reply = read(_GradeReply, text)
    if reply.strict and not reply.lenient:
        raise UnusableReplyError("what is right strictly is right leniently")
    return Grade(strict=reply.strict, lenient=reply.lenient)


def read_question(text: str) -> str:
    """Read a question in new words, as one line."""
    return read(_QuestionReply, text).question


def read_expansion(method: WordedMethod, text: str) -> list[str]:
    """Read the texts that widen a question, at least one; of lists longer than asked for, the beginning."""
    match method:
        case "hyde":
            return [read(_PassageReply, text).passage]
        case "decomposition":
            parts = distinct(read(_PartsReply, text).parts)
            if len(parts) < 2:
                raise UnusableReplyError("parts: at least two different questions are needed")
            return parts[:_MOST_PARTS]
        case "facets":
            return _facets(read(_FacetsReply, text).facets)
        case "contrastive":
            reply = read(_ContrastReply, text)
            unwanted = {term.casefold() for term in reply.unwanted}
            wanted = [term for term in distinct(reply.wanted) if term.casefold() not in unwanted]
            if not wanted:
                raise UnusableReplyError("wanted: at least one term is needed that is not unwanted")
            return [", ".join(wanted[:_MOST_TERMS])]
        case "synonyms":
            terms = distinct(read(_TermsReply, text).terms)
            if not terms:
                raise UnusableReplyError("terms: at least one is needed")
            return [", ".join(terms[:_MOST_TERMS])]
        case "specification" | "rewriting" | "step-back":
            return [read_question(text)]


def _facets(facets: Sequence[_Facet]) -> list[str]:
    """One line per facet: its name and its terms; a facet without either says nothing."""
    lines = []
    for facet in facets:
        terms = ", ".join(distinct(facet.terms)[:_MOST_TERMS])
        if facet.name and terms:
            lines.append(f"{facet.name}: {terms}")
    if not lines:
        raise UnusableReplyError("facets: at least one with a name and terms is needed")
    return distinct(lines)[:_MOST_FACETS]


def distinct(texts: Iterable[str]) -> list[str]:
    """Return the non-empty texts, each once, whatever its case."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(text.casefold(), text)
    return [text for key, text in first.items() if key]


def to_ids(field: str, numbers: Sequence[int], ids: Sequence[int]) -> tuple[int, ...]:
    unknown = [number for number in numbers if not 1 <= number <= len(ids)]
    if unknown:
        raise UnusableReplyError(f"{field}: {unknown[0]} is not a sentence number, they run from 1 to {len(ids)}")
    return tuple(dict.fromkeys(ids[number - 1] for number in numbers))


def read(schema: type[_ReplyT], text: str) -> _ReplyT:
    """Read a reply, which may stand in a fenced block.

    Raises:
        UnusableReplyError: it is not of the schema; the message says where.
    """
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json")
    return _validate(schema, text)


def _validate(schema: type[_ReplyT], text: str | bytes) -> _ReplyT:
    try:
        return schema.model_validate_json(text)
    except ValidationError as error:
        # Places and rules only: the input may be anything, and this text travels into error responses.
        problems = error.errors(include_input=False, include_url=False, include_context=False)
        shown = [
            f"{'.'.join(map(str, problem['loc'])) or 'reply'}: {problem['msg']}"
            for problem in problems[:_PROBLEMS_SHOWN]
        ]
        raise UnusableReplyError("; ".join(shown)) from error
