"""Facts of sentences such as "Ada was born in Rome.", for tests that need some."""

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
