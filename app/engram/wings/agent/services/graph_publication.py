"""The graph of a session as a graph of the collection: what its agent kept, stated again where it can be searched.

Each passage is the source of what it says, in its own words, and what the agent went against is contradicted by
it, under a judge of its own. All of it goes under keys of the session's, so doing it again changes nothing.
"""

from collections.abc import Iterable
from contextlib import suppress

from engram.providers.language import normalise_entity
from engram.services.auth.scope import Scope
from engram.storage.corpus import passages
from engram.storage.database import Database
from engram.wings.agent.services.agent_memory import AGENT, AgentMemory
from engram.wings.agent.services.agent_memory_index import IndexedFact
from engram.wings.facts.core.beliefs import CLOSE, CONTRADICT, SUPERSEDE
from engram.wings.facts.core.claims import NEVER
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.services.fact_service import FactsService, PassageGoneError, Revision, StatedFact
from engram.wings.facts.storage import fact_rows
from engram.wings.facts.storage.fact_rows import FactRow
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.tree_options import parse_planner_options


class Publisher:
    """States what agents of sessions kept."""

    def __init__(self, database: Database, facts: FactsService) -> None:
        self._database = database
        self._facts = facts

    def finish(self, scope: Scope, state: SessionState) -> None:
        """State the session's facts in the graph that its options name, if they name one.

        Raises:
            NotFoundError: as ``publish``.
        """
        graph = parse_planner_options(state.request.options).graph
        if graph is not None:
            self.publish(scope, state, graph)

    def publish(self, scope: Scope, state: SessionState, graph: str) -> int:
        """State the session's facts in a graph of this name; how many of them there were.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
        """
        memory = AgentMemory.from_json(state.plan_state)
        texts = {one.sentence_id: one.text for one in state.pool}
        with self._database.read() as reader:
            pool_passages = passages.load_by_id(reader, scope.collection.id, {one.passage_id for one in state.pool})
        stated: list[int] = []
        for passage in pool_passages.values():
            facts = list(_build_stated_facts(memory, passage.id, texts))
            if not facts:
                continue
            with suppress(PassageGoneError):  # what a passage said goes with it, also between the two transactions
                applied = self._facts.state(
                    scope,
                    facts,
                    source=passage.external_id,
                    graph_name=graph,
                    key=f"session/{state.id}/{passage.id}",
                    fingerprint=[str(state.id), passage.id],
                    passage_id=passage.id,
                )
                stated += applied.facts
        with self._database.read() as reader:
            rows = fact_rows.load_facts(reader, scope.collection.id, stated)
        named = {_identity(row): fact for fact, row in rows.items()}
        places = {place: named.get(_identity(fact)) for place, fact in enumerate(memory.facts)}
        revisions = list(_revisions(memory, {place: fact for place, fact in places.items() if fact is not None}))
        if revisions:
            self._facts.revise(scope, revisions, judge=AGENT, key=f"session/{state.id}")
        return len(rows)


def _build_stated_facts(memory: AgentMemory, passage: int, texts: dict[int, str]) -> Iterable[StatedFact]:
    for fact in memory.facts:
        for number in fact.sources:
            source = memory.sources[number - 1]
            if source.document == str(passage) and source.key in texts:
                yield StatedFact(_triple(fact), texts[int(source.key)])


def _identity(fact: IndexedFact | FactRow) -> tuple[str, str, str, int, int]:
    """Return the identity of a fact, in the session and in the graph."""
    ends = (normalise_entity(fact.subject), fact.predicate, normalise_entity(fact.object))
    return (*ends, fact.valid_from, fact.valid_to)


def _triple(fact: IndexedFact) -> Triple:
    start = fact.valid_from or None
    end = None if fact.valid_to == NEVER else fact.valid_to
    return Triple(
        fact.subject,
        fact.predicate,
        fact.object,
        0,
        fact.kind,
        start,
        end,
        fact.confidence,
    )


def _revisions(memory: AgentMemory, stated: dict[int, int]) -> Iterable[Revision]:
    for remark in memory.remarks:
        if remark.fact not in stated:
            continue
        if remark.kind == "contradict":
            yield Revision(CONTRADICT, stated[remark.fact])
        elif remark.kind == "supersede" and remark.by in stated:
            yield Revision(SUPERSEDE, stated[remark.fact], by=stated[remark.by])
        elif remark.kind == "supersede":
            yield Revision(CLOSE, stated[remark.fact])
