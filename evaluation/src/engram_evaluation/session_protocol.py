"""The protocol ``session``: what rounds bring over one question, and what they cost.

Planners stand side by side, each beside one question of as many passages as its session read, since reading more
finds more whoever decides what is read. Memory is off and nothing is learned, so nothing is forgotten before a run
either: its sessions stay, to be read and exported.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from engram.context.errors import EngramError, InvalidRequestError, LlmError, LlmNotConfiguredError
from engram.core.budget import Budget
from engram.providers.llm import Usage
from engram.services.question.query import Query
from engram.wings.sessions.core.session import StopRule
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.rfm_rag_planner import RFM_RAG
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest
from engram.wings.sessions.services.session_views import SessionView
from engram.wings.sessions.services.tree_options import Part
from engram_evaluation.answer_marking import mark_answer
from engram_evaluation.dataset import GoldSentence, Question
from engram_evaluation.finished_phases import Phase
from engram_evaluation.protocols import Run
from engram_evaluation.retrieval_metrics import (
    SHOWN_PASSAGES,
    QuestionResult,
    QuestionScores,
    compute_supporting_recall,
    is_match,
    score,
)
from engram_evaluation.run_options import PARTS, PlannerName, StopName

GROUP = "all questions"
QUERY = "query"
RULES = "by rules"
SECONDS, TOKENS, PASSAGES = 600.0, 1_000_000, 200
"""Budgets that are not varied, wide enough to stop nothing that rounds and calls do not."""


TURNS = 24
"""Rounds of an agent, whose rounds are turns."""
LEFT_OUT = {part: [part] for part in PARTS} | {"extractor": ["consolidation", "update"]}
"""What a planner is told to leave out; without the extractor nothing manages memory."""
ROUND_PARTS: Sequence[Part] = ("binding",)
"""Parts of rounds by rules; the others are of memory as a model manages it."""


class SessionNotFinishedError(EngramError):
    """A session that was measured failed, or took longer than a request waits."""

    type = "session-not-finished"
    title = "A session did not come to its end"


@dataclass(frozen=True, slots=True)
class SessionArm:
    """One way to go about a question in rounds.

    Attributes:
        llm: whether it may ask the endpoint.
        stop: what may stop it before its budget.
        options: of its planner.
    """

    name: str
    planner: PlannerName
    llm: bool
    stop: StopRule = "planner"
    options: dict[str, Any] | None = None


def arms(
    planners: Sequence[PlannerName], rounds: int, without: Sequence[Part], stops: Sequence[StopName], *, llm: bool
) -> list[SessionArm]:
    """Return the arms to compare: planners as they are, ``pool`` with each stop rule, others with parts left out.

    Raises:
        LlmNotConfiguredError: a planner needs an endpoint and there is none.
    """
    session_arms: list[SessionArm] = []
    for planner in planners:
        if planner == "pool":
            named = [(f"pool, {RULES}", False)] + ([("pool", True)] if llm else [])
            for name, with_llm in named:  # where a model says what is missing, fixed rounds are no alternative
                stop_rules = [stop for stop in stops if not with_llm or stop not in ("rounds", "covered")]
                session_arms += [
                    SessionArm(_format_stop_name(name, stop, rounds), planner, with_llm, stop)
                    for stop in stop_rules
                ]
            session_arms += [
                SessionArm(
                    f"pool, {RULES} without {part}", planner, False, options=_build_left_out_option(planner, part)
                )
                for part in without
                if part in ROUND_PARTS
            ]
        elif planner == RFM_RAG:
            session_arms += [SessionArm(f"{planner}, {RULES}", planner, False)]
            session_arms += [SessionArm(planner, planner, True)] if llm else []
        elif not llm:
            raise LlmNotConfiguredError(f"Planner {planner!r} needs ENGRAM_LLM_BASE_URL or --oracle-errors.")
        else:
            session_arms.append(SessionArm(planner, planner, True))
            session_arms += [
                SessionArm(
                    f"{planner} without {part}", planner, True, options=_build_left_out_option(planner, part)
                )
                for part in without
                if part not in ROUND_PARTS and (planner != "agent" or part == "update")
            ]
    return session_arms


def _build_left_out_option(planner: PlannerName, part: Part) -> dict[str, Any]:
    """Return the planner option that leaves out a part; an agent has one such part, under another name."""
    return {"insert_only": True} if planner == "agent" else {"without": LEFT_OUT[part]}


def _format_stop_name(name: str, stop: StopName, rounds: int) -> str:
    suffixes = {"planner": "", "rounds": f", always {rounds} rounds"}
    return name + suffixes.get(stop, f", until {stop}")


def sessions(run: Run) -> list[Phase]:
    """Ask every question once, and have every arm go about it.

    Raises:
        InvalidRequestError: the data set has no questions, or no paraphrases where these were asked for.
        LlmNotConfiguredError: a planner needs an endpoint and there is none.
    """
    options = run.options
    questions = choose_questions(run)
    compared = arms(
        options.planners,
        options.rounds,
        options.without,
        options.stops,
        llm=run.harness.services.models.llm is not None,
    )
    phases = [_phase(run, QUERY, questions, {}, lambda question: _ask_once(run, question, SHOWN_PASSAGES))]
    for arm in compared:
        parameters = asdict(arm) | {"rounds": options.rounds, "llm_calls": options.llm_calls}
        phase = _phase(run, arm.name, questions, parameters, partial(_session, run, arm))
        phases.append(phase)
        if arm.options is not None:  # beside the whole planner there is one query as wide already
            continue
        read = {row.id: max(1, round(row.values["read"])) for row in phase.rows}
        wide = f"{arm.name}: one query as wide"
        phases.append(_phase(run, wide, questions, parameters, partial(_as_wide, run, read)))
    return phases


def choose_questions(run: Run) -> list[Question]:
    """The first questions of the data set, or the first paraphrase of each, which accepts the same answers.

    Raises:
        InvalidRequestError: paraphrases were asked for and there are none, or no question has so many relevant
            passages.
    """
    questions = list(run.dataset.questions)
    if run.options.paraphrased:
        reworded = run.dataset.paraphrases
        asked_again = [question for question in questions if question.id in reworded]
        questions = [replace(question, text=reworded[question.id][0].text) for question in asked_again]
        if not questions:
            raise InvalidRequestError(f"{run.dataset.name} has no paraphrases, which --paraphrased needs.")
    questions = [question for question in questions if len(question.relevant) >= run.options.at_least]
    if not questions:
        raise InvalidRequestError(f"{run.dataset.name} has no question for --at-least {run.options.at_least}.")
    return questions[: run.options.limit]


def _phase(
    run: Run,
    name: str,
    questions: Sequence[Question],
    parameters: dict[str, Any],
    ask: Callable[[Question], QuestionScores],
) -> Phase:
    store = run.store(
        asked=[question.text for question in questions],
        profile=run.options.profile,
        oracle_errors=run.options.oracle_errors,
        arm=parameters,
    )
    phase = store.get(name, GROUP, turn=0, seed=None)
    if phase is None:
        step = run.begin(name, len(questions))
        rows = []
        for question in questions:
            rows.append(ask(question))
            step()
        phase = Phase(name, GROUP, 0, None, tuple(rows))
        store.put(phase)
    return phase


def _as_wide(run: Run, read: Mapping[str, int], question: Question) -> QuestionScores:
    return _ask_once(run, question, read[question.id])


def _ask_once(run: Run, question: Question, top_k: int) -> QuestionScores:
    """One question of so many passages; the pool is what its hops selected of them."""
    services, before = run.harness.services, _usage(run)
    began = time.perf_counter()
    query = Query(
        text=question.text,
        scope=run.harness.scope,
        top_k=top_k,
        memory="off",
        profile=run.options.profile,
        include=frozenset({"sentences"}),
    )
    answer = services.answers.question.answer(query, explained=False)
    evidence = [(one.sentence_id, one.text) for passage in answer.passages for one in passage.sentences]
    draft, failure = None, {}
    if services.models.llm is not None:
        try:
            draft = services.models.llm.answer(question.text, evidence).text
        except LlmError as error:  # a session that the model fails ends without an answer as well
            draft, failure = "", {"failed": error.detail}
    ms = (time.perf_counter() - began) * 1000.0
    pool = [
        GoldSentence(passage.passage_id, sentence.text)
        for passage in answer.passages
        for sentence in passage.sentences
        if sentence.score is not None
    ]
    ranking = [passage.passage_id for passage in answer.passages]
    spent = _count_usage(before, _usage(run))
    values = {"rounds": 1.0, "read": float(len(ranking)), **spent}
    return replace(_score_question(question, ranking, pool, draft, values, ms), details=failure)


def _session(run: Run, arm: SessionArm, question: Question) -> QuestionScores:
    service, scope, options = sessions_of(run.harness.services).sessions, run.harness.scope, run.options
    llm_calls = options.llm_calls if arm.llm else 0
    new = NewSession(
        question=question.text,
        planner=arm.planner,
        request=SessionRequest(
            top_k=options.top_k,
            arm=None if arm.planner == RFM_RAG else {"memory": "off", "profile": options.profile},
            stop=arm.stop,
            answer=arm.llm,
            options=arm.options,
        ),
        budget=Budget(
            TURNS if arm.planner == "agent" else options.rounds,
            llm_calls,
            TOKENS if arm.llm else 0,
            SECONDS,
            PASSAGES,
        ),
    )
    began = time.perf_counter()
    session = service.start(scope, new)
    view = service.wait(scope, session)
    while view.stored.status == "running" and time.perf_counter() - began < 2 * SECONDS:
        view = service.wait(scope, session)  # it waits as long as a request would
    ms = (time.perf_counter() - began) * 1000.0
    if view.stored.status != "stopped":
        raise SessionNotFinishedError(f"The session of {arm.name} on {question.id} is {view.stored.status}.")
    cost = view.stored.cost
    values = {
        "rounds": float(cost["rounds"]),
        "read": float(cost["passages"]),
        "llm_calls": float(cost["llm_calls"]),
        "prompt_tokens": float(cost["prompt_tokens"]),
        "completion_tokens": float(cost["completion_tokens"]),
    }
    answer_text = None if view.stored.conclusion is None else view.stored.conclusion["text"]
    ranking = [passage.passage_id for passage in view.passages]
    pool = [GoldSentence(one.passage_id, one.text) for one in view.evidence]
    row = _score_question(question, ranking, pool, answer_text if arm.llm else None, values, ms, read=ranking)
    return replace(row, details=_round_details(view))


def _round_details(view: SessionView) -> dict[str, Any]:
    """Return the queries of each round (RFM-RAG's second experiment)."""
    return {
        "stop": view.stored.stop_reason,
        "rounds": [
            {"action": one.action, "gap": one.said.get("gap"), "queries": one.said.get("queries", [])}
            for one in view.rounds
        ],
    }


def _score_question(
    question: Question,
    ranking: Sequence[str],
    pool: Sequence[GoldSentence],
    answer_text: str | None,
    values: dict[str, float],
    ms: float,
    read: Sequence[str] | None = None,
) -> QuestionScores:
    (row,) = score([QuestionResult(question, ranking, ms=ms)])
    passages_read = set(ranking if read is None else read)
    measures = {"read_all": float(question.relevant <= passages_read), "pool": float(len(pool))}
    if question.gold:
        measures["pool_recall"] = compute_supporting_recall(question.gold, pool)
        measures["pool_precision"] = _precision(question.gold, pool)
    if answer_text is not None and question.answers:
        measures |= mark_answer(answer_text, question.answers) | {"answered": float(bool(answer_text))}
    return replace(row, values=row.values | measures | values)


def _precision(gold: Sequence[GoldSentence], pool: Sequence[GoldSentence]) -> float:
    return sum(any(is_match(wanted, seen) for wanted in gold) for seen in pool) / len(pool) if pool else 0.0


def _usage(run: Run) -> Usage:
    llm = run.harness.services.models.llm
    return Usage() if llm is None else llm.usage


def _count_usage(before: Usage, after: Usage) -> dict[str, float]:
    return {
        "llm_calls": float(after.calls - before.calls),
        "prompt_tokens": float(after.prompt_tokens - before.prompt_tokens),
        "completion_tokens": float(after.completion_tokens - before.completion_tokens),
    }
