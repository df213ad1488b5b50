"""Passages on their way in: what of a staged body goes into the graph, bounded to what an index can hold."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.core.key_text import KeyBuilding
from app.providers.language import SentenceAnalysis, key_text, normalise_entity
from app.providers.llm import Llm

# A name or a date list beyond this is not one; its key would not fit an index page either.
MAX_KEY_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Draft:
    """A staged passage that differs from what is stored.

    Attributes:
        key_text: what it is searched by: its dense key is the embedding of this, its terms are words of this.
    """

    line: int
    external_id: str
    title: str | None
    text: str
    metadata: dict[str, Any]
    content_hash: bytes
    sentences: list[SentenceAnalysis]
    key_text: str


def draft_of(
    line: int,
    body: dict[str, Any],
    content_hash: bytes,
    sentences: Sequence[SentenceAnalysis],
    building: KeyBuilding,
) -> Draft:
    """The draft of a staged body and its analysis, its key text built as ``building`` has it."""
    key = key_text(building, body["title"], body["text"], [sentence.text for sentence in sentences])
    return Draft(
        line, body["id"], body["title"], body["text"], body["metadata"], content_hash, _bounded(sentences), key
    )


def content_hash_of(body: dict[str, Any]) -> bytes:
    """What tells a body's content, metadata apart, from another: SHA-256."""
    content = [body["title"], body["text"], body["sentences"]]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).digest()


def names_of(surfaces: Sequence[str]) -> list[str]:
    """Normalised names, in the given order."""
    return [normalise_entity(surface) for surface in surfaces]


def surfaces_of(drafts: Sequence[Draft]) -> dict[str, str]:
    """Normalised name -> the first surface it was met in."""
    surfaces: dict[str, str] = {}
    for draft in drafts:
        for sentence in draft.sentences:
            for surface in sentence.entities:
                surfaces.setdefault(normalise_entity(surface), surface)
    return surfaces


def expressions_of(drafts: Sequence[Draft]) -> set[str]:
    """The time expressions of all sentences."""
    return {s.time_expression for draft in drafts for s in draft.sentences if s.time_expression}


def with_llm_times(draft: Draft, llm: Llm) -> Draft:
    """The draft with the times that the language model finds in its sentences, in place of those of the rules."""
    dated = [
        SentenceAnalysis(sentence.text, sentence.entities, llm.extract_time_constraint(sentence.text))
        for sentence in draft.sentences
    ]
    return replace(draft, sentences=_bounded(dated))


def _bounded(sentences: Sequence[SentenceAnalysis]) -> list[SentenceAnalysis]:
    """The sentences without names too long to be names, their time expressions cut after whole phrases."""
    return [
        SentenceAnalysis(
            sentence.text,
            tuple(name for name in sentence.entities if len(name) <= MAX_KEY_CHARACTERS),
            _cut(sentence.time_expression),
        )
        for sentence in sentences
    ]


def _cut(expression: str | None) -> str | None:
    if expression is None or len(expression) <= MAX_KEY_CHARACTERS:
        return expression
    head = expression[:MAX_KEY_CHARACTERS]
    return (head.rpartition(", ")[0] or head).strip() or None
