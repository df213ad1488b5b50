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
from engram.core.planning.session import Budget, StopRule
from engram_evaluation.answers_protocol import evidence, marks
from engram_evaluation.dataset import Gold, Question
from engram_evaluation.finished_phases import Phase
from engram_evaluation.protocols import Run
from engram_evaluation.retrieval_metrics import (
    SHOWN,
    QuestionResult,
    QuestionScores,
    same,
    score,
    supporting_recall,
)
from engram_evaluation.run_options import PARTS, Options, PlannerName, StopName
from engram.providers.llm import Usage
from engram.services.retrieval.query import Query
from engram.services.retrieval.query_plan import as_asked
from engram.services.sessions.session_service import NewSession
from engram.services.sessions.session_state import SessionRequest
from engram.services.sessions.session_views import SessionView
from engram.services.sessions.tree_options import Part

GROUP = "all questions"
QUERY = "query"
RULES = "by rules"
SECONDS, TOKENS, PASSAGES = 600.0, 1_000_000, 200
"""Budgets that are not varied, wide enough to stop nothing that rounds and calls do not."""


TURNS = 24
"""Rounds of an agent, whose rounds are turns."""
TREES = 2
"""Questions whose trees a report keeps, to be drawn."""
LEFT_OUT = {part: [part] for part in PARTS} | {"extractor": ["consolidation", "update"]}
"""What a planner is told to leave out; without the extractor nothing manages memory."""
OF_ROUNDS: Sequence[Part] = ("walk", "gaps", "binding")
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
    """What is compared: planners as they are, ``pool`` with each of these stops, others with parts left out.

    Raises:
        LlmNotConfiguredError: a planner needs an endpoint and there is none.
    """
    found: list[SessionArm] = []
    for planner in planners:
        if planner == "pool":
            named = [(f"pool, {RULES}", False)] + ([("pool", True)] if llm else [])
            for name, with_llm in named:  # where a model says what is missing, fixed rounds are no alternative
                told = [stop for stop in stops if not with_llm or stop not in ("rounds", "covered")]
                found += [SessionArm(_stopped(name, stop, rounds), planner, with_llm, stop) for stop in told]
            found += [
                SessionArm(f"pool, {RULES} without {part}", planner, False, options=_left_out(planner, part))
                for part in without
                if part in OF_ROUNDS
            ]
        elif not llm:
            raise LlmNotConfiguredError(f"Planner {planner!r} needs ENGRAM_LLM_BASE_URL or --oracle-errors.")
        else:
            found.append(SessionArm(planner, planner, True))
            found += [
                SessionArm(f"{planner} without {part}", planner, True, options=_left_out(planner, part))
                for part in without
                if part not in OF_ROUNDS and (planner != "agent" or part == "update")
            ]
    return found


def _left_out(planner: PlannerName, part: Part) -> dict[str, Any]:
    """What a planner is told; an agent has one part that can be left out, and another word for it."""
    return {"insert_only": True} if planner == "agent" else {"without": LEFT_OUT[part]}


def _stopped(name: str, stop: StopName, rounds: int) -> str:
    said = {"planner": "", "rounds": f", always {rounds} rounds", "published": ", published stop"}
    return name + said.get(stop, f", until {stop}")


def sessions(run: Run) -> list[Phase]:
    """Ask every question once, and have every arm go about it.

    Raises:
        InvalidRequestError: the data set has no questions, or no paraphrases where these were asked for.
        LlmNotConfiguredError: a planner needs an endpoint and there is none.
    """
    options = run.options
    questions = chosen(run)
    compared = arms(
        options.planners, options.rounds, options.without, options.stops, llm=run.harness.services.llm is not None
    )
    found = [_phase(run, QUERY, questions, {}, lambda question: _asked(run, question, SHOWN))]
    for arm in compared:
        parameters = (
            asdict(arm)
            | {"rounds": options.rounds, "llm_calls": options.llm_calls}
            | ({"rollouts": options.rollouts, "depth": options.depth} if arm.planner == "tree" else {})
        )
        made = _phase(run, arm.name, questions, parameters, partial(_session, run, arm))
        found.append(made)
        if arm.options is not None:  # beside the whole planner there is one query as wide already
            continue
        read = {row.id: max(1, round(row.values["read"])) for row in made.rows}
        wide = f"{arm.name}: one query as wide"
        found.append(_phase(run, wide, questions, parameters, partial(_as_wide, run, read)))
    return found


def chosen(run: Run) -> list[Question]:
    """The first questions of the data set, or their paraphrases, which accept the same answers.

    Raises:
        InvalidRequestError: paraphrases were asked for and there are none, or no question has so many relevant
            passages.
    """
    questions = list(run.dataset.questions)
    if run.options.paraphrased:
        reworded = run.dataset.paraphrases
        questions = [
            replace(question, text=reworded[question.id].text) for question in questions if question.id in reworded
        ]
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
    phase = store.get(name, GROUP, 0, None)
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
    return _asked(run, question, read[question.id])


