"""Sentences as callers name them: by id, or by their passage and text."""

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from engram.api.schemas import Model, NumberedId, RowId, Text
from engram.core.text.sizes import SENTENCE_CHARACTERS
from engram.services.learning.incoming_verdict import NamedSentence

MAX_NAMED = 1_000


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


def _way(reference: Any) -> str:
    if isinstance(reference, dict):
        return "by_id" if "sentence_id" in reference else "by_text"
    return "id"


def named(reference: int | SentenceById | SentenceByText) -> NamedSentence:
    """The sentence as services take it."""
    if isinstance(reference, SentenceByText):
        return NamedSentence(passage_id=reference.passage_id, text=reference.text, examined=reference.examined)
    if isinstance(reference, SentenceById):
        return NamedSentence(sentence_id=reference.sentence_id, examined=reference.examined)
    return NamedSentence(sentence_id=reference)


Reference = Annotated[
    Annotated[RowId, Tag("id")] | Annotated[SentenceById, Tag("by_id")] | Annotated[SentenceByText, Tag("by_text")],
    Discriminator(_way),
]
SentenceList = Annotated[list[Reference], Field(max_length=MAX_NAMED)]
