"""Why: what is remembered of a sentence, and what made it so."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import AfterValidator

from engram.api.body_reading import Route
from engram.api.dependencies import App, QueryScope, needs
from engram.api.operations import operation
from engram.api.schemas import MAX_ID, check_storable
from engram.core.auth.access_keys import AUDIT
from engram.wings.why.api.memory_schemas import SentenceMemoryOut
from engram.wings.why.parts import why_of

router = APIRouter(tags=["explanations"], route_class=Route)


@router.get(
    "/sentences/{sentence_id}/memory",
    **operation("Read a sentence's memory", needs(AUDIT, readers="bound"), 404, embeds=True),
)
def get_sentence_memory(
    sentence_id: Annotated[int, Path(ge=1, le=MAX_ID)],
    app: App,
    scope: QueryScope,
    query: Annotated[
        str | None,
        # Percent-encoded, the longest one still fits the 64 KiB that uvicorn takes of a request's head.
        Query(max_length=5_000, description="A text to tell how near the memory is to."),
        AfterValidator(check_storable),
    ] = None,
    after: Annotated[int, Query(ge=0, le=MAX_ID, description="Sequence of the last verdict seen.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000, description="Verdicts per page.")] = 100,
) -> SentenceMemoryOut:
    """Show a sentence's channels, the questions that it supports, and every verdict that moved it.

    For each verdict: the memory's nearness to the verdict's question before it, after it and now.
    """
    return SentenceMemoryOut.model_validate(
        why_of(app).explain.sentence(scope, sentence_id, query, after=after, limit=limit)
    )
