"""Same need: the probability that a past question asks for the same evidence as a new one (ours).

What a cosine means depends on the encoder and on the collection, so no constant decides. Three signals of two
questions are compared with what the collection shows:

- nearness: the cosine of their vectors in standard units of the collection (``question_units``).
- words: the cosine of their words, each weighted by its idf. Questions in two languages have no words to compare.
- contrasts: what makes near questions different, such as other numbers (``question_contrasts``).

With f0 the density of these signals between a question and the nearest one with *other* evidence, f1 that between
two questions with the same need, and ρ the share of questions whose nearest past question has the same need,

    P(same need) = ρ f1 / (ρ f1 + (1 - ρ) f0)

f0 is a kernel density over the collection's own judged questions, beside a prior that weighs as much as
``PRIOR_PAIRS`` of them. It does not rise with nearness, so nearer questions are never less likely to have the same
need. f1 is uniform: a need can be worded in any way. So an encoder that makes all vectors alike,
or a collection whose questions are all alike, recalls little until two questions are closer than its different ones
ever are.

This is the belief by a single past question. What all near ones say together, and how often they were right in this
collection, is the matter of ``neighbour_vote``: it makes of the log odds of P(same need) the probability that a
passage is evidence.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.neighbour_vote import (
    NONE_ASKED,
    UNTAUGHT,
    AskedQuestions,
    Neighbours,
    VoteWeights,
    learn_weights,
)
from engram.core.ranking.question_contrasts import (
    PRIOR_OTHER,
    Contrast,
    ContrastShares,
    measure_contrasts,
    name_contrasts,
)
from engram.core.ranking.question_units import Floats, QuestionUnits, Vectors
from engram.core.ranking.repeated_needs import (
    MAX_NEARNESS,
    PRIOR_NEARNESS,
    PRIOR_PAIRS,
    PRIOR_SHARE,
    PRIOR_WORDS,
    build_features,
    learn_repeated_needs,
)
from engram.core.ranking.weight_beliefs import sigmoid
from engram.core.ranking.wording_scatter import PlacedQuestions, WordingDifferences, WordingScatter

Flags = NDArray[np.bool_]

NEARNESS_WIDTH = 0.8
"""Width of the kernel in nearness, in standard units."""
WORDS_WIDTH = 0.08
"""Width of the kernel in the cosine of words."""
FIGURES_MISMATCH_WEIGHT = 0.05
"""Weight of a kernel for pairs of which only one, observed or new, contrasts in figures."""
PRIOR_EVIDENCE_COUNT = 5.0
"""Passages that may answer a question, as long as no need was asked for twice. It counts like ``PRIOR_PAIRS``
questions."""
CROSS_LANGUAGE_NEARNESS = (2.7, 0.8)
"""``PRIOR_NEARNESS`` of pairs in two languages, in units of ``fit_to_other_languages``: of 100 normal numbers the
maximum is about 2.5."""
SMALLEST_DENSITY = 1e-300


FIGURES = 0
"""Place of the contrast in figures, which the kernel density knows; other contrasts count by their ratios."""


@dataclass(frozen=True, slots=True)
class SameNeed:
    """Probability that a past question's evidence answers the present one, and what it rests on.

    Attributes:
        probability: in [0, 1].
        nearness: of the two questions, in standard units of the collection.
        words: cosine of their idf-weighted words, in [0, 1]; 0 where they are in two languages.
        contrasts: names of the contrasts of the two questions.
        supporters: near judged questions that the same passage is evidence of, this one among them.
        others: near judged questions that were answered by other passages.
        learned_from: judged questions of the collection that taught what such a vote is worth.
    """

    probability: float
    nearness: float
    words: float
    contrasts: tuple[Contrast, ...] = ()
    supporters: int = 0
    others: int = 0
    learned_from: int = 0


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals of pairs of questions.

    Attributes:
        nearness: in standard units of the collection, (n,).
        words: cosine of idf-weighted words, in [0, 1], (n,); NaN where a pair is in two languages.
        contrasts: which contrasts each pair has, (n, 6), see ``question_contrasts.CONTRASTS``.
        cross_language: whether the pair is in two languages, and nearness in units of
            ``QuestionUnits.fit_to_other_languages``, (n,); None: no pair is.
    """

    nearness: Floats
    words: Floats
    contrasts: Flags
    cross_language: Flags | None = None

    def select(self, places: NDArray[np.intp]) -> "Signals":
        """Select pairs by their places; none of them is in two languages."""
        return Signals(self.nearness[places], self.words[places], self.contrasts[places])


