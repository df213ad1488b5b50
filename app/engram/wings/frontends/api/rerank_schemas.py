"""Reranking on the wire, in the shape of Cohere and Jina."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, StrictInt, Tag

from engram.api.passage_source_schema import PassageSourceOut
from engram.api.schemas import CollectionName, OnBehalfOf, Question, Storable, Whole
from engram.services.auth.scope import Scope
from engram.services.question.query import Query
from engram.wings.frontends.services.reranking import RerankedTexts

MAX_DOCUMENTS = 1_000
MAX_CHARACTERS = 100_000

DocumentText = Annotated[Storable, Field(max_length=MAX_CHARACTERS)]


class TextDocument(BaseModel):
    """A text as an object; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    text: DocumentText


def _document_form(document: Any) -> str:
    return "text" if isinstance(document, str) else "object"


# The form is chosen first, so that a refused text is named by its own error alone.
RerankDocument = Annotated[
    Annotated[DocumentText, Tag("text")] | Annotated[TextDocument, Tag("object")], Discriminator(_document_form)
]


class RerankIn(BaseModel):
    """Texts to rank for a question. Options of a model's, such as `max_tokens_per_doc`, are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [
                {
                    "model": "sample",
                    "query": "Who discovered Enceladus?",
                    "documents": ["Enceladus was discovered in August 1789.", "Warsaw lies on the Vistula."],
                    "top_n": 1,
                }
            ]
        },
    )

    model: CollectionName = Field(description="The collection by whose memory texts are ranked.")
    as_: OnBehalfOf = None
    query: Question
    documents: list[RerankDocument] = Field(min_length=1, max_length=MAX_DOCUMENTS)
    top_n: Annotated[StrictInt, Field(ge=1), Whole] | None = Field(
        default=None, description="Texts wanted; null: all."
    )
    return_documents: StrictBool | None = Field(default=None, description="Whether the answer repeats the texts.")

    @property
    def collection(self) -> str:
        return self.model

    @property
    def texts(self) -> list[str]:
        """The texts, in their order."""
        return [one.text if isinstance(one, TextDocument) else one for one in self.documents]

    def to_query(self, scope: Scope) -> Query:
        """The question as the query service takes it."""
        return Query(text=self.query, scope=scope, caller_chose_arm=False)


class RankedDocument(BaseModel):
    """A text that was sent."""

    text: str


class RerankedOut(BaseModel):
    """A text by its place in the request."""

    index: int
    relevance_score: float = Field(ge=0, le=1)
    document: RankedDocument | None = Field(default=None, description="Null where the texts were not wanted back.")
    passage_id: str | None = Field(description="The passage of the collection that has this text; null: none has.")
    source: PassageSourceOut | None = Field(description="Where this passage comes from.")


class ApiVersionOut(BaseModel):
    """The version of the protocol."""

    version: str


class RerankMetaOut(BaseModel):
    """Details that Cohere's clients read."""

    api_version: ApiVersionOut


class RerankOut(BaseModel):
    """The texts, best first."""

    id: str = Field(description="The `query_id`, for `POST /feedback`.")
    object: Literal["list"] = "list"
    model: str
    results: list[RerankedOut]
    meta: RerankMetaOut

    @classmethod
    def from_service(cls, reranking: RerankedTexts, body: RerankIn, version: str) -> Self:
        texts = body.texts
        return cls(
            id=str(reranking.query_id),
            model=body.model,
            results=[
                RerankedOut(
                    index=one.index,
                    relevance_score=one.relevance,
                    document=RankedDocument(text=texts[one.index]) if body.return_documents else None,
                    passage_id=None if one.passage is None else one.passage.passage_id,
                    source=None if one.passage is None else PassageSourceOut.model_validate(one.passage.source),
                )
                for one in reranking.texts[: body.top_n]
            ],
            meta=RerankMetaOut(api_version=ApiVersionOut(version=version)),
        )
