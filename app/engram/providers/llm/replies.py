"""Parsing of replies: the protocol's envelopes, and the JSON inside them."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from engram.providers.llm.reply_json import NoJsonError, find_object

_NO_TIME = frozenset({"", "none", "null"})
_PROBLEMS_SHOWN = 3
_EXCERPT_CHARACTERS = 200
MOST_TOKENS = 10_000_000
"""Of one call, as they are counted."""
# How an error names the option it refuses. "temperature" is an everyday word, so only quoted it is a name.
_REFUSALS = {
    "temperature": re.compile("""['"`]temperature['"`]"""),
    "response_format": re.compile(
        r"response_?format|json_schema|json_object|structured[ _]output|guided|grammar", re.IGNORECASE
    ),
}
_YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}
_WORD = re.compile(r"\w+")
_NUMBERED = re.compile(r"(?:sentence\s*|s|#)?\[?(\d{1,6})\]?", re.IGNORECASE)


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


def _clean_text(text: str) -> str:
    # Postgres stores no NUL, and JSON can carry one.
    return text.replace("\x00", "").strip()


def _as_flag(value: Any) -> Any:
    """Read "yes" and "no" as the truth values that they stand for."""
    return _YES_OR_NO.get(value.strip(" .").casefold(), value) if isinstance(value, str) else value


def _as_number(value: Any) -> Any:
    """Read "2", "[2]", "s2" and 2.0 as the number 2."""
    if isinstance(value, str) and (matched := _NUMBERED.fullmatch(value.strip())) is not None:
        return int(matched[1])
    return int(value) if isinstance(value, float) and value.is_integer() else value


def as_amount(value: Any) -> Any:
    """Read "0.8" as the number that it writes."""
    if not isinstance(value, str):
        return value
    with suppress(ValueError):
        return float(value)
    return value


def convert_to_lower_case(value: Any) -> Any:
    """Read a word of a fixed list whatever its case."""
    return value.strip(" .").casefold() if isinstance(value, str) else value


CleanText = Annotated[str, AfterValidator(_clean_text)]
Flag = Annotated[bool, BeforeValidator(_as_flag)]
Number = Annotated[int, BeforeValidator(_as_number)]
Amount = Annotated[float, BeforeValidator(as_amount)]


class Reply(BaseModel):
    """A reply as the model is asked for it.

    Attributes:
        reasoned: whether the prompt asks for a field "reasoning" in front, which nobody reads.
        grounded: whether its texts are held against the text that the model was given. Other replies may not copy
            the prompt's example.
        bare_list: the field that a reply without any object may consist of; it holds texts or objects, never
            numbers, since numbers in brackets stand in prose too.
    """

    # Models add fields of their own; a wrong type, however, is a wrong reply.
    model_config = ConfigDict(strict=True, extra="ignore")
    reasoned: ClassVar[bool] = False
    grounded: ClassVar[bool] = False
    bare_list: ClassVar[str | None] = None


class TimeReply(Reply):
    """The time that limits a text."""

    grounded: ClassVar[bool] = True
    time_constraint: Annotated[CleanText, Field(max_length=200)] | None


class SufficiencyReply(Reply):
    """A word on whether the evidence suffices."""

    sufficient: Flag


class SupportReply(Reply):
    """Numbers of the sentences that support the answer."""

    reasoned: ClassVar[bool] = True
    supporting: list[Number] = Field(validation_alias=AliasChoices("supporting", "support_sids"))
    confidence: Annotated[Amount, Field(ge=0.0, le=1.0, allow_inf_nan=False)] | None = None


class AnswerReply(Reply):
    """An answer and the numbers of its sentences."""

    reasoned: ClassVar[bool] = True
    answer: CleanText
    cited: list[Number]
    sufficient: Flag


Line = Annotated[str, AfterValidator(lambda text: " ".join(_clean_text(text).split()))]
QuestionText = Annotated[Line, Field(max_length=2_000)]


class QuestionReply(Reply):
    """A question in new words."""

    question: Annotated[QuestionText, Field(min_length=1)]


class _ContentPart(BaseModel):
    type: str = "text"
    text: str = ""


