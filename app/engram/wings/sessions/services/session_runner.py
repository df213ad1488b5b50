"""Running sessions: a planner's steps one after the other, each committed by one transaction.

The state is read from Postgres before each step, so a session goes on where it was in whatever process claims its
job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from engram.context import tenancy
from engram.context.errors import BudgetSpentError, LlmError
from engram.core.auth.access_keys import ADMIN, ANY_COLLECTION, AUDIT, MODERATE, SCOPES, Grants
from engram.providers.language import Language
from engram.providers.llm import Llm, token_meter
from engram.services.auth.quotas import QuotaService
from engram.services.auth.scope import Principal, Scope, is_keyless
from engram.services.jobs.work import Work
from engram.services.judges.judge_exam import ModelExam
from engram.services.question.pipeline import QuestionPipeline
from engram.services.question.query import Fallback
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database, Writer
from engram.storage.jobs import jobs
from engram.storage.jobs.jobs import Job
from engram.wings.sessions.core.session import (
    Conclusion,
    Cost,
    CurationCounts,
    PoolSentence,
    Round,
    find_exhausted_limit,
)
from engram.wings.sessions.services.caller_round import CallerRound, read_caller_round, run_caller_round
from engram.wings.sessions.services.planner import Finish, SessionPlanner, SessionStep
from engram.wings.sessions.services.round_judge import RoundJudge
from engram.wings.sessions.services.session_feedback import Teacher
from engram.wings.sessions.services.session_reading import load
from engram.wings.sessions.services.session_state import (
    SessionState,
    format_cost,
    read_readers,
)
from engram.wings.sessions.services.session_tools import StepTools
from engram.wings.sessions.storage import asked_queries, sessions
from engram.wings.sessions.storage.sessions import EvidenceRow, RoundUpdate

log = structlog.get_logger(__name__)


class SessionRunner:
    """Does jobs of kind "session"."""

    def __init__(
        self,
        database: Database,
        question: QuestionPipeline,
        language: Language,
        llm: Llm | None,
        planners: Mapping[str, SessionPlanner],
        teacher: Teacher,
        quotas: QuotaService,
        finishers: Mapping[str, Finish],
        round_judge: RoundJudge,
        exam: ModelExam,
    ) -> None:
        """Run sessions.

        Args:
            planners: by name.
            finishers: of these planners, those that act on sessions that stopped.
        """
        self._database = database
        self._question = question
        self._language = language
        self._llm = llm
        self._planners = planners
        self._teacher = teacher
        self._quotas = quotas
        self._finishers = finishers
        self._round_judge = round_judge
        self._exam = exam

    def run(self, work: Work) -> None:
        """Do rounds until the session ends, or the one that was asked for."""
        caller_round = read_caller_round(work.job.payload)
        session = UUID(work.job.payload["session"])
        self._forget_asked(work.job)
        with self._database.read() as reader:
            collection = collections.load_by_id(reader, work.job.collection_id)
        while not work.should_stop():
            state = self._load(collection, session)
            if state is None:
                self._close(work, None)
                return
            asker = _restore_asker(state, collection.tenant)
            if state.status != "running":
                self._finish(work, Scope(asker, collection), state)
                return
            with token_meter.on(None if is_keyless(asker) else self._quotas.meter(asker)):
                self._step(work, Scope(asker, collection), state, caller_round)

    def let_go(self, writer: Writer, job: Job) -> None:
        """End the session whose job was cancelled, or failed for good."""
        stored = jobs.find(writer, job.collection_id, job.id)
        status = "cancelled" if stored is not None and stored.status == "cancelled" else "failed"
        sessions.end(writer, job.collection_id, UUID(job.payload["session"]), status)
        asked_queries.delete(writer, job)

    def _load(self, collection: Collection, session: UUID) -> SessionState | None:
        """The session as its asker may see it."""
        with self._database.read() as reader:
            stored = sessions.find(reader, collection.id, session)
        with tenancy.restrict_to(collection.tenant, None if stored is None else read_readers(stored)):
            rows = load(self._database, collection.id, session)
        return None if rows is None else rows.to_state(collection.id)

    def _step(self, work: Work, scope: Scope, state: SessionState, caller_round: CallerRound | None) -> None:
        tools = StepTools(
            self._database, self._question, self._language, self._llm, scope, state, partial(self._note_query, work)
        )
        with tenancy.restrict_to(scope.principal.tenant, scope.principal.readers):
            step = self._plan_step(scope, state, tools, caller_round)
        cost = tools.meter.cost + Cost(rounds=int(step.action is not None))
        written = _build_round_update(state, step, cost, tools.meter.fresh)
        try:
            with self._database.write() as writer:
                work.advance(writer, created=cost.rounds)
                _write(writer, state, written, tools.meter.sentences)
                asked_queries.keep(writer, work.job)
        except _OvertakenError:
            self._forget_asked(work.job)
            return
        log.info(
            "session round",
            session_id=str(state.id),
            planner=state.planner,
            round=state.number if step.action else None,
            action=step.action,
            found=len(step.sentences),
            stop_reason=step.stop,
        )

    def _note_query(self, work: Work, query: UUID) -> None:
        with self._database.write_once() as writer:
            if not asked_queries.note(writer, work.job, query):
                work.hear(None)

    def _forget_asked(self, job: Job) -> None:
        """Delete the queries of a step that is not kept, or whose worker was lost."""
        with self._database.write() as writer:
            asked_queries.delete(writer, job)

    def _plan_step(
        self, scope: Scope, state: SessionState, tools: StepTools, caller_round: CallerRound | None
    ) -> SessionStep:
        """The planner's step, or the caller's, with what ends the session after it."""
        step = self._run_step(state, tools, caller_round)
        if step.stop is None:
            after = state.cost + tools.meter.cost + Cost(rounds=int(step.action is not None))
            step = replace(step, stop=find_exhausted_limit(state.budget, after))
        if step.stop is None and caller_round is not None:
            step = replace(step, stop="asked")
        if step.action is not None:
            step = self._round_judge.judge_step(scope, state, step)
        if step.stop is None and state.request.stop == "llm":
            step = _judge_step(state, step, tools)
        if step.stop is not None:
            step = _conclude_step(state, step, tools)
        return step

    def _run_step(self, state: SessionState, tools: StepTools, caller_round: CallerRound | None) -> SessionStep:
        try:
            reason = find_exhausted_limit(state.budget, state.cost)
            if reason is not None:
                return SessionStep(action=None, stop=reason)
            if caller_round is not None and caller_round.says:
                return run_caller_round(state, tools, caller_round)
            return self._planners[state.planner].step(state, tools)
        except BudgetSpentError as error:
            return SessionStep(action=None, stop=error.extra["reason"])

    def _finish(self, work: Work, scope: Scope, state: SessionState) -> None:
        """Have the planner finish the session, have its own conclusion count if asked to, and close the job."""
        if state.status == "stopped" and state.planner in self._finishers:
            self._finishers[state.planner](scope, state)
        reason = self._learn(scope, state) if state.status == "stopped" and state.request.learn else None
        self._close(work, state, reason)

    def _learn(self, scope: Scope, state: SessionState) -> str | None:
        """Have the session's own conclusion count; why not, where the model that drew it may not teach."""
        if state.conclusion is not None:
            try:
                self._exam.require()
            except LlmError as error:
                log.warning("conclusion not learned", session_id=str(state.id), reason=error.detail)
                return error.detail
        self._teacher.conclude(scope, state)
        return None

    def _close(self, work: Work, state: SessionState | None, not_learned: str | None = None) -> None:
        result: dict[str, Any] | None = None if state is None else {"stop_reason": state.stop_reason}
        if result is not None and not_learned is not None:
            result["not_learned"] = not_learned
        with self._database.write() as writer:
            work.finish(writer, result)


