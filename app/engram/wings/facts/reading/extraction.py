"""Facts of a page, a passage about its title: its topic first, then sentence by sentence."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from engram.providers.language.entity_names import normalise_entity, title_entities
from engram.providers.language.language_protocol import SentenceAnalysis
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.reading import clause_words
from engram.wings.facts.reading.brackets import read_bracket_facts, split_brackets
from engram.wings.facts.reading.name_types import is_heading, is_organisation
from engram.wings.facts.reading.sentence_items import Item, Names, drop_qualifier, name_words, read
from engram.wings.facts.reading.sentence_reader import read_sentence
from engram.wings.facts.reading.stated_facts import SentenceFacts, Topic, find_kind, heads

MAX_OBJECT_CHARACTERS = 200
FACTS_PER_SENTENCE = 100
"""What says more is a list; ordinary sentences say up to 20 things."""
_LIFE = re.compile(
    r"[^()]{0,150}\(\s*(?:[^()]{0,80}\bborn\b|[^()]{0,20}[0-9]{3,4}[^()]{0,60}[–-][^()]{0,20}[0-9]{3,4})"
)
_DEFINED = re.compile(r"[A-Z][^().]{0,80}\([^()]{0,200}[0-9]{4}[^()]{0,80}\)")
"""A name with dates in brackets, with which pages of an encyclopedia begin."""
DEFINITION_CHARACTERS = 150
"""Characters within which the brackets of a definition open."""
MOST_NAME_WORDS = 3
"""Words of a title from which one that it shares with the first sentence's subject is not enough."""
_MATTER = re.compile(r"^[A-Z][a-z]+ (?:about|for|from|on|to|with) ")
_OPENING = 1_000  # characters of a sentence in which pronouns are looked for
READ_CHARACTERS = 5_000
"""Characters of a sentence that are read for facts: what is longer is a list, and clauses look back and ahead."""
_DENIED = re.compile(
    r"""\?["'”’)\s]*$
    |^(?:it|there)\ (?:is|was)\ (?:not\ true|not\ the\ case|no\ truth|wrong|false|untrue|incorrect)\b
    |\bthat\ is\ (?:not\ true|wrong|untrue|false)\b""",
    re.VERBOSE,
)
_PERSONAL = re.compile(r"(?:^|[.,;]\s+|\band\s+)(?:He|She|His|Her|he|she)\b")


def extract_facts(title: str | None, sentences: Sequence[SentenceAnalysis]) -> list[Triple]:
    """Read what a page states about its title, in the order of the text; no fact twice in a sentence.

    A page is a passage about its title, as in an encyclopedia. Other passages give no facts. The reading works on
    what any pipeline gives, sentences and the names in them, and takes time linear in the text.

    Args:
        title: of the passage.
        sentences: all of its sentences, in order.
    """
    title = title.strip() if title and title.strip() else None
    sentences = [_cut_sentence(sentence) for sentence in sentences]
    if title is None or not sentences or not _is_subject(title, sentences[0]):
        return []
    topic: Topic | None = None
    extracted: list[Triple] = []
    lead = True
    for ordinal, sentence in enumerate(sentences):
        names = Names([*sentence.entities, *title_entities(title)])
        items, brackets = split_brackets(read(sentence.text, names), sentence.text)
        if topic is None or lead:
            topic = _topic(title, items, sentences)
        if not _is_denied(sentence.text):
            speaks = any(item.kind in "bv" for item in items)
            stated = _alias(topic, items, ordinal) if lead and speaks else []
            stated += read_sentence(SentenceFacts(topic, ordinal, lead=lead), items)
            verb = next((item.start for item in items if item.kind in "bx"), len(sentence.text))
            for place, bracket in enumerate(brackets):
                own = lead and (place == 0 or bracket.start < verb)
                stated += read_bracket_facts(bracket, topic, names, ordinal, own=own)
            lead = lead and not speaks
            extracted += _select_distinct(stated)
    return extracted


def _is_denied(text: str) -> bool:
    """Return whether a sentence is a question, or says that something is wrong."""
    return _DENIED.search(" ".join(text.casefold().split())) is not None


def _cut_sentence(sentence: SentenceAnalysis) -> SentenceAnalysis:
    """Return the sentence without the words after its first ``READ_CHARACTERS``."""
    if len(sentence.text) <= READ_CHARACTERS:
        return sentence
    text = sentence.text[:READ_CHARACTERS]
    return replace(sentence, text=text[: text.rfind(" ")] if " " in text else text)


