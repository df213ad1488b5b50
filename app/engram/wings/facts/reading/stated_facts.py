"""Facts of a sentence while it is read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engram.wings.facts.core.triples import Kind, Triple
from engram.wings.facts.reading import clause_words
from engram.wings.facts.reading.clause import Clause
from engram.wings.facts.reading.sentence_items import Item, name_words

_KINDS: dict[str, Kind] = {"N": "entity", "D": "date", "#": "number"}
_ENDURING = frozenset("became joined married moved appointed elected named founded established inherited".split())
"""Verbs whose date is when something began."""
_LASTING = frozenset(
    """is a/citizenship/country/country of origin/country of birth/place of birth/place of death/cause of death
    /father/mother/parent/child/sibling/also known as""".replace("\n    ", "").split("/")
)
"""What has no days of its own: a date beside it is of something else."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Topic of a passage.

    Attributes:
        name: its title.
        words: words of the title and of what else the lead calls it; a name made of them means the topic.
        kind: "person", "work", "place" or "thing".
        nouns: what the lead says it is, word by word ("film", "band").
    """

    name: str
    words: frozenset[str]
    kind: str
    nouns: frozenset[str]


class SentenceFacts:
    """Collects the facts of one sentence.

    Attributes:
        main: the sentence's first subject; the topic where it opens the passage.
        number: of the clause that began last.
    """

    def __init__(self, topic: Topic, ordinal: int, *, lead: bool) -> None:
        self.topic = topic
        self.lead = lead
        self.main: str | None = topic.name
        self.number = 0
        self._ordinal = ordinal
        self._triples: list[tuple[Triple, int]] = []
        self._times: dict[int, tuple[int | None, int | None]] = {}

    def start_clause(self) -> int:
        """The number of another clause."""
        self.number += 1
        return self.number

    def resolve_pronoun(self, pronoun: Item) -> str | None:
        """Whom a pronoun means: the sentence's first subject, else the topic.

        A film is no "he" and a painter no "it": that is somebody else, nobody knows who.
        """
        meant = self.main if self.main is not None else self.topic.name
        if meant != self.topic.name:
            return meant
        if pronoun.word in {"he", "she", "his", "her"}:
            return None if self.topic.kind in {"work", "place"} else meant
        if pronoun.word in {"they", "their"}:
            return meant if self.topic.kind == "thing" else None
        return None if self.topic.kind == "person" else meant

    def resolve_name(self, name: str) -> str:
        """The title for a name made of words of it."""
        own = name_words(name)
        return self.topic.name if own and own <= self.topic.words else name

    def find_subject_kind(self, subject: str, phrase: Sequence[Item] = ()) -> str:
        """Return the kind of a subject, by the phrase that defines it unless it is the topic."""
        if subject == self.topic.name:
            return self.topic.kind
        return find_kind(heads(phrase))

    def say(self, subject: str, predicate: str, item: Item, clause: Clause, confidence: float) -> None:
        """A fact whose object is an item."""
        text = self.resolve_name(item.text) if item.kind == "N" else item.text
        if text == subject and predicate.endswith((" in", " at", " near")):
            text = item.text  # a manor that is called by its place
        self.add(subject, predicate, text, _KINDS[item.kind], clause, confidence)

    def add(self, subject: str, predicate: str, text: str, kind: Kind, clause: Clause, confidence: float) -> None:
        """A fact, unless its object is its subject."""
        if text != subject and text.strip():
            triple = Triple(subject, predicate, text, self._ordinal, kind, None, None, confidence)
            self._triples.append((triple, clause.number))

    def time(self, item: Item, clause: Clause) -> None:
        """The days of a clause; its first date counts."""
        if item.time is None:
            return
        start = item.time.start.toordinal() if item.time.start is not None else None
        end = item.time.end.toordinal() if item.time.end is not None else None
        self._times.setdefault(clause.number, (start, None if _ENDURING.intersection(clause.verbs) else end))

    def facts(self) -> list[Triple]:
        """All of them, with the days that their clauses speak of."""
        facts = []
        for triple, number in self._triples:
            start, end = self._times.get(number, (None, None))
            timeless = triple.kind == "date" or triple.predicate in _LASTING
            facts.append(triple if timeless else replace(triple, valid_from=start, valid_to=end))
        return facts


def heads(phrase: Sequence[Item]) -> list[str]:
    """The last noun of each thing that a phrase lists: "director", "critic" of "film director and film critic"."""
    return [
        item.word
        for place, item in enumerate(phrase)
        if item.kind == "w" and (place + 1 == len(phrase) or phrase[place + 1].kind not in "wvgN-")
    ]


def find_kind(nouns: Sequence[str]) -> str:
    """Return the kind of thing that nouns name, by the last that tells: "film and television director"."""
    for noun in reversed(nouns):
        if noun in clause_words.WORKS:
            return "work"
        if noun in clause_words.PLACES:
            return "place"
        if noun in clause_words.PEOPLE or (
            noun.endswith(clause_words.PERSON_ENDINGS) and noun not in clause_words.NO_PEOPLE
        ):
            return "person"
    return "thing"
