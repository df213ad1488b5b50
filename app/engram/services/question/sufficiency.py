"""Part of step 7: how probably the answer holds all evidence, and from which probability on it is shown."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import complementarity, passage_scores, sufficiency
from engram.core.ranking.complementarity import CandidatePool, QuestionWords
from engram.core.ranking.sufficiency import Chain
from engram.core.ranking.weight_beliefs import Floats
from engram.core.ranking.withholding_level import LEAST_CONFIRMED, calibrate, calibrate_weights, compute_level
from engram.core.text import question_triples
from engram.providers.ranking_prior import RankingPrior
from engram.services.question.plan import QueryPlan, Search
from engram.services.question.walk import Walk
from engram.storage.corpus.collections import Collection, MeasuredLevel
from engram.storage.database import Reader
from engram.storage.learning.learned_weights import list_confirmed_answers

MOST_CONFIRMED = 500
"""Confirmed answers, the latest, that the level is taken from."""

_SIMILARITY = passage_scores.PASSAGE_FEATURES.index("similarity")
_SHARED_NEW = passage_scores.PASSAGE_FEATURES.index("shared_new")
_TITLED = passage_scores.PASSAGE_FEATURES.index("titled_1")
_NAMED = complementarity.PAIR_FEATURES.index("named")


@dataclass(frozen=True, slots=True)
class SufficiencyEstimate:
    """Probability that the first five passages of a ranking hold all the evidence.

    Attributes:
        uncalibrated: probability by the features and their weights before calibration, in [0, 1]; 0 where nothing
            was found.
        midpoint: that calibrates it, see ``withholding_level``.
        vouched: highest P(same need) x net support by a verdict that claimed to name all evidence, in [0, 1].
        features: see ``sufficiency.ANSWER_FEATURES``, (k,); empty where nothing was found.
        weights: mean weights of the features, calibrated, (k,).
        events: verdicts in the weights.
        undenied: what judges of earlier answers to the question leave of it, in (0, 1], see ``denied_answers``.
        remembered: lower bound by past questions whose evidence leads the ranking, see ``remembered_sufficiency``.
    """

    uncalibrated: float
    midpoint: float
    vouched: float
    features: NDArray[np.float64]
    weights: NDArray[np.float64]
    events: int
    undenied: float
    remembered: float = 0.0

    @property
    def model(self) -> float:
        """Probability by the features, calibrated, in [0, 1]."""
        return calibrate(self.uncalibrated, self.midpoint)

    @property
    def probability(self) -> float:
        """Probability that the answer states: the highest of three, as recall brings up evidence, less denials."""
        return self.state(self.undenied)

    def state(self, undenied: float) -> float:
        """Compute the probability that the answer states if judges leave this share of it.

        Of the model's probability it is taken before calibration: where the collection's log odds lie does not
        decide whether a denied answer falls below its level.
        """
        return max(
            calibrate(self.uncalibrated * undenied, self.midpoint), max(self.vouched, self.remembered) * undenied
        )

    @property
    def steering(self) -> float:
        """Probability before calibration: it ends hops and sessions, and weighs collections and quotes."""
        return max(self.uncalibrated, self.vouched, self.remembered) * self.undenied


LevelSource = Literal["prior", "passages", "verdicts"]


@dataclass(frozen=True, slots=True)
class WithholdingLevel:
    """Level of ``min_sufficiency`` "auto": about one right answer in ten is withheld.

    Attributes:
        value: a probability, in [0, 1].
        source: "verdicts" if verdicts of the collection confirmed ``LEAST_CONFIRMED`` answers; else "passages":
            questions made from its passages; else "prior": the right answers of other data sets.
        confirmed: answers that verdicts of the collection called sufficient, at most ``MOST_CONFIRMED``.
    """

    value: float
    source: LevelSource
    confirmed: int


def estimate_sufficiency(
    search: Search,
    walk: Walk,
    scores: NDArray[np.float64],
    features: NDArray[np.float64],
    words: QuestionWords,
    pool: CandidatePool | None,
    weights: NDArray[np.float64],
    events: int,
    midpoint: float,
) -> SufficiencyEstimate:
    """Estimate how probably a ranking holds all evidence.

    Args:
        scores, features: of all candidates, by the ranking weights, the best before recall first, (n,) and
            (n, k).
        words: the question's words in the first passages.
        pool: pool of the same candidates in the same order; None where it has no member.
        weights: mean weights of ``sufficiency.ANSWER_FEATURES``, (k,).
        events: verdicts in the weights.
        midpoint: of the collection, see ``find_midpoint``.
    """
    plan = search.plan
    calibrated = calibrate_weights(weights, midpoint)
    if not len(scores):
        return SufficiencyEstimate(
            0.0, midpoint, walk.recall.vouched, np.zeros(0), calibrated, events, walk.recall.undenied
        )
    every = dict(enumerate(words.weight.tolist()))
    first = [
        {word: every[word] for word in np.flatnonzero(word_flags).tolist()} for word_flags in words.in_passages
    ]
    # A word that no candidate has weighs as much as one that no passage has: which of the two is not looked up.
    rarest = math.log1p((plan.collection.passage_count + 0.5) / 0.5)
    absent = max(len(plan.terms) * plan.reading_share - len(every), 0) * rarest
    share = sufficiency.compute_word_coverage(first, every, absent)
    values = sufficiency.features(
        scores,
        features[:, _SIMILARITY],
        features[:, _SHARED_NEW],
        share,
        _chain(plan, features, pool),
        expected=search.prior.sufficiency_expected,
        general=plan.collection.corpus_kind == "general",
    )
    return SufficiencyEstimate(
        sufficiency.probability(values, weights),
        midpoint,
        walk.recall.vouched,
        values,
        calibrated,
        events,
        walk.recall.undenied,
    )


def _chain(plan: QueryPlan, features: NDArray[np.float64], pool: CandidatePool | None) -> Chain:
    triples = question_triples.triples(plan.question, list(plan.mentions.values()))
    about = features[:, _TITLED] > 0
    return Chain(
        through=question_triples.count_intermediate_unknowns(triples) if plan.language in (None, "en") else None,
        compared=question_triples.compares(triples),
        about=about,
        named=np.zeros((0, len(features)), dtype=bool)
        if pool is None
        else pool.links[about[pool.places], :, _NAMED] > 0,
    )


def find_midpoint(collection: Collection, prior: RankingPrior) -> float:
    """Log odds at which a collection states even odds; 0 until they are measured, and in an encyclopedic one."""
    measured = _find_measured(collection, prior)
    if measured is None or measured.midpoint is None or collection.corpus_kind == "encyclopedic":
        return 0.0
    return measured.midpoint


def find_level(collection: Collection, prior: RankingPrior) -> tuple[float, LevelSource]:
    """The level without verdicts, as answers state sufficiency, in (0, 1)."""
    measured = _find_measured(collection, prior)
    if measured is None or measured.value is None:
        return prior.sufficiency_level, "prior"
    return calibrate(measured.value, find_midpoint(collection, prior)), "passages"


def _find_measured(collection: Collection, prior: RankingPrior) -> MeasuredLevel | None:
    measured = collection.level
    return measured if measured is not None and measured.prior == prior.sufficiency_name else None


def choose_level(reader: Reader, plan: QueryPlan, prior: RankingPrior, weights: Floats) -> WithholdingLevel:
    """Choose the level for a query, by the collection's passages and the answers that verdicts confirmed.

    Args:
        weights: of sufficiency, calibrated, (k,).
    """
    value, source = find_level(plan.collection, prior)
    if not plan.focus.use_memory:
        return WithholdingLevel(value, source, 0)
    confirmed = list_confirmed_answers(
        reader, plan.collection.id, prior.of_sufficiency, len(weights), MOST_CONFIRMED
    )
    if len(confirmed) < LEAST_CONFIRMED:
        return WithholdingLevel(value, source, len(confirmed))
    return WithholdingLevel(compute_level(value, confirmed @ weights), "verdicts", len(confirmed))
