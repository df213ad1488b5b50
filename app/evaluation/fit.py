"""Fitting the ranking weights that every collection starts from to data sets with known relevant passages."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from app.core.belief import Prior
from app.core.fitting import Judged, fit
from app.core.ranking import FIRST_LOOK
from app.errors import InvalidRequestError
from app.evaluation.dataset import Dataset
from app.evaluation.harness import Harness
from app.providers.prior import RankingPrior
from app.services.retrieval.query import Query

RIDGE = 0.003
"""Keeps weights of features that a data set hardly has from growing without bound."""
VERDICTS = 60.0
"""The prior weighs as much as so many verdicts."""


def judged(harness: Harness, dataset: Dataset, prior: RankingPrior, step: Callable[[], None]) -> list[Judged]:
    """Every question's candidates, found without memory by this prior, with the relevant ones marked."""
    retrieve = harness.services.retrieve.by(prior)
    found = []
    for question in dataset.questions:
        query = Query(text=question.text, scope=harness.scope, memory="off")
        names, features = retrieve.features(query)
        # As an episode keeps them, so that fitting and learning see the same numbers.
        rounded = features.astype(np.float32).astype(np.float64)
        found.append(Judged(rounded, np.array([name in question.relevant for name in names], dtype=bool)))
        step()
    return found


def fit_first_look(corpora: Sequence[Sequence[Judged]]) -> NDArray[np.float64]:
    """Weights of the first look alone, (len(FIRST_LOOK),), each corpus counting the same.

    Raises:
        InvalidRequestError: as ``fit_prior``.
    """
    size = len(FIRST_LOOK)
    return fit_prior([[Judged(one.features[:, :size], one.supported) for one in corpus] for corpus in corpora]).mean


def fit_prior(corpora: Sequence[Sequence[Judged]]) -> Prior:
    """The prior, each corpus counting the same.

    Raises:
        InvalidRequestError: no question has a relevant passage among its candidates, or no weights were found.
    """
    try:
        return fit(corpora, RIDGE, VERDICTS)
    except ValueError as error:
        raise InvalidRequestError(f"No ranking weights can be fitted to these data sets: {error}.") from error
