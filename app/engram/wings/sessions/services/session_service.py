"""Sessions as callers know them: started, read, gone on with, cancelled."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from uuid import UUID, uuid4

import structlog

from engram.context import tenancy
from engram.context.errors import ConflictError, InvalidRequestError, LlmNotConfiguredError
from engram.core.auth.access_keys import ADMIN, AUDIT, INGEST, JUDGE, LLM
from engram.core.budget import Budget
from engram.providers.llm import Llm
from engram.services.auth.scope import Scope
from engram.services.encoders.encoder import Encoder
from engram.services.jobs.idempotent_jobs import begin_once
from engram.services.jobs.job_runner import Runner
from engram.services.question.query import create_query_id
from engram.services.verdict.resolution import resolve_verdict
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.corpus import collections
from engram.storage.corpus.collections import ResourceKind
from engram.storage.database import Database, Writer
from engram.storage.jobs import jobs
from engram.wings.sessions.core.session import SessionSummary, Status, find_exhausted_limit
from engram.wings.sessions.services.planner import SessionPlanner
from engram.wings.sessions.services.rfm_rag_planner import adapt_request
from engram.wings.sessions.services.session_jobs import session_kind
from engram.wings.sessions.services.session_reading import SessionRows, load
from engram.wings.sessions.services.session_state import SessionRequest, SessionState
from engram.wings.sessions.services.session_views import SessionProgress, SessionView, session_view
from engram.wings.sessions.services.tree_options import parse_planner_options, read_options
from engram.wings.sessions.storage import session_lists, sessions

log = structlog.get_logger(__name__)

WAIT_SECONDS = 60.0
"""How long a request that waits does so; a session that takes longer goes on with a worker."""
POLL_SECONDS = 0.05
SESSION = ResourceKind("session", "session")
CALLER = "caller"
"""The planner of sessions whose rounds are all asked for by their caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """A session to start."""

    question: str
    planner: str = "auto"
    request: SessionRequest = field(default_factory=SessionRequest)
    budget: Budget = field(default_factory=Budget)


