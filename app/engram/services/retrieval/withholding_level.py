"""The level of ``min_sufficiency`` "auto": at most one right answer in ten is withheld."""

from dataclasses import dataclass
from typing import Literal

from engram.core.ranking import sufficiency
from engram.core.ranking.ranking_weights import Floats
from engram.providers.ranking_prior import RankingPrior
from engram.services.retrieval.query_plan import QueryPlan
from engram.storage.database import Reader
from engram.storage.learning.confirmed_answers import list_confirmed_answers

LEAST_CONFIRMED = 20
"""Confirmed answers from which on the collection's own level counts: one of them may be withheld."""
MOST_CONFIRMED = 500
"""Confirmed answers, the latest, that the level is taken from."""


@dataclass(frozen=True, slots=True)
class WithholdingLevel:
    """Level below which an answer is withheld.

    Attributes:
        value: a probability, in [0, 1].
        source: "verdicts" if verdicts of the collection confirmed ``LEAST_CONFIRMED`` answers, else "prior": the
            right answers of the data sets that the shipped weights were fitted to.
        confirmed: answers that verdicts of the collection called sufficient, at most ``MOST_CONFIRMED``.
    """

    value: float
    source: Literal["prior", "verdicts"]
    confirmed: int


def choose_level(reader: Reader, plan: QueryPlan, prior: RankingPrior, weights: Floats) -> WithholdingLevel:
    """Choose the level for a query, by the answers that verdicts confirmed.

    Args:
        weights: of sufficiency, as the query uses them, (k,).
    """
    if not plan.focus.use_memory:
        return WithholdingLevel(prior.sufficiency_level, "prior", 0)
    confirmed = list_confirmed_answers(
        reader, plan.collection.id, prior.of_sufficiency, len(weights), MOST_CONFIRMED
    )
    if len(confirmed) < LEAST_CONFIRMED:
        return WithholdingLevel(prior.sufficiency_level, "prior", len(confirmed))
    return WithholdingLevel(
        sufficiency.compute_withholding_threshold(confirmed, weights), "verdicts", len(confirmed)
    )
