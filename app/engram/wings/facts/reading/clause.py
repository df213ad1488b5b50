"""State of the reading of a clause, and the meaning of the words since its verb."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from engram.wings.facts.reading import clause_words
from engram.wings.facts.reading.sentence_items import Item

MAX_GAP = 30
"""Items since the verb, or the last object, that are kept: a name farther off is not what the verb is about."""
MAX_PREDICATE_WORDS = 5
PARTS = re.compile(r"[\s–-]+")


@dataclass(slots=True)
class Clause:
    """State of the reading of a clause.

    Attributes:
        subject: None where nobody can tell.
        number: tells a sentence's clauses apart, for their dates.
        head: nouns that stand for the subject ("the music was composed by").
        verbs: several where they share what follows ("written and directed by"); "" is a bare "be".
        gap: the last items since the verb, or since the last object.
        predicates: of the last object, which a list goes on with.
        last: that object.
        kin: what the names that follow are of the subject: "father", "mother", ...
        relatives: how many such names there were.
        denied: the verb is negated, or only possible.
        relative: the clause began with "who" or "which".
        copula: the verb is "be".
        spoken: the verb has had an object.
        direct: the first of them without a preposition.
    """

    subject: str | None
    number: int
    head: list[Item] = field(default_factory=list)
    verbs: list[str] = field(default_factory=list)
    gap: list[Item] = field(default_factory=list)
    predicates: tuple[str, ...] = ()
    last: str = ""
    kin: str | None = None
    relatives: int = 0
    denied: bool = False
    relative: bool = False
    copula: bool = False
    has_list: bool = False
    spoken: bool = False
    direct: bool = False

    def pass_by(self, item: Item) -> None:
        """Another item since the verb."""
        self.gap.append(item)
        if len(self.gap) > 2 * MAX_GAP:
            self.gap = self.gap[-MAX_GAP:]

    def head_words(self) -> list[str]:
        """The last two nouns of the head, before any preposition."""
        end = next((place for place, item in enumerate(self.head) if item.kind == "p"), len(self.head))
        return [item.word for item in self.head[:end] if item.kind == "w"][-2:]


def find_items_after_comma(items_before: Sequence[Item]) -> list[Item] | None:
    """Return the items after the last comma if they begin with a preposition: ", in 1920" goes with the verb."""
    last = max((place for place, item in enumerate(items_before) if item.kind in ",;"), default=-1)
    tail = list(items_before[last + 1 :])
    return tail if tail and tail[0].kind == "p" else None


def continues(gap: Sequence[Item], predicate: str) -> bool:
    """Whether a list goes on: only commas, "and" and what a name is called by stand between.

    "In the district of COUNTY" goes on as well: what lies in a part lies in the whole.
    """
    if not gap or len(gap) > 6 or predicate.endswith(" as"):
        return False
    if gap[0].word == "of" and len(gap) == 1 and predicate.endswith((" in", " within", " at")):
        return True
    return gap[0].kind in ",c" and all(item.kind in ",cdwa" for item in gap)


def describes(gap: Sequence[Item], following: Item | None) -> bool:
    """Whether a date is part of a noun phrase: "the 1965 novel", "1950s fans", "1987's best"."""
    if following is None:
        return False
    return following.kind in "'w" or (bool(gap) and gap[-1].kind in "dow" and following.kind == "N")


def joins(gap: Sequence[Item]) -> bool:
    """Whether two verbs share what follows: "written and directed", "written, produced and directed"."""
    return any(item.kind in "c," for item in gap) and all(item.kind in "c,a" for item in gap)


def is_title(item: Item) -> bool:
    """Whether a name after a comma is another one for the name before: "NAME, Duke of NAME"."""
    first, _, rest = item.word.partition(" ")
    return (first in clause_words.MALE or first in clause_words.FEMALE) and rest.startswith("of ")


def names_other_work(predicates: Sequence[str]) -> bool:
    """Whether what was said last names another work, which what follows may be about."""
    return any(predicate.partition(" ")[0] in clause_words.DERIVATION_NOUNS for predicate in predicates)


def find_kin(nouns: Sequence[str]) -> str | None:
    """Return the relation of the first noun that names a relative."""
    return next((clause_words.KIN[noun] for noun in nouns if noun in clause_words.KIN), None)
