"""Facts: what sources state, what judges say of it, and what can be found of it."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.concurrency import run_in_threadpool
from starlette.routing import Match
from starlette.types import Scope as RequestScope

from engram.api.body_reading import Route
from engram.api.dependencies import (
    Answering,
    App,
    Limit,
    OptionalKey,
    Posted,
    PostedBody,
    QueryScope,
    RequiredKey,
    needs,
)
from engram.api.operations import operation
from engram.api.schemas import MAX_ID, CollectionName, OnBehalfOfQuery
from engram.composition.container import Application
from engram.core.auth.access_keys import INGEST, JUDGE, LLM, MODERATE, QUERY, READ
from engram.core.budget import Budget
from engram.services.auth.scope import LOCAL, Scope
from engram.wings.facts.api.entity_schemas import (
    CountIn,
    FactEntityOut,
    MergeIn,
    PredicateIn,
    PredicateOut,
    PredicatesOut,
    SplitIn,
)
from engram.wings.facts.api.fact_out_schemas import EventOut, FactDetail, FactSearchOut, FactsOut
from engram.wings.facts.api.fact_schemas import FactSearchIn, FactsIn, ReviseIn
from engram.wings.facts.parts import facts_of

NO_IDS = frozenset({"align", "merge", "revise", "revoke", "search"})


class FactRoute(Route):
    """A route on facts. ``/facts/revise`` and their like are routes of their own and name none."""

    def matches(self, scope: RequestScope) -> tuple[Match, RequestScope]:
        """Match like every route, except for reserved names."""
        match, child = super().matches(scope)
        named = child.get("path_params", {})
        if match is not Match.NONE and {named.get("fact_id"), named.get("entity_id")} & NO_IDS:
            return Match.NONE, {}
        return match, child


router = APIRouter(tags=["facts"], route_class=FactRoute)
FactId = Annotated[int, Path(ge=1, le=MAX_ID)]
EntityId = Annotated[int, Path(ge=1, le=MAX_ID)]
Graph = Annotated[CollectionName | None, Query(description="A graph of its own; by default the collection's.")]


@router.post("/facts", **operation("State facts", needs(INGEST, readers="bound"), 404, 502, reads_json=True))
async def post_facts(sent: Posted[FactsIn], app: App, key: OptionalKey, answering: Answering) -> FactsOut:
    """State facts in the name of a source, or a text from which the language model reads facts.

    What several sources state is believed the more. Facts of a subject that cannot both hold compete.
    """
    work = partial(_state_facts, sent, app, key)
    # Storing facts takes the processor, as questions do; a language model is waited for.
    return await (answering.do(work) if sent.body.text is None else run_in_threadpool(work))


def _state_facts(sent: PostedBody[FactsIn], app: Application, key: str | None) -> FactsOut:
    body, scope = sent.body, sent.scope
    state = partial(
        facts_of(app).facts.state,
        scope,
        source=body.source,
        graph_name=body.graph,
        key=key,
        fingerprint=body.request_values(),
    )
    if body.text is None:
        _take_facts(app, scope, len(body.facts))
        applied = state([fact.to_stated_fact() for fact in body.facts])
        return FactsOut.from_service(body.collection, [applied], facts_of(app).views.facts(scope, applied.facts))
    facts_of(app).texts.require_model()
    scope.need(LLM, "A language model that reads facts")
    earlier_statement = facts_of(app).facts.find_earlier_statement(
        scope, source=body.source, graph_name=body.graph, key=key, fingerprint=body.request_values()
    )
    if earlier_statement is not None:  # the model is not asked twice for what counts once
        return FactsOut.from_service(
            body.collection, [earlier_statement], facts_of(app).views.facts(scope, earlier_statement.facts)
        )
    read = facts_of(app).texts.read(body.title, body.text, Budget(**body.budget.model_dump()))
    _take_facts(app, scope, len(read.stated))
    applied = state(read.stated)
    return FactsOut.from_service(body.collection, [applied], facts_of(app).views.facts(scope, applied.facts), read)


def _take_facts(app: Application, scope: Scope, count: int) -> None:
    """Count facts towards the quota of whoever states them."""
    if scope.principal is not LOCAL and count:
        app.auth.quotas.take(scope.principal, "facts", count)


@router.post(
    "/facts/revise",
    **operation("Judge facts", needs(JUDGE, readers="bound"), 404, 502, reads_json=True, limited=True),
)
def post_facts_revise(sent: Posted[ReviseIn], app: App, key: RequiredKey) -> FactsOut:
    """Confirm, contradict, supersede or close facts, once under the Idempotency-Key. It never deletes a fact.

    An instruction in words needs an LLM, which says what it means for the facts that it speaks of.
    """
    with sent.scope.act_as(sent.body.as_) as scope:
        return _revise_facts(app, scope, sent.body, key)


def _revise_facts(app: Application, scope: Scope, body: ReviseIn, key: str) -> FactsOut:
    judge, _ = scope.judge(body.judge)
    if body.instruction is not None:
        scope.need(LLM, "A language model that says what an instruction changes")
        applied = facts_of(app).instructions.carry_out(
            scope, body.instruction, judge=judge, key=key, graph=body.graph
        )
    else:
        revisions = [one.revision() for one in body.revisions]
        applied = facts_of(app).facts.revise(scope, revisions, judge=judge, key=key)
    facts = [fact for one in applied for fact in one.facts]
    return FactsOut.from_service(body.collection, applied, facts_of(app).views.facts(scope, facts))


@router.post(
    "/facts/search", **operation("Search facts", needs(QUERY, readers="bound"), 404, reads_json=True, limited=True)
)
def post_facts_search(sent: Posted[FactSearchIn], app: App) -> FactSearchOut:
    """Find paths of facts from the names in a question, and write them as text with citations.

    Edges lead in both directions. Of an entity with very many, a bounded number is looked at.
    """
    with sent.scope.act_as(sent.body.as_) as scope:
        result = facts_of(app).fact_search.search(scope, sent.body.as_pattern())
    return FactSearchOut.from_service(sent.body.collection, result)


@router.get("/facts/{fact_id}", **operation("Read a fact", needs(READ, readers="bound"), 404))
def get_fact(fact_id: FactId, app: App, scope: QueryScope, on_behalf_of: OnBehalfOfQuery = None) -> FactDetail:
    """Show a fact, its sources, and everything that changed its belief, in order."""
    with scope.act_as(on_behalf_of) as acted:
        return FactDetail.from_view(facts_of(app).views.fact(acted, fact_id))


@router.delete("/facts/events/{event_id}", **operation("Revoke what was said of facts", needs(MODERATE), 404))
def delete_fact_event(event_id: Annotated[int, Path(ge=1, le=MAX_ID)], app: App, scope: QueryScope) -> EventOut:
    """Revoke a statement, a revision or a merge, and undo all its effects. Repeating it changes nothing.

    Of a statement the sentences are removed, and facts that nobody else states; of a merged graph what it brought
    along. Revoking a revocation in bulk has what it took back count again.
    """
    return EventOut.model_validate(facts_of(app).retractions.revoke(scope, event_id))


@router.get("/entities/{entity_id}", **operation("Read an entity", needs(READ, readers="bound"), 404))
def get_entity(
    entity_id: EntityId, app: App, scope: QueryScope, limit: Limit = 100, on_behalf_of: OnBehalfOfQuery = None
) -> FactEntityOut:
    """Show an entity, what was merged into it, and the facts around it, the surest first."""
    with scope.act_as(on_behalf_of) as acted:
        return FactEntityOut.from_service(facts_of(app).views.entity(acted, entity_id, limit))


@router.post("/entities/{entity_id}/merge", **operation("Merge entities", needs(MODERATE), 404, reads_json=True))
def post_merge(entity_id: EntityId, sent: Posted[MergeIn], app: App, key: RequiredKey) -> FactEntityOut:
    """Merge entities into this one, once under the Idempotency-Key. A split takes it back."""
    body = sent.body
    judge, _ = sent.scope.judge(body.judge)
    facts_of(app).entity_merges.merge(sent.scope, entity_id, body.entities, judge=judge, key=key)
    return FactEntityOut.from_service(facts_of(app).views.entity(sent.scope, entity_id, 100))


@router.post("/entities/{entity_id}/split", **operation("Split entities", needs(MODERATE), 404, reads_json=True))
def post_split(entity_id: EntityId, sent: Posted[SplitIn], app: App) -> FactEntityOut:
    """Split an entity: undo what was merged into it, or its own merge into another."""
    facts_of(app).entity_merges.split(sent.scope, entity_id)
    return FactEntityOut.from_service(facts_of(app).views.entity(sent.scope, entity_id, 100))


@router.get("/predicates", **operation("List predicates", needs(READ, readers="bound"), 404))
def get_predicates(
    app: App, scope: QueryScope, graph: Graph = None, on_behalf_of: OnBehalfOfQuery = None
) -> PredicatesOut:
    """List the functional predicates, declared or learned from counts."""
    with scope.act_as(on_behalf_of) as acted:
        predicates = facts_of(app).views.predicates(acted, graph)
    return PredicatesOut(
        collection=scope.collection.name, predicates=[PredicateOut.model_validate(one) for one in predicates]
    )


@router.put("/predicates", **operation("Declare a predicate", needs(MODERATE), 404, reads_json=True))
def put_predicate(sent: Posted[PredicateIn], app: App) -> PredicateOut:
    """Declare that a subject has one object at a time, or that it may have several. Its facts get new beliefs."""
    body = sent.body
    return PredicateOut.model_validate(
        facts_of(app).predicates.declare(sent.scope, body.predicate, body.functional, body.graph)
    )


@router.post("/predicates/count", **operation("Count predicates", needs(MODERATE), 404, reads_json=True))
def post_count(sent: Posted[CountIn], app: App) -> PredicatesOut:
    """Learn which predicates are functional from how often a subject has one object at a time."""
    predicates = facts_of(app).predicates.count(sent.scope, sent.body.graph)
    return PredicatesOut(
        collection=sent.body.collection, predicates=[PredicateOut.model_validate(one) for one in predicates]
    )
