"""Facts that callers state, and what they say of facts that are there: each an event of the log, applied once."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any

from engram.context import tenancy
from engram.context.errors import InvalidRequestError, NotFoundError
from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.services.auth.scope import Scope
from engram.storage.corpus import passages
from engram.storage.database import Database, Reader, Writer
from engram.wings.facts.core.beliefs import CLOSE, CONTRADICT
from engram.wings.facts.core.claims import ALWAYS
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.services import fact_learning
from engram.wings.facts.services.entity_alignment import AlignmentService
from engram.wings.facts.services.fact_transaction import Author, begin_change
from engram.wings.facts.storage import fact_events, fact_graph, fact_rows
from engram.wings.facts.storage.fact_events import StoredFactEvent
from engram.wings.facts.storage.fact_graph import OWN_GRAPH
from engram.wings.facts.storage.fact_rows import FactRow


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact that a caller states; ``sentence`` is how the source says it, by default the triple itself."""

    triple: Triple
    sentence: str | None = None

    @property
    def words(self) -> str:
        """Return the words of its source."""
        return self.sentence or f"{self.triple.subject} {self.triple.predicate} {self.triple.object}"


@dataclass(frozen=True, slots=True)
class AppliedEvent:
    """An event as it counts, and the facts that it states or speaks of."""

    event: StoredFactEvent
    facts: Sequence[int]


@dataclass(frozen=True, slots=True)
class Revision:
    """A judge's word on a fact.

    Attributes:
        action: confirm, contradict, supersede or close.
        by: of ``supersede``, the fact that comes after.
        until: first day on which it no longer holds, as ``date.toordinal`` counts.
        confidence: how sure the judge is, in (0, 1].
    """

    action: str
    fact_id: int
    by: int | None = None
    until: int | None = None
    reason: str | None = None
    confidence: float = 1.0


class PassageGoneError(NotFoundError):
    """The passage that states facts was deleted meanwhile, or is another one now."""


@dataclass(frozen=True, slots=True)
class FactCorrection:
    """Correction by an instruction in words: facts to state, and facts that it contradicts."""

    instruction: str
    graph: str | None
    added: Sequence[StatedFact] = ()
    wrong: Sequence[int] = ()


