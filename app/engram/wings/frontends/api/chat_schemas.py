"""Chats in the shape of OpenAI's chat completions."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from engram.api.retrieval.expansion_schemas import WarningOut
from engram.api.retrieval.schemas import CitationOut, QueryIn
from engram.api.schemas import AskedFor, CollectionName, Storable, TraceId
from engram.services.answers.worded_answer import WordedAnswer
from engram.services.auth.scope import Scope
from engram.services.retrieval.query import Query
from engram.wings.frontends.services.chat_answer import ChatAnswer, ChatTurn

MAX_MESSAGES = 500
MAX_CONTENT = 100_000
SPEAKER_ROLES = ("user", "assistant")
NO_ANSWER_TEXT = "I find no answer to that in this collection."
QUOTATION_HEADING = "The collection says:"
UNWORDED = "The language model gave no answer. What was found:"


class ContentPart(BaseModel):
    """A piece of a message; only text can be answered."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["text"]
    text: Storable = Field(max_length=MAX_CONTENT)


class ChatMessage(BaseModel):
    """Message of a chat; fields that Engram does not use are ignored."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: (
        Annotated[Storable, Field(max_length=MAX_CONTENT)]
        | Annotated[list[ContentPart], Field(max_length=100)]
        | None
    ) = None

    def words(self) -> str:
        """Its text, without white space around it."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content).strip()
        return (self.content or "").strip()


class ChatIn(BaseModel):
    """A conversation whose last message is a question. Options of a model's, such as `temperature`, are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [
                {"model": "docs", "messages": [{"role": "user", "content": "Where was Marie Curie born?"}]}
            ]
        },
    )

    model: CollectionName = Field(description="The collection that is asked.")
    as_: AskedFor = None
    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: StrictBool = False
    trace_id: TraceId | None = Field(
        default=None,
        description=(
            "As of a query. Absent: the header `X-OpenWebUI-Message-Id`, else the trace id of `traceparent`."
        ),
    )

    @property
    def collection(self) -> str:
        return self.model

    @model_validator(mode="after")
    def _ends_with_a_question(self) -> Self:
        if self.messages[-1].role != "user" or not self.messages[-1].words():
            raise ValueError("the last message must be the user's, with text")
        self.to_query_in()  # and no longer than a question may be
        return self

    def to_query_in(self) -> QueryIn:
        """The last message as a query."""
        return QueryIn(query=self.messages[-1].words(), collection=self.model)

    def to_query(self, scope: Scope, parent_trace: str | None = None) -> Query:
        return self.to_query_in().to_query(scope, self.trace_id or parent_trace)

    def list_earlier_turns(self) -> list[ChatTurn]:
        """Return the earlier turns of user and assistant, without instructions to a model."""
        messages = [message for message in self.messages[:-1] if message.role in SPEAKER_ROLES]
        return [ChatTurn(message.role, words) for message in messages if (words := message.words())]


class ChatReplyMessage(BaseModel):
    """The answer in words, its sources below it."""

    role: Literal["assistant"] = "assistant"
    content: str


class ChatChoice(BaseModel):
    """There is one."""

    index: Literal[0] = 0
    message: ChatReplyMessage
    finish_reason: Literal["stop"] = "stop"


class ChatGrounds(BaseModel):
    """Basis of the answer, beyond OpenAI's shape; a verdict needs it."""

    query_id: str = Field(description="For `POST /feedback`.")
    trace_id: str | None = Field(default=None, description="By which scores find the query.")
    question: str = Field(
        description="As it was asked of the collection, where earlier messages had a say restated."
    )
    sufficient: bool
    sufficiency: float | None
    citations: list[CitationOut]
    warnings: list[WarningOut]


class ChatOut(BaseModel):
    """A chat completion."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int = Field(description="Unix time in seconds.")
    model: str
    choices: list[ChatChoice]
    engram: ChatGrounds

    @classmethod
    def from_service(cls, answer: ChatAnswer, collection: str, created: int) -> Self:
        worded, retrieval = answer.worded, answer.worded.retrieval
        return cls(
            id=f"chatcmpl-{retrieval.query_id}",
            created=created,
            model=collection,
            choices=[ChatChoice(message=ChatReplyMessage(content=_content(worded, quoted=answer.quoted)))],
            engram=ChatGrounds(
                query_id=str(retrieval.query_id),
                trace_id=retrieval.trace_id,
                question=retrieval.query,
                sufficient=worded.sufficient,
                sufficiency=retrieval.sufficiency,
                citations=[CitationOut.model_validate(citation) for citation in worded.citations],
                warnings=[WarningOut.model_validate(warning) for warning in worded.warnings],
            ),
        )

    def chunks(self) -> list[dict[str, Any]]:
        """The completion as `stream` gives it: who speaks, what is said, and that it ends."""
        head = {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model}
        message = self.choices[0].message
        deltas: list[tuple[dict[str, Any], str | None]] = [
            ({"role": message.role}, None),
            ({"content": message.content}, None),
            ({}, "stop"),
        ]
        chunks = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas
        ]
        chunks[-1]["engram"] = self.engram.model_dump(mode="json")
        return chunks


class ModelOut(BaseModel):
    """A collection, as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="When the collection was made, as Unix time in seconds.")
    owned_by: Literal["engram"] = "engram"


class ModelsOut(BaseModel):
    """The collections that may be asked."""

    object: Literal["list"] = "list"
    data: list[ModelOut]


def _content(answer: WordedAnswer, *, quoted: bool) -> str:
    """The answer with its sources; without one, what was found or that there is nothing."""
    if quoted:
        titles = {passage.passage_id: passage.title for passage in answer.retrieval.passages}
        quotes = [(_format_source(cited.passage_id, titles), cited.text) for cited in answer.citations]
        return _format_quotes(quotes) if quotes else NO_ANSWER_TEXT
    if answer.text:
        return _add_sources(answer.text, [(cited.passage_id, cited.text) for cited in answer.citations])
    if any(warning.type == "not-answered" for warning in answer.warnings):
        texts = [
            (passage.passage_id, sentence.text)
            for passage in answer.retrieval.passages
            for sentence in passage.sentences
        ]
        return _add_sources(UNWORDED, texts) if texts else NO_ANSWER_TEXT
    return NO_ANSWER_TEXT


def _format_source(passage_id: str, titles: Mapping[str, str | None]) -> str:
    title = titles.get(passage_id)
    return f"{title} ({passage_id})" if title else passage_id


def _format_quotes(quotes: list[tuple[str, str]]) -> str:
    """Sentences, each with a number, and below them the source that each number stands for."""
    sentences = "\n".join(f'"{text}" [{number}]' for number, (_, text) in enumerate(quotes, 1))
    sources = "\n".join(f"[{number}] {source}" for number, (source, _) in enumerate(quotes, 1))
    return f"{QUOTATION_HEADING}\n\n{sentences}\n\n{sources}"


def _add_sources(words: str, sources: list[tuple[str, str]]) -> str:
    if not sources:
        return words
    return words + "\n\n" + "\n".join(f"[{n}] {passage}: {text}" for n, (passage, text) in enumerate(sources, 1))