class _Message(BaseModel):
    content: str | list[_ContentPart] | None = None

    @property
    def text(self) -> str:
        """The reply's text; thoughts in parts of their own are left out."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class _Choice(BaseModel):
    message: _Message


class _Envelope(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: Any = None


class _Error(BaseModel):
    message: str


class _Failure(BaseModel):
    error: _Error


_ReplyT = TypeVar("_ReplyT", bound=Reply)
_EnvelopeT = TypeVar("_EnvelopeT", bound=BaseModel)


def read_completion(body: bytes) -> tuple[str, Usage]:
    """Read the model's text and its cost; a refusal without content is an empty text."""
    envelope = _validate(_Envelope, body)
    tokens = envelope.usage if isinstance(envelope.usage, dict) else {}
    usage = Usage(
        calls=1,
        prompt_tokens=_bound_tokens(tokens.get("prompt_tokens")),
        completion_tokens=_bound_tokens(tokens.get("completion_tokens")),
    )
    return envelope.choices[0].message.text, usage


def _bound_tokens(count: object) -> int:
    """A count of tokens as an endpoint reports it, within what a call can have taken; 0 if it is no number."""
    if not isinstance(count, int | float) or math.isnan(count):
        return 0
    return int(min(max(count, 0), MOST_TOKENS))


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


def find_refused_options(sent: Iterable[str], status: int, body: bytes) -> frozenset[str]:
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


def read_time_constraint(text: str, source: str) -> str | None:
    """Read the time phrase, or None where the model found none, in whichever words it says so.

    Raises:
        UnusableReplyError: the phrase has a word that ``source`` has not; weak models copy the prompt's example.
    """
    phrase = read(TimeReply, text).time_constraint
    if phrase is None or phrase.casefold() in _NO_TIME:
        return None
    if not _words(phrase) <= _words(source):
        raise UnusableReplyError("time_constraint: its words are not in the text")
    return phrase


def _words(text: str) -> set[str]:
    """The words of a text, whatever their case, without articles and prepositions of two letters."""
    return {word for word in _WORD.findall(text.casefold()) if len(word) > 2 or word.isdigit()} - {"the"}


def read_sufficiency(text: str) -> bool:
    """Read the yes or no."""
    return read(SufficiencyReply, text).sufficient


def read_judgement(text: str, ids: Sequence[int]) -> Judgement:
    """Read the supporting sentences; ``ids[n - 1]`` is the id behind number ``n``."""
    reply = read(SupportReply, text)
    return Judgement(
        supporting=to_ids("supporting", reply.supporting, ids),
        confidence=reply.confidence,
        judged=tuple(ids),
    )


def read_draft_answer(text: str, ids: Sequence[int]) -> DraftAnswer:
    """Read the answer; one that claims to be settled and says nothing contradicts itself."""
    reply = read(AnswerReply, text)
    if reply.sufficient and not reply.answer:
        raise UnusableReplyError("answer: empty although sufficient is true")
    return DraftAnswer(text=reply.answer, cited=to_ids("cited", reply.cited, ids), sufficient=reply.sufficient)


def read_question(text: str) -> str:
    """Read a question in new words, as one line."""
    return read(QuestionReply, text).question


def select_distinct(texts: Iterable[str]) -> list[str]:
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
    """Read a reply: its one JSON object, wherever in the text it stands.

    Raises:
        UnusableReplyError: there is none, or it is not of the schema; the message says where.
    """
    try:
        value = find_object(text, _field_names(schema), schema.bare_list)
    except NoJsonError as error:
        raise UnusableReplyError(f"reply: {error}") from error
    try:
        # As JSON again, because its reader refuses lone surrogates, which no database stores.
        return schema.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise _build_unusable_error(error) from error


def _field_names(schema: type[Reply]) -> frozenset[str]:
    """Names of a reply's fields, other spellings included."""
    names = set[str](schema.model_fields)
    for field in schema.model_fields.values():
        if isinstance(field.validation_alias, AliasChoices):
            names |= {choice for choice in field.validation_alias.choices if isinstance(choice, str)}
    return frozenset(names)


def _validate(schema: type[_EnvelopeT], body: bytes) -> _EnvelopeT:
    try:
        return schema.model_validate_json(body)
    except ValidationError as error:
        raise _build_unusable_error(error) from error


def _build_unusable_error(error: ValidationError) -> UnusableReplyError:
    # Places and rules only: the input may be anything, and this text travels into error responses.
    problems = error.errors(include_input=False, include_url=False, include_context=False)
    excerpts = [
        f"{'.'.join(map(str, problem['loc'])) or 'reply'}: {problem['msg']}"
        for problem in problems[:_PROBLEMS_SHOWN]
    ]
    return UnusableReplyError("; ".join(excerpts))
