"""Interface of a language: sentences, the names in them, and the times they mention."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engram.core.text.temporal import time_constraint
from engram.providers.language.entity_names import normalise_entity, select_distinct_entities, title_entities

NAMES_PER_SENTENCE = 500
"""Names in one sentence, its passage's title first. What names more is a list; ordinary text has up to 70."""
NAMES_PER_PASSAGE = 10_000
"""Names in one passage, give or take a sentence: each takes milliseconds to embed and to index."""
NAMES_PER_QUESTION = 100
"""Names in a question: each costs a look for the nearest entity. Ordinary questions have up to ten."""


@dataclass(frozen=True, slots=True)
class PassageText:
    """A passage to analyse; given ``sentences`` are kept as they are, ``None`` asks for a split of ``text``.

    ``language`` is an ISO 639 code.
    """

    title: str | None
    text: str
    sentences: tuple[str, ...] | None = None
    language: str = "en"


@dataclass(frozen=True, slots=True)
class SentenceAnalysis:
    """One sentence, the names in it (surface forms, in order, no name twice) and the time it speaks of."""

    text: str
    entities: tuple[str, ...]
    time_expression: str | None


@dataclass(frozen=True, slots=True)
class QuestionAnalysis:
    """The names in a question and its time constraint; a question may well have neither.

    Attributes:
        possible: further words that are names if an entity bears them and few passages name it, the longest first.
    """

    entities: tuple[str, ...]
    time_expression: str | None
    possible: tuple[str, ...] = ()


class Language(Protocol):
    """Analyses text. All methods may be called from several threads at once."""

    @property
    def name(self) -> str:
        """Name of the loaded rules or pipeline, such as ``rules`` or ``en_core_web_sm 3.8.0``."""

    def analyse_passages(self, passages: Sequence[PassageText]) -> list[list[SentenceAnalysis]]:
        """Sentences of each passage, in order. The title is a name in every sentence of its passage."""

    def analyse_question(self, text: str, language: str | None = None) -> QuestionAnalysis:
        """Names and time constraint of a question.

        Args:
            language: ISO 639 code. None: as it is recognised, and English where the text is too short to tell.
        """


def group_by_passage(
    passages: Sequence[PassageText], split: Iterable[Sequence[str]], names: Iterable[Sequence[str]]
) -> list[list[SentenceAnalysis]]:
    """Put together what was found: ``names`` has one entry per sentence, over all passages in order."""
    remaining = iter(names)
    analyses: list[list[SentenceAnalysis]] = []
    for passage, sentences in zip(passages, split, strict=True):
        titles = select_distinct_entities(title_entities(passage.title), NAMES_PER_SENTENCE)
        known: set[str] = set()
        analyses.append([])
        for sentence in sentences:
            constraint = time_constraint(sentence, passage.language)
            entities = select_distinct_entities((*titles, *next(remaining)), NAMES_PER_SENTENCE)
            if len(known) >= NAMES_PER_PASSAGE:
                entities = tuple(name for name in entities if normalise_entity(name) in known)
            known.update(map(normalise_entity, entities))
            analyses[-1].append(SentenceAnalysis(sentence, entities, constraint.text if constraint else None))
    return analyses
