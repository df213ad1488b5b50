"""Types shared by the schemas. All of them refuse what Postgres cannot hold: NUL, lone surrogates, NaN."""

import json
import math
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from fastapi import Query
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
)

from engram.api.value_counts import has_more_values
from engram.core.auth.reader_names import MOST_CHARACTERS as MOST_READER_CHARACTERS
from engram.core.auth.reader_names import MOST_READERS, normalise_readers
from engram.core.auth.reader_names import PATTERN as READER_PATTERN
from engram.core.learning.judge_names import MOST_CHARACTERS, PATTERN, normalise_name
from engram.core.text.filters import GREATEST_INTEGER, LEAST_INTEGER, read_filter
from engram.core.text.name_pattern import COLLECTION
from engram.core.text.spelling import compose
from engram.core.text.words import NOT_BLANK, is_blank
from engram.services.question.query import FallbackType

MAX_DEPTH = 20
MAX_VALUES = 1_000
"""Values in a JSON object of the caller's, as a filter or a passage's metadata."""
MAX_JSON_BYTES = 64 * 1024
"""And its length, written as JSON."""
MAX_ID = 2**63 - 1
ROW_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
ISO_8601 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
"""A date and a time with its offset."""


class Model(BaseModel):
    """A request body: unknown fields are mistakes, not extensions."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class ResponseModel(BaseModel):
    """A response: read from the attributes of what a service returns."""

    model_config = ConfigDict(from_attributes=True, populate_by_name=True)

    @classmethod
    def combine(cls, source: object, /, **computed: Any) -> Self:
        """Make the response of the attributes of ``source``, but for the fields that are computed.

        Raises:
            AttributeError: a field is neither computed nor an attribute.
        """
        own = {name: getattr(source, name) for name in cls.model_fields if name not in computed}
        return cls(**own, **computed)


def check_storable(text: str) -> str:
    """The text, if UTF-8 and Postgres can hold it."""
    if "\x00" in text:
        raise ValueError("must not contain NUL characters")
    try:
        text.encode()  # not character by character: a body may hold millions
    except UnicodeEncodeError as error:
        raise ValueError("must not contain lone surrogates") from error
    return text


def convert_whole_number(value: Any) -> Any:
    """An integer written as 5.0, as it is an integer to JSON Schema and to some languages' JSON writers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def id_text(value: Any) -> Any:
    """A number as text: corpora number their passages, and an id is an id."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def row_number(value: Any) -> Any:
    """An id of ours as a number, though it came as text, as ids do that went through a table or a URL."""
    return int(value) if isinstance(value, str) and ROW_NUMBER.fullmatch(value) else convert_whole_number(value)


def check_not_blank(text: str) -> str:
    """The text, if it says anything."""
    if is_blank(text):
        raise ValueError("must not be blank")
    return text


def check_moment_text(value: Any) -> Any:
    """A moment as ISO 8601 writes it: a bare number, as text as well, could be seconds or milliseconds."""
    if not isinstance(value, str) or not ISO_8601.fullmatch(value):
        message = "must be a date and time with its offset, like 2026-05-01T00:00:00Z"
        raise ValueError(message)
    return value


def convert_to_utc(value: datetime) -> datetime:
    """Convert a moment to UTC, if the calendar has it there."""
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("is beyond the calendar") from error


def check_storable_json(value: Any) -> Any:
    """A JSON value, if Postgres can hold it and it is neither nested nor long beyond reason."""
    if has_more_values(value, MAX_VALUES):
        raise ValueError(f"must not hold more than {MAX_VALUES} values")
    _check(value, MAX_DEPTH)
    if len(json.dumps(value, ensure_ascii=False).encode()) > MAX_JSON_BYTES:
        raise ValueError(f"must not be longer than {MAX_JSON_BYTES} bytes as JSON")
    return value


def _check(value: Any, depth: int) -> None:
    if depth == 0:
        raise ValueError(f"must not be nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        check_storable(value)
    elif isinstance(value, int) and not LEAST_INTEGER <= value <= GREATEST_INTEGER:
        raise ValueError("must not hold whole numbers of more than 64 bits; write these as text")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must not contain NaN or infinity")
    elif isinstance(value, dict):
        for key, item in value.items():
            check_storable(key)
            _check(item, depth - 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth - 1)


def check_readers(names: list[str]) -> list[str]:
    """The names, if each is one of a reader also as Unicode composes it, which can make it longer."""
    normalise_readers(names)
    return names


def check_filter(document: dict[str, Any]) -> dict[str, Any]:
    """A filter on metadata, if its operators are known and have values that they take."""
    read_filter(document)
    return document


Storable = Annotated[str, AfterValidator(check_storable)]
Text = Annotated[
    str,
    Field(min_length=1, json_schema_extra={"pattern": NOT_BLANK}),
    AfterValidator(check_storable),
    AfterValidator(check_not_blank),
]
Question = Annotated[Text, Field(max_length=10_000), AfterValidator(compose)]
"""As Unicode composes it (NFC)."""
ExternalId = Annotated[Text, Field(max_length=512)]
NumberedId = Annotated[ExternalId, BeforeValidator(id_text, json_schema_input_type=ExternalId | StrictInt)]
"""The same, that may come as a number."""
JsonObject = Annotated[dict[str, Any], Field(max_length=1_000), AfterValidator(check_storable_json)]
MetadataFilter = Annotated[
    JsonObject,
    AfterValidator(check_filter),
    Field(
        description=(
            "Only passages whose metadata contain this JSON object. Operators stand below a field, as in "
            '`{"year": {"$gte": 1990}}`: `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$in`, `$nin`, `$exists`, '
            "`$present`, `$contains`, `$starts`, `$ends`, `$not`. `$and`, `$or` and `$not` join filters."
        ),
    ),
]
JudgeName = Annotated[
    str, Field(min_length=1, max_length=MOST_CHARACTERS, pattern=PATTERN), AfterValidator(normalise_name)
]
"""Of a judge or a principal; comes out as it is spelled."""
CollectionName = Annotated[str, Field(pattern=COLLECTION)]
ReaderNames = Annotated[
    list[
        Annotated[
            str, Field(max_length=MOST_READER_CHARACTERS, pattern=READER_PATTERN), AfterValidator(check_storable)
        ]
    ],
    Field(max_length=MOST_READERS),
    AfterValidator(check_readers),
]
"""Whom a passage lets read, or what a caller is among them."""
OnBehalfOf = Annotated[
    ReaderNames | None,
    Field(
        alias="as",
        description="Whom you ask for, as `user:ana` and `group:hr`: only passages are seen that these may read; "
        "takes the scope `act-as`. Null: for yourself.",
    ),
]
OnBehalfOfQuery = Annotated[
    list[Storable] | None,
    AfterValidator(lambda names: None if names is None else [name for name in names if name]),
    Query(
        alias="as",
        max_length=MOST_READERS,
        description="Somebody, as `user:ana` or `group:hr`; repeatable. Empty: nobody in particular.",
    ),
]
LanguageCode = Annotated[str, Field(pattern="^[a-z]{2,3}$", examples=["de"])]
"""A language by its code of ISO 639-1, or of 639-3 where it has none there."""
TraceId = Annotated[str, Field(min_length=1, max_length=200, pattern="^[!-~]+$")]
"""The caller's id of a trace or a message: printable ASCII without spaces."""
EncoderName = Annotated[
    Annotated[str, Field(min_length=1, max_length=200), AfterValidator(check_storable)] | None,
    Query(description="The encoder of a new collection, by name; one that exists must be of it."),
]
Whole = BeforeValidator(convert_whole_number)
Moment = Annotated[AwareDatetime, BeforeValidator(check_moment_text), AfterValidator(convert_to_utc)]
RowId = Annotated[
    StrictInt,
    Field(ge=1, le=MAX_ID),
    BeforeValidator(
        row_number,
        json_schema_input_type=Annotated[StrictInt, Field(ge=1, le=MAX_ID)]
        | Annotated[str, Field(pattern="^[1-9][0-9]{0,17}$")],
    ),
]
Flag = StrictBool
DEFAULT_COLLECTION = "default"


class ExpansionIn(Model):
    """A query expansion; passage keys evolve by those that a verdict validates."""

    method: Text = Field(max_length=100)
    text: Text = Field(max_length=20_000)


class WarningOut(ResponseModel):
    """A step that the LLM endpoint failed and that was done without it, or what was not read of a question."""

    type: FallbackType
    detail: str = Field(description="How the endpoint failed, or what was left out.")
