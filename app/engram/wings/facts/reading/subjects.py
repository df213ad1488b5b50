"""Whom a verb is about: what stands before it."""

from collections.abc import Sequence

from engram.wings.facts.reading import clause_words
from engram.wings.facts.reading.clause import Clause
from engram.wings.facts.reading.countries import ADJECTIVES, COUNTRIES
from engram.wings.facts.reading.sentence_items import Item
from engram.wings.facts.reading.stated_facts import SentenceFacts, find_kind

MOST_NOUNS = 2
"""Nouns that may stand for something of the topic's: "principal photography was"."""
_PARTS = frozenset("most much majority bulk part parts half rest remainder name title version".split())
"""What "of the film" adds nothing to: "most of the film was shot in"."""
LOOKED_ITEMS = 8
"""Items that are looked back or ahead."""


def find_first_verb(items: Sequence[Item]) -> int:
    """Return the place of the lead's first verb: the topic is named before it."""
    for at, item in enumerate(items):
        following = items[at + 1].kind if at + 1 < len(items) else "."
        is_parenthesis = following == "p" and all(one.kind != "," for one in items[max(0, at - 2) : at])
        if item.kind in "bx" or (item.kind == "v" and at and not is_parenthesis):
            return at
    return 0


def begins_clause(items: Sequence[Item], at: int) -> bool:
    """Whether a subject and a verb follow within a few items."""
    for item in items[at : at + LOOKED_ITEMS]:
        if item.kind in "hbxv":
            return True
        if item.kind in ",;p":
            return False
    return False


def opens_apposition(items: Sequence[Item], at: int) -> bool:
    """Whether the comma in "NAME, a ..." or "NAME, son of ..." opens what the name is."""
    if at == 0 or items[at - 1].kind != "N" or at + 2 >= len(items):
        return False
    first, second = items[at + 1], items[at + 2]
    if first.word in {"a", "an", "the"} and (second.kind in "w#" or second.word in ADJECTIVES):
        # "With words by NAME, the song was": an apposition ends with a comma before the verb.
        return next((item.kind for item in items[at + 1 :] if item.kind not in "dwNoa#-"), ".") not in "bx"
    for place in range(at + 1, min(at + 4, len(items) - 1)):
        if items[place].word in clause_words.KIN:
            return items[place + 1].word == "of"
        if items[place].kind not in "wda":
            return False
    return False


def find_apposed_name(saying: SentenceFacts, items: Sequence[Item], at: int, clause: Clause) -> str | None:
    """Whom the apposition after the comma is about: the name before it, but of a place nobody is the son."""
    place = at - 1
    while place >= 2 and items[place - 1].kind == "," and items[place - 2].kind == "N":
        place -= 2
    placed = place > 0 and items[place - 1].word in {"in", "at", "near"}
    if placed and any(item.word in clause_words.KIN for item in items[at + 1 : at + 4]):
        return clause.subject
    return saying.resolve_name(items[at - 1].text)


def relative_clause(saying: SentenceFacts, items: Sequence[Item], at: int, clause: Clause) -> Clause:
    """The clause after "who", "which" or "that": about the name before it, or what the subject is said to be."""
    back = at - 1
    while back >= max(0, at - LOOKED_ITEMS) and items[back].kind in ",a":
        back -= 1
    subject: str | None = None
    if back < 0 or items[back].kind != "N":
        own = clause.copula and not clause.predicates and all(item.kind not in "pND" for item in clause.gap)
        subject = clause.subject if own else None
    elif items[at].word == "who":
        # "king of SWEDEN, who ...": it is the king.
        predicate = clause.predicates[0] if clause.predicates else ""
        of_place = predicate.endswith((" in", " of", " from", " at")) or items[back].word in COUNTRIES
        subject = clause.subject if clause.copula and of_place else saying.resolve_name(items[back].text)
    elif not (clause.predicates and clause.predicates[0].endswith("by")):
        subject = saying.resolve_name(items[back].text)
    return Clause(subject, saying.start_clause(), relative=True)


def find_subject(saying: SentenceFacts, clause: Clause, *, started: bool) -> None:
    """Set the subject of a clause's first verb, and its head, by what stands before the verb.

    Args:
        saying: of the sentence.
        clause: with what stands before the verb as its gap.
        started: the sentence has had a subject.
    """
    before = _drop_opening([item for item in clause.gap if item.kind not in "a.'\""])
    if before is None:
        clause.subject = clause.subject if started else None
    elif not before:
        if clause.subject is None:
            clause.subject = saying.main if started else saying.topic.name
    elif all(item.kind != "N" for item in before):
        _noun_subject(saying, clause, before)
    else:
        _read_named_subject(saying, clause, before)


def _drop_opening(before: list[Item]) -> list[Item] | None:
    """Return the items after "In 1920,"; None if there are no others."""
    while before and before[0].kind in "p,cD":
        if before[0].kind == "p":
            comma = next((place for place, item in enumerate(before) if item.kind == ","), None)
            if comma is None:
                return None
            before = before[comma:]
        before = before[1:]
    return before


def _read_named_subject(saying: SentenceFacts, clause: Clause, before: Sequence[Item]) -> None:
    """A name right before the verb, or the one of which "The director of NAME was" says who."""
    first = next(place for place, item in enumerate(before) if item.kind == "N")
    owned = before[0].kind == "o"
    preposition = next((place for place, item in enumerate(before) if item.kind == "p"), None)
    if preposition is not None and 0 < preposition < first:
        has_of = before[preposition].word == "of" and not owned
        clause.subject = saying.resolve_name(before[first].text) if has_of else None
        clause.head = [item for item in before[:preposition] if item.kind == "w"]
    elif not owned or before[-1].kind == "N":
        last = next(item for item in reversed(before) if item.kind == "N")
        clause.subject = saying.resolve_name(last.text) if before[-1].kind in "N," else None
    else:
        _noun_subject(saying, clause, before)


def _noun_subject(saying: SentenceFacts, clause: Clause, before: Sequence[Item]) -> None:
    """ "The film" is the topic; "the music" and "his mother" are heads of what is said of it, or of him.

    So is "the director of the film"; whose "the wife of the director" is does not say.
    """
    owned = before[0].kind == "o"
    clause.subject = saying.resolve_pronoun(before[0]) if owned else saying.topic.name
    nouns = [item.word for item in before if item.kind == "w"]
    topical = before[0].kind == "d" and nouns and nouns[-1] in saying.topic.nouns
    if not owned and not topical and len(nouns) > MOST_NOUNS:
        clause.subject = None
    elif owned or not topical:
        clause.head = [item for item in before if item.kind in "wpc"]
    preposition = next((place for place, item in enumerate(before) if item.kind == "p"), None)
    roles = [item.word for item in before[:preposition] if item.kind == "w"]
    if preposition is None or not roles or before[preposition].word != "of" or _PARTS.intersection(roles):
        return
    if topical and not owned:
        clause.head = [item for item in before[:preposition] if item.kind == "w"]
    elif roles[-1] in clause_words.KIN or find_kind(roles) == "person":
        clause.subject = None


def find_new_subject(saying: SentenceFacts, items: Sequence[Item], at: int, clause: Clause) -> str | None:
    """The name before a second verb where a boundary stands before the name."""
    back = at - 1
    while back >= max(0, at - LOOKED_ITEMS) and items[back].kind in "ax":
        back -= 1
    if back < 1 or items[back].kind != "N" or items[back - 1].kind not in ",c;k":
        return None
    in_list = clause.has_list and items[back - 1].kind == "c"
    return None if in_list else saying.resolve_name(items[back].text)