class FactsService:
    """Takes in what is said of facts, and takes it back."""

    def __init__(self, database: Database, constants: NoiseAndCaps, align: AlignmentService) -> None:
        self._database = database
        self._constants = constants
        self._align = align

    def state(
        self,
        scope: Scope,
        stated: Sequence[StatedFact],
        *,
        source: str,
        graph_name: str | None = None,
        key: str | None = None,
        fingerprint: Any = None,
        passage_id: int | None = None,
    ) -> AppliedEvent:
        """Have a source state facts, each with the sentence that says it.

        Args:
            source: who says so. One that repeats itself says nothing new.
            graph_name: a graph of its own, made if there is none; None: the collection's.
            key: the Idempotency-Key; the same request under it is applied once.
            fingerprint: what was asked for, if it is not the facts themselves.
            passage_id: the passage that the source has to be.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            PassageGoneError: the source is not that passage, so that nothing would take along what it states.
            IdempotencyConflictError: the key was used before with another request.
            InvalidRequestError: a fact says nothing, or ends before it begins.
        """
        body = _request_values(stated, source, graph_name, fingerprint)
        with tenancy.allow_all_readers(), begin_change(self._database, scope) as (writer, target):
            author = Author.source(scope, source, fact_learning.as_source(self._constants), key, body)
            known = author.find_repeated_event(writer, target)
            if known is not None:
                return AppliedEvent(known, _list_stated_facts(writer, target, known))
            if passage_id is not None and _find_passage(writer, target, source) != passage_id:
                raise PassageGoneError(f"The passage {source!r} was deleted meanwhile.")
            applied, new = _state(writer, target, author, stated, graph_name)
        self._join_new(scope, new, applied)
        return applied

    def _join_new(self, scope: Scope, new: Mapping[int, str], stated: AppliedEvent) -> None:
        with tenancy.allow_all_readers():
            self._align.join_new(scope.collection, new, stated.event.graph_id)

    def find_earlier_statement(
        self, scope: Scope, *, source: str, graph_name: str | None, key: str | None, fingerprint: Any
    ) -> AppliedEvent | None:
        """Return the result of the same request under this key; None if it is the first.

        Raises:
            IdempotencyConflictError: the key was used before with another request.
        """
        author = Author.source(
            scope, source, self._constants, key, _request_values((), source, graph_name, fingerprint)
        )
        with self._database.read() as reader:
            known = author.find_repeated_event(reader, scope.collection.id)
            return (
                None
                if known is None
                else AppliedEvent(known, _list_stated_facts(reader, scope.collection.id, known))
            )

    def revise(self, scope: Scope, revisions: Sequence[Revision], *, judge: str, key: str) -> list[AppliedEvent]:
        """Apply what a judge says of facts, all of it or nothing.

        Raises:
            NotFoundError: there is no such fact that the caller sees, or the collection was deleted meanwhile.
            InvalidRequestError: a fact is to be superseded by itself, or by one of another graph.
            IdempotencyConflictError: the key was used before with another request.
        """
        said_by = scope.judge(judge)
        visible = self._list_seen(scope, revisions)
        with tenancy.allow_all_readers(), begin_change(self._database, scope) as (writer, target):
            body = [said_by[0], [asdict(one) for one in revisions]]
            author = Author.from_judge(writer, scope, said_by, self._constants, key, body)
            done = _find_repeated_events(writer, target, author)
            return done or _revise(writer, target, author, revisions, seen=visible)

    def _list_seen(self, scope: Scope, revisions: Sequence[Revision]) -> set[int] | None:
        """List the named facts that the caller sees; None: it sees every passage."""
        if tenancy.get_visibility().readers is None:
            return None
        with self._database.read() as reader:
            return set(fact_rows.load_facts(reader, scope.collection.id, _list_named(revisions)))

    def find_earlier_correction(
        self, scope: Scope, *, judge: str, key: str, instruction: str, graph_name: str | None
    ) -> list[AppliedEvent]:
        """Return the result of the same instruction under this key.

        Raises:
            IdempotencyConflictError: the key was used before with another request.
        """
        said_by = scope.judge(judge)
        with self._database.read() as reader:
            target = scope.collection.id
            author = Author.from_judge(
                reader, scope, said_by, self._constants, key, [said_by[0], instruction, graph_name]
            )
            return _find_repeated_events(reader, target, author)

    def correct(self, scope: Scope, correction: FactCorrection, *, judge: str, key: str) -> list[AppliedEvent]:
        """Apply what an instruction comes to: what it states is stated by the judge, and counts as a source's word.

        Raises:
            NotFoundError, IdempotencyConflictError, InvalidRequestError: as for ``state`` and ``revise``.
        """
        said_by = scope.judge(judge)
        body = [said_by[0], correction.instruction, correction.graph]
        with tenancy.allow_all_readers(), begin_change(self._database, scope) as (writer, target):
            author = Author.from_judge(writer, scope, said_by, self._constants, key, body)
            done = _find_repeated_events(writer, target, author)
            if done:
                return done
            new: dict[int, str] = {}
            if correction.added:
                source = author.adapt_to_source().add_place(0)
                stated, new = _state(writer, target, source, correction.added, correction.graph)
                done = [stated]
            why = correction.instruction[:500]
            revisions = [Revision(CONTRADICT, fact, reason=why) for fact in correction.wrong]
            done += _revise(writer, target, author, revisions, first=len(done))
        if new:
            self._join_new(scope, new, done[0])
        return done


def _request_values(
    stated: Sequence[StatedFact], source: str, graph_name: str | None, fingerprint: Any
) -> list[Any]:
    """Return the values that tell one statement from another."""
    return [source, graph_name, fingerprint or [[asdict(one.triple), one.sentence] for one in stated]]


