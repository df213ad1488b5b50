"""Fitting the published stop (RFM-RAG's R-Feedback) to data sets with known relevant passages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import InvalidRequestError
from engram.core.budget import Budget
from engram.core.ranking.weight_beliefs import Floats
from engram.wings.sessions.core import feedback_stop, round_sufficiency
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.rfm_rag_planner import RFM_RAG
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest
from engram.wings.sessions.services.session_views import SessionView
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.harness import Harness
from engram_evaluation.logistic_fit import fit_logistic
from engram_evaluation.run_progress import Begin
from engram_evaluation.sufficiency_measure import auc

RIDGE = 0.003
"""Of the standardised features."""
NO_STOP_PROBABILITY = 1.0
"""A probability that no pool has: every round is made."""
BUDGET = Budget(rounds=3, llm_calls=0, tokens=0, seconds=600.0, passages=200)


Unit = Literal["sessions", "rfm-rag"]
"""Whose pools are examples, after each round: of planner "pool" or "rfm-rag"."""
PLANNERS: Mapping[Unit, str] = {"sessions": "pool", "rfm-rag": RFM_RAG}


def fit_stop(
    corpora: Sequence[tuple[Harness, Dataset]], limit: int | None, begin: Begin, *, unit: Unit = "sessions"
) -> tuple[Floats, Floats | None]:
    """The classifier's weights, (3,), each corpus counting the same, and those of a round, (5,).

    The latter are None where sessions are not learned from.

    A session by rules answers every question, and the pool after each round is an example: it suffices if it holds
    a sentence of every relevant passage.

    Args:
        limit: questions of each data set, the first; None for all.

    Raises:
        InvalidRequestError: every pool suffices, or none does.
    """
    samples = []
    for harness, dataset in corpora:
        questions = list(dataset.questions)[:limit]
        tick = begin(f"{dataset.name}: {unit}", len(questions))
        samples.append(pools(harness, questions, tick, planner=PLANNERS[unit]))
    size = len(feedback_stop.STOP_FEATURES)  # those of a round begin with the classifier's
    of_pools = [(rows[:, :size], suffices) for rows, suffices in samples]
    try:
        classifier = fit_logistic(of_pools, RIDGE, 1.0).mean
        return classifier, fit_logistic(samples, RIDGE, 1.0).mean if unit == "sessions" else None
    except ValueError as error:
        raise InvalidRequestError(f"A stop cannot be fitted to these data sets: {error}.") from error


def pools(
    harness: Harness, questions: Sequence[Question], tick: Callable[[], None], planner: str = "pool"
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the features of each session's pool after each round, (n, 5), and whether the pool sufficed, (n,).

    The rows of all sessions stand one below the other.
    """
    per_session = collect_by_session(harness, questions, tick, planner)
    none = np.zeros((0, len(round_sufficiency.ROUND_FEATURES))), np.zeros(0, dtype=bool)
    return (
        np.concatenate([none[0], *(rows for rows, _ in per_session)]),
        np.concatenate([none[1], *(suffices for _, suffices in per_session)]),
    )


def collect_by_session(
    harness: Harness, questions: Sequence[Question], tick: Callable[[], None], planner: str = "pool"
) -> list[tuple[Floats, NDArray[np.bool_]]]:
    """Return for each session the features of its pool after each round, (r, 5), and whether it sufficed, (r,)."""
    samples = []
    for question in questions:
        view = _run_session(harness, question, planner)
        rows: list[Floats] = []
        suffices: list[bool] = []
        for session_round in view.rounds:
            found_passages = {
                sentence.passage_id for sentence in view.evidence if sentence.round <= session_round.number
            }
            classified = session_round.said["published"]
            rows.append(
                round_sufficiency.features(
                    classified["entities"],
                    classified["relevance"],
                    session_round.sufficiency,
                    session_round.covered,
                )
            )
            suffices.append(question.relevant <= found_passages)
        samples.append(
            (np.array(rows).reshape(-1, len(round_sufficiency.ROUND_FEATURES)), np.array(suffices, dtype=bool))
        )
        tick()
    return samples


@dataclass(frozen=True, slots=True)
class FigurePower:
    """Power of one figure of R-Feedback to tell pools that suffice from others.

    Attributes:
        name: of the figure.
        auc: probability that it is higher of a pool that suffices than of one that does not; None without both.
        changed: share of later rounds after which it is another than before; None without later rounds.
        rose: share of the sessions whose pool came to suffice in a later round in which it rose by that round; None
            without such sessions.
    """

    name: str
    auc: float | None
    changed: float | None
    rose: float | None


def measure_rounds(classifier: Floats, sessions: Sequence[tuple[Floats, NDArray[np.bool_]]]) -> list[FigurePower]:
    """Measure R-Feedback's features and probability on rounds of sessions, as ``collect_by_session`` gives them.

    A figure that does not change while the pool comes to suffice cannot say when to stop.
    """
    size = len(feedback_stop.STOP_FEATURES)
    figures: Mapping[str, Callable[[Floats], Floats]] = {
        "entities (f1)": lambda rows: rows[:, 1],
        "relevance (f2)": lambda rows: rows[:, 2],
        "R-Feedback": lambda rows: feedback_stop.compute_pool_probabilities(rows[:, :size], classifier),
    }
    tellings = []
    for name, figure in figures.items():
        values = [(figure(rows), suffices) for rows, suffices in sessions if len(rows)]
        steps = [(value, suffices, at) for value, suffices in values for at in range(1, len(value))]
        became_sufficient = [
            value[at] > value[at - 1] for value, suffices, at in steps if suffices[at] and not suffices[at - 1]
        ]
        tellings.append(
            FigurePower(
                name,
                auc(
                    [float(one) for value, suffices in values for one in value[suffices]],
                    [float(one) for value, suffices in values for one in value[~suffices]],
                ),
                float(np.mean([value[at] != value[at - 1] for value, _, at in steps])) if steps else None,
                float(np.mean(became_sufficient)) if became_sufficient else None,
            )
        )
    return tellings


def _run_session(harness: Harness, question: Question, planner: str) -> SessionView:
    """The question in as many rounds as the budget has; waited for as long as it takes."""
    request = SessionRequest(
        arm=None if planner == RFM_RAG else {"memory": "off", "profile": "default"},
        stop="sufficiency",
        threshold=NO_STOP_PROBABILITY,
    )
    service, scope = sessions_of(harness.services).sessions, harness.scope
    session = service.start(
        scope, NewSession(question=question.text, planner=planner, request=request, budget=BUDGET)
    )
    view = service.wait(scope, session)
    while view.stored.status == "running":
        view = service.wait(scope, session)
    return view