def _is_subject(title: str, first: SentenceAnalysis) -> bool:  # noqa: PLR0911 - a case each
    """Return whether a passage is about its title: its first sentence begins with it, or has no other subject."""
    bare = drop_qualifier(title)
    heading = is_heading(bare)
    items, _ = split_brackets(read(first.text, Names([*first.entities, *title_entities(title)])), first.text)
    verb = next((place for place, item in enumerate(items) if item.kind in "bxv"), len(items))
    opening = first.text[: items[verb].start] if verb < len(items) else first.text
    whole, text = _letters(bare), _letters(first.text)
    if is_organisation(bare) and not _defines(first.text, items):
        return False
    if not heading and whole.startswith(_letters(opening)) and len(_letters(opening)) > 1:
        return True
    if heading:
        begins = text.removeprefix("the").startswith(whole.removeprefix("the"))
        following = items[verb + 1].word if verb + 1 < len(items) else ""
        begins = begins and (following in {"a", "an"} or "(" in opening)
        return begins or (whole in text and len(bare.split()) >= MOST_NAME_WORDS)
    if " " not in bare and not _is_written(bare, first.text):
        return _DEFINED.match(first.text) is not None
    subjects = [name_words(item.text) for item in items[:verb] if item.kind == "N"]
    if _is_written(bare.partition(",")[0], opening) or (
        not subjects and (" " in bare or _is_written(bare, first.text))
    ):
        return True
    own = name_words(title)
    shared = max((len(words_ & own) for words_ in subjects), default=0)
    if shared and (2 * shared >= len(own) or len(own) < MOST_NAME_WORDS) and not _names_a_matter(bare):
        return True
    return whole in text or _DEFINED.match(first.text) is not None


def _defines(text: str, items: Sequence[Item]) -> bool:
    """Return whether a first sentence defines what it is about: "NAME (1920-1990) was a painter"."""
    if "(" in text[:DEFINITION_CHARACTERS]:
        return True
    return any(
        item.kind == "b" and (following.kind in "dN#waA" or following.word == "born")
        for item, following in pairwise(items)
    )


def _is_written(name: str, text: str) -> bool:
    """Return whether a text has a name with its capital letters; one word alone also needs a place for a name."""
    if " " in name:
        return _letters(name) in _letters(text)
    match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)(?!\s+(?:at|for|from|on|to|with)\b)", text)
    return match is not None


def _names_a_matter(title: str) -> bool:
    """Return whether a title has the form "Reference for NAME": it names a matter and not the name's bearer."""
    return _MATTER.search(title) is not None


def _letters(text: str) -> str:
    """Letters and digits alone, case-folded: what two ways to write a name share."""
    return "".join(filter(str.isalnum, text.casefold()))


def _topic(title: str, items: Sequence[Item], sentences: Sequence[SentenceAnalysis]) -> Topic:
    """Return the topic of a passage, by its first sentence and the pronouns of the others."""
    verb = next((place for place, item in enumerate(items) if item.kind in "bx"), None)
    end = len(items) if verb is None else verb + 1
    while end < len(items) and items[end].kind not in "pvrR;(":
        end += 1
    phrase = items[len(items) if verb is None else verb + 1 : end]
    nouns = [item.word for item in phrase if item.kind == "w"]
    named = [item.word.rpartition(" ")[2] for item in phrase if item.kind == "N"]  # "the 13th Chief Justice"
    kind = find_kind(heads(phrase) or named)
    if kind == "thing":
        lived = _LIFE.match(sentences[0].text) is not None and not set(nouns) & clause_words.GROUPS
        pronouns = any(_PERSONAL.search(sentence.text[:_OPENING]) for sentence in sentences[:10])
        kind = "person" if lived or (pronouns and not nouns) else kind
    known = name_words(title)
    # The lead may call it otherwise ("Edward James Solomon" for "Ed Solomon"): a name that shares a word with it.
    alias = next((name_words(item.text) for item in items[:2] if item.kind == "N"), frozenset[str]())
    generic = frozenset(nouns) - {"year"}
    return Topic(
        title, known | (alias if alias & known else frozenset()), kind, generic | _list_generic_nouns(kind)
    )


def _alias(topic: Topic, items: Sequence[Item], ordinal: int) -> list[Triple]:
    """Return the topic's other name in the lead: the name before the verb, if it shares a word with the title."""
    first = next((place for place, item in enumerate(items[:3]) if item.kind not in 'd"'), None)
    if first is None or items[first].kind != "N" or first + 1 == len(items):
        return []
    name = items[first].text
    own, title = name_words(name), name_words(topic.name)
    # A part of the title means the topic anyway, and may be another thing's name: "Metallica" is no list of songs.
    if not own & title or own <= title or items[first + 1].kind not in ',bx"':
        return []
    return [Triple(topic.name, "also known as", name, ordinal, "entity", None, None, 0.9)]


def _list_generic_nouns(kind: str) -> frozenset[str]:
    return {"work": clause_words.WORKS, "place": clause_words.PLACES}.get(kind, frozenset())


def _select_distinct(triples: Sequence[Triple]) -> Iterator[Triple]:
    """The facts of one sentence, each once, bounded in number and size."""
    seen: set[tuple[str, str, str]] = set()
    for triple in triples:
        key = (normalise_entity(triple.subject), triple.predicate, normalise_entity(triple.object))
        if key in seen or not all(key) or len(triple.object) > MAX_OBJECT_CHARACTERS or key[0] == key[2]:
            continue
        seen.add(key)
        yield triple
        if len(seen) == FACTS_PER_SENTENCE:
            return
