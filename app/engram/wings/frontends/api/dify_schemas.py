"""Dify's external knowledge API on the wire."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, model_validator

from engram.api.schemas import CollectionName, OnBehalfOf, Storable, Text, WarningOut, Whole
from engram.core.text.conditions import Scalar
from engram.core.text.filters import GREATEST_INTEGER, LEAST_INTEGER, read_filter
from engram.services.auth.scope import Scope
from engram.services.question.answer import Answer
from engram.services.question.query import Query
from engram.wings.frontends.core.numerals import parse_number
from engram.wings.frontends.services.answer_reference import AnswerReference
from engram.wings.frontends.services.relevance import compute_relevance_scores
from engram.wings.frontends.services.source_fields import list_source_fields

MAX_CONDITIONS = 100
MAX_NAMES = 20
MAX_VALUES = 100

FieldName = Annotated[Storable, Field(min_length=1, max_length=512)]
Value = Annotated[Storable, Field(max_length=10_000)] | StrictBool | StrictInt | StrictFloat
Operator = Literal[
    "contains", "not contains", "start with", "end with", "is", "is not", "in", "not in",
    "empty", "not empty", "null", "not null", "=", "≠", ">", "<", "≥", "≤", "before", "after",
]  # fmt: skip

POSITIVE: dict[Operator, str] = {
    "contains": "$contains",
    "not contains": "$contains",
    "start with": "$starts",
    "end with": "$ends",
    "is": "$in",
    "is not": "$in",
    "in": "$in",
    "not in": "$in",
    "empty": "$present",
    "not empty": "$present",
    "null": "$present",
    "not null": "$present",
    "=": "$in",
    "≠": "$in",
    ">": "$gt",
    "<": "$lt",
    "≥": "$gte",
    "≤": "$lte",
    "before": "$lt",
    "after": "$gt",
}
"""Operator -> the operator of a query's filter that it is, or that its opposite is."""
NEGATIVE_OPERATORS = frozenset({"not contains", "is not", "not in", "empty", "null", "≠"})
WITHOUT_VALUE = frozenset({"empty", "not empty", "null", "not null"})
SEVERAL_VALUES = frozenset({"in", "not in"})
TEXT_OPERATORS = frozenset({"contains", "not contains", "start with", "end with"})
NUMBER_OPERATORS = frozenset({">", "<", "≥", "≤"})
TIME_OPERATORS = frozenset({"before", "after"})
LATEST_SECONDS = 253_402_300_799
"""The end of the year 9999, as Unix time."""


class ConditionIn(BaseModel):
    """A condition on the metadata of passages."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    name: FieldName | Annotated[list[FieldName], Field(min_length=1, max_length=MAX_NAMES)] = Field(
        description="The metadata field. Of several, one has to meet the condition; none, if it is a negative one."
    )
    comparison_operator: Operator
    value: Value | Annotated[list[Value], Field(max_length=MAX_VALUES)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        operator = self.comparison_operator
        if operator in WITHOUT_VALUE:
            read_filter(self.filter())
            return self
        values = self._values()
        if not values:
            raise ValueError(f"{operator!r} needs a value")
        if len(values) > 1 and operator not in SEVERAL_VALUES:
            raise ValueError(f"{operator!r} takes one value")
        if operator in TEXT_OPERATORS and not all(isinstance(value, str) and value for value in values):
            raise ValueError(f"{operator!r} takes a text")
        if operator in NUMBER_OPERATORS and parse_number(values[0]) is None:
            raise ValueError(f"{operator!r} takes a number")
        read_filter(self.filter())
        return self

    def filter(self) -> dict[str, Any]:
        """The condition as a query's filter."""
        operator = POSITIVE[self.comparison_operator]
        compared: list[Any] = [True]
        if operator != "$present":
            values = self._list_compared_values()
            compared = [values] if operator == "$in" else values
        names = self.name if isinstance(self.name, list) else [self.name]
        alternatives = [{name: {operator: value}} for name in names for value in compared]
        positive = alternatives[0] if len(alternatives) == 1 else {"$or": alternatives}
        return {"$not": positive} if self.comparison_operator in NEGATIVE_OPERATORS else positive

    def _values(self) -> list[Scalar]:
        """The values as they were sent; of several in one text, which Dify divides by commas, each."""
        if self.value is None:
            return []
        if isinstance(self.value, str) and self.comparison_operator in SEVERAL_VALUES:
            return [part.strip() for part in self.value.split(",") if part.strip()]
        return list(self.value) if isinstance(self.value, list) else [self.value]

    def _list_compared_values(self) -> list[Scalar]:
        """The values, each also as a number where it is written as one: Dify sends most values as texts.

        A time, which Dify sends in seconds, is compared with numbers and with dates.
        """
        if self.comparison_operator in NUMBER_OPERATORS:
            return [number for value in self._values() if (number := parse_number(value)) is not None]
        if self.comparison_operator in TIME_OPERATORS:
            return _list_readings_of_time(self._values()[0])
        if POSITIVE[self.comparison_operator] != "$in":
            return self._values()
        numbers = [
            number
            for value in self._values()
            if isinstance(value, str)
            and (number := parse_number(value)) is not None
            and LEAST_INTEGER <= number <= GREATEST_INTEGER
        ]
        return [*self._values(), *numbers]