class SessionService:
    """Starts sessions, reads them, and has them go on or end."""

    def __init__(
        self,
        database: Database,
        encoder: Encoder,
        runner: Runner,
        planners: dict[str, SessionPlanner],
        llm: Llm | None,
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._runner = runner
        self._planners = planners
        self._llm = llm

    def start(self, scope: Scope, new: NewSession, key: str | None = None) -> UUID:
        """Queue a session; the first one of a repeated key.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            InvalidRequestError: there is no such planner, an option is none of its, or the question has too many
                tokens.
            LlmNotConfiguredError: it needs an endpoint, or the answer does, and none is configured.
            IdempotencyConflictError: the key was used before with another request.
            EmbeddingSpaceMismatchError: the collection's vectors are of another encoder.
            ForbiddenError: it is to learn, and whoever asks may not judge; or it needs a language model, and they
                may not use it. Where rules do without one, they do.
        """
        target, session = scope.collection, create_query_id()
        self._encoder.check(target)
        self._encoder.check_question(new.question)
        new = replace(new, request=adapt_request(new.planner, new.request))
        self._check(new)
        if new.request.learn:
            scope.need(JUDGE, "A session whose own conclusion counts as a verdict")
        if parse_planner_options(new.request.options).graph is not None:
            scope.need(INGEST, "A session whose graph is kept as one of the collection's")
            scope.need(JUDGE, "A session whose graph is kept, corrections included")
        if not scope.is_allowed(LLM):
            self._check_rules_do(scope, new)
            new = replace(new, budget=replace(new.budget, llm_calls=0))
        asked, budget = asdict(new.request), asdict(new.budget)
        runs = new.planner != CALLER

        def begin(writer: Writer) -> None:
            sessions.add(
                writer,
                target.id,
                session,
                job=session if runs else None,
                principal=scope.principal.name,
                caller=scope.principal.caller,
                trusted=scope.principal.trusted,
                llm_tokens=scope.principal.llm_tokens,
                readers=scope.principal.readers,
                question=new.question,
                planner=new.planner,
                request=asked,
                budget=budget,
            )
            if runs:
                self._queue(writer, target.id, session, session, {"session": str(session)}, new.budget.rounds)

        request = json.dumps(["session", new.question, new.planner, asked, budget], sort_keys=True)
        body_hash = hashlib.sha256(request.encode()).digest()
        session_id, opened = begin_once(
            self._database, target.id, target.name, scope.principal.name, key, body_hash, session, begin
        )
        if opened:
            log.info("session accepted", session_id=str(session_id), collection=target.name, planner=new.planner)
        return session_id

    def go_on(
        self, scope: Scope, session: UUID, question: str | None = None, evidence: Sequence[NamedSentence] = ()
    ) -> UUID:
        """Queue one more round, of the planner's choice or with a sub-question or evidence of the caller's; its
        job.

        Raises:
            NotFoundError: there is no such session.
            ConflictError: it runs, ended otherwise than by stopping, or has spent its budget.
            InvalidRequestError: there is no such sentence, or the caller says nothing where no planner would.
            ForbiddenError: it is another's, who would read what is asked now; that takes ``admin``.
        """
        target = scope.collection
        self._encoder.check_question(question or "")
        state = self.state(scope, session)
        _check_changeable(scope, state.principal)
        if state.planner == CALLER and question is None and not evidence:
            raise InvalidRequestError("A round of this session needs a question or evidence: it has no planner.")
        reason = find_exhausted_limit(state.budget, state.cost)
        if reason is not None:
            raise ConflictError(f"Session {session} has spent its budget of {reason.replace('_', ' ')}.")
        round_payload = {"question": question, "evidence": self._resolve_evidence(scope, evidence)}
        job = uuid4()
        # Whoever goes on with another's session has it go on as that one's.
        readers = scope.principal.readers if state.principal == scope.principal.name else state.readers
        with self._database.write() as writer:
            if not collections.lock_against_deletion(writer, target.id):
                raise collections.build_gone_error(target.name)
            self._queue(writer, target.id, session, job, {"session": str(session), "round": round_payload}, 1)
            if not sessions.go_on(writer, target.id, session, job, readers):
                stored = sessions.find(writer, target.id, session)
                status = "gone" if stored is None else stored.status
                raise ConflictError(f"Session {session} is {status}; only one that stopped goes on.")
        return job

    def wait(self, scope: Scope, session: UUID) -> SessionView:
        """The session once it does not run any more, done here unless a worker does; at most ``WAIT_SECONDS``.

        What is ready before it in its lane of the collection is done first.

        Raises:
            NotFoundError: there is no such session.
        """
        claimant, lane = uuid4(), session_kind(session).lane
        deadline = time.monotonic() + WAIT_SECONDS

        def is_over() -> bool:
            return time.monotonic() >= deadline

        while self._is_running(scope, session) and not is_over():
            with tenancy.allow_all_readers():  # a session sees what its own asker may
                job = self._runner.claim(claimant, [lane], scope.collection.id)
                if job is not None:
                    self._runner.carry_out(job, is_over)
            if job is None:
                time.sleep(POLL_SECONDS)
        return self.read(scope, session)

    def read(self, scope: Scope, session: UUID) -> SessionView:
        """The session whole, with the texts that there still are.

        Raises:
            NotFoundError: there is no such session.
        """
        rows = self._load_rows(scope, session)
        with self._database.read() as reader:
            return session_view(reader, scope, rows)

    def page(self, scope: Scope, status: Status | None, before: UUID | None, limit: int) -> list[SessionSummary]:
        """List the collection's sessions that the caller may see, the latest first.

        Args:
            status: only sessions with this status; None for all.
            before: only sessions that began before the session with this id; None for all.
        """
        may_see_all = scope.is_allowed(AUDIT)
        with self._database.read() as reader:
            return session_lists.page(
                reader,
                scope.collection.id,
                status=status,
                principal=None if may_see_all else scope.principal.name,
                before=before,
                limit=limit,
            )

    def progress(self, scope: Scope, session: UUID, after: int) -> SessionProgress:
        """The session's status, and its rounds after the number ``after``.

        Raises:
            NotFoundError: there is no such session.
        """
        rows = self._load_rows(scope, session)
        return SessionProgress(rows.stored.status, [one for one in rows.rounds if one.number > after])

    def state(self, scope: Scope, session: UUID) -> SessionState:
        """The session as planners see it.

        Raises:
            NotFoundError: there is no such session.
        """
        return self._load_rows(scope, session).to_state(scope.collection.id)

    def cancel(self, scope: Scope, session: UUID) -> SessionView:
        """Have the session end; what its rounds found stays. One that has ended stays as it is.

        A round that is in hand is not kept.

        Raises:
            NotFoundError: there is no such session.
            ForbiddenError: it is another's; that takes ``admin``.
        """
        target = scope.collection
        with self._database.write() as writer:
            if not collections.lock_against_deletion(writer, target.id):
                raise collections.build_gone_error(target.name)
            stored = sessions.find(writer, target.id, session)
            if stored is None or not scope.sees(stored.principal):
                raise collections.build_missing_resource_error(SESSION, session)
            _check_changeable(scope, stored.principal)
            if stored.job_id is not None and stored.status == "running":
                jobs.request_cancel(writer, target.id, stored.job_id)
            sessions.end(writer, target.id, session, "cancelled")
        return self.read(scope, session)

    def _load_rows(self, scope: Scope, session: UUID) -> SessionRows:
        """The session, if there is one and whoever asks may see it; raises NotFoundError else."""
        rows = load(self._database, scope.collection.id, session)
        if rows is None or not scope.sees(rows.stored.principal):
            raise collections.build_missing_resource_error(SESSION, session)
        return rows

    def _is_running(self, scope: Scope, session: UUID) -> bool:
        with self._database.read() as reader:
            stored = sessions.find(reader, scope.collection.id, session)
        if stored is None:
            raise collections.build_missing_resource_error(SESSION, session)
        return stored.status == "running"

    def _check(self, new: NewSession) -> None:
        planner = self._planners.get(new.planner)
        if planner is None and new.planner != CALLER:
            names = ", ".join([*self._planners, CALLER])
            raise InvalidRequestError(f"There is no planner {new.planner!r}; there are {names}.")
        read_options(new.request.options)
        if self._llm is not None:
            return
        if planner is not None and planner.needs_llm:
            raise LlmNotConfiguredError(f"Planner {new.planner!r} needs ENGRAM_LLM_BASE_URL to be set.")
        if new.request.answer:
            raise LlmNotConfiguredError("A session with an answer needs ENGRAM_LLM_BASE_URL to be set.")
        if new.request.stop == "llm":
            raise LlmNotConfiguredError("stop 'llm' needs ENGRAM_LLM_BASE_URL to be set.")

    def _check_rules_do(self, scope: Scope, new: NewSession) -> None:
        planner = self._planners.get(new.planner)
        if (planner is not None and planner.needs_llm) or new.request.answer or new.request.stop == "llm":
            scope.need(LLM, "A session that needs a language model")

    def _queue(
        self, writer: Writer, collection_id: int, session: UUID, job: UUID, payload: dict[str, object], rounds: int
    ) -> None:
        kind = session_kind(session)
        jobs.add(writer, collection_id, job, kind=kind.name, lane=kind.lane, payload=payload, received=rounds)

    def _resolve_evidence(self, scope: Scope, evidence: Sequence[NamedSentence]) -> list[int]:
        """The ids of the caller's sentences: nothing enters a pool that is not a sentence of a passage."""
        if not evidence:
            return []
        with self._database.read() as reader:
            verdict = Verdict(query_id=UUID(int=0), scope=scope, supporting=evidence)
            return list(resolve_verdict(reader, verdict).supports)


def _check_changeable(scope: Scope, owner: str) -> None:
    """See that who may read a session may change it: it is its own, or everything is allowed."""
    if owner != scope.principal.name:
        scope.need(ADMIN, "To change another's session")
