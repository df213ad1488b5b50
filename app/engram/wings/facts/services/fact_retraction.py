"""Taking back what was said of facts, one event or all that match, and having it count again."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engram.context.errors import InvalidRequestError, NotFoundError
from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.services.auth.scope import Scope
from engram.storage.database import Database, Reader, Writer
from engram.wings.facts.core.beliefs import LEAST_BELIEF, Fact, Group, replay
from engram.wings.facts.services import entity_merge, fact_learning
from engram.wings.facts.services.fact_transaction import Author, begin_change, find_graph_id
from engram.wings.facts.storage import (
    belief_groups,
    fact_events,
    fact_graph,
    fact_revocations,
    merged_graphs,
    stale_sources,
)
from engram.wings.facts.storage.fact_events import StoredFactEvent
from engram.wings.facts.storage.fact_revocations import FactEventFilter

__all__ = ["FactEventFilter", "FactRetraction", "RetractionService"]

JOINS = "merge"
MOST_EVENTS = 10_000
"""Events that one revocation takes back: it is one transaction."""
MOST_SHOWN = 20
"""Facts that are shown with what is believed of them before and after."""


@dataclass(frozen=True, slots=True)
class BeliefChange:
    """A fact of which something else is believed: mean before and after."""

    fact_id: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class FactRetraction:
    """Result of a revocation.

    Attributes:
        event: of the log; None for a preview, or if nothing matched.
        kinds: kind -> how many events.
        facts: of which something else is believed, or that are closed or open by it.
        doubted, believed: of them, those that fall below what is held to be so, and those that rise to it.
        changed: those that move most.
    """

    event: StoredFactEvent | None
    kinds: Mapping[str, int]
    facts: int
    doubted: int
    believed: int
    changed: Sequence[BeliefChange]


class RetractionService:
    """Revokes what judges said of facts, by who said it and when."""

    def __init__(self, database: Database, constants: NoiseAndCaps) -> None:
        self._database = database
        self._constants = constants

    def revoke(self, scope: Scope, event_id: int) -> StoredFactEvent:
        """Have an event count no more: what is believed is then as if it had never come.

        Of an assertion, its sentences go, and facts that nobody else states. With a merged graph goes what it
        brought along, and with what was said in a graph what merges repeated of it. One that is revoked stays so;
        what a revocation in bulk took back counts again when that is revoked.

        Raises:
            NotFoundError: there is no such event, or the collection was deleted meanwhile.
        """
        with begin_change(self._database, scope) as (writer, target):
            event = fact_events.find(writer, target, event_id)
            if event is not None and event.status == "applied":
                _take_back(writer, target, [event])
                event = fact_events.find(writer, target, event_id)
        if event is None:
            raise NotFoundError(f"There is no event {event_id} in the log of facts.")
        return event

    def preview(self, scope: Scope, criteria: FactEventFilter, graph_name: str | None = None) -> FactRetraction:
        """Return the changes that a revocation of all matches would make, without making them.

        Raises:
            InvalidRequestError: the time span is empty, or more match than one revocation takes back.
            NotFoundError: there is no such graph.
        """
        _check(criteria)
        target = scope.collection.id
        with self._database.snapshot() as reader:
            graph_id = None if graph_name is None else find_graph_id(reader, target, graph_name)
            events = _check_event_count(
                fact_revocations.list_matching(reader, target, criteria, graph_id, MOST_EVENTS + 1)
            )
            groups = _groups(reader, target, events)
            before = belief_groups.load_beliefs(
                reader, target, [claim.fact_id for group in groups for claim in group.claims]
            )
            revoked_sequences = {event.sequence for event in events}
            remaining = [
                replace(group, words=[word for word in group.words if word.sequence not in revoked_sequences])
                for group in groups
            ]
        return _retraction(None, events, before, replay(remaining)[0])

    def revoke_all(
        self, scope: Scope, criteria: FactEventFilter, graph_name: str | None = None, *, judge: str, key: str | None
    ) -> FactRetraction:
        """Revoke all that match, once under its key, as one event: revoking that has them count again.

        Raises:
            InvalidRequestError: the time span is empty, or more match than one revocation takes back.
            NotFoundError: there is no such graph, or the collection was deleted meanwhile.
            IdempotencyConflictError: the key was used before with another request.
        """
        _check(criteria)
        said_by = scope.judge(judge)
        with begin_change(self._database, scope) as (writer, target):
            author = Author.from_judge(
                writer,
                scope,
                said_by,
                self._constants,
                key,
                [said_by[0], criteria.as_json(), graph_name, "revoke"],
            )
            known = author.find_repeated_event(writer, target)
            if known is not None:
                return _retraction(known, fact_events.find_many(writer, target, known.covers or ()), {}, {})
            graph_id = None if graph_name is None else find_graph_id(writer, target, graph_name)
            events = _check_event_count(
                fact_revocations.list_matching(writer, target, criteria, graph_id, MOST_EVENTS + 1)
            )
            if not events:
                return _retraction(None, events, {}, {})
            facts = [claim.fact_id for group in _groups(writer, target, events) for claim in group.claims]
            before = belief_groups.load_beliefs(writer, target, facts)
            covers = _take_back(writer, target, events)
            event = author.append(
                writer,
                target,
                graph_id or fact_graph.OWN_GRAPH,
                "revoke",
                reason=str(criteria),
                covers=covers,
            )
            return _retraction(event, events, before, belief_groups.load_beliefs(writer, target, facts))


def _check(criteria: FactEventFilter) -> None:
    if criteria.since is not None and criteria.before is not None and criteria.since >= criteria.before:
        raise InvalidRequestError("'from' must come before 'to'.")


def _check_event_count(events: Sequence[StoredFactEvent]) -> Sequence[StoredFactEvent]:
    if len(events) > MOST_EVENTS:
        raise InvalidRequestError(f"More than {MOST_EVENTS} match; revoke them by shorter spans of time.")
    return events


def _groups(reader: Reader, target: int, events: Sequence[StoredFactEvent]) -> list[Group]:
    facts = {event.fact_id for event in events if event.fact_id is not None}
    return belief_groups.groups(reader, target, belief_groups.find_keys(reader, target, facts))


def _retraction(
    event: StoredFactEvent | None,
    events: Sequence[StoredFactEvent],
    before: Mapping[int, Fact],
    after: Mapping[int, Fact],
) -> FactRetraction:
    changes = [
        (was, now)
        for fact, was in before.items()
        if (now := after.get(fact)) is not None and _state(was) != _state(now)
    ]
    fell = sum(was.belief >= LEAST_BELIEF > now.belief for was, now in changes)
    rose = sum(now.belief >= LEAST_BELIEF > was.belief for was, now in changes)
    changes.sort(key=lambda pair: (-abs(pair[1].belief - pair[0].belief), pair[0].fact_id))
    changed = [BeliefChange(was.fact_id, was.belief, now.belief) for was, now in changes[:MOST_SHOWN]]
    kinds = Counter(one.kind for one in events)
    return FactRetraction(event, dict(sorted(kinds.items())), len(changes), fell, rose, changed)


def _state(fact: Fact) -> tuple[float, bool, int]:
    return fact.belief, fact.closed_at is None, fact.held_until


def _take_back(writer: Writer, target: int, events: Sequence[StoredFactEvent]) -> list[int]:
    """Have events count no more, with what came along with them; what they are about is as if they had never come.

    Returns:
        All events that count no more.
    """
    ids = [event.id for event in events]
    parts = fact_events.find_many(writer, target, merged_graphs.parts(writer, target, ids))
    revoked_ids = [*ids, *(part.id for part in parts if part.status == "applied")]
    fact_events.revoke(writer, target, revoked_ids)
    back = [one for event in events if event.kind == "revoke" for one in event.covers or ()]
    restored = fact_revocations.restore(writer, target, back) if back else []
    sentences = fact_events.list_statements(writer, target, [e.id for e in events if e.kind in {"assert", "adopt"}])
    touched = set(fact_graph.list_stated_facts(writer, target, sentences))
    if sentences:
        fact_events.remove_statements(writer, target, sentences)
    changes = [event.id for event in events if event.kind == stale_sources.CHANGE]
    if changes:
        touched |= stale_sources.restore(writer, target, changes)
    concerned = [*events, *parts, *fact_events.find_many(writer, target, restored)]
    touched |= {event.fact_id for event in concerned if event.fact_id is not None}
    entities = {
        entity
        for event in concerned
        if event.kind == JOINS
        for entity in (event.other_id, event.entity_id)
        if entity is not None
    }
    if entities:
        entity_merge.settle(writer, target, entities)
    if touched:
        fact_learning.settle_facts(writer, target, touched)
    return revoked_ids
