"""Fitting the published stop (RFM-RAG's R-Feedback) to data sets with known relevant passages."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from app.core import sufficiency
from app.core.belief import Floats
from app.core.session import Budget
from app.errors import InvalidRequestError
from app.evaluation.dataset import Dataset, Question
from app.evaluation.fit import Steps
from app.evaluation.harness import Harness
from app.services.sessions.sessions import NewSession
from app.services.sessions.shown import Shown
from app.services.sessions.state import Asked

RIDGE = 0.003
"""Of the standardised features."""
NEVER = 1.0
"""A probability that no pool has: every round is made."""
BUDGET = Budget(rounds=3, llm_calls=0, tokens=0, seconds=600.0, passages=200)


def fit_stop(corpora: Sequence[tuple[Harness, Dataset]], limit: int | None, steps: Steps) -> Floats:
    """Weights of the classifier, (3,), each corpus counting the same.

    Every question is gone about in rounds by rules, and the pool after each round is an example: it suffices if it
    holds a sentence of every relevant passage.

    Args:
        limit: questions of each data set, the first; None for all.

    Raises:
        InvalidRequestError: every pool suffices, or none does.
    """
    found = []
    for harness, dataset in corpora:
        questions = list(dataset.questions)[:limit]
        found.append(pools(harness, questions, steps(f"{dataset.name}: rounds", len(questions))))
    try:
        return sufficiency.fit(found, RIDGE, 1.0).mean
    except ValueError as error:
        raise InvalidRequestError(f"A stop cannot be fitted to these data sets: {error}.") from error


def pools(
    harness: Harness, questions: Sequence[Question], step: Callable[[], None]
) -> tuple[Floats, NDArray[np.bool_]]:
    """The features of each question's pool after each round, (n, 3), and whether it suffices, (n,)."""
    rows: list[list[float]] = []
    suffices: list[bool] = []
    for question in questions:
        shown = _gone_about(harness, question)
        for one in shown.rounds:
            held = {sentence.passage_id for sentence in shown.evidence if sentence.round <= one.number}
            told = one.said["published"]
            rows.append([1.0, told["entities"], told["relevance"]])
            suffices.append(question.relevant <= held)
        step()
    return np.array(rows).reshape(-1, 3), np.array(suffices, dtype=bool)


def _gone_about(harness: Harness, question: Question) -> Shown:
    """The question in as many rounds as the budget has; waited for as long as it takes."""
    asked = Asked(arm={"memory": "off", "profile": "default"}, stop="published", threshold=NEVER)
    service, scope = harness.services.sessions, harness.scope
    session = service.start(scope, NewSession(question=question.text, planner="pool", asked=asked, budget=BUDGET))
    shown = service.wait(scope, session)
    while shown.stored.status == "running":
        shown = service.wait(scope, session)
    return shown
