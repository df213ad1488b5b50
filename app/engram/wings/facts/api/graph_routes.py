"""Routes for a whole graph of facts: merge it, join its names, revoke verdicts on it."""

from fastapi import APIRouter

from engram.api.body_reading import Route
from engram.api.dependencies import App, OptionalKey, Posted, RequiredKey, needs
from engram.api.operations import operation
from engram.core.auth.access_keys import MODERATE
from engram.wings.facts.api.graph_schemas import (
    AlignIn,
    AlignOut,
    FactRevokeIn,
    FactRevokeOut,
    GraphMergeIn,
    GraphMergeOut,
)
from engram.wings.facts.parts import facts_of

router = APIRouter(tags=["facts"], route_class=Route)


@router.post(
    "/facts/merge", **operation("Merge a graph of facts", needs(MODERATE), 404, reads_json=True, limited=True)
)
def post_graph_merge(sent: Posted[GraphMergeIn], app: App, key: RequiredKey) -> GraphMergeOut:
    """Copy the statements of another graph into this collection's graph, once under the Idempotency-Key.

    What sources stated, what judges said of it and which entities are one comes along, once whatever is merged
    again; facts that cannot both hold compete anew. Revoking its event takes it all back.
    """
    body = sent.body
    judge, _ = sent.scope.judge(body.judge)
    return GraphMergeOut.from_service(
        body.collection, facts_of(app).graph_merges.merge(sent.scope, body.graph, body.into, judge=judge, key=key)
    )


@router.post(
    "/facts/revoke", **operation("Revoke verdicts on facts", needs(MODERATE), 404, reads_json=True, limited=True)
)
def post_facts_revoke(sent: Posted[FactRevokeIn], app: App, key: OptionalKey) -> FactRevokeOut:
    """Revoke all that a judge said of facts, or all of a span of time; or preview what that would change.

    It is one event of the log: `DELETE /facts/events/{event_id}` of it has everything count again.
    """
    body, scope = sent.body, sent.scope
    if body.preview:
        return FactRevokeOut.from_service(
            body.collection, facts_of(app).retractions.preview(scope, body.criteria(), body.graph)
        )
    judge, _ = scope.judge(body.by)
    done = facts_of(app).retractions.revoke_all(scope, body.criteria(), body.graph, judge=judge, key=key)
    return FactRevokeOut.from_service(body.collection, done)


@router.post(
    "/entities/align",
    **operation("Join names of facts", needs(MODERATE), 404, reads_json=True, limited=True, embeds=True),
)
def post_align(sent: Posted[AlignIn], app: App) -> AlignOut:
    """Merge names that mean the same, as happens with every new name. Entities that somebody split stay apart.

    For facts that came before, or through a process that could not look.
    """
    body = sent.body
    return AlignOut.from_service(
        body.collection, facts_of(app).alignment.align_all(sent.scope, body.graph, preview=body.preview)
    )
