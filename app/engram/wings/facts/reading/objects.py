"""Names, dates and numbers as objects, and what the words since the verb make of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from engram.wings.facts.reading import clause_words
from engram.wings.facts.reading.belongings import opens_kin, read_owner, read_possessive, relative, starts_kin
from engram.wings.facts.reading.clause import (
    MAX_PREDICATE_WORDS,
    Clause,
    continues,
    describes,
    find_items_after_comma,
    find_kin,
    is_title,
)
from engram.wings.facts.reading.countries import ADJECTIVES, COUNTRIES
from engram.wings.facts.reading.sentence_items import Item
from engram.wings.facts.reading.stated_facts import SentenceFacts

_AFTER_NAMES = frozenset("aged respectively alone himself herself itself themselves jr sr".split())
_ABOUT = frozenset("over about around under".split())
_AFTER_NUMBERS = frozenset("ago old later earlier north south east west".split())
_TEMPORAL = frozenset("in on at since from until till by between after before during around".split())
_PLACING = (" in", " at", " near")
_MADE_OF = (" on", " from", " after")
"""What follows such an object by "by" is who made that: "based on the opera NAME by NAME"."""
_WITHIN = frozenset("in of from at near".split())


def mention(saying: SentenceFacts, items: Sequence[Item], at: int, clause: Clause) -> int:
    """A name, date or number: an object if there is a verb, else what may become the subject.

    Returns where the last item that was read stands.
    """
    item = items[at]
    following = items[at + 1] if at + 1 < len(items) else None
    possessive = read_owner(saying, items, at, clause)
    if possessive is not None:
        return possessive
    if item.kind == "N" and _qualifies(items, at):
        clause.pass_by(replace(item, kind="w"))
        return at
    opens_next = following is not None and following.kind in "Nh" and any(one.kind == "," for one in clause.gap)
    if item.kind == "D" and (opens_next or describes(clause.gap, following)):
        return at
    if item.kind == "D" and not clause.copula:
        saying.time(item, clause)
    opening = opens_kin(saying, items, at, clause)
    is_mentioned = (opening or bool(clause.verbs)) and (
        _read_outer_place(saying, items, at, clause) or _object(saying, item, items, at, clause)
    )
    if not is_mentioned:
        if item.kind == "N":
            read_possessive(saying, item, clause)
        elif item.kind == "D" and clause.gap and clause.gap[-1].kind == "p":
            clause.gap.pop()  # "took place on DATE at NAME"
        clause.pass_by(item)
        return at
    if not clause.spoken:
        clause.direct = item.kind == "N" and all(one.kind != "p" for one in clause.gap)
    clause.spoken, clause.gap = True, []
    return at


def _read_outer_place(saying: SentenceFacts, items: Sequence[Item], at: int, clause: Clause) -> bool:
    """Read "born in A, B" and "in A of B"; return whether it applied.

    States that A lies in B. Of the subject it states at most that B is its country.
    """
    item, gap = items[at], clause.gap
    predicate = clause.predicates[0] if clause.predicates else ""
    if item.kind != "N" or len(gap) != 1 or clause.kin is not None or not predicate.endswith(_PLACING):
        return False
    if gap[0].word != "of" and (gap[0].kind != "," or _is_in_list(items, at) or item.text == clause.last):
        return False
    saying.say(clause.last, "located in", item, clause, 0.8)
    _state_country(saying, item, predicate, clause)
    clause.last = item.text
    return True


def _is_in_list(items: Sequence[Item], at: int) -> bool:
    """Whether "and NAME" ends the row of names that goes on here."""
    while at + 2 < len(items) and items[at + 1].kind == "," and items[at + 2].kind == "N":
        at += 2
    following_kinds = [item.kind for item in items[at + 1 : at + 5] if item.kind not in ",d"]
    return following_kinds[:2] == ["c", "N"]


def cause(saying: SentenceFacts, items: Sequence[Item], at: int, clause: Clause) -> int:
    """Read the words of a cause of death after "of" or "from"; return the place of the last."""
    if clause.verbs != ["died"] or items[at].word not in {"of", "from"}:
        return at
    end = at + 1
    while end < len(items) and items[end].kind in "dwvN-" and end <= at + 5:
        end += 1
    cause_items = [item for item in items[at + 1 : end] if item.kind != "d"]
    if not cause_items or clause.subject is None or clause.denied:
        return at
    text = " ".join(item.text for item in cause_items).replace(" - ", "-")
    saying.add(clause.subject, "cause of death", text, "text", clause, 0.8)
    clause.gap = []
    return end - 1


def _qualifies(items: Sequence[Item], at: int) -> bool:
    """Whether a name only describes what follows: "Welsh poet", "Pixar president NAME", "Oscar nomination"."""
    if items[at].word in ADJECTIVES and at + 1 < len(items) and items[at + 1].kind in "wN-":
        return True
    return at + 1 < len(items) and items[at + 1].kind == "w" and items[at + 1].word not in _AFTER_NAMES


def _object(saying: SentenceFacts, item: Item, items: Sequence[Item], at: int, clause: Clause) -> bool:
    """Say it if the words since the verb make a predicate; whether they did."""
    if clause.denied or clause.subject is None:
        return False
    if starts_kin(clause):
        return relative(saying, item, clause)
    if read_possessive(saying, item, clause):
        clause.predicates = ()
        return True
    if item.kind == "D" and clause.copula and not clause.head:
        saying.time(item, clause)
        return False
    return _number(saying, items, at, clause) if item.kind == "#" else _state_by_predicate(saying, item, clause)


def _state_by_predicate(saying: SentenceFacts, item: Item, clause: Clause) -> bool:
    """Say by the predicate what a name or a date is to the subject; whether there is one."""
    nationality = item.word in ADJECTIVES and item.word not in COUNTRIES
    if nationality or ([one.kind for one in clause.gap] == [","] and is_title(item)):
        return False
    predicates = _predicates(saying, item, clause)
    for predicate in predicates:
        _state(saying, item, predicate, clause)
    if item.kind == "N" and predicates:
        clause.predicates, clause.last = predicates, item.text
    return bool(predicates)


def _state(saying: SentenceFacts, item: Item, predicate: str, clause: Clause) -> None:
    """Say it by its common name, if it has one; a country that it lies in as well."""
    subject = clause.subject
    if subject is None:
        return
    named = clause_words.PREDICATES.get(predicate, predicate)
    confidence = 0.85 if saying.lead else 0.75
    if item.kind == "D":
        if not predicate.startswith("married"):
            saying.say(subject, named.replace("place of", "date of"), item, clause, confidence)
        return
    if named.startswith("date of"):
        return
    saying.say(subject, named, item, clause, confidence)
    _state_country(saying, item, predicate, clause)


def _state_country(saying: SentenceFacts, item: Item, predicate: str, clause: Clause) -> None:
    """State the country of a thing that "is" in it; people are left out."""
    subject = clause.subject
    stands = clause.copula or predicate in clause_words.LOCATION_PHRASES
    inside = stands and predicate.rpartition(" ")[2] in _WITHIN and item.word in COUNTRIES
    if subject is not None and inside and saying.find_subject_kind(subject) != "person":
        saying.say(subject, "country", item, clause, 0.85)


def _number(saying: SentenceFacts, items: Sequence[Item], at: int, clause: Clause) -> bool:
    """A number says of what there are so many ("87 films"), or what the subject's noun amounts to."""
    if clause.spoken or any(one.kind in "wpND" and one.word not in _ABOUT for one in clause.gap):
        return False
    end = at + 1
    while end < len(items) and end <= at + 2 and items[end].kind == "w":
        end += 1
    text = " ".join(one.text for one in items[at:end])
    if items[end - 1].word in _AFTER_NUMBERS:
        return False
    head = clause.head_words()
    if clause.subject is None or not (head or (end > at + 1 and not clause.copula)):
        return False
    for verb in clause.verbs:
        phrase = " ".join([*head, verb]).strip()
        saying.add(clause.subject, phrase, text, "number", clause, 0.75)
    return True