def _asked(run: Run, question: Question, top_k: int) -> QuestionScores:
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
    answer = services.ask.query(query, as_asked(query), explained=False)
    draft, told = None, {}
    if services.llm is not None:
        try:
            draft = services.llm.answer(question.text, evidence(answer, top_k)).text
        except LlmError as error:  # a session that the model fails ends without an answer as well
            draft, told = "", {"failed": error.detail}
    ms = (time.perf_counter() - began) * 1000.0
    pool = [
        Gold(passage.passage_id, sentence.text)
        for passage in answer.passages
        for sentence in passage.sentences
        if sentence.score is not None
    ]
    ranking = [passage.passage_id for passage in answer.passages]
    spent = _since(before, _usage(run))
    values = {"rounds": 1.0, "read": float(len(ranking)), **spent}
    return replace(_scored(question, ranking, pool, draft, values, ms), said=told)


def _planner_options(arm: SessionArm, options: Options) -> Mapping[str, Any] | None:
    """The options of an arm's planner: what is left out, and how far a tree goes."""
    tree = {"rollouts": options.rollouts, "depth": options.depth} if arm.planner == "tree" else {}
    return {**(arm.options or {}), **tree} or None


def _session(run: Run, arm: SessionArm, question: Question) -> QuestionScores:
    service, scope, options = run.harness.services.sessions, run.harness.scope, run.options
    llm_calls = options.llm_calls if arm.llm else 0
    new = NewSession(
        question=question.text,
        planner=arm.planner,
        asked=SessionRequest(
            top_k=options.top_k,
            arm={"memory": "off", "profile": options.profile},
            stop=arm.stop,
            answer=arm.llm,
            options=_planner_options(arm, options),
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
    shown = service.wait(scope, session)
    while shown.stored.status == "running" and time.perf_counter() - began < 2 * SECONDS:
        shown = service.wait(scope, session)  # it waits as long as a request would
    ms = (time.perf_counter() - began) * 1000.0
    if shown.stored.status != "stopped":
        raise SessionNotFinishedError(f"The session of {arm.name} on {question.id} is {shown.stored.status}.")
    cost = shown.stored.cost
    values = {
        "rounds": float(cost["rounds"]),
        "read": float(cost["passages"]),
        "llm_calls": float(cost["llm_calls"]),
        "prompt_tokens": float(cost["prompt_tokens"]),
        "completion_tokens": float(cost["completion_tokens"]),
    }
    said = None if shown.stored.conclusion is None else shown.stored.conclusion["text"]
    ranking = [passage.passage_id for passage in shown.passages]
    pool = [Gold(one.passage_id, one.text) for one in shown.evidence]
    row = _scored(question, ranking, pool, said if arm.llm else None, values, ms, read=ranking)
    drawn = question.id in {one.id for one in chosen(run)[:TREES]} and arm.options is None
    return replace(row, said=_told(shown, tree=drawn))


def _told(shown: SessionView, *, tree: bool) -> dict[str, Any]:
    """What each round asked, so that gap queries can be read (RFM-RAG's second experiment), and maybe the tree."""
    kept = shown.stored.plan_state.get("tree")
    drawn = {"tree": {"question": shown.stored.question, **kept}} if tree and kept else {}
    return {
        **drawn,
        "stop": shown.stored.stop_reason,
        "rounds": [
            {"action": one.action, "gap": one.said.get("gap"), "queries": one.said.get("queries", [])}
            for one in shown.rounds
        ],
    }


def _scored(
    question: Question,
    ranking: Sequence[str],
    pool: Sequence[Gold],
    said: str | None,
    values: dict[str, float],
    ms: float,
    read: Sequence[str] | None = None,
) -> QuestionScores:
    (row,) = score([QuestionResult(question, ranking, ms=ms)])
    there = set(ranking if read is None else read)
    found = {"read_all": float(question.relevant <= there), "pool": float(len(pool))}
    if question.gold:
        found["pool_recall"] = supporting_recall(question.gold, pool)
        found["pool_precision"] = _precision(question.gold, pool)
    if said is not None and question.answers:
        found |= marks(said, question.answers) | {"answered": float(bool(said))}
    return replace(row, values=row.values | found | values)


def _precision(gold: Sequence[Gold], pool: Sequence[Gold]) -> float:
    return sum(any(same(wanted, seen) for wanted in gold) for seen in pool) / len(pool) if pool else 0.0


def _usage(run: Run) -> Usage:
    llm = run.harness.services.llm
    return Usage() if llm is None else llm.usage


def _since(before: Usage, after: Usage) -> dict[str, float]:
    return {
        "llm_calls": float(after.calls - before.calls),
        "prompt_tokens": float(after.prompt_tokens - before.prompt_tokens),
        "completion_tokens": float(after.completion_tokens - before.completion_tokens),
    }
