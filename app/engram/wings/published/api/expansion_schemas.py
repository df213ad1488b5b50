"""Bodies of `POST /expand`."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StrictInt

from engram.api.schemas import (
    DEFAULT_COLLECTION,
    CollectionName,
    Model,
    OnBehalfOf,
    Question,
    ResponseModel,
    WarningOut,
    Whole,
)
from engram.wings.published.core.expansion import Method

EXPAND_EXAMPLES: list[JsonValue] = [
    {"collection": "sample", "query": "Which moon of Saturn has lakes of methane?", "methods": ["prf"]},
    {
        "collection": "sample",
        "query": "Which moon of Saturn has lakes of methane?",
        "methods": ["prf", "hyde", "decomposition"],
        "passages": 3,
    },
]


def _check_distinct(methods: list[Method]) -> list[Method]:
    if len(set(methods)) < len(methods):
        raise ValueError("must not repeat a method")
    return methods


class ExpandIn(Model):
    """A question to widen."""

    model_config = ConfigDict(json_schema_extra={"examples": EXPAND_EXAMPLES})

    query: Question
    collection: CollectionName = DEFAULT_COLLECTION
    as_: OnBehalfOf = None
    methods: Annotated[
        list[Method],
        Field(min_length=1, max_length=10, json_schema_extra={"uniqueItems": True}),
        AfterValidator(_check_distinct),
    ] = Field(
        description=(
            "'prf': the key terms of the passages found first; needs no LLM. With the configured LLM: 'hyde', a "
            "passage that might answer; 'diver', the question refined by the passages it finds, twice; "
            "'decomposition', the questions it depends on; 'facets', its sides with their key terms; "
            "'contrastive', terms that tell its evidence from what resembles it; 'specification', the question "
            "made specific; 'rewriting', the question in the words of its field; 'synonyms', other words for its "
            "words; 'step-back', the question for its background."
        )
    )
    passages: Annotated[StrictInt, Field(ge=1, le=20), Whole] = Field(
        default=5, description="How many of the passages found first 'prf' and 'diver' learn from."
    )


class ExpansionOut(ResponseModel):
    """One piece of text that widens the question."""

    method: Method
    text: str


class ExpandOut(BaseModel):
    """Expansions of a question in the order of the methods; a method without new text has no entry."""

    collection: str
    query: str
    expansions: list[ExpansionOut]
    warnings: list[WarningOut] = Field(
        default_factory=list, description="Methods that the endpoint failed; if it failed all, the answer is 502."
    )
