"""OpenAI's vector stores on the wire: a collection is a store, and a passage is a file of it."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Protocol, Self, Union

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    Tag,
    model_validator,
)

from engram.api.schemas import OnBehalfOf, Question, Storable, Whole
from engram.core.text.filters import read_filter
from engram.services.auth.scope import Scope
from engram.services.question.answer import Answer
from engram.services.question.query import Query
from engram.wings.frontends.services.relevance import compute_relevance_scores
from engram.wings.frontends.services.source_fields import list_source_fields

MAX_DEPTH = 5
MAX_QUESTIONS = 20
MAX_FILTERS = 100

AttributeValue = Annotated[Storable, Field(max_length=10_000)] | StrictBool | StrictInt | StrictFloat
AttributeName = Annotated[Storable, Field(min_length=1, max_length=512)]


class ComparisonFilter(BaseModel):
    """A comparison of one metadata field with a value."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: AttributeName
    value: AttributeValue | Annotated[list[AttributeValue], Field(min_length=1, max_length=MAX_FILTERS)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if isinstance(self.value, list) is not (self.type in {"in", "nin"}):
            raise ValueError(f"{self.type!r} takes {'a list' if self.type in {'in', 'nin'} else 'one value'}")
        read_filter(self.filter())
        return self

    def filter(self) -> dict[str, Any]:
        """The filter as a query takes it."""
        return {self.key: {f"${self.type}": self.value}}


class CompoundFilter(BaseModel):
    """Several filters: all have to hold, or any."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["and", "or"]
    filters: list["SearchFilter"] = Field(min_length=1, max_length=MAX_FILTERS)

    def filter(self) -> dict[str, Any]:
        """The filter as a query takes it."""
        return {f"${self.type}": [one.filter() for one in self.filters]}

    def depth(self) -> int:
        """Levels of compound filters, at least 1."""
        return 1 + max((one.depth() for one in self.filters if isinstance(one, CompoundFilter)), default=0)


SearchFilter = Annotated[
    Union[ComparisonFilter, CompoundFilter],  # noqa: UP007 - names a class that it is a part of
    Field(discriminator="type"),
]


class RankingOptionsIn(BaseModel):
    """Options of the ranking. `hybrid_search` is refused: the collection weighs words and vectors itself."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    ranker: Literal["auto", "none", "default-2024-11-15"] = Field(
        default="auto", description="`none`: by the encoder alone, without what was learned."
    )
    score_threshold: Annotated[float, Field(ge=0, le=1, strict=True)] = Field(
        default=0.0, description="Only passages with at least this score."
    )


def _question_form(query: Any) -> str:
    return "list" if isinstance(query, list) else "text"


# The form is chosen first, so that a refused question is named by its own error alone.
Questions = Annotated[
    Annotated[Question, Tag("text")]
    | Annotated[list[Question], Field(min_length=1, max_length=MAX_QUESTIONS), Tag("list")],
    Discriminator(_question_form),
]


