"""Asking: queries, and answers in words."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from engram.api.body_reading import Route
from engram.api.dependencies import (
    App,
    Asking,
    AskingRequest,
    ParentTrace,
    PathScope,
    Posted,
    QueryAt,
    QueryScope,
    needs,
)
from engram.api.operations import operation, question_operation
from engram.api.problem_document import Problem
from engram.api.problems import content
from engram.api.question.answer_schemas import (
    AnswerOut,
    BatchedOut,
    BatchOut,
    CitationOut,
    EpisodeOut,
    QueryOut,
    SuggestionsOut,
    TracedQueriesOut,
    TracedQueryOut,
)
from engram.api.question.question_schemas import AnswerIn, BatchIn, JointQueryIn, QueryIn
from engram.api.schemas import OnBehalfOfQuery, Storable, TraceId, WarningOut
from engram.context import deadline
from engram.context.errors import CollectionMovedError, EngramError, InvalidRequestError, UnavailableError
from engram.core.auth.access_keys import LLM, QUERY
from engram.services.auth.scope import LOCAL, Scope
from engram.services.question.query import Query as ServiceQuery

router = APIRouter(tags=["queries"], route_class=Route)


@router.post(
    "/query",
    response_model=QueryOut,
    response_model_exclude_unset=False,
    **question_operation("Retrieve passages for a question"),
)
async def post_query(body: JointQueryIn, asking: Asking) -> Response:
    """Retrieve passages for a question, guided by what verdicts taught: of a collection, or of several at once."""
    return await _answer_in_turn(asking, [body], partial(_answer_jointly, asking, body))


@router.post(
    "/queries:batch",
    response_model=BatchOut,
    **operation(
        "Retrieve passages for several questions", needs(QUERY, readers="bound"), reads_json=True, limited=True
    ),
)
async def post_queries(body: BatchIn, asking: Asking) -> Response:
    """Answer several questions as `POST /query` does, one after the other, within the time limit of one request.

    What is wrong with one is told in its place, and the others are answered; 503 only where nothing was.
    """
    return await _answer_in_turn(asking, body.queries, partial(_batch, asking, body))


def _batch(asking: AskingRequest, body: BatchIn) -> BatchOut:
    answers: list[BatchedOut] = []
    away: UnavailableError | None = None
    for query in body.queries:
        try:
            answer = _answer_query(asking, query, _find_scope(asking, query.collection, counts=True))
        except EngramError as error:
            away = away or (error if isinstance(error, UnavailableError) else None)
            answers.append(BatchedOut(problem=Problem.model_validate(content(error))))
        else:
            answers.append(BatchedOut(answer=answer))
    if away is not None and all(one.answer is None for one in answers):
        raise away
    return BatchOut(answers=answers)


def _find_scope(asking: AskingRequest, collection: str, *, counts: bool) -> Scope:
    """The scope of a question; one of several ``counts`` towards the quotas of its tenant as if it came alone."""
    if counts and asking.asker is not LOCAL:
        asking.app.auth.quotas.take(asking.asker, "queries")
    return asking.app.auth.access.scope_or_missing(collection, asking.asker, asking.need)


def _find_scopes(asking: AskingRequest, names: Sequence[str]) -> list[Scope]:
    """The scopes of a question to several collections.

    Raises:
        CollectionMovedError: all of them live in one other database.
        InvalidRequestError: they live in different ones.
    """
    scopes: list[Scope] = []
    moved: list[CollectionMovedError] = []
    for position, name in enumerate(names):
        try:
            scopes.append(_find_scope(asking, name, counts=position > 0))
        except CollectionMovedError as error:
            moved.append(error)
    if moved and (scopes or len({error.extra.get("moved_to") for error in moved}) > 1):
        raise InvalidRequestError("These collections live in different databases: ask them one by one.")
    if moved:
        raise moved[0]
    return scopes


def _answer_jointly(asking: AskingRequest, body: JointQueryIn) -> QueryOut:
    if not body.collections:
        return _answer_query(asking, body, _find_scope(asking, body.collection, counts=False))
    if asking.rate is not None and len(body.collections) > 1:
        asking.rate.take(len(body.collections) - 1)
    scopes = _find_scopes(asking, body.collections)
    with ExitStack() as stack:
        queries = [stack.enter_context(_open_query(body, scope, asking.parent)) for scope in scopes]
        return QueryOut.join(asking.app.answers.joint.serve(queries))


def _answer_query(asking: AskingRequest, body: QueryIn, scope: Scope) -> QueryOut:
    answers = asking.app.answers
    with _open_query(body, scope, asking.parent) as query:
        return QueryOut.model_validate(answers.context.add(query, answers.question.serve(query)))


@contextmanager
def _open_query(body: QueryIn, scope: Scope, parent: str | None) -> Iterator[ServiceQuery]:
    """A block that asks as whom the body names; its query."""
    if body.stop_rule == "llm":
        scope.need(LLM, "A language model that says whether the evidence suffices")
    with scope.act_as(body.as_) as acted:
        yield body.to_query(acted, parent)


async def _answer_in_turn(
    asking: AskingRequest, queries: Sequence[QueryIn], answer: Callable[[], BaseModel]
) -> Response:
    """Answer queries in turn, as JSON; those that mostly wait for a language model take no turn."""

    def write_response() -> Response:  # where it was made: on the event loop all others would wait for it
        deadline.check()  # the client may have left while it waited for its turn
        return Response(answer().model_dump_json(by_alias=True), media_type="application/json")

    asks_model = asking.app.settings.llm_time_extraction or any(query.stop_rule == "llm" for query in queries)
    return await (run_in_threadpool(write_response) if asks_model else asking.threads.do(write_response))


@router.get("/queries", **operation("List the queries of a trace", needs(QUERY, readers="bound"), 404))
def get_queries(
    app: App, scope: QueryScope, trace_id: Annotated[TraceId, Query(description="As `POST /query` took it.")]
) -> TracedQueriesOut:
    """List up to a thousand queries of a trace that you may see; none if no query has this trace id."""
    traced = app.answers.episodes.list_trace_queries(scope, trace_id)
    return TracedQueriesOut(
        collection=scope.collection.name,
        trace_id=trace_id,
        queries=[TracedQueryOut(query_id=one.id, query=one.question, created_at=one.created_at) for one in traced],
    )


@router.get("/queries/{query_id}", **operation("Read an answered query", needs(QUERY, readers="bound"), 404))
def get_query(app: App, at: QueryAt) -> EpisodeOut:
    """Return a stored answer with its trace. Passages deleted since are left out."""
    episode = app.answers.episodes.read(at.scope, at.id)
    return EpisodeOut.model_validate(
        {
            **episode.answer,
            "entities": episode.trace.entities,
            "trace": episode.trace,
            "judged": episode.judged,
            "created_at": episode.created_at,
        }
    )


@router.get(
    "/collections/{name}/suggestions",
    **operation("Suggest names and titles", needs(QUERY, readers="bound"), 404),
)
def get_suggestions(
    app: App,
    scope: PathScope,
    prefix: Annotated[
        Storable, Query(max_length=200, description="What was typed so far, two letters at least.")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=20)] = 10,
    on_behalf_of: OnBehalfOfQuery = None,
) -> SuggestionsOut:
    """Suggest names and titles that begin with a prefix, of passages that you may see; never past questions.

    `as` takes the scope `act-as`.
    """
    with scope.act_as(on_behalf_of) as acted:
        suggestions = app.answers.suggestions.suggest(acted, prefix, limit)
    return SuggestionsOut(collection=scope.collection.name, suggestions=suggestions)


@router.post("/answer", **question_operation("Answer a question in words"))
def post_answer(sent: Posted[AnswerIn], app: App, parent: ParentTrace) -> AnswerOut:
    """Retrieve, let the configured LLM answer, and cite the sentences it rests on; takes the scope `llm` too."""
    with sent.scope.act_as(sent.body.as_) as scope:
        answer = app.answers.answer.answer(sent.body.to_query(scope, parent))
    return AnswerOut(
        answer=answer.text,
        sufficient=answer.sufficient,
        citations=[CitationOut.model_validate(citation) for citation in answer.citations],
        retrieval=QueryOut.model_validate(answer.retrieval),
        warnings=[WarningOut.model_validate(warning) for warning in answer.warnings],
    )
