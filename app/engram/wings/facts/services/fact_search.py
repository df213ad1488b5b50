"""Finding facts: from what a question names along the edges of the graph, as lines with who says so."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from engram.context.errors import InvalidRequestError
from engram.services.auth.scope import Scope
from engram.storage.database import Database, Reader
from engram.wings.facts.core.fact_paths import Path
from engram.wings.facts.core.linearise import ReadableFact, linearise
from engram.wings.facts.services import visible_beliefs
from engram.wings.facts.services.fact_transaction import find_graph_id
from engram.wings.facts.services.fact_views import FactCitation, cite
from engram.wings.facts.services.fact_walk import SAME_NAMES, FactPattern, compute_days, find_start, statement, walk
from engram.wings.facts.storage import fact_edges, fact_rows
from engram.wings.facts.storage.fact_edges import Edge, EdgeFilter, NearbyEdges
from engram.wings.facts.storage.fact_rows import BelievedFact, FactRow

__all__ = ["FactPattern", "FactSearch", "FactSearchResult", "FoundPath", "compute_days"]


@dataclass(frozen=True, slots=True)
class FoundPath:
    """A path, its facts in order from the start."""

    start: str
    facts: Sequence[int]
    score: float


@dataclass(slots=True)
class FactSearchResult:
    """Result of a search.

    Attributes:
        starts: entity -> its name, of those it began at.
        facts: by their ids, those of the paths that fit the budget, the best path's first.
        beliefs: what was believed of them at the moment asked for.
        text: a line for each subject, with numbers of citations.
        citations: who says so, in the order of their numbers, from 1.
        tokens: of the text.
    """

    starts: dict[int, str]
    paths: list[FoundPath] = field(default_factory=list)
    facts: dict[int, FactRow] = field(default_factory=dict)
    beliefs: dict[int, float] = field(default_factory=dict)
    text: str = ""
    citations: list[FactCitation] = field(default_factory=list)
    tokens: int = 0


class FactSearch:
    """Searches graphs of facts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def search(self, scope: Scope, pattern: FactPattern) -> FactSearchResult:
        """Paths that speak to what is wanted, their facts, and these as lines with citations.

        Raises:
            InvalidRequestError: nothing is asked for.
            NotFoundError: there is no such graph.
        """
        if not (pattern.question or pattern.entities or pattern.subject or pattern.object):
            raise InvalidRequestError("A search needs a question, entities, or a subject or an object.")
        target = scope.collection.id
        days = pattern.days or (None if pattern.question is None else compute_days(pattern.question))
        with self._database.snapshot() as reader:
            graph_id = find_graph_id(reader, target, pattern.graph)
            begin = find_start(
                pattern, lambda names: fact_edges.starts(reader, target, graph_id, names, SAME_NAMES)
            )
            ids = [one for one in begin.starts if one not in begin.names]
            names = dict(begin.names)
            if ids:
                names |= {entity: row.surface for entity, row in fact_rows.entities(reader, target, ids).items()}
            allowed = EdgeFilter(
                pattern.as_of,
                pattern.min_belief,
                days,
                " ".join(pattern.predicate.casefold().split()) if pattern.predicate else None,
            )
            ranked, edges = walk(_Tables(reader, target, allowed), begin, pattern, dated=days is not None)
            return _search_result(reader, scope, begin.starts, names, ranked, edges, pattern)


@dataclass(frozen=True, slots=True)
class _Tables:
    """The graphs of the service, to be walked."""

    reader: Reader
    collection_id: int
    allowed: EdgeFilter

    def find_edges_around(self, entities: Sequence[int], read: Collection[int], most: int) -> NearbyEdges:
        return visible_beliefs.find_edges_around(
            self.reader, self.collection_id, entities, self.allowed, most, read
        )


def _search_result(
    reader: Reader,
    scope: Scope,
    starts: Sequence[int],
    names: Mapping[int, str],
    ranked: Sequence[Path],
    edges: dict[int, Edge],
    pattern: FactPattern,
) -> FactSearchResult:
    """The best paths whose facts fit into the budget, as text."""
    chosen = ranked[: pattern.paths]
    ids = list(dict.fromkeys(fact for path in chosen for fact in path.edges))
    believed = visible_beliefs.load_believed_facts(reader, scope.collection.id, ids, pattern.as_of)
    result = FactSearchResult({one: names[one] for one in starts if one in names})
    result.beliefs = {fact: one.belief for fact, one in believed.items()}
    believed_ids = [fact for fact in ids if fact in believed]
    text = linearise([_read(believed[fact], edges[fact]) for fact in believed_ids], pattern.budget)
    result.text, result.tokens = text.text, text.tokens
    result.facts = {fact: believed[fact].fact for fact in believed_ids[: text.statement_count]}
    cited = {believed[fact].source.statement_id: believed[fact].source for fact in result.facts}
    result.citations = cite(reader, scope.collection, [cited[source] for source in text.sources])  # type: ignore[index]
    result.paths = [
        FoundPath(result.starts.get(path.start, ""), path.edges, path.score)
        for path in chosen
        if all(fact in result.facts for fact in path.edges)
    ]
    return result


def _read(believed: BelievedFact, edge: Edge) -> ReadableFact:
    fact = believed.fact
    return statement(
        (fact.subject, fact.predicate, fact.object), edge, believed.belief, believed.source.statement_id
    )