class SearchIn(BaseModel):
    """A search in a collection. Fields that Engram has no use for are ignored, `rewrite_query` among them."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [
                {
                    "query": "Who discovered Enceladus?",
                    "max_num_results": 3,
                    "filters": {"type": "eq", "key": "topic", "value": "space"},
                    "ranking_options": {"score_threshold": 0.2},
                }
            ]
        },
    )

    query: Questions = Field(description="Several are asked as one question.")
    as_: OnBehalfOf = None
    max_num_results: Annotated[StrictInt, Field(ge=1, le=50), Whole] = 10
    filters: SearchFilter | None = None
    ranking_options: RankingOptionsIn | None = None

    @model_validator(mode="after")
    def _is_bounded(self) -> Self:
        if isinstance(self.filters, CompoundFilter) and self.filters.depth() > MAX_DEPTH:
            raise ValueError(f"filters must not be nested deeper than {MAX_DEPTH} levels")
        if len(self.question()) > 10_000:
            raise ValueError("the questions must not be longer than 10000 characters together")
        return self

    @property
    def threshold(self) -> float:
        """The least score wanted, in [0, 1]."""
        return 0.0 if self.ranking_options is None else self.ranking_options.score_threshold

    def question(self) -> str:
        """The question as one text."""
        return "\n".join(self.query) if isinstance(self.query, list) else self.query

    def to_query(self, scope: Scope) -> Query:
        """The search as the query service takes it."""
        is_plain = self.ranking_options is not None and self.ranking_options.ranker == "none"
        return Query(
            text=self.question(),
            scope=scope,
            top_k=self.max_num_results,
            filter=None if self.filters is None else self.filters.filter(),
            memory="off" if is_plain else "read",
            strategy="dense" if is_plain else "graph",
            caller_chose_arm=is_plain,
        )


class ContentOut(BaseModel):
    """The text of a passage."""

    type: Literal["text"] = "text"
    text: str


class FoundFileOut(BaseModel):
    """A passage."""

    file_id: str = Field(description="The `passage_id`.")
    filename: str = Field(description="The passage's document: its title, or its id, if it names none.")
    score: float = Field(ge=0, le=1)
    attributes: dict[str, str | float | bool] = Field(
        description=(
            "The passage's metadata, with `document`, `heading`, `page`, `link` and `language` of its source where "
            "they have no such fields. A list or an object is written as JSON, and null is left out."
        )
    )
    content: list[ContentOut]


class SearchPageOut(BaseModel):
    """The passages, best first."""

    object: Literal["vector_store.search_results.page"] = "vector_store.search_results.page"
    search_query: list[str]
    data: list[FoundFileOut]
    has_more: Literal[False] = False
    next_page: None = None
    query_id: str = Field(description="For `POST /feedback`: not in OpenAI's shape.")

    @classmethod
    def from_service(cls, answer: Answer, threshold: float) -> Self:
        """The passages whose score reaches the threshold."""
        scores = compute_relevance_scores(answer.passages, answer.strategy)
        return cls(
            search_query=[answer.query],
            data=[
                FoundFileOut(
                    file_id=passage.passage_id,
                    filename=passage.source.document,
                    score=score,
                    attributes=_attributes(list_source_fields(passage.source) | passage.metadata),
                    content=[ContentOut(text=passage.text)],
                )
                for passage, score in zip(answer.passages, scores, strict=True)
                if score >= threshold
            ],
            query_id=str(answer.query_id),
        )


class DescribedCollection(Protocol):
    """A collection, as far as a vector store shows it."""

    @property
    def name(self) -> str: ...
    @property
    def passage_count(self) -> int: ...
    @property
    def created_at(self) -> datetime | None: ...


class FileCountsOut(BaseModel):
    """Passages of a collection; all of them can be found."""

    in_progress: Literal[0] = 0
    completed: int
    failed: Literal[0] = 0
    cancelled: Literal[0] = 0
    total: int


class VectorStoreOut(BaseModel):
    """A collection, as a vector store."""

    id: str
    object: Literal["vector_store"] = "vector_store"
    name: str
    created_at: int = Field(description="Unix time in seconds.")
    status: Literal["completed"] = "completed"
    usage_bytes: Literal[0] = Field(default=0, description="Always 0: it is not measured.")
    file_counts: FileCountsOut
    last_active_at: None = None
    expires_at: None = None
    metadata: dict[str, str] = Field(default_factory=dict, description="Always empty.")

    @classmethod
    def from_service(cls, collection: DescribedCollection) -> Self:
        passages = collection.passage_count
        return cls(
            id=collection.name,
            name=collection.name,
            created_at=unix_seconds(collection.created_at),
            file_counts=FileCountsOut(completed=passages, total=passages),
        )


class VectorStoresOut(BaseModel):
    """Collections in the order of their names."""

    object: Literal["list"] = "list"
    data: list[VectorStoreOut]
    first_id: str | None
    last_id: str | None
    has_more: bool

    @classmethod
    def from_service(cls, collections: Sequence[DescribedCollection], *, has_more: bool) -> Self:
        stores = [VectorStoreOut.from_service(collection) for collection in collections]
        return cls(
            data=stores,
            first_id=stores[0].id if stores else None,
            last_id=stores[-1].id if stores else None,
            has_more=has_more,
        )


def unix_seconds(moment: datetime | None) -> int:
    """A moment as OpenAI's clients read it; 0 for None."""
    return 0 if moment is None else int(moment.timestamp())


def _attributes(metadata: dict[str, Any]) -> dict[str, str | float | bool]:
    return {
        name: value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)
        for name, value in metadata.items()
        if value is not None
    }
