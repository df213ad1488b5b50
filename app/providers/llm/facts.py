"""Facts of a passage by the language model: its names, then what it says of them; by rules where that fails."""

from collections.abc import Sequence

import structlog

from app.core.temporal import find_time_expressions
from app.core.triples import Kind, Triple
from app.errors import LlmError
from app.providers.language import SentenceAnalysis, extract_facts
from app.providers.llm.client import Llm

CONFIDENCE = 0.9
"""Of a fact that the model gave; the model's own word on how sure it is would be no measurement."""

_log = structlog.get_logger(__name__)


def extract_facts_with(llm: Llm, title: str | None, sentences: Sequence[SentenceAnalysis]) -> list[Triple]:
    """What the sentences of one passage say, as the model reads them, in the order of the text.

    Two requests. Names are those that the model lists, and the title; a fact has both of its ends among them. Where
    the endpoint fails or twice replies with something else, the rules read the passage, which the log says.

    Args:
        llm: the endpoint.
        title: of the passage; None where it has none.
        sentences: all of its sentences, in order.
    """
    try:
        entities = llm.extract_entities(title, [sentence.text for sentence in sentences])
        relations = llm.extract_relations(
            title, [(ordinal, sentence.text) for ordinal, sentence in enumerate(sentences)], entities
        )
    except LlmError as error:
        _log.warning("facts_by_rules_instead", reason=str(error))
        return extract_facts(title, sentences)
    triples = []
    for relation in relations:
        if relation.sentence is not None:
            ordinal = relation.sentence
            start, end = _days(sentences[ordinal].text, relation.object)
            kind = _kind(relation.object)
            days = (None, None) if kind == "date" else (start, end)
            triples.append(
                Triple(relation.subject, relation.relation, relation.object, ordinal, kind, *days, CONFIDENCE)
            )
    return sorted(triples, key=lambda triple: triple.sentence)


def _kind(thing: str) -> Kind:
    """What an object is: a date or a number if nothing else is in it."""
    found = find_time_expressions(thing)
    if found and found[0].text == thing:
        return "date"
    return "number" if thing[:1].isdigit() and thing.replace(",", "").replace(".", "").isdigit() else "entity"


def _days(sentence: str, thing: str) -> tuple[int | None, int | None]:
    """The days that the sentence speaks of, where it names one time: of more nobody knows which is this fact's."""
    found = [expression for expression in find_time_expressions(sentence) if expression.text not in thing]
    if len(found) != 1:
        return None, None
    start, end = found[0].start, found[0].end
    return (
        start.toordinal() if start is not None else None,
        end.toordinal() if end is not None else None,
    )
