"""Same need: the probability that a past question asks for the same evidence as a new one (ours).

What a cosine means depends on the encoder and on the collection, so no constant decides. Three signals of two
questions are compared with what the collection shows:

- nearness: the cosine of their vectors in standard units of the collection (``question_units``).
- words: the cosine of their words, each weighted by its idf. Questions in two languages have no words to compare.
- contrasts: what makes near questions different, such as other numbers (``question_contrasts``).

With f0 the density of these signals between a question and the nearest one with *other* evidence, f1 that between
two questions with the same need, and ρ the share of questions whose nearest past question has the same need,

    P(same need) = ρ f1 / (ρ f1 + (1 - ρ) f0)

f0 is a kernel density over the collection's own judged questions (``question_pairs``), beside a prior that weighs
as much as ``PRIOR_PAIRS`` of them (``question_priors``). It does not rise with nearness, so nearer questions are
never less likely to have the same need. f1 is uniform: a need can be worded in any way. So an encoder that makes
all vectors alike, or a collection whose questions are all alike, recalls little until two questions are closer than
its different ones ever are.

This is the belief by a single past question. What all near ones say together, and how often they were right in this
collection, is the matter of ``neighbour_vote``: it makes of the log odds of P(same need) the probability that a
passage is evidence.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

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
    Contrast,
    ContrastShares,
    Flags,
    measure_contrasts,
    name_contrasts,
)
from engram.core.ranking.question_pairs import Signals, compute_log_odds
from engram.core.ranking.question_priors import PRIOR_EVIDENCE_COUNT, PRIOR_PAIRS, PRIOR_SHARE
from engram.core.ranking.question_units import Floats, QuestionUnits, Vectors
from engram.core.ranking.repeated_needs import build_features, learn_repeated_needs
from engram.core.ranking.weight_beliefs import sigmoid
from engram.core.ranking.wording_scatter import PlacedQuestions, WordingDifferences, WordingScatter


@dataclass(frozen=True)
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

    @cached_property
    def places_by_row(self) -> Mapping[int, Sequence[int]]:
        """Question of the sample -> places of its pairs whose neighbour has evidence, the nearest first."""
        places: dict[int, list[int]] = {}
        for place in np.lexsort((-self.signals.nearness, self.rows)).tolist():
            if self.evidence[self.neighbours[place]]:
                places.setdefault(int(self.rows[place]), []).append(place)
        return places

    @cached_property
    def evidence_by_row(self) -> Mapping[int, AbstractSet[int]]:
        """Question of the sample that has evidence and such neighbours -> its evidence."""
        return {row: self.evidence[row] for row in self.places_by_row if self.evidence[row]}

    def list_neighbours(
        self, log_odds: Floats, vote_nearness: Floats, shares: ContrastShares
    ) -> dict[int, Neighbours]:
        """Question of the sample -> its neighbours with evidence, as they vote.

        Args:
            log_odds: of the same need, of each pair, (n,).
            vote_nearness: of each pair, (n,).
        """
        log_ratios = shares.sum_log_ratios(self.signals.contrasts)
        return {
            row: Neighbours(
                [self.evidence[neighbour] for neighbour in self.neighbours[places].tolist()],
                log_odds[places],
                vote_nearness[places],
                log_ratios[places],
                self.word_shares[row],
            )
            for row, places in self.places_by_row.items()
        }

    def build_features(self, places_by_row: Mapping[int, Sequence[int]], shares: ContrastShares) -> Floats:
        """Features of pairs for ``repeated_needs``, (n, 5), of those at these places, the nearest first."""
        nearness, leads = self.signals.nearness, np.zeros(len(self.rows))
        for places in places_by_row.values():
            near = [(place, self.evidence[self.neighbours[place]]) for place in places]
            for place, own in near:
                rival = next((other for other, evidence in near if not own & evidence), None)
                leads[place] = nearness[place] - (0.0 if rival is None else nearness[rival])
        return build_features(nearness, leads, self.signals.words, shares.sum_log_ratios(self.signals.contrasts))


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
    weights: VoteWeights = UNTAUGHT
    evidence_count: float = PRIOR_EVIDENCE_COUNT

    def place(self, vectors: Vectors) -> PlacedQuestions:
        """Place questions by their unit vectors, (n, d)."""
        return self.scatter.place(self.units.centre, vectors)

    def compute_log_odds(self, pairs: Signals) -> Floats:
        """Log odds that the questions of each pair have the same need, (n,)."""
        return compute_log_odds(pairs, self.other_pairs, self.shares)


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
    nearest: dict[tuple[int, bool], int] = {}
    same_pairs: list[tuple[int, int]] = []
    for row, own in judged.evidence_by_row.items():
        for place in judged.places_by_row[row]:
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
    differences = WordingDifferences(
        judged.vectors.astype(np.float64).reshape(len(judged.evidence), len(units.centre)) - units.centre,
        np.array(same_pairs, dtype=np.intp).reshape(-1, 2),
    )
    scatter = differences.learn_scatter(np.unique(judged.rows))
    known = np.ones((len(judged.rows), len(apart)), dtype=np.bool_)
    for questions in (judged.rows[apart], judged.neighbours[apart]):
        known &= judged.rows[:, None] != questions
    neighbours = judged.list_neighbours(
        compute_log_odds(judged.signals, other_pairs, shares, known),
        differences.measure_left_out(scatter, units, judged.rows, judged.neighbours),
        shares,
    )
    left_out = [(own, neighbours[row]) for row, own in judged.evidence_by_row.items()]
    repeated = [len(own) for own, near in left_out if any(own & other for other in near.evidence)]
    evidence_count = (PRIOR_PAIRS * PRIOR_EVIDENCE_COUNT + sum(repeated)) / (PRIOR_PAIRS + len(repeated))
    spread = QuestionSpread(units, other_pairs, shares, scatter, evidence_count=evidence_count)
    expected = NONE_ASKED
    if asked is not None and len(asked.rows):
        repeated_share = (PRIOR_SHARE + len(repeated)) / (1.0 + len(left_out))
        expected = _expect_votes(spread, judged, asked, repeated_share)
    return replace(spread, weights=learn_weights(left_out, expected))


def _expect_votes(
    spread: QuestionSpread, judged: NearPairs, asked: NearPairs, repeated_share: float
) -> AskedQuestions:
    """Tell which votes on asked questions are right, by how near these come to judged ones.

    They count as far as judged questions repeat a need more rarely than asked ones surely do, and as far as there
    are judged questions with other evidence to compare them with.

    Args:
        repeated_share: share of judged questions whose need was judged twice.
    """
    disjoint = {
        row: [place for place in judged.places_by_row[row] if not own & judged.evidence[judged.neighbours[place]]]
        for row, own in judged.evidence_by_row.items()
    }
    nearest_apart = [places[0] for places in disjoint.values() if places]
    if not nearest_apart:
        return NONE_ASKED
    apart = judged.build_features(disjoint, spread.shares)[nearest_apart]
    features = asked.build_features(asked.places_by_row, spread.shares)
    needs = learn_repeated_needs(apart, features[[places[0] for places in asked.places_by_row.values()]])
    known_share = len(nearest_apart) / (len(nearest_apart) + PRIOR_PAIRS)
    weight = known_share * max(0.0, 1.0 - repeated_share / needs.least_share)
    if not weight:
        return NONE_ASKED
    placed = spread.place(asked.vectors)
    rows, neighbours = asked.rows, asked.neighbours
    cosines = np.einsum("nd,nd->n", asked.vectors[rows], asked.vectors[neighbours])
    nearness = spread.scatter.standardise(
        spread.units, cosines, placed.select(rows.tolist()), placed.select(neighbours.tolist())
    )
    same_need = needs.compute_log_odds(features)
    return AskedQuestions(
        list(asked.list_neighbours(spread.compute_log_odds(asked.signals), nearness, spread.shares).values()),
        [same_need[places] for places in asked.places_by_row.values()],
        weight,
    )


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
class ComparedQuestions:
    """Past questions compared with the present one, each by itself.

    Attributes:
        spread: what the collection's judged questions show of each other.
        ids: of the past questions, nearest first.
        signals: of each pair.
        vote_nearness: nearness of each pair in the vote, (n,), see ``wording_scatter``.
        identical: whether the two are the same but for case, white space and marks at their ends, (n,).
        word_shares: passage of their evidence -> share of the present question's words that it has.
    """

    spread: QuestionSpread
    ids: Sequence[int]
    signals: Signals
    vote_nearness: Floats
    identical: Flags
    word_shares: Mapping[int, float]

    @property
    def evidence_count(self) -> float:
        """Passages that answer a judged question on average, of those whose need was judged twice."""
        return self.spread.evidence_count

    def compute_probabilities(self) -> Floats:
        """Probability that each past question has the need of the present one, by itself, (n,)."""
        return np.where(self.identical, 1.0, sigmoid(self.spread.compute_log_odds(self.signals)))

    def count_votes(self, evidence: Mapping[int, AbstractSet[int]]) -> dict[tuple[int, int | None], SameNeed]:
        """Return (past question, passage of its evidence) -> probability that it is evidence of the present one.

        The passage is None for what a past question says by itself, of any other passage. A question that is far
        beside the nearest one speaks for itself, too: it may have another need that the same passage answers.

        Args:
            evidence: past question -> passages that support it, of those in ``word_shares``; those without any do
                not vote.
        """
        of_each = [evidence.get(question, frozenset()) for question in self.ids]
        log_odds = self.spread.compute_log_odds(self.signals)
        log_ratios = self.spread.shares.sum_log_ratios(self.signals.contrasts)
        weights = self.spread.weights
        votes = weights.count(Neighbours(of_each, log_odds, self.vote_nearness, log_ratios, self.word_shares))
        alone = np.where(self.identical, 1.0, sigmoid(log_odds)).tolist()
        words = np.nan_to_num(self.signals.words).tolist()
        needs: dict[tuple[int, int | None], SameNeed] = {}
        for place, question in enumerate(self.ids):
            needs[question, None] = need = SameNeed(
                alone[place],
                float(self.signals.nearness[place]),
                words[place],
                name_contrasts(self.signals.contrasts[place].tolist()),
                learned_from=weights.questions,
            )
            for passage in of_each[place]:
                vote = votes[passage]
                votes_here = place in vote.supporters and not self.identical[place]
                needs[question, passage] = replace(
                    need,
                    probability=vote.probability if votes_here else need.probability,
                    supporters=len(vote.supporters),
                    others=vote.others,
                )
        return needs
