"""Chats in the shape of OpenAI's chat completions."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from engram.api.question.answer_schemas import CitationOut
from engram.api.question.question_schemas import ContextIn
from engram.api.schemas import CollectionName, OnBehalfOf, Storable, TraceId, WarningOut
from engram.core.text.passage_source import PassageSource
from engram.services.auth.scope import Scope
from engram.services.question.query import Fallback, Query
from engram.wings.frontends.services.chat_answer import ChatAnswer, ChatTurn

MAX_MESSAGES = 500
MAX_CONTENT = 4_000_000
"""Characters of a message; a body ends at 4 MiB anyway."""
SPEAKER_ROLES = ("user", "assistant")
NEAREST = 3
"""Passages that are named where none answers."""


class ContentPart(BaseModel):
    """A piece of a message. Only text is read; a warning names the other pieces."""

    model_config = ConfigDict(extra="ignore")

    type: Storable = Field(max_length=100, examples=["text"])
    text: Storable | None = Field(default=None, max_length=MAX_CONTENT, description="Needed in a piece of text.")

    @model_validator(mode="after")
    def _has_text(self) -> Self:
        if self.type == "text" and self.text is None:
            raise ValueError("a part of type 'text' needs a text")
        return self


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
            return "\n".join(part.text for part in self.content if part.type == "text" and part.text).strip()
        return (self.content or "").strip()

    def list_unread_parts(self) -> list[str]:
        """The types of its parts that are no text."""
        return [part.type for part in self.content if part.type != "text"] if isinstance(self.content, list) else []


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
    as_: OnBehalfOf = None
    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: StrictBool = False
    min_sufficiency: Annotated[float, Field(ge=0, le=1, strict=True)] | Literal["auto"] | None = Field(
        default=None,
        description=(
            "As of a query: below it the answer says that the collection has none. Null: without a language model "
            "'auto', and the quotes have to hold the answer more probably than not; else no level."
        ),
    )
    context: ContextIn | None = Field(
        default=None, description="How much of what stands around each passage the language model reads."
    )
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
        return self

    def to_query(self, scope: Scope, parent_trace: str | None = None) -> Query:
        """The last message as a query."""
        return Query(
            text=self.messages[-1].words(),
            scope=scope,
            min_sufficiency=self.min_sufficiency,
            caller_chose_arm=False,
            trace_id=self.trace_id or parent_trace,
            parts=() if self.context is None else (self.context.to_part(),),
        )

    def list_warnings(self) -> tuple[Fallback, ...]:
        """Return what of the messages is not read: their parts that are no text."""
        unread = Counter(kind for message in self.messages for kind in message.list_unread_parts())
        if not unread:
            return ()
        kinds = ", ".join(f"{count} of type {kind}" for kind, count in sorted(unread.items()))
        return (Fallback("parts-not-read", f"Only text is read. Left out: {kinds}."),)

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
            choices=[ChatChoice(message=ChatReplyMessage(content=_content(answer)))],
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


def _content(answer: ChatAnswer) -> str:
    """The answer with its sources; without one, what was found or that there is nothing."""
    worded, phrases = answer.worded, answer.phrases
    if answer.quotes:
        quotes = "\n".join(f'"{one.text}" [{number}]' for number, one in enumerate(answer.quotes, 1))
        return f"{phrases.quotation}\n\n{quotes}\n\n{_list_sources([one.passage.source for one in answer.quotes])}"
    if answer.quotes is not None:
        nearest = list(dict.fromkeys(passage.source for passage in worded.retrieval.passages[:NEAREST]))
        return (
            f"{phrases.no_answer} {phrases.nearest}\n\n{_list_sources(nearest)}" if nearest else phrases.no_answer
        )
    if worded.text:
        return _add_sources(worded.text, [(cited.source, cited.text) for cited in worded.citations])
    if any(warning.type == "not-answered" for warning in worded.warnings):
        texts = [
            (passage.source, sentence.text)
            for passage in worded.retrieval.passages
            for sentence in passage.sentences
        ]
        return _add_sources(phrases.unworded, texts) if texts else phrases.no_answer
    return phrases.no_answer


def _format_source(source: PassageSource) -> str:
    return str(source) if source.link is None else f"{source} {source.link}"


def _list_sources(sources: Sequence[PassageSource]) -> str:
    return "\n".join(f"[{number}] {_format_source(source)}" for number, source in enumerate(sources, 1))


def _add_sources(words: str, sources: Sequence[tuple[PassageSource, str]]) -> str:
    if not sources:
        return words
    lines = "\n".join(f"[{n}] {_format_source(source)}: {text}" for n, (source, text) in enumerate(sources, 1))
    return f"{words}\n\n{lines}"