@dataclass(frozen=True, slots=True)
class NearPairs:
    """A sample of judged or asked questions, each with the judged questions nearest to it.

    Attributes:
        evidence: passages that support each question of the sample and each neighbour; of asked ones none is known.
        rows: place in ``evidence`` of the question of the sample of each pair, (n,).
        neighbours: place in ``evidence`` of its neighbour, (n,).
        signals: of each pair.
        vectors: of each question in ``evidence``, of length 1, (m, d).
        word_shares: question of the sample -> passage of its neighbours' evidence -> share of the question's words
            that the passage has, see ``neighbour_vote.Neighbours``.
    """

    evidence: Sequence[AbstractSet[int]]
    rows: NDArray[np.intp]
    neighbours: NDArray[np.intp]
    signals: Signals
    vectors: Vectors
    word_shares: Mapping[int, Mapping[int, float]]


@dataclass(frozen=True, slots=True)
class ComparedQuestions:
    """Past questions compared with the present one, each by itself.

    Attributes:
        ids: of the past questions, nearest first.
        log_odds: that each has the need of the present one, by itself, (n,).
        signals: of each pair.
        vote_nearness: nearness of each pair in the vote, (n,), see ``wording_scatter``.
        log_ratios: summed log likelihood ratios of the contrasts of each pair, (n,).
        identical: whether the two are the same but for case, white space and marks at their ends, (n,).
        word_shares: passage of their evidence -> share of the present question's words that it has.
        weights: what votes of past questions are worth in this collection.
        evidence_count: passages that answer a judged question on average, of those whose need was judged twice.
    """

    ids: Sequence[int]
    log_odds: Floats
    signals: Signals
    vote_nearness: Floats
    log_ratios: Floats
    identical: Flags
    word_shares: Mapping[int, float]
    weights: VoteWeights
    evidence_count: float

    def compute_probabilities(self) -> dict[int, float]:
        """Past question -> probability that it has the need of the present one, by itself."""
        return dict(zip(self.ids, np.where(self.identical, 1.0, sigmoid(self.log_odds)).tolist(), strict=True))

    def count_votes(self, evidence: Mapping[int, AbstractSet[int]]) -> dict[tuple[int, int | None], SameNeed]:
        """Return (past question, passage of its evidence) -> probability that it is evidence of the present one.

        The passage is None for what a past question says by itself, of any other passage. A question that is far
        beside the nearest one speaks for itself, too: it may have another need that the same passage answers.

        Args:
            evidence: past question -> passages that support it, of those in ``word_shares``; those without any do
                not vote.
        """
        of_each = [evidence.get(question, frozenset()) for question in self.ids]
        votes = self.weights.count(
            Neighbours(of_each, self.log_odds, self.vote_nearness, self.log_ratios, self.word_shares)
        )
        alone = sigmoid(self.log_odds).tolist()
        words = np.nan_to_num(self.signals.words).tolist()
        needs: dict[tuple[int, int | None], SameNeed] = {}
        for place, question in enumerate(self.ids):
            need = SameNeed(
                1.0 if self.identical[place] else alone[place],
                float(self.signals.nearness[place]),
                words[place],
                name_contrasts(self.signals.contrasts[place].tolist()),
                learned_from=self.weights.questions,
            )
            needs[question, None] = need
            for passage in of_each[place]:
                vote = votes[passage]
                probability = (
                    1.0 if self.identical[place] else vote.probability if place in vote.supporters else alone[place]
                )
                needs[question, passage] = replace(
                    need, probability=probability, supporters=len(vote.supporters), others=vote.others
                )
        return needs


