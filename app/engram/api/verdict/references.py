"""Sentences as callers name them: by id, or by their passage and text."""

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from engram.api.schemas import ExternalId, Model, NumberedId, RowId, Text
from engram.core.text.sizes import SENTENCE_CHARACTERS
from engram.services.verdict.verdict import NamedSentence

MAX_NAMED = 1_000
MAX_CITED = 100


Examined = Annotated[
    float,
    Field(
        ge=0.01,
        le=1,
        strict=True,
        description=(
            "Of a rejected sentence: with what probability it was looked at, as where it was shown and merely not "
            "clicked. Divides what the rejection says."
        ),
    ),
]


class SentenceById(Model):
    """A sentence by its id, as answers give it."""

    sentence_id: RowId
    examined: Examined = 1.0


class SentenceByText(Model):
    """A sentence by your id of its passage and its text."""

    passage_id: NumberedId
    text: Text = Field(max_length=SENTENCE_CHARACTERS)
    examined: Examined = 1.0


def _discriminate(reference: Any) -> str:
    if isinstance(reference, dict):
        return "by_id" if "sentence_id" in reference else "by_text"
    return "id"


def to_named_sentence(reference: int | SentenceById | SentenceByText) -> NamedSentence:
    """The sentence as services take it."""
    if isinstance(reference, SentenceByText):
        return NamedSentence(passage_id=reference.passage_id, text=reference.text, examined=reference.examined)
    if isinstance(reference, SentenceById):
        return NamedSentence(sentence_id=reference.sentence_id, examined=reference.examined)
    return NamedSentence(sentence_id=reference)


Reference = Annotated[
    Annotated[RowId, Tag("id")] | Annotated[SentenceById, Tag("by_id")] | Annotated[SentenceByText, Tag("by_text")],
    Discriminator(_discriminate),
]


class CitedPassage(Model):
    """A passage as a whole, by your id."""

    passage_id: NumberedId


class CitedSentence(Model):
    """A sentence by its id, as answers give it."""

    sentence_id: RowId


class QuotedSentence(Model):
    """A sentence by your id of its passage and its text."""

    passage_id: NumberedId
    text: Text = Field(max_length=SENTENCE_CHARACTERS)


def _discriminate_citation(citation: Any) -> str:
    if isinstance(citation, str):
        return "passage"
    if isinstance(citation, dict):
        return "by_id" if "sentence_id" in citation else "by_text" if "text" in citation else "by_passage"
    return "id"


def to_citation(citation: int | str | CitedPassage | CitedSentence | QuotedSentence) -> NamedSentence:
    """The citation as services take it; one of a passage has no sentence."""
    match citation:
        case str():
            return NamedSentence(passage_id=citation)
        case CitedPassage():
            return NamedSentence(passage_id=citation.passage_id)
        case QuotedSentence():
            return NamedSentence(passage_id=citation.passage_id, text=citation.text)
        case CitedSentence():
            return NamedSentence(sentence_id=citation.sentence_id)
        case _:
            return NamedSentence(sentence_id=citation)


Citation = Annotated[
    Annotated[RowId, Tag("id")]
    | Annotated[ExternalId, Tag("passage")]
    | Annotated[CitedSentence, Tag("by_id")]
    | Annotated[QuotedSentence, Tag("by_text")]
    | Annotated[CitedPassage, Tag("by_passage")],
    Discriminator(_discriminate_citation),
]
CitationList = Annotated[list[Citation], Field(max_length=MAX_CITED)]
SentenceList = Annotated[list[Reference], Field(max_length=MAX_NAMED)]
