"""Facts by the language model: those of a passage, and what a correction in words changes of others."""

from collections.abc import Sequence

from engram.core.text.temporal import find_time_expressions
from engram.core.text.words import words
from engram.providers.language import SentenceAnalysis
from engram.providers.llm import prompts, replies
from engram.providers.llm.llm_client import Llm
from engram.providers.llm.prompts import MAX_EVIDENCE_CHARACTERS, quote
from engram.wings.facts.core.triples import Kind, Triple
from engram.wings.facts.llm import fact_prompts, fact_replies
from engram.wings.facts.llm.fact_replies import FactCorrection, Relation

CONFIDENCE = 0.9
"""Of a fact that the model gave; the model's own word on how sure it is would be no measurement."""
_NUMBERED = len("[1000] \n")


def facts_by_model(
    llm: Llm, title: str | None, sentences: Sequence[SentenceAnalysis], first: int = 0
) -> list[Triple]:
    """Extract facts by the model alone, in two requests: for the names, then for the facts about them.

    Names are those that the model lists and the text has, and the title; a fact has both of its ends among them. It
    counts if its sentence names one of them, and the text up to there the other.

    Args:
        llm: the endpoint.
        title: of the passage; None where it has none.
        sentences: those of it that are to be read, as many as one request holds (``pieces``).
        first: place of the first of them in the passage.

    Raises:
        LlmError: the endpoint failed, or twice replied with something else.
    """
    entities = extract_entities(llm, title, [sentence.text for sentence in sentences])
    relations = extract_relations(llm, title, [(at, one.text) for at, one in enumerate(sentences)], entities)
    texts = [sentence.text for sentence in sentences]
    triples = [
        convert_relation(relation, texts[relation.sentence], first + relation.sentence)
        for relation in relations
        if relation.sentence is not None and _is_borne(relation, title, texts, relation.sentence)
    ]
    return sorted(triples, key=lambda triple: triple.sentence)


def extract_entities(llm: Llm, title: str | None, sentences: Sequence[str]) -> list[str]:
    """The names that a text says something of, its title first if it has one; each once."""
    if not sentences:
        return []
    evidence = prompts.number_sentences(enumerate(sentences))
    messages = fact_prompts.entities(title, evidence)
    source = " ".join([title or "", *sentences])
    entities = llm.ask(
        "entities",
        messages,
        lambda reply: fact_replies.read_entities(reply, source),
        fact_replies.EntitiesReply,
    )
    return replies.select_distinct([*([title.strip()] if title else []), *entities])


def extract_relations(
    llm: Llm, title: str | None, sentences: Sequence[tuple[int, str]], entities: Sequence[str]
) -> list[Relation]:
    """Extract the relations between the entities from sentences with ids."""
    if not sentences or len(entities) < 2:
        return []
    evidence = prompts.number_sentences(sentences)
    return llm.ask(
        "relations",
        fact_prompts.relations(title, evidence, entities),
        lambda reply: fact_replies.read_relations(reply, entities, evidence.ids),
        fact_replies.RelationsReply,
    )


def maintain_facts(llm: Llm, facts: Sequence[tuple[str, str, str]], correction: str) -> FactCorrection:
    """Read the changes that a correction in words makes to facts."""
    if not correction.strip():
        return FactCorrection((), ())
    lines = [(place, " | ".join(fact)) for place, fact in enumerate(facts)]
    evidence = prompts.number_sentences(lines)
    return llm.ask(
        "maintenance",
        fact_prompts.maintenance(evidence, correction),
        lambda reply: fact_replies.read_maintenance(reply, facts[: len(evidence.ids)], correction),
        fact_replies.MaintenanceReply,
    )


def pieces(sentences: Sequence[SentenceAnalysis]) -> list[tuple[int, Sequence[SentenceAnalysis]]]:
    """A long passage in pieces that one request holds, each with the place of its first sentence."""
    finished: list[tuple[int, Sequence[SentenceAnalysis]]] = []
    first = room = 0
    for at, sentence in enumerate(sentences):
        room -= len(quote(sentence.text)) + _NUMBERED
        if room < 0:
            if at > first:
                finished.append((first, sentences[first:at]))
            first, room = at, MAX_EVIDENCE_CHARACTERS - len(quote(sentence.text)) - _NUMBERED
    return [*finished, (first, sentences[first:])] if sentences else []


def convert_relation(relation: Relation, sentence: str, ordinal: int) -> Triple:
    """A relation as a fact, with the days that the sentence which says it speaks of."""
    kind = _kind(relation.object)
    days = (None, None) if kind == "date" else _days(sentence, relation.object)
    return Triple(relation.subject, relation.relation, relation.object, ordinal, kind, *days, CONFIDENCE)


def _is_borne(relation: Relation, title: str | None, texts: Sequence[str], place: int) -> bool:
    """Tell whether a sentence names one end of a relation, and the text up to it the other: "she" may be either."""
    here, so_far = set(words(texts[place])), set(words(" ".join([title or "", *texts[: place + 1]])))
    ends = [set(words(relation.subject)), set(words(relation.object))]
    return any(end <= here for end in ends) and all(end <= so_far for end in ends)


def _kind(name: str) -> Kind:
    """Classify an object: a date or a number if it has nothing else."""
    expressions = find_time_expressions(name)
    if expressions and expressions[0].text == name:
        return "date"
    return "number" if name[:1].isdigit() and name.replace(",", "").replace(".", "").isdigit() else "entity"


def _days(sentence: str, name: str) -> tuple[int | None, int | None]:
    """The days that the sentence speaks of, where it names one time: of more nobody knows which is this fact's."""
    expressions = [expression for expression in find_time_expressions(sentence) if expression.text not in name]
    if len(expressions) != 1:
        return None, None
    start, end = expressions[0].start, expressions[0].end
    return (
        start.toordinal() if start is not None else None,
        end.toordinal() if end is not None else None,
    )
