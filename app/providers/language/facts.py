"""Facts by rule: what the sentences of a passage say of its title and of the names in them."""

import re
from collections.abc import Iterator, Sequence

from app.core.temporal import find_time_expressions
from app.core.triples import Triple
from app.providers.language.base import SentenceAnalysis
from app.providers.language.names import normalise_entity

_LIFE = re.compile(r"\(\s*(?P<birth>[^()–-]{3,60}?)\s*[–-]\s*(?P<death>[^()–-]{3,60}?)\s*\)")


def extract_facts(title: str | None, sentences: Sequence[SentenceAnalysis]) -> list[Triple]:
    """What the sentences of one passage say, in the order of the text; no fact twice in a sentence.

    Works on what any pipeline gives, sentences and the names in them, and takes time linear in the text. A passage
    without a title says things only of the names in it.

    Args:
        title: of the passage, which its first sentence is about and its pronouns stand for.
        sentences: all of its sentences, in order.
    """
    found: dict[tuple[str, str, str, int], Triple] = {}
    for ordinal, sentence in enumerate(sentences):
        for triple in _facts(title, ordinal, sentence):
            key = (
                normalise_entity(triple.subject),
                triple.predicate,
                normalise_entity(triple.object),
                ordinal,
            )
            found.setdefault(key, triple)
    return list(found.values())


def _facts(title: str | None, ordinal: int, sentence: SentenceAnalysis) -> Iterator[Triple]:
    life = _LIFE.search(sentence.text) if title and ordinal == 0 else None
    if title and life is not None:
        for part, predicate in (("birth", "date of birth"), ("death", "date of death")):
            for expression in find_time_expressions(life[part])[:1]:
                yield Triple(title, predicate, expression.text, ordinal, "date", None, None, 0.9)