def _write(writer: Writer, state: SessionState, written: RoundUpdate, sentences: Sequence[int]) -> None:
    existing = sessions.lock_if_unchanged(writer, state.collection_id, written.reads, sentences)
    if not (existing and sessions.write_round(writer, state.collection_id, state.id, written)):
        raise _OvertakenError


class _OvertakenError(Exception):
    """The session was changed under the step's hands; the step is not kept, and the next try sees what it is
    now.
    """


def _restore_asker(state: SessionState, tenant: str) -> Principal:
    """Whoever asked may since be known by another key: what is kept of it is whose it is, and what it reads."""
    if state.readers is None:
        return Principal(state.principal, tenant, trusted=state.trusted, llm_tokens=state.llm_tokens)
    scopes = set(SCOPES) - {ADMIN, AUDIT, MODERATE}
    return Principal(
        state.principal,
        tenant,
        Grants.from_mapping({ANY_COLLECTION: scopes} | {name: [ADMIN] for name in state.readers.administers}),
        trusted=state.trusted,
        llm_tokens=state.llm_tokens,
        reads_as=state.readers.names,
        caller=state.caller,
    )


def _judge_step(state: SessionState, step: SessionStep, tools: StepTools) -> SessionStep:
    """The step, stopped if the model says that the pool answers the question."""
    if tools.llm is None:
        return step
    try:
        sufficient = tools.llm.is_sufficient(state.question, [one.text for one in (*state.pool, *step.sentences)])
    except LlmError as error:
        return replace(step, warnings=(*step.warnings, Fallback("sufficiency-not-judged", error.detail)))
    return replace(step, stop="answered") if sufficient else step


