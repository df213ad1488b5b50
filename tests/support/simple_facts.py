"""Facts of sentences such as "Ada was born in Rome.", for tests that need some."""

import json
import re
from collections.abc import Iterable, Sequence

from engram.providers.language import SentenceAnalysis
from engram.wings.facts.core.triples import Triple

PREDICATES = {
    "was born in": "place of birth",
    "died in": "place of death",
    "married": "spouse",
    "was performed by": "performed by",
    "was released in": "released",
    "flows into": "flows into",
    "lies on": "lies on",
}
_SENTENCE = re.compile(rf"(?:The )?(.+?) ({'|'.join(PREDICATES)}) (?:the )?(.+?)(?: in (\d{{4}}))?\.")


def read_triples(title: str | None, texts: Iterable[str]) -> list[Triple]:
    """Read one fact of each sentence that has a known verb; "She" and the like stand for the title."""
    triples = []
    for ordinal, text in enumerate(texts):
        if match := _SENTENCE.fullmatch(text):
            subject = title if title and match[1] in {"She", "He", "It"} else match[1]
            triples.append(Triple(subject, PREDICATES[match[2]], match[3], ordinal, "entity", None, None, 1.0))
    return triples


def extract_triples(title: str | None, sentences: Sequence[SentenceAnalysis]) -> list[Triple]:
    """Read facts of analysed sentences."""
    return read_triples(title, [sentence.text for sentence in sentences])


def read_part(prompt: str, tag: str) -> str:
    """Read what stands between the lines of a tag; nothing if there is none."""
    found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", prompt, re.DOTALL)
    return "" if found is None else found[1]


def asks_for_facts(system: str) -> bool:
    """Whether these instructions ask a model for the names or the facts of a text."""
    return '"entities"' in system or '"sentence"' in system


def reply_with_facts(prompt: str) -> str:
    """Reply to a request for the names and the facts of a text."""
    sentences = re.findall(r"^\[\d+\] (.*)$", read_part(prompt, "evidence"), re.MULTILINE)
    triples = read_triples(read_part(prompt, "title"), sentences)
    facts = [
        {"subject": one.subject, "relation": one.predicate, "object": one.object, "sentence": one.sentence + 1}
        for one in triples
    ]
    return json.dumps({"entities": [end for one in triples for end in (one.subject, one.object)], "facts": facts})
