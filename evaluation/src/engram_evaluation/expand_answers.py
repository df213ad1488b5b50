"""Answers of a language model from the passages of an ``expand`` arm (ERM, Table 2), marked as in ``answers``."""

from collections.abc import Callable, Mapping, Sequence

from engram.context.errors import InvalidRequestError, LlmNotConfiguredError
from engram.core.filter.logged_verdict import Expansion
from engram.providers.llm import Llm
from engram_evaluation.answers_protocol import marked
from engram_evaluation.dataset import Question
from engram_evaluation.finished_phases import Phase, Phases
from engram_evaluation.harness import QueryArm
from engram_evaluation.protocols import Run, in_parts
from engram_evaluation.report_table import MARKS
from engram_evaluation.retrieval_metrics import QuestionScores

GROUP = "answers"

Marks = Mapping[str, Mapping[str, float]]
"""Question id -> what its answer was worth; empty where no answers were asked for."""


def check(name: str, questions: Sequence[Question], llm: Llm | None) -> None:
    """Say what answers lack before anything is read.

    Raises:
        LlmNotConfiguredError: there is no endpoint to answer.
        InvalidRequestError: no question has an accepted answer.
    """
    if llm is None:
        raise LlmNotConfiguredError("--answered needs ENGRAM_LLM_BASE_URL to be set, or --oracle-errors.")
    if not any(question.answers for question in questions):
        raise InvalidRequestError(f"{name} has no answers (metadata.answers), which --answered needs.")


def stored_phase(store: Phases, arm: str, turn: int, seed: int | None) -> Phase | None:
    """Answers that an earlier run finished."""
    return store.get(arm, GROUP, turn, seed)


def words(
    run: Run,
    kept_as: tuple[Phases, str, int, int | None],
    questions: Sequence[Question],
    asking: QueryArm,
    units: Callable[[Question], Sequence[Expansion]],
) -> Marks:
    """Answer those that have accepted answers from what is found now, with these units sent along.

    Args:
        kept_as: where, and under which arm, turn and seed.

    Raises:
        LlmError: the endpoint failed; what was marked before is kept for the next run.
    """
    llm, (store, arm, turn, seed) = run.harness.services.llm, kept_as
    if not run.options.answered or llm is None:
        return {}
    phase = stored_phase(*kept_as)
    if phase is None:
        some = [question for question in questions if question.answers]
        rows = in_parts(
            run, f"{arm}: answers", kept_as, some, lambda one: marked(run, llm, one, asking, units(one))
        )
        phase = Phase(arm, GROUP, turn, seed, tuple(rows))
        store.put(phase)
    return {row.id: {name: row.values[name] for name in MARKS} for row in phase.rows}


def with_marks(rows: Sequence[QuestionScores], marks: Marks) -> tuple[QuestionScores, ...]:
    """The rows, each with what its answer was worth if it got one."""
    return tuple(
        QuestionScores(row.id, row.type, row.ranking, {**row.values, **marks.get(row.id, {})}, row.said)
        for row in rows
    )