@dataclass(frozen=True, slots=True)
class QuestionSpread:
    """Statistics of how near a collection's judged questions come to each other.

    Attributes:
        other_pairs: signals between judged questions and the nearest one with other evidence.
        shares: of contrasts between questions with the same evidence, and with other.
        scatter: of wordings of the same need.
        weights: what votes of judged questions are worth.
        evidence_count: passages that answer a judged question on average, of those whose need was judged twice.
    """

    units: QuestionUnits
    other_pairs: Signals
    shares: ContrastShares
    scatter: WordingScatter
    weights: VoteWeights
    evidence_count: float = PRIOR_EVIDENCE_COUNT

    def place(self, vectors: Vectors) -> PlacedQuestions:
        """Place questions by their unit vectors, (n, d)."""
        return self.scatter.place(self.units.centre, vectors)

    def compare(
        self,
        ids: Sequence[int],
        pairs: Signals,
        vote_nearness: Floats,
        identical: Flags,
        word_shares: Mapping[int, float],
    ) -> ComparedQuestions:
        """Compare past questions with the present one.

        Args:
            ids: of the past questions, nearest first.
            pairs: the present question with each.
            vote_nearness: nearness of each pair in the vote, (n,).
            identical: whether each is the present one, (n,).
            word_shares: passage of their evidence -> share of the present question's words that it has.
        """
        return ComparedQuestions(
            ids,
            compute_log_odds(pairs, self.other_pairs, self.shares),
            pairs,
            vote_nearness,
            self.shares.compute_log_ratios(pairs.contrasts).sum(axis=1),
            identical,
            word_shares,
            self.weights,
            self.evidence_count,
        )


def compute_log_odds(
    pairs: Signals, other_pairs: Signals, shares: ContrastShares, known: Flags | None = None
) -> Floats:
    """Log odds that two questions have the same need, for each pair, (n,).

    Args:
        other_pairs: signals between judged questions and the nearest one with other evidence, m of them.
        shares: of contrasts. The one in figures is part of the densities, others are independent of them.
        known: which of the others each pair is compared with, (n, m); None: with all.
    """
    differ = pairs.contrasts[:, FIGURES]
    same_density = np.where(differ, shares.same[FIGURES], 1.0 - shares.same[FIGURES]) / MAX_NEARNESS
    other = _compute_other_density(pairs, other_pairs, known)
    beside = shares.compute_log_ratios(pairs.contrasts)[:, FIGURES + 1 :].sum(axis=1)
    prior = np.log(PRIOR_SHARE) - np.log1p(-PRIOR_SHARE)
    return np.asarray(prior + np.log(same_density) - np.log(np.maximum(other, SMALLEST_DENSITY)) + beside)


def _compute_other_density(pairs: Signals, other_pairs: Signals, known: Flags | None) -> Floats:
    """f0 of each pair, (n,). It never rises with nearness: see ``_decline``."""
    count = len(other_pairs.nearness)
    (mean, deviation), (own_mean, own_deviation) = PRIOR_NEARNESS, CROSS_LANGUAGE_NEARNESS
    cross_language = (
        np.zeros(len(pairs.nearness), dtype=np.bool_) if pairs.cross_language is None else pairs.cross_language
    )
    differ, others_differ = pairs.contrasts[:, FIGURES], other_pairs.contrasts[:, FIGURES]
    nearness = np.minimum(pairs.nearness, MAX_NEARNESS)
    imagined = (
        np.where(cross_language, _decline(nearness - own_mean, own_deviation), _decline(nearness - mean, deviation))
        * _drop_absent(2.0 * _gauss(pairs.words, PRIOR_WORDS))
        * np.where(differ, PRIOR_OTHER[FIGURES], 1.0 - PRIOR_OTHER[FIGURES])
    )
    own_nearness = np.minimum(other_pairs.nearness, MAX_NEARNESS)
    words = pairs.words[:, None]
    own = (
        _decline(nearness[:, None] - own_nearness, NEARNESS_WIDTH)
        * _drop_absent(
            _gauss(words - other_pairs.words, WORDS_WIDTH) + _gauss(words + other_pairs.words, WORDS_WIDTH)
        )
        * np.where(differ[:, None] == others_differ, 1.0 - FIGURES_MISMATCH_WEIGHT, FIGURES_MISMATCH_WEIGHT)
    )
    if known is None:
        return np.asarray((PRIOR_PAIRS * imagined + own.sum(axis=1)) / (PRIOR_PAIRS + count))
    return np.asarray((PRIOR_PAIRS * imagined + (own * known).sum(axis=1)) / (PRIOR_PAIRS + known.sum(axis=1)))


