"""Verb groups: a main verb with its auxiliaries, adverbs and particle."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from engram.providers.language.facts import clause_words
from engram.providers.language.facts.sentence_items import Item

_PARTICLES = frozenset("aside away back down in over up".split())
_MODALS = frozenset("will would shall should".split())
_DOUBTFUL_ADVERBS = frozenset(
    """almost allegedly briefly effectively ever formerly hardly mistakenly nearly never often once only originally
    perhaps possibly previously probably provisionally reportedly sometimes supposedly usually""".split()
)
"""Adverbs that deny a statement, hedge it, or put it in a past without an end."""
_PAST = frozenset("was were had".split())


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A main verb with what stands in front of it.

    Attributes:
        verb: the main verb with its particle, case-folded; "be", "have" or "do" where there is no other verb.
        end: place of the item after the group.
        passive: a form of "be" stands in front of the verb.
        perfect: a form of "have" stands in front of the verb.
        past: "was", "were" or "had" stands in the group.
        asserted: the group holds no denial, no future and no hedge.
    """

    verb: str
    end: int
    passive: bool
    perfect: bool
    past: bool
    asserted: bool

    @property
    def is_over(self) -> bool:
        """Whether the group states a past that need not last."""
        return self.past and not self.perfect


def read_verb_group(items: Sequence[Item], at: int, verbs: Collection[str]) -> VerbGroup | None:
    """Read the verb group that begins at a place.

    Args:
        items: the sentence.
        at: the place.
        verbs: main verbs that count even if their form could be a noun's.
    """
    place = at
    while place < len(items) and items[place].kind in "axbn":
        place += 1
    before = {item.word for item in items[at:place]}
    auxiliary = any(item.kind in "xb" for item in items[at:place])
    asserted = not (
        any(item.kind == "n" for item in items[at:place]) or (_MODALS | _DOUBTFUL_ADVERBS).intersection(before)
    )
    be, have = bool(clause_words.BE & before), bool({"has", "have", "had"} & before)
    past = bool(_PAST & before)
    main = items[place] if place < len(items) else None
    if main is not None and (main.kind == "v" or main.word in verbs):
        particle = items[place + 1].word if place + 1 < len(items) else ""
        joined = f"{main.word} {particle}"
        if particle in _PARTICLES and joined in verbs:
            return VerbGroup(joined, place + 2, be, have, past, asserted)
        return VerbGroup(main.word, place + 1, be, have, past, asserted)
    if not auxiliary:
        return None
    return VerbGroup("be" if be else "have" if have else "do", place, False, have and be, past, asserted)
