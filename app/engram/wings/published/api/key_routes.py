"""Passage keys that evolve: what they learned and why, evolutions, and the way back."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from engram.api.dependencies import App, Limit, PathScope, QueryScope, cut_page, needs
from engram.api.operations import operation
from engram.api.path_converters import ExternalIdPath, PassageRoute, path_text
from engram.api.schemas import MAX_ID
from engram.core.auth.access_keys import MODERATE, READ
from engram.wings.published.api.key_schemas import (
    EvolveOut,
    GenerationOut,
    GenerationsOut,
    KeyOut,
    KeysOut,
    RollbackIn,
)
from engram.wings.published.parts import published_of
from engram.wings.published.services.key_evolution import KeyStanding

router = APIRouter(tags=["keys"], route_class=PassageRoute)


@router.get(
    "/passages/{passage_id:text}/key", **operation("Read a passage's key", needs(READ, readers="bound"), 404)
)
def get_key(
    passage_id: ExternalIdPath,
    app: App,
    scope: QueryScope,
    limit: Annotated[int, Query(ge=1, le=100, description="Units shown, best first.")] = 20,
) -> KeyOut:
    """Show how far the key evolved, its expansion units, and the verdicts behind each of them."""
    return KeyOut.model_validate(published_of(app).key_view.view(scope, path_text(passage_id), limit))


@router.get("/collections/{name}/keys", **operation("Read where keys stand", needs(READ), 404))
def get_keys(scope: PathScope, app: App) -> KeysOut:
    """Show the serving generation of passage keys, and what waits for the next evolution."""
    return _format_standing(published_of(app).evolve.load_standing(scope))


@router.post("/collections/{name}/evolve", **operation("Let keys evolve now", needs(MODERATE), 404))
def post_evolve(scope: PathScope, app: App) -> EvolveOut:
    """Evolve passage keys now by the validated verdicts that wait. If none waits, nothing changes."""
    generation = published_of(app).evolve.evolve(scope)
    app.auth.reads.note_write(scope.collection.id)
    return EvolveOut(
        collection=scope.collection.name,
        changed=generation is not None,
        serving=published_of(app).evolve.load_standing(scope).generation
        if generation is None
        else generation.number,
        generation=None if generation is None else GenerationOut.model_validate(generation),
    )


@router.get("/collections/{name}/generations", **operation("List evolutions", needs(READ), 404))
def get_generations(
    scope: PathScope,
    app: App,
    before: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    limit: Limit = 100,
) -> GenerationsOut:
    """List the collection's key generations, the latest first, including those rolled back."""
    rows = published_of(app).evolve.generations(scope, before, limit + 1)
    generations, last = cut_page(rows, limit)
    return GenerationsOut(
        collection=scope.collection.name,
        generations=[GenerationOut.model_validate(generation) for generation in generations],
        next_before=last and last.number,
    )


@router.post(
    "/collections/{name}/rollback", **operation("Serve another generation", needs(MODERATE), 404, reads_json=True)
)
def post_rollback(scope: PathScope, body: RollbackIn, app: App) -> KeysOut:
    """Serve the passage keys of an earlier generation.

    Nothing is deleted: you can return to a later generation. Verdicts that wait go on waiting.
    """
    standing = published_of(app).evolve.roll_back(scope, body.generation)
    app.auth.reads.note_write(scope.collection.id)
    return _format_standing(standing)


def _format_standing(standing: KeyStanding) -> KeysOut:
    return KeysOut(collection=standing.collection, generation=standing.generation, **asdict(standing.progress))