def measure_spread(units: QuestionUnits, judged: NearPairs, asked: NearPairs | None = None) -> QuestionSpread:
    """Measure what a collection's judged questions show of each other.

    Of each question of the sample, the nearest one with other evidence and the nearest one with common evidence
    are compared. Pairs with common evidence teach the scatter of wordings. Then each question is left out, also of
    the pairs that it is compared with, and its neighbours vote (``neighbour_vote``). A question without evidence
    takes no part.

    Args:
        asked: asked questions that nobody judged. They stand for the repeated needs that judged ones lack, and tell
            nothing where no two judged questions have different evidence, which they are compared with.
    """
    places_by_row = _list_places(judged)
    own_evidence = {row: judged.evidence[row] for row in places_by_row if judged.evidence[row]}
    nearest: dict[tuple[int, bool], int] = {}
    same_pairs: list[tuple[int, int]] = []
    for row, own in own_evidence.items():
        for place in places_by_row[row]:
            neighbour = int(judged.neighbours[place])
            shares_evidence = bool(own & judged.evidence[neighbour])
            nearest.setdefault((row, shares_evidence), place)
            if shares_evidence:
                same_pairs.append((row, neighbour))
    apart, alike = (
        np.array([place for (_, shares), place in sorted(nearest.items()) if shares is which], dtype=np.intp)
        for which in (False, True)
    )
    other_pairs = judged.signals.select(apart)
    shares = measure_contrasts(judged.signals.contrasts[alike], other_pairs.contrasts)
    known = np.ones((len(judged.rows), len(apart)), dtype=np.bool_)
    for questions in (judged.rows[apart], judged.neighbours[apart]):
        known &= judged.rows[:, None] != questions
    differences = WordingDifferences(
        judged.vectors.astype(np.float64).reshape(len(judged.evidence), len(units.centre)) - units.centre,
        np.array(same_pairs, dtype=np.intp).reshape(-1, 2),
    )
    scatter = differences.learn_scatter(np.unique(judged.rows))
    log_odds = compute_log_odds(judged.signals, other_pairs, shares, known)
    vote_nearness = differences.measure_left_out(scatter, units, judged.rows, judged.neighbours)
    neighbours = _list_neighbours(judged, places_by_row, log_odds, vote_nearness, shares)
    left_out = [(own, neighbours[row]) for row, own in own_evidence.items()]
    repeated = [len(own) for own, near in left_out if any(own & other for other in near.evidence)]
    evidence_count = (PRIOR_PAIRS * PRIOR_EVIDENCE_COUNT + sum(repeated)) / (PRIOR_PAIRS + len(repeated))
    spread = QuestionSpread(units, other_pairs, shares, scatter, UNTAUGHT, evidence_count)
    expected = NONE_ASKED
    if asked is not None and len(asked.rows):
        disjoint = {
            row: [place for place in places_by_row[row] if not own & judged.evidence[judged.neighbours[place]]]
            for row, own in own_evidence.items()
        }
        if nearest_apart := [places[0] for places in disjoint.values() if places]:
            repeated_share = (PRIOR_SHARE + len(repeated)) / (1.0 + len(left_out))
            features = _build_features(judged, disjoint, shares)[nearest_apart]
            expected = _expect_votes(spread, asked, features, repeated_share)
    return replace(spread, weights=learn_weights(left_out, expected))


