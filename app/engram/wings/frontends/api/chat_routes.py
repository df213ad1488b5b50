"""OpenAI's chat completions over a collection, for frontends that speak nothing else."""

import json
import re
import time
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse

from engram.api.body_reading import Route
from engram.api.dependencies import App, Asker, ParentTrace, Posted, needs
from engram.api.operations import question_operation
from engram.api.problems import responses
from engram.core.auth.access_keys import READ
from engram.wings.frontends.api.chat_schemas import ChatIn, ChatOut, ModelOut, ModelsOut
from engram.wings.frontends.api.vector_store_schemas import unix_seconds
from engram.wings.frontends.parts import FrontendServices

router = APIRouter(tags=["chat"], route_class=Route, prefix="/v1")
MODELS = 1_000
MESSAGE_ID = re.compile(r"[A-Za-z0-9_.:-]{1,200}", re.ASCII)
STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The completion; with `stream` as server-sent events, `[DONE]` last.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.post(
    "/chat/completions", response_model=ChatOut, **question_operation("Answer in a chat", answers=STREAM_RESPONSES)
)
def post_chat(
    sent: Posted[ChatIn],
    app: App,
    parent: ParentTrace,
    message_id: Annotated[str | None, Header(alias="x-openwebui-message-id", include_in_schema=False)] = None,
) -> ChatOut | StreamingResponse:
    """Answer as `POST /answer` does, in the shape of OpenAI's chat completions.

    It takes scope `llm` too, if an LLM is configured. The model names the collection. If other messages precede
    the last one, the configured LLM restates that first. Without an LLM the answer quotes the sentences that
    answer best with what stands around them, or says that the collection has no answer. Of a message
    that is too long the beginning and the end are read. Member `engram` holds what the answer rests on, and the
    `query_id` of a verdict.
    """
    body = sent.body
    with sent.scope.act_as(body.as_) as scope:
        answer = app.wing(FrontendServices).chat.answer(
            body.to_query(scope, _message_trace(message_id) or parent),
            body.list_earlier_turns(),
            body.list_warnings(),
        )
    completion = ChatOut.from_service(answer, body.model, int(time.time()))
    if not body.stream:
        return completion
    return StreamingResponse(
        _events(completion),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


@router.get(
    "/models",
    response_model=ModelsOut,
    dependencies=[needs(READ, readers="bound")],
    responses=responses(503),
    summary="List collections as models",
)
def get_models(app: App, asker: Asker) -> ModelsOut:
    """List up to a thousand collections that your key may read, as models for a chat frontend."""
    collections = app.corpus.ingest.collections(None, MODELS, asker)
    return ModelsOut(data=[ModelOut(id=one.name, created=unix_seconds(one.created_at)) for one in collections])


def _message_trace(message_id: str | None) -> str | None:
    """The id of Open WebUI's message, if it can be a trace id; an unfilled or odd header is ignored."""
    return message_id if message_id and MESSAGE_ID.fullmatch(message_id) else None


def _events(completion: ChatOut) -> Iterator[str]:
    for chunk in completion.chunks():
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"