def _conclude_step(state: SessionState, step: SessionStep, tools: StepTools) -> SessionStep:
    """The step with an answer in words, if one was asked for and the planner gave none."""
    if not state.request.answer or step.conclusion is not None or tools.llm is None:
        return step
    pool: Sequence[PoolSentence] = [*state.pool, *step.sentences]
    try:
        draft = tools.llm.answer(state.question, [(one.sentence_id, one.text) for one in pool])
    except LlmError as error:
        return replace(step, warnings=(*step.warnings, Fallback("not-answered", error.detail)))
    return replace(step, conclusion=Conclusion(draft.text, draft.sufficient, draft.cited))


def _build_round_update(state: SessionState, step: SessionStep, cost: Cost, reads: Sequence[int]) -> RoundUpdate:
    warnings = [asdict(warning) for warning in step.warnings]
    details = {
        "sub_question": step.sub_question,
        "gap": None if step.gap is None else asdict(step.gap),
        "queries": [query.text for query in step.queries],
        "shown": [[(passage.id, passage.score) for passage in query.passages] for query in step.queries],
        "telling": [passage.id for query in step.queries for passage in query.passages if passage.binds > 0],
        **step.said,
    }
    new_round = None
    enough = state.sufficiency if step.sufficiency is None else step.sufficiency
    if step.stop == "not_found":
        enough = None  # it is a sense of how well passages answer, and cannot tell that none does
    covered = state.covered if step.covered is None else step.covered
    if step.action is not None:
        new_round = Round(
            number=state.number,
            action=step.action,
            said=details,
            episodes=[query.episode for query in step.queries],
            curated=asdict(
                step.curated if step.curated != CurationCounts() else CurationCounts(kept=len(step.sentences))
            ),
            sufficiency=enough,
            covered=covered,
            cost=format_cost(cost),
            warnings=warnings,
        )
    concluded = step.conclusion
    return RoundUpdate(
        before=len(state.rounds),
        round=new_round,
        evidence=[
            EvidenceRow(one.sentence_id, one.passage_id, one.round, one.query, one.gap, one.score)
            for one in step.sentences
        ],
        reads=reads,
        cost=format_cost(state.cost + cost),
        ranked=state.ranked if step.ranked is None else step.ranked,
        sufficiency=enough,
        covered=covered,
        notes=[note.to_json() for note in (state.notes if step.notes is None else step.notes)],
        plan_state=state.plan_state if step.plan_state is None else step.plan_state,
        conclusion=None
        if concluded is None
        else {"text": concluded.text, "sufficient": concluded.sufficient, "cites": list(concluded.cites)},
        warnings=[*state.warnings, *({"round": state.number, **warning} for warning in warnings)],
        stop_reason=step.stop,
    )
