"""Merging one graph of facts into another: what was said in it is said here as well, each once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engram.context.errors import InvalidRequestError
from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.services.auth.scope import Scope
from engram.storage.database import Database, Writer
from engram.wings.facts.services import entity_merge, fact_learning
from engram.wings.facts.services.entity_alignment import AlignmentService
from engram.wings.facts.services.fact_learning import ROWS
from engram.wings.facts.services.fact_transaction import Author, begin_change, find_graph_id
from engram.wings.facts.storage import belief_groups, fact_events, fact_graph, joined_entities, merged_graphs
from engram.wings.facts.storage.fact_events import StoredFactEvent
from engram.wings.facts.storage.fact_graph import OWN_GRAPH
from engram.wings.facts.storage.merged_graphs import StatedEvent, StatedSentence


@dataclass(frozen=True, slots=True)
class GraphMergeResult:
    """Result of a merge: its event, and the counts of new rows."""

    event: StoredFactEvent
    facts: Sequence[int]
    sentences: int
    verdicts: int
    joins: int


class GraphMergeService:
    """Merges graphs of facts.

    Sources, verdicts and joins are copied by the noises that they counted by, in the order in which they came: in
    an empty graph, the same is believed of them. Facts compete by the predicates of the graph that they come to.
    """

    def __init__(self, database: Database, constants: NoiseAndCaps, align: AlignmentService) -> None:
        self._database = database
        self._constants = constants
        self._align = align

    def merge(
        self, scope: Scope, graph_name: str, into: str | None = None, *, judge: str, key: str
    ) -> GraphMergeResult:
        """Have a graph say what another one says, and judges say there what they said of it, once under the key.

        What was merged before is not merged again; a merge that came since brings what came since.
        Names that are new may mean entities that were there, and join these.

        Args:
            into: a graph of its own, made if there is none; None: the collection's.

        Raises:
            NotFoundError: there is no such graph, or the collection was deleted meanwhile.
            InvalidRequestError: it would be merged with itself.
            IdempotencyConflictError: the key was used before with another request.
        """
        said_by = scope.judge(judge)
        with begin_change(self._database, scope) as (writer, target):
            author = Author.from_judge(writer, scope, said_by, self._constants, key, [said_by[0], graph_name, into])
            known = author.find_repeated_event(writer, target)
            if known is not None:
                return _merge_result(writer, target, known)
            source = find_graph_id(writer, target, graph_name)
            if into == graph_name:
                raise InvalidRequestError("A graph is merged with another one.")
            into_id = OWN_GRAPH if into is None else fact_graph.open_graph(writer, target, into)
            event = author.append(writer, target, into_id, "adopt", other_id=source, reason=graph_name)
            new = _adopt(writer, target, event, source)
            adopted_now = _merge_result(writer, target, event)
        self._align.join_new(scope.collection, new, into_id)
        return adopted_now


def _merge_result(writer: Writer, target: int, event: StoredFactEvent) -> GraphMergeResult:
    sentences = fact_events.list_statements_of_event(writer, target, event.id)
    brought = fact_events.find_many(writer, target, merged_graphs.parts(writer, target, [event.id]))
    merges = sum(one.kind == "merge" for one in brought)
    facts = fact_graph.list_stated_facts(writer, target, sentences)
    return GraphMergeResult(event, sorted(facts), len(sentences), len(brought) - merges, merges)


def _adopt(writer: Writer, target: int, event: StoredFactEvent, source: int) -> dict[int, str]:
    """Copy all that is said, page by page; entities join and facts are believed anew in the end."""
    facts: list[int] = []
    words: list[StatedSentence | StatedEvent] = []
    while page := merged_graphs.list_next_facts(writer, target, source, facts[-1] if facts else 0, ROWS):
        facts += page
        words += merged_graphs.statements(writer, target, page, event.graph_id)
        words += merged_graphs.list_stated_events(writer, target, page)
    words.sort(key=lambda word: word.sequence)
    sequences = [word.sequence for word in words]
    places = dict(zip(sequences, fact_graph.reserve_places(writer, len(words)), strict=True))
    stated = [word for word in words if isinstance(word, StatedSentence)]
    new: dict[int, str] = {}
    for start in range(0, len(stated), ROWS):
        new |= _state(writer, target, event, stated[start : start + ROWS], places)
    here = merged_graphs.twins(writer, target, facts, event.graph_id)
    places_by_event = {word.event_id: places[word.sequence] for word in words if isinstance(word, StatedEvent)}
    if places_by_event:
        merged_graphs.repeat(writer, target, event.id, event.graph_id, places_by_event, here)
    _join(writer, target, event, source)
    fact_learning.settle(writer, target, belief_groups.find_keys(writer, target, here.values()))
    return new


def _state(
    writer: Writer, target: int, event: StoredFactEvent, stated: Sequence[StatedSentence], places: Mapping[int, int]
) -> dict[int, str]:
    """Have sentences of the other graph be stated here; the entities that are new, with their names."""
    sentences = {one.statement_id: one for one in stated}
    statement_ids = fact_events.add_statements(
        writer, target, event.id, [(one.source, one.text) for one in sentences.values()], list(sentences)
    )
    copies = dict(zip(sentences, statement_ids, strict=True))
    sourced_facts = [replace(one.fact, statement_id=copies[one.statement_id]) for one in stated]
    new = fact_graph.put_entities(writer, target, event.graph_id, sourced_facts)
    facts = fact_graph.put(writer, target, event.graph_id, sourced_facts)
    fact_graph.add_sources(writer, target, facts, sourced_facts, [places[one.sequence] for one in stated])
    return new


def _join(writer: Writer, target: int, event: StoredFactEvent, source: int) -> None:
    """Have entities be one here that are one there, but for those that somebody took apart here."""
    joins = merged_graphs.list_joins(writer, target, source)
    named = joined_entities.find_by_name(
        writer, target, event.graph_id, {name for one in joins for name in (one.joining, one.staying)}
    )
    new_joins = [
        joined_entities.NewJoin(
            named[one.joining], named[one.staying], one.judge, origin_id=one.event_id, part_of=event.id
        )
        for one in joins
        if one.joining in named and one.staying in named
    ]
    if new_joins:
        entity_merge.join(writer, target, event.graph_id, new_joins)
