"""Beliefs of facts as their caller may know them.

All sources and judges made the stored beliefs. Whoever sees some passages only gets them by a replay of the sources
that it sees, and of what judges said of the facts that these state: as if there were no others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from engram.storage.database import Reader
from engram.wings.facts.core.beliefs import BeliefMove, Fact, replay
from engram.wings.facts.storage import belief_groups, fact_edges, fact_rows
from engram.wings.facts.storage.fact_edges import EdgeFilter, NearbyEdges
from engram.wings.facts.storage.fact_rows import BelievedFact, FactRow


@dataclass(frozen=True, slots=True)
class ReplayedBeliefs:
    """Beliefs by what the reader sees.

    Attributes:
        facts: by their ids, with all that bear on them.
        moves: of all these, in order.
        moments: when each thing was said, by its sequence.
    """

    facts: Mapping[int, Fact]
    moves: Sequence[BeliefMove]
    moments: Mapping[int, datetime]

    def adapt(self, row: FactRow) -> FactRow:
        """Return the row with what is believed of it."""
        state = asdict(self.facts[row.id])
        del state["fact_id"]
        return replace(row, **state)

    def find_belief(self, fact: int, as_of: datetime) -> float | None:
        """Return what was believed of a fact at a moment; None if nothing was."""
        until = [m.belief for m in self.moves if m.fact_id == fact and self.moments[m.sequence] <= as_of]
        return until[-1] if until else None


def replay_beliefs(reader: Reader, collection_id: int, facts: Iterable[int]) -> ReplayedBeliefs:
    """Replay what the reader sees of these facts and of those that bear on them."""
    keys = belief_groups.find_keys(reader, collection_id, facts)
    groups = belief_groups.groups(reader, collection_id, keys)
    return ReplayedBeliefs(*replay(groups), belief_groups.list_moments(groups))


def load_facts(reader: Reader, collection_id: int, facts: Iterable[int]) -> dict[int, FactRow]:
    """Load these facts, as far as the reader sees them; fact -> its row."""
    rows = fact_rows.load_facts(reader, collection_id, facts)
    if reader.reader_sets is None or not rows:
        return rows
    beliefs = replay_beliefs(reader, collection_id, rows)
    return {fact: beliefs.adapt(row) for fact, row in rows.items()}


def load_believed_facts(
    reader: Reader, collection_id: int, facts: Sequence[int], as_of: datetime | None = None
) -> dict[int, BelievedFact]:
    """Load these facts, each with its belief and its first source; without either by ``as_of`` it is left out."""
    stored = fact_rows.load_believed_facts(reader, collection_id, facts, as_of)
    if reader.reader_sets is None or not stored:
        return stored
    beliefs = replay_beliefs(reader, collection_id, stored)
    believed = {
        fact: beliefs.facts[fact].belief if as_of is None else beliefs.find_belief(fact, as_of) for fact in stored
    }
    return {
        fact: BelievedFact(beliefs.adapt(one.fact), one.source, belief)
        for fact, one in stored.items()
        if (belief := believed[fact]) is not None
    }


def find_edges_around(
    reader: Reader,
    collection_id: int,
    entities: Sequence[int],
    allowed: EdgeFilter,
    most: int,
    read: Iterable[int] = (),
) -> NearbyEdges:
    """Find allowed facts around entities by what the reader sees, see ``fact_edges.find_believed_edges``."""
    if reader.reader_sets is None:
        return fact_edges.find_believed_edges(reader, collection_id, entities, allowed, most, read)
    near = fact_edges.find_stated_edges(reader, collection_id, entities, allowed.predicate, most, read)
    rows = load_facts(reader, collection_id, {edge.id for _, edge in near.edges})
    edges = {fact: fact_edges.select_edge(row, allowed) for fact, row in rows.items()}
    return NearbyEdges(
        near.namesakes, [(entity, edge) for entity, old in near.edges if (edge := edges.get(old.id)) is not None]
    )