def _predicates(saying: SentenceFacts, item: Item, clause: Clause) -> tuple[str, ...]:
    """Verb and what stands between it and the object; empty if that is too much or says nothing."""
    if clause.predicates and item.kind == "N" and continues(clause.gap, clause.predicates[0]):
        clause.has_list = True
        return clause.predicates
    between = _list_words_between(item, clause)
    if between is None:
        return ()
    if clause.copula:
        return tuple(_copular(saying, item, between, clause))
    head = clause.head_words()
    phrases = [[*head, verb, *between] for verb in clause.verbs if verb]
    return tuple(" ".join(parts) for parts in phrases if len(parts) <= MAX_PREDICATE_WORDS)


def _list_words_between(item: Item, clause: Clause) -> list[str] | None:
    """Nouns and prepositions between verb and object, up to the last preposition; None if it is too far off."""
    gap = [one for one in clause.gap if one.kind not in ".'\"-"]
    last = max((place for place, one in enumerate(gap) if one.kind == "p"), default=-1)
    lead_in, rest_of_gap = gap[: last + 1], gap[last + 1 :]
    if any(one.kind in ",;ND" for one in rest_of_gap) or any(one.word in clause_words.OBJECTS for one in gap):
        return None
    if any(one.kind in ",;" for one in lead_in) and not clause.copula:
        tail = find_items_after_comma(lead_in)
        if tail is None:
            return None
        lead_in = tail
    if item.kind == "D" and not _is_timed(gap, clause):
        return None
    of_object = bool(lead_in) and (
        (clause.spoken and clause.direct)  # what else is predicate_words after "joined NAME" is about that
        or (lead_in[0].word == "of" and bool(clause.predicates))
        or (lead_in[0].word == "by" and any(one.endswith(_MADE_OF) for one in clause.predicates))
        or (clause.copula and any(one.kind == "N" for one in lead_in))
    )
    if of_object:
        return None
    predicate_words = [one.word for one in lead_in if one.kind in "wp"]
    if lead_in and lead_in[0].kind in "d#" and predicate_words[0] == "of":  # "some of", "one of the founders of"
        predicate_words = predicate_words[1:]
        return predicate_words or None
    return predicate_words