def _list_readings_of_time(value: Scalar) -> list[Scalar]:
    """Return a number of seconds and the instant that it is in Unix time; a text that is no number as it is."""
    seconds = parse_number(value)
    if seconds is None:
        return [value]
    if not 0 <= seconds <= LATEST_SECONDS:
        return [seconds]
    return [seconds, datetime.fromtimestamp(seconds, UTC).isoformat()]


class MetadataConditionIn(BaseModel):
    """Conditions on the metadata of passages."""

    model_config = ConfigDict(extra="ignore")

    logical_operator: Literal["and", "or"] | None = None
    conditions: Annotated[list[ConditionIn], Field(max_length=MAX_CONDITIONS)] | None = None

    def filter(self) -> dict[str, Any] | None:
        """All of them (also without an operator), or any, as a query's filter; None if there is none."""
        if not self.conditions:
            return None
        return {f"${self.logical_operator or 'and'}": [one.filter() for one in self.conditions]}


class RetrievalSettingIn(BaseModel):
    """Bounds on the answer."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    top_k: Annotated[StrictInt, Field(ge=1, le=100), Whole] = Field(description="Passages wanted.")
    score_threshold: Annotated[float, Field(ge=0, le=1, strict=True)] | None = Field(
        default=None, description="Only passages with at least this score."
    )


class RetrievalIn(BaseModel):
    """A question of Dify's. Fields that Engram has no use for are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [
                {
                    "knowledge_id": "sample",
                    "query": "Who discovered Enceladus?",
                    "retrieval_setting": {"top_k": 3, "score_threshold": 0.2},
                    "metadata_condition": {
                        "logical_operator": "and",
                        "conditions": [{"name": "topic", "comparison_operator": "is", "value": "space"}],
                    },
                }
            ]
        },
    )

    knowledge_id: CollectionName = Field(description="The collection.")
    as_: OnBehalfOf = None
    query: Text = Field(description="Of one that is too long the beginning and the end are read.")
    retrieval_setting: RetrievalSettingIn
    metadata_condition: MetadataConditionIn | None = None

    @property
    def collection(self) -> str:
        return self.knowledge_id

    def to_query(self, scope: Scope) -> Query:
        """The question as the query service takes it."""
        return Query(
            text=self.query,
            scope=scope,
            top_k=self.retrieval_setting.top_k,
            filter=None if self.metadata_condition is None else self.metadata_condition.filter(),
            caller_chose_arm=False,
        )


class RecordOut(BaseModel):
    """A passage."""

    content: str
    score: float = Field(ge=0, le=1)
    title: str
    metadata: dict[str, Any] = Field(
        description=(
            "The passage's own, with `document`, `heading`, `page`, `link` and `language` of its source "
            "where they have no such fields, and `query_id` and `passage_id` for a verdict. `document_id` is both, "
            "with a colon between them: the one field that Dify keeps with a message."
        )
    )


class RecordsOut(BaseModel):
    """The passages, best first."""

    records: list[RecordOut]
    warnings: list[WarningOut] = Field(
        default_factory=list,
        description="What was not read of the question, or had to be done without: not in Dify's shape.",
    )

    @classmethod
    def from_service(cls, answer: Answer, threshold: float) -> Self:
        """The passages whose score reaches the threshold."""
        scores = compute_relevance_scores(answer.passages, answer.strategy)
        return cls(
            records=[
                RecordOut(
                    content=passage.text,
                    score=score,
                    title=passage.title or passage.passage_id,
                    metadata=list_source_fields(passage.source)
                    | passage.metadata
                    | {
                        "document_id": str(AnswerReference(answer.query_id, passage.passage_id)),
                        "query_id": str(answer.query_id),
                        "passage_id": passage.passage_id,
                    },
                )
                for passage, score in zip(answer.passages, scores, strict=True)
                if score >= threshold
            ],
            warnings=[WarningOut.model_validate(warning) for warning in answer.warnings],
        )