def _expect_votes(spread: QuestionSpread, asked: NearPairs, apart: Floats, repeated_share: float) -> AskedQuestions:
    """Tell which votes on asked questions are right, by how near these come to judged ones.

    They count as far as judged questions repeat a need more rarely than asked ones surely do.

    Args:
        apart: features of judged questions and the nearest one with other evidence, (m, 5).
        repeated_share: share of judged questions whose need was judged twice.
    """
    places_by_row = _list_places(asked)
    features = _build_features(asked, places_by_row, spread.shares)
    needs = learn_repeated_needs(apart, features[[places[0] for places in places_by_row.values()]])
    weight = max(0.0, 1.0 - repeated_share / needs.least_share)
    if not weight:
        return NONE_ASKED
    placed = spread.place(asked.vectors)
    rows, neighbours = asked.rows, asked.neighbours
    cosines = np.einsum("nd,nd->n", asked.vectors[rows], asked.vectors[neighbours])
    nearness = spread.scatter.standardise(
        spread.units, cosines, placed.select(rows.tolist()), placed.select(neighbours.tolist())
    )
    log_odds = compute_log_odds(asked.signals, spread.other_pairs, spread.shares)
    same_need = needs.compute_log_odds(features)
    return AskedQuestions(
        list(_list_neighbours(asked, places_by_row, log_odds, nearness, spread.shares).values()),
        [same_need[places] for places in places_by_row.values()],
        weight,
    )


def _build_features(pairs: NearPairs, places_by_row: Mapping[int, Sequence[int]], shares: ContrastShares) -> Floats:
    """Features of pairs for ``repeated_needs``, (n, 5).

    Args:
        places_by_row: question of the sample -> places of its pairs that are looked at, the nearest first.
    """
    nearness, leads = pairs.signals.nearness, np.zeros(len(pairs.rows))
    for places in places_by_row.values():
        near = [(place, pairs.evidence[pairs.neighbours[place]]) for place in places]
        for place, own in near:
            rival = next((other for other, evidence in near if not own & evidence), None)
            leads[place] = nearness[place] - (0.0 if rival is None else nearness[rival])
    log_ratios = shares.compute_log_ratios(pairs.signals.contrasts).sum(axis=1)
    return build_features(nearness, leads, pairs.signals.words, log_ratios)


def _list_places(pairs: NearPairs) -> dict[int, list[int]]:
    """Question of the sample -> places of its pairs whose neighbour has evidence, the nearest first."""
    places: dict[int, list[int]] = {}
    for place in np.lexsort((-pairs.signals.nearness, pairs.rows)).tolist():
        if pairs.evidence[pairs.neighbours[place]]:
            places.setdefault(int(pairs.rows[place]), []).append(place)
    return places


def _list_neighbours(
    pairs: NearPairs,
    places_by_row: Mapping[int, Sequence[int]],
    log_odds: Floats,
    vote_nearness: Floats,
    shares: ContrastShares,
) -> dict[int, Neighbours]:
    """Question of the sample -> its neighbours with evidence, as they vote.

    Args:
        places_by_row: see ``_list_places``.
        log_odds: of the same need, of each pair, (n,).
        vote_nearness: of each pair, (n,).
    """
    log_ratios = shares.compute_log_ratios(pairs.signals.contrasts).sum(axis=1)
    return {
        row: Neighbours(
            [pairs.evidence[neighbour] for neighbour in pairs.neighbours[places].tolist()],
            log_odds[places],
            vote_nearness[places],
            log_ratios[places],
            pairs.word_shares[row],
        )
        for row, places in places_by_row.items()
    }


def compare_words(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Cosine of two texts by their words, in [0, 1]; 0 if one has none.

    Args:
        one, other: term -> idf, >= 0.
    """
    shared = sum(weight * weight for term, weight in one.items() if term in other)
    sizes = [sum(weight * weight for weight in words.values()) for words in (one, other)]
    return min(1.0, shared / float(np.sqrt(sizes[0] * sizes[1]))) if min(sizes) > 0 else 0.0


def _drop_absent(densities: Floats) -> Floats:
    """Take densities of a signal that is absent for 1, which leaves it out."""
    return np.where(np.isnan(densities), 1.0, densities)


def _decline(distances: Floats, width: float) -> Floats:
    """Normal density above 0, and its peak below: a pair that is less near than another counts as near as that one.

    Where questions with other evidence are very near, the plain density is low of middling pairs as well, and would
    take them for the same need.
    """
    return _gauss(np.maximum(distances, 0.0), width)


def _gauss(distances: Floats, width: float) -> Floats:
    return np.asarray(np.exp(-0.5 * (distances / width) ** 2) / (width * np.sqrt(2.0 * np.pi)))
