"""Relatives, and names after "his" or "NAME's"."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, pairwise

from engram.wings.facts.reading import clause_words
from engram.wings.facts.reading.clause import Clause, find_kin
from engram.wings.facts.reading.sentence_items import Item
from engram.wings.facts.reading.stated_facts import SentenceFacts

MOST_RELATIVES = 4
"""Relatives that one "of" names; more are a list of somebody else's."""
MOST_NOUNS = 3
"""Nouns between the owner and the name."""


def opens_kin(saying: SentenceFacts, items: Sequence[Item], at: int, clause: Clause) -> bool:
    """ "The son of NAME and NAME, he ...": said of the topic before there is any verb.

    "The son of NAME was ..." is about the son, whoever that is.
    """
    if clause.verbs:
        return False
    if clause.kin is not None:
        return True
    opening = saying.number == 0 and all(one.kind in "dwapo" for one in clause.gap)
    if not opening or find_kin([one.word for one in clause.gap]) is None:
        return False
    following = next((one.kind for one in islice(items, at + 1, None) if one.kind in ",;.bxv"), ".")
    if following in "bxv":
        return False
    clause.subject = saying.topic.name
    return starts_kin(clause)


def starts_kin(clause: Clause) -> bool:
    """Set what the names that follow are, where the words before are "son of" or "born to"; whether they are."""
    if clause.kin is not None:
        return True
    gap = clause.gap
    if clause.spoken and gap and gap[0].kind == "w":
        return False  # "NAME wife of NAME": said of the first name
    stated = not clause.verbs or clause.copula or (bool(gap) and gap[0].word == "as")
    pairs = pairwise(gap) if stated else ()
    for one, following in pairs:
        relation = clause_words.KIN.get(one.word) or clause_words.KIN_PLURALS.get(one.word)
        if one.kind == "w" and relation in clause_words.INVERSE and following.word == "of":
            clause.kin = clause_words.INVERSE[relation]
            break
    if clause.verbs == ["born"] and any(one.word == "to" for one in gap):
        clause.kin = "parent"
    if clause.copula and any(one.word == "parents" for one in clause.head):
        clause.kin = "parent"
    clause.relatives = 0
    return clause.kin is not None


def relative(saying: SentenceFacts, item: Item, clause: Clause) -> bool:
    """Say what a name that follows "son of" and the like is; whether it is a relative."""
    if item.kind != "N" or clause.subject is None:
        clause.kin = clause.kin if item.kind == "D" else None
        return False
    if item.text[0].isdigit():  # "6th Duke of": another title of the one before
        return False
    start = max((place + 1 for place, one in enumerate(clause.gap) if one.word in {"of", "to"}), default=0)
    before = {one.word for one in clause.gap[start:]}
    if not clause.relatives and clause.gap[-1:] and clause.gap[-1].kind == "," and "wife" not in before:
        clause.kin = None
        return False
    joined = "wife" in before or (
        any(one.kind == "c" for one in clause.gap) and all(one.kind not in "pv" for one in clause.gap)
    )
    if clause.relatives and not joined:
        clause.kin = None
        return False
    relation = _parent(before | {item.word.partition(" ")[0]}, clause) if clause.kin == "parent" else clause.kin
    clause.relatives += 1
    if relation is None or clause.relatives > MOST_RELATIVES:
        return False
    # Not resolved: a father of the topic's name is not the topic.
    saying.add(clause.subject, relation, item.text, "entity", clause, 0.8)
    return True


def _parent(words_said: set[str], clause: Clause) -> str | None:
    """The father or the mother, by what the name is called by, else by the order."""
    if words_said & clause_words.FEMALE:
        return "mother"
    if words_said & clause_words.MALE or clause.relatives == 0:
        return "father"
    return "mother" if clause.relatives == 1 else None


def read_possessive(saying: SentenceFacts, item: Item, clause: Clause) -> bool:
    """ "his wife NAME": a noun between a possessive and a name says what the name is to the owner."""
    gap = clause.gap
    place = next((place for place in range(len(gap) - 1, -1, -1) if gap[place].kind == "o"), None)
    if place is None or item.kind != "N" or clause.denied:
        return False
    between = gap[place + 1 :]
    nouns = [one.word for one in between if one.kind == "w"]
    if not 0 < len(nouns) <= MOST_NOUNS or any(one.kind not in "wa,-#" for one in between):
        return False
    owner, kin = saying.resolve_pronoun(gap[place]), find_kin(nouns)
    has_comma = any(one.kind == "," for one in between)
    if owner is None or (has_comma and (kin is None or between[-1].kind != ",")):
        return False
    saying.say(owner, kin or " ".join(nouns), item, clause, 0.75 if kin else 0.65)
    return True


def read_owner(saying: SentenceFacts, items: Sequence[Item], at: int, clause: Clause) -> int | None:
    """ "NAME's wife NAME": where the possessive ends; None if there is none."""
    if at + 2 >= len(items) or items[at].kind != "N" or items[at + 1].kind != "'" or items[at + 2].word != "s":
        return None
    end = at + 3
    while end < len(items) and end <= at + 3 + MOST_NOUNS and items[end].kind == "w":
        end += 1
    nouns = [item.word for item in items[at + 3 : end]]
    if 0 < len(nouns) <= MOST_NOUNS and end < len(items) and items[end].kind == "N" and not clause.denied:
        predicate = find_kin(nouns) or " ".join(nouns)
        saying.say(saying.resolve_name(items[at].text), predicate, items[end], clause, 0.7)
    clause.pass_by(replace(items[at], kind="w"))
    return at + 2
