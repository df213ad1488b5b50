"""Passages on their way in: what of a staged body goes into the graph, bounded to what an index can hold."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engram.core.passage_keys.key_text import KeyBuilding
from engram.providers.language import SentenceAnalysis, key_text, normalise_entity

MAX_TIME_CHARACTERS = 200
"""A list of dates beyond this is cut: its key would not fit an index page."""


@dataclass(frozen=True, slots=True)
class PassageDraft:
    """A staged passage that differs from what is stored.

    Attributes:
        document: source of the document that it is made of.
        key_text: what it is searched by: its dense key is the embedding of this, its terms are words of this.
    """

    line: int
    external_id: str
    title: str | None
    text: str
    language: str
    metadata: dict[str, Any]
    content_hash: bytes
    sentences: list[SentenceAnalysis]
    key_text: str
    document: str | None = None


def draft_of(
    line: int,
    body: dict[str, Any],
    content_hash: bytes,
    sentences: Sequence[SentenceAnalysis],
    building: KeyBuilding,
    language: str,
) -> PassageDraft:
    """The draft of a staged body and its analysis, its key text built as ``building`` has it."""
    key = key_text(building, body["title"], body["text"], [sentence.text for sentence in sentences], language)
    return PassageDraft(
        line,
        body["id"],
        body["title"],
        body["text"],
        language,
        body["metadata"],
        content_hash,
        _limit_expressions(sentences),
        key,
        body.get("document"),
    )


def hash_content(body: dict[str, Any]) -> bytes:
    """Hash a body's content without metadata: SHA-256."""
    content = [body["title"], body["text"], body["sentences"], body["language"]]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).digest()


def count_rows(sentences: Sequence[SentenceAnalysis]) -> int:
    """Count the sentences and names of a passage."""
    return len(sentences) + len({name for sentence in sentences for name in sentence.entities})


def normalise_names(surfaces: Sequence[str]) -> list[str]:
    """Normalised names, in the given order."""
    return [normalise_entity(surface) for surface in surfaces]


def collect_surfaces(drafts: Sequence[PassageDraft]) -> dict[str, str]:
    """Normalised name -> the first surface it was met in."""
    surfaces: dict[str, str] = {}
    for draft in drafts:
        for sentence in draft.sentences:
            for surface in sentence.entities:
                surfaces.setdefault(normalise_entity(surface), surface)
    return surfaces


def collect_time_expressions(drafts: Sequence[PassageDraft]) -> set[str]:
    """The time expressions of all sentences."""
    return {s.time_expression for draft in drafts for s in draft.sentences if s.time_expression}


def replace_sentences(draft: PassageDraft, sentences: Sequence[SentenceAnalysis]) -> PassageDraft:
    """Replace the draft's sentences by the same ones with other times."""
    return replace(draft, sentences=_limit_expressions(sentences))


def _limit_expressions(sentences: Sequence[SentenceAnalysis]) -> list[SentenceAnalysis]:
    """The sentences, their time expressions cut after whole phrases."""
    return [replace(sentence, time_expression=_cut_expression(sentence.time_expression)) for sentence in sentences]


def _cut_expression(expression: str | None) -> str | None:
    if expression is None or len(expression) <= MAX_TIME_CHARACTERS:
        return expression
    head = expression[:MAX_TIME_CHARACTERS]
    return (head.rpartition(", ")[0] or head).strip() or None
