"""Learning facts: what is said becomes facts with sources, and what bears on them is computed anew.

Everything here runs in its caller's transaction, under the lock of the collection's facts. Whatever changes, the
groups that it touches are replayed whole from what was said (``wings.facts.core.beliefs.replay``), so that nothing
remembers the way it came about: a revocation and an erasure are a replay without some of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.core.text.temporal import time_constraint
from engram.providers.language import normalise_entity
from engram.services.corpus.passage_observer import TextChange
from engram.storage.database import Writer
from engram.wings.facts.core.beliefs import SOURCE_NOISE, replay
from engram.wings.facts.core.claims import ALWAYS, NEVER, Days
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.storage import belief_groups, fact_graph, fact_rows, predicates, stale_sources
from engram.wings.facts.storage.belief_groups import GroupKey
from engram.wings.facts.storage.fact_graph import SourcedFact

MAX_TEXT = 300
"""Characters of an object that is no entity; what is longer is no fact but a story."""
MAX_PREDICATE = 100
ROWS = 5_000
"""Facts that one replay takes at a time: bounds memory."""


def as_source(constants: NoiseAndCaps) -> NoiseAndCaps:
    """By what a source counts for which nothing is set; what a new judge states counts less."""
    noise = SOURCE_NOISE / constants.standing
    return replace(constants, positive=noise, negative=noise)


def build_sourced_fact(
    triple: Triple, noise: NoiseAndCaps, statement_id: int | None = None, passage_id: int | None = None
) -> SourcedFact | None:
    """A triple as it is stored; None if it is none: nothing is left of a name, or it is too long.

    Args:
        statement_id: the statement that says it.
        passage_id: the passage that the statement came from.
    """
    subject, predicate = normalise_entity(triple.subject), " ".join(triple.predicate.casefold().split())
    named = normalise_entity(triple.object)
    if not subject or not named or not predicate or len(predicate) > MAX_PREDICATE:
        return None
    if max(len(triple.object), len(named), len(subject), len(triple.subject)) > MAX_TEXT:
        return None
    start = ALWAYS if triple.valid_from is None else triple.valid_from
    end = NEVER if triple.valid_to is None else triple.valid_to
    if start >= end:
        return None
    key = (
        named
        if triple.kind == "entity"
        else belief_groups.object_key(triple.kind, triple.object, _days(triple), named)
    )
    return SourcedFact(
        subject=(subject, triple.subject),
        predicate=predicate,
        object=(key, triple.object),
        kind=triple.kind,
        confidence=triple.confidence,
        positive=noise.positive / triple.confidence,
        negative=noise.negative / triple.confidence,
        process_noise=noise.process,
        statement_id=statement_id,
        passage_id=passage_id,
        valid_from=start,
        valid_to=end,
    )


def _days(triple: Triple) -> Days | None:
    if triple.kind != "date":
        return None
    constraint = time_constraint(triple.object)
    if constraint is None or constraint.start is None or constraint.end is None:
        return None
    return Days(constraint.start.toordinal(), constraint.end.toordinal())


def add(
    writer: Writer, collection_id: int, graph_id: int, sourced_facts: Sequence[SourcedFact]
) -> tuple[list[int], dict[int, str]]:
    """Have these be said; the fact of each, in the given order, and the entities that are new, with their names."""
    if not sourced_facts:
        return [], {}
    new = fact_graph.put_entities(writer, collection_id, graph_id, sourced_facts)
    facts = fact_graph.put(writer, collection_id, graph_id, sourced_facts)
    fact_graph.add_sources(writer, collection_id, facts, sourced_facts)
    settle(writer, collection_id, belief_groups.find_keys(writer, collection_id, facts))
    return facts, new


def withdraw_unsaid(writer: Writer, collection_id: int, changes: Mapping[int, TextChange]) -> set[int]:
    """Withdraw what passages with changed texts say no more; return the facts that this bears on.

    Facts keep what was said, as words of the past: what nobody else says is closed then, not removed. A statement
    that stood in the text has to stand there still; of one in other words, the text has to name both ends.

    Args:
        changes: passage -> its text.
    """
    stated = stale_sources.list_stated(writer, collection_id, list(changes))
    facts = fact_rows.load_facts(writer, collection_id, [one.fact_id for one in stated]) if stated else {}
    lost = []
    for one in stated:
        text = changes[one.passage_id]
        before, after = _fold_text(text.before), _fold_text(text.after)
        if _fold_text(one.text) in before:
            holds = _fold_text(one.text) in after
        else:
            ends = facts[one.fact_id].subject, facts[one.fact_id].object
            holds = all(_fold_text(end) in after for end in ends)
        if not holds:
            lost.append(one)
    return stale_sources.withdraw(writer, collection_id, lost) if lost else set()


def _fold_text(text: str) -> str:
    return " ".join(text.casefold().split())


def settle_facts(writer: Writer, collection_id: int, facts: Iterable[int]) -> None:
    """Compute anew what bears on these facts; those that nobody says any more go."""
    touched = sorted(set(facts))
    keys = belief_groups.find_keys(writer, collection_id, touched)
    removed_facts = fact_graph.remove_unsaid(writer, collection_id, touched)
    settle(writer, collection_id, keys)
    if removed_facts:
        for graph_id in {key.graph_id for key in keys}:
            named = {key.predicate for key in keys if key.graph_id == graph_id}
            predicates.remove_unused(writer, collection_id, graph_id, named)


def settle(writer: Writer, collection_id: int, keys: Iterable[GroupKey]) -> None:
    """Replay these groups, and store what comes of it."""
    ordered = sorted(keys, key=lambda key: (key.subject_id, key.predicate, key.object_id, key.object_key))
    for start in range(0, len(ordered), ROWS):
        groups = belief_groups.groups(writer, collection_id, ordered[start : start + ROWS])
        if groups:
            facts, moves = replay(groups)
            belief_groups.store(writer, collection_id, facts, moves, belief_groups.list_moments(groups))