def _state(
    writer: Writer, target: int, author: Author, stated: Sequence[StatedFact], graph_name: str | None
) -> tuple[AppliedEvent, dict[int, str]]:
    """Have a source state facts; what came of it, and the entities that are new, with their names.

    A source that is called as a passage is that passage: what both say is said once, and goes with it.
    """
    graph_id = OWN_GRAPH if graph_name is None else fact_graph.open_graph(writer, target, graph_name)
    event = author.append(writer, target, graph_id, "assert")
    texts = list(dict.fromkeys(one.words for one in stated))
    statement_ids = fact_events.add_statements(writer, target, event.id, [(author.judge, text) for text in texts])
    statements = dict(zip(texts, statement_ids, strict=True))
    passage = _find_passage(writer, target, author.judge)
    rows = []
    for one in stated:
        row = fact_learning.build_sourced_fact(one.triple, author.constants, statements[one.words], passage)
        if row is None:
            raise InvalidRequestError(_explain_refusal(one))
        rows.append(row)
    facts, new = fact_learning.add(writer, target, graph_id, rows)
    return AppliedEvent(event, facts), new


def _explain_refusal(stated: StatedFact) -> str:
    first, last = stated.triple.valid_from, stated.triple.valid_to
    if first is not None and last is not None and first >= last:
        return f"{stated.words!r} ends before it begins: 'valid_from' must come before 'valid_to'."
    return f"{stated.words!r} cannot be kept as a fact: a name says nothing, or is too long."


def _find_passage(reader: Reader, target: int, source: str) -> int | None:
    """The passage that is called as a source; None if there is none."""
    found, _ = passages.versions(reader, target, [source]).get(source, (None, None))
    return found


def _list_named(revisions: Sequence[Revision]) -> set[int]:
    return {one.fact_id for one in revisions} | {one.by for one in revisions if one.by is not None}


def _revise(
    writer: Writer,
    target: int,
    author: Author,
    revisions: Sequence[Revision],
    first: int = 0,
    seen: Set[int] | None = None,
) -> list[AppliedEvent]:
    """Append what a judge says of facts, and settle them.

    Args:
        seen: facts that the judge may speak of; None: all.
    """
    named = _list_named(revisions)
    facts = fact_rows.load_facts(writer, target, named if seen is None else named & seen)
    missing = sorted(named - facts.keys())
    if missing:
        raise NotFoundError(f"There is no fact {missing[0]}.")
    done = []
    for place, one in enumerate(revisions, start=first):
        event = author.add_place(place).append(
            writer,
            target,
            facts[one.fact_id].graph_id,
            one.action,
            one.confidence,
            fact_id=one.fact_id,
            other_id=one.by,
            valid_until=_compute_end_day(one, facts),
            reason=(one.reason or "closed") if one.action == CLOSE else one.reason,
        )
        done.append(AppliedEvent(event, [one.fact_id]))
    fact_learning.settle_facts(writer, target, {one.fact_id for one in revisions})
    return done


def _compute_end_day(revision: Revision, facts: Mapping[int, FactRow]) -> int | None:
    """The day on which what is superseded no longer holds: as it is said, or when what comes after begins."""
    if revision.by is None:
        return revision.until
    before, after = facts[revision.fact_id], facts[revision.by]
    if revision.by == revision.fact_id or after.graph_id != before.graph_id:
        raise InvalidRequestError("A fact is superseded by another one of its graph.")
    if revision.until is None and after.valid_from > ALWAYS:
        return after.valid_from
    return revision.until


def _find_repeated_events(reader: Reader, target: int, author: Author) -> list[AppliedEvent]:
    """The events that the same request brought before, all of one transaction."""
    done: list[AppliedEvent] = []
    while (known := author.add_place(len(done)).find_repeated_event(reader, target)) is not None:
        facts = [known.fact_id] if known.fact_id is not None else _list_stated_facts(reader, target, known)
        done.append(AppliedEvent(known, facts))
    return done


def _list_stated_facts(reader: Reader, target: int, event: StoredFactEvent) -> list[int]:
    return fact_graph.list_stated_facts(
        reader, target, fact_events.list_statements_of_event(reader, target, event.id)
    )