def _is_timed(gap: Sequence[Item], clause: Clause) -> bool:
    """Whether a date is the verb's own: at most a place came between ("released in NAME on DATE")."""
    if any(one.kind == "w" or (one.kind == "p" and one.word not in _TEMPORAL) for one in gap):
        return False
    return not clause.spoken or any(one.endswith((" in", " at")) for one in clause.predicates)


def _copular(saying: SentenceFacts, item: Item, between: Sequence[str], clause: Clause) -> Iterator[str]:
    """The predicate after "is": "village in", or what the subject's noun says ("the director was")."""
    head = clause.head_words()
    predicate_words = list(between)
    if head:
        predicate_words = [*head, *between] if between else [find_kin(head) or " ".join(head)]
    elif not between:
        bare = item.kind == "N" and not clause.spoken and all(one.kind in "da" for one in clause.gap)
        predicate_words = ["is"] if bare else []
    else:
        first = next(place for place, word in enumerate(between) if word in clause_words.PREPOSITIONS)
        predicate_words = predicate_words[max(0, first - 1) :]
        if (
            first
            and predicate_words[0] in clause_words.PLACES
            and predicate_words[-1] in {"in", "near", "within", "on", "at"}
        ):
            predicate_words = ["located", "in" if predicate_words[-1] == "within" else predicate_words[-1]]
        elif not first and len(predicate_words) == 1:  # a second preposition: "a tributary of NAME in NAME"
            person = clause.subject is not None and saying.find_subject_kind(clause.subject) == "person"
            predicate_words = ["located", "in"] if predicate_words == ["in"] and not person else []
    if predicate_words and len(predicate_words) <= MAX_PREDICATE_WORDS:
        yield " ".join(predicate_words)
