"""Phrases after "is a": a year, a nationality, a type."""

from collections.abc import Sequence
from dataclasses import replace

from engram.wings.facts.reading import clause_words
from engram.wings.facts.reading.clause import PARTS, Clause
from engram.wings.facts.reading.countries import ADJECTIVES, COUNTRIES
from engram.wings.facts.reading.sentence_items import Item
from engram.wings.facts.reading.stated_facts import SentenceFacts, find_kind

_AFTER_ADJECTIVES = frozenset("born language based style".split())
"""Of "Danish-born painter" and "Tamil language film" the last word is what it is."""


def read_phrase(saying: SentenceFacts, items: Sequence[Item], at: int, clause: Clause) -> int:
    """Read the noun phrase after "is", and the nouns that follow in a list; where the reading goes on.

    A phrase that ends with a name is left alone: the name is an object.
    """
    subject, first = clause.subject, at
    while at < len(items) and items[at].kind in "dwaND#-oc'\"" and not _ends(items, at, first):
        at += 1
    phrase = items[first:at]
    stated = phrase and any(item.kind == "w" for item in phrase) and phrase[0].kind != "o"
    if subject is None or clause.denied or clause.head or not stated or phrase[-1].kind in "ND#o":
        return first
    following = items[at] if at < len(items) else None
    _modifiers(saying, phrase, clause, subject)
    stated = any(item.kind == "d" or item.word in ADJECTIVES for item in phrase) or phrase[0].kind == "D"
    if stated and (following is None or following.word != "of"):
        named = following is not None and following.kind == "N"  # "a medieval NAME"
        _types(saying, phrase[: _find_last_article(phrase)] if named else phrase, clause, subject)
    for item in phrase:
        clause.pass_by(replace(item, kind="w") if item.kind == "N" else item)
    return at


def _ends(items: Sequence[Item], at: int, first: int) -> bool:
    """Whether the phrase ends here: at a name no noun of the phrase follows, at an "and" neither."""
    item = items[at]
    following = items[at + 1] if at + 1 < len(items) else None
    kind = following.kind if following is not None else "."
    if item.kind == "c":
        adjective = following is not None and following.word in ADJECTIVES
        return at == first or not (kind == "w" or adjective)
    return item.kind in "ND#" and kind not in 'wND#-"ca' and item.word not in ADJECTIVES


def _modifiers(saying: SentenceFacts, phrase: Sequence[Item], clause: Clause, subject: str) -> None:
    """State the modifiers before the noun: a year, a nationality, a name."""
    kind = saying.find_subject_kind(subject, phrase)
    noun = next(item.word for item in reversed(phrase) if item.kind == "w")
    national = {"person": "citizenship", "place": "country"}.get(kind, "country of origin")
    for place, item in enumerate(phrase):
        following = phrase[place + 1] if place + 1 < len(phrase) else None
        if item.kind == "D" and kind == "work":
            saying.say(subject, "release date", item, clause, 0.9)
        elif item.kind == "N" and (item.word in ADJECTIVES or item.word in COUNTRIES):
            if following is None or following.kind != "-":
                saying.say(subject, national, item, clause, 0.9)
            elif place + 2 < len(phrase) and phrase[place + 2].word == "born":
                saying.say(subject, "country of birth", item, clause, 0.85)
        elif item.kind == "N" and following is not None and following.kind == "w":
            parts = [part for part in PARTS.split(item.text) if part.casefold() in ADJECTIVES]
            for part in parts:
                saying.say(subject, national, replace(item, text=part), clause, 0.8)
            if not parts:
                saying.say(subject, f"{noun} of", item, clause, 0.7)


def _types(saying: SentenceFacts, phrase: Sequence[Item], clause: Clause, subject: str) -> None:
    """State the types that the nouns name, each of a list."""
    person = saying.find_subject_kind(subject, phrase) == "person"
    part: list[Item] = []
    for item in [*phrase, None]:
        if item is None or item.kind == "c":
            # Of "blues and folk pianist" and "film and television director" the first is no thing that somebody is.
            last = item is None or not person or find_kind([part[-1].word] if part else ()) == "person"
            if part and last and _is_noun(part[-1].word):
                text = " ".join(one.text for one in part).replace(" - ", "-")
                saying.add(subject, "is a", text, "text", clause, 0.9)
            part = []
        elif item.kind in "w-" and (part or (item.kind == "w" and item.word not in _AFTER_ADJECTIVES)):
            part.append(item)
        elif item.kind in "NdD#":
            part = []


def _is_noun(word: str) -> bool:
    """Whether a word that ends a phrase can say what something is: no number, participle or mere rank."""
    return word.isalpha() and not word.endswith(("ed", "est")) and word not in clause_words.RANKS


def _find_last_article(phrase: Sequence[Item]) -> int:
    return max((place for place, item in enumerate(phrase) if item.kind in "dc"), default=0)
