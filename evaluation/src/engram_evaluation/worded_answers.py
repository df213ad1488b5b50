"""Answers of a language model from what an arm finds, marked as in ``answers``.

``expand`` marks them for each way to widen questions (ERM, Table 2), the protocols with turns for each turn of
verdicts (GAM-RAG, Table 1).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engram.context.errors import InvalidRequestError, LlmNotConfiguredError
from engram.core.filter.logged_verdict import Expansion
from engram.providers.llm import Llm
from engram_evaluation.answers_protocol import mark_question
from engram_evaluation.dataset import Question
from engram_evaluation.finished_phases import Phase, Phases
from engram_evaluation.harness import Harness, QueryArm
from engram_evaluation.protocols import Run, measure_in_parts
from engram_evaluation.report_table import MARKS
from engram_evaluation.retrieval_metrics import QuestionScores
from engram_evaluation.run_options import Options

GROUP = "answers"
UNUSABLE = "unusable"

Marks = Mapping[str, Mapping[str, float]]
"""Question id -> what its answer was worth; empty where no answers were asked for."""
PhaseKey = tuple[Phases, str, int, int | None]
"""Store of a phase, its arm, turn and seed."""


def check(name: str, questions: Sequence[Question], llm: Llm | None) -> None:
    """Refuse a run that lacks what answers need, before anything is read.

    Raises:
        LlmNotConfiguredError: there is no endpoint to answer.
        InvalidRequestError: no question has an accepted answer.
    """
    if llm is None:
        raise LlmNotConfiguredError("--answered needs ENGRAM_LLM_BASE_URL to be set, or --oracle-errors.")
    if not any(question.answers for question in questions):
        raise InvalidRequestError(f"{name} has no answers (metadata.answers), which --answered needs.")


def parameters(options: Options) -> dict[str, Any]:
    """Return the parameters of a store of answers, besides those of what finds the passages."""
    return {"answered": {"top_k": options.top_k, "oracle": [options.oracle_errors, options.seeds[0]]}}


def load_phase(phase_key: PhaseKey) -> Phase | None:
    """Answers that an earlier run finished."""
    store, arm, turn, seed = phase_key
    return store.get(arm, GROUP, turn=turn, seed=seed)


def words(
    run: Run,
    harness: Harness,
    phase_key: PhaseKey,
    questions: Sequence[Question],
    asking: QueryArm,
    units: Callable[[Question], Sequence[Expansion]] = lambda _: (),
) -> Marks:
    """Answer those that have accepted answers from what is found now, with these units sent along.

    Args:
        harness: finds the passages.
        phase_key: where the answers are kept.

    Raises:
        LlmError: the endpoint failed; what was marked before is kept for the next run.
    """
    llm, (store, arm, turn, seed) = run.harness.services.models.llm, phase_key
    if not run.options.answered or llm is None:
        return {}
    phase = load_phase(phase_key)
    if phase is None:
        some = [question for question in questions if question.answers]
        rows = measure_in_parts(
            run,
            f"{arm}, turn {turn}: answers",
            phase_key,
            some,
            lambda one: mark_question(harness, llm, one, asking, run.options.top_k, units(one)),
        )
        phase = Phase(arm, GROUP, turn, seed, tuple(rows))
        store.put(phase)
    return marks_of(phase)


def marks_of(phase: Phase) -> Marks:
    """Return the marks of a phase of answers."""
    names = (*MARKS, UNUSABLE)
    return {row.id: {name: row.values[name] for name in names if name in row.values} for row in phase.rows}


def add_marks(rows: Sequence[QuestionScores], marks: Marks) -> tuple[QuestionScores, ...]:
    """The rows, each with what its answer was worth if it got one."""
    return tuple(
        QuestionScores(row.id, row.type, row.ranking, {**row.values, **marks.get(row.id, {})}, row.details)
        for row in rows
    )
