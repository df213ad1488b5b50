"""Facts of a passage: its topic first, then sentence by sentence."""

import re
from collections.abc import Iterator, Sequence

from engram.core.knowledge.triples import Triple
from engram.providers.language.entity_names import normalise_entity, title_entities
from engram.providers.language.facts import clause_words
from engram.providers.language.facts.brackets import facts_in, without_brackets
from engram.providers.language.facts.sentence_items import Item, Names, name_words, read
from engram.providers.language.facts.sentence_reader import read_sentence
from engram.providers.language.facts.stated_facts import SentenceFacts, Topic, heads, kind_of
from engram.providers.language.language_protocol import SentenceAnalysis

MAX_OBJECT_CHARACTERS = 200
FACTS_PER_SENTENCE = 100
"""What says more is a list; ordinary sentences say up to 20 things."""
_LIFE = re.compile(
    r"[^()]{0,150}\(\s*(?:[^()]{0,80}\bborn\b|[^()]{0,20}[0-9]{3,4}[^()]{0,60}[–-][^()]{0,20}[0-9]{3,4})"
)
_OPENING = 1_000  # characters of a sentence in which pronouns are looked for
_PERSONAL = re.compile(r"(?:^|[.,;]\s+|\band\s+)(?:He|She|His|Her|he|she)\b")


def extract_facts(title: str | None, sentences: Sequence[SentenceAnalysis]) -> list[Triple]:
    """What the sentences of one passage say, in the order of the text; no fact twice in a sentence.

    Works on what any pipeline gives, sentences and the names in them, and takes time linear in the text. A passage
    without a title says things only of the names in it.

    Args:
        title: of the passage, which its first sentence is about and its pronouns stand for.
        sentences: all of its sentences, in order.
    """
    title = title.strip() if title and title.strip() else None
    topic: Topic | None = None
    found: list[Triple] = []
    lead = True
    for ordinal, sentence in enumerate(sentences):
        text = sentence.text
        names = Names([*sentence.entities, *title_entities(title)])
        everything = read(text, names)
        items, brackets = without_brackets(everything, text)
        speaks = any(item.kind in "bv" for item in items)
        if title is not None and lead:
            topic = _topic(title, items, sentences)
        said = _alias(topic, items, ordinal) if lead and speaks else []
        said += read_sentence(SentenceFacts(topic, ordinal, lead=lead), items)
        if topic is not None:
            verb = next((item.start for item in items if item.kind in "bx"), len(text))
            for place, bracket in enumerate(brackets):
                own = lead and (place == 0 or bracket.start < verb)
                said += facts_in(bracket, topic, names, ordinal, own=own)
        found += _distinct(said)
        lead = lead and not speaks
    return found


def _topic(title: str, items: Sequence[Item], sentences: Sequence[SentenceAnalysis]) -> Topic:
    """What the passage is about, by its first sentence and by the pronouns of the others."""
    verb = next((place for place, item in enumerate(items) if item.kind in "bx"), None)
    end = len(items) if verb is None else verb + 1
    while end < len(items) and items[end].kind not in "pvrR;(":
        end += 1
    phrase = items[len(items) if verb is None else verb + 1 : end]
    nouns = [item.word for item in phrase if item.kind == "w"]
    named = [item.word.rpartition(" ")[2] for item in phrase if item.kind == "N"]  # "the 13th Chief Justice"
    kind = kind_of(heads(phrase) or named)
    if kind == "thing":
        lived = _LIFE.match(sentences[0].text) is not None and not set(nouns) & clause_words.GROUPS
        pronouns = any(_PERSONAL.search(sentence.text[:_OPENING]) for sentence in sentences[:10])
        kind = "person" if lived or (pronouns and not nouns) else kind
    known = name_words(title)
    # The lead may call it otherwise ("Edward James Solomon" for "Ed Solomon"): a name that shares a word with it.
    alias = next((name_words(item.text) for item in items[:2] if item.kind == "N"), frozenset[str]())
    generic = frozenset(nouns) - {"year"}
    return Topic(title, known | (alias if alias & known else frozenset()), kind, generic | _generic(kind))


def _alias(topic: Topic | None, items: Sequence[Item], ordinal: int) -> list[Triple]:
    """What the lead calls the topic, where that is not its title: the name before the verb, if it shares a word."""
    first = next((place for place, item in enumerate(items[:3]) if item.kind not in 'd"'), None)
    if topic is None or first is None or items[first].kind != "N" or first + 1 == len(items):
        return []
    name = items[first].text
    own, title = name_words(name), name_words(topic.name)
    # A part of the title means the topic anyway, and may be another thing's name: "Metallica" is no list of songs.
    if not own & title or own <= title or items[first + 1].kind not in ',bx"':
        return []
    return [Triple(topic.name, "also known as", name, ordinal, "entity", None, None, 0.9)]


def _generic(kind: str) -> frozenset[str]:
    return {"work": clause_words.WORKS, "place": clause_words.PLACES}.get(kind, frozenset())


def _distinct(said: Sequence[Triple]) -> Iterator[Triple]:
    """The facts of one sentence, each once, bounded in number and size."""
    seen: set[tuple[str, str, str]] = set()
    for triple in said:
        key = (normalise_entity(triple.subject), triple.predicate, normalise_entity(triple.object))
        if key in seen or not all(key) or len(triple.object) > MAX_OBJECT_CHARACTERS or key[0] == key[2]:
            continue
        seen.add(key)
        yield triple
        if len(seen) == FACTS_PER_SENTENCE:
            return
