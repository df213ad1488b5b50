"""Complementarity: what a passage adds to those that base features rank first (ours).

Evidence of several hops is a set: what is still missing depends on what was found. RFM-RAG keeps an evidence pool,
asks a language model what it lacks, and searches for that. Here the pool is the best few passages by base features,
each believed with a probability, and what it lacks is computed: the part of the question that points away from a
pool passage (the gap vector), the words of the question that it does not have, the names that it shares with
another passage. What a candidate adds to each member becomes features of the candidate. Their weights are
shipped with the others; no verdict moves them (docs/decisions/0017-fixed-ranking-weights.md).

On the dev halves, weights fitted to the two other families of data sets, all evidence is among the first five for
.88 of the questions of 2wiki where base features alone find it for .71 (evaluation/measurements/measured.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.sufficiency import EVIDENCE_PASSAGES
from engram.core.ranking.weight_beliefs import sigmoid

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.intp]

POOL_SIZE = 4
"""Passages in the pool; from 3 to 6 recall hardly differs."""


PAIR_FEATURES = ("named", "names", "shared", "shared_new", "sided", "unsaid", "gap", "joined")
"""What candidate j adds to pool member i, in [-1, 1]:

- named: 1 if j is titled after something that i names.
- names: 1 if j names what i is titled after.
- shared: rarity of the rarest entity that both name, 1 / log2(1 + passages that name it).
- shared_new: the same of entities that the question does not name: what a chain goes through.
- sided: the entities of the question that j names and i does not, as a share of all by rarity.
- unsaid: the words of the question that j has and i does not, as a share of all that any candidate has, by weight.
- gap: cosine of j's key and the gap, q - (q·s) s, s being i's sentence most like the question q.
- joined: cosine of j's key and q + s.
"""
COMPLEMENTARITY_FEATURES = (*PAIR_FEATURES, "standing")
"""For each pair feature its maximum over members, times their probability of being evidence; then standing, the
candidate's own probability."""


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """Best passages by base features, and what candidates add to them.

    Attributes:
        places: places of the m members among the n candidates, best first, (m,).
        links: what each candidate adds to each member, (m, n, len(PAIR_FEATURES)); 0 between a passage and itself.
    """

    places: Places
    links: Floats

    def reorder(self, order: Places) -> "CandidatePool":
        """Return the pool with its candidates in the given order of places, (n,)."""
        to = np.empty(len(order), dtype=np.intp)
        to[order] = np.arange(len(order))
        return CandidatePool(to[self.places], self.links[:, order])


@dataclass(frozen=True, slots=True)
class EntityIncidence:
    """Incidence of E entities: the members and candidates that name each.

    Attributes:
        rarity: 1 / log2(1 + passages that name it), in (0, 1], (E,).
        in_question: whether the question names it, (E,).
        mentions: whether a candidate names it, (n, E).
        titles: whether a candidate is titled after it, (n, E).
    """

    rarity: Floats
    in_question: Flags
    mentions: Flags
    titles: Flags


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """Words of the question in each of n passages.

    Attributes:
        weight: of each of the t words in the question, idf included, above 0, (t,).
        in_passages: whether a passage has it, (n, t).
    """

    weight: Floats
    in_passages: Flags


@dataclass(frozen=True, slots=True)
class GapSimilarities:
    """Cosines of unit vectors.

    Attributes:
        keys: of each candidate's key with the question, (n,).
        sentences: of each member's best sentence with the question, (m,).
        member_to_candidate: of each member's best sentence with each candidate's key, (m, n).
    """

    keys: Floats
    sentences: Floats
    member_to_candidate: Floats


def find_reference_score(scores: Floats) -> Floats:
    """Score of the fifth passage, or of the last of fewer, which stands for even odds; (..., n), n > 0 -> (...)."""
    return np.asarray(np.sort(scores, axis=-1)[..., -min(EVIDENCE_PASSAGES, scores.shape[-1])])


def compute_evidence_probabilities(scores: Floats) -> Floats:
    """Probability that each passage is evidence, (n,): sigmoid(score - score of the fifth passage).

    With fewer than five passages the last one is the reference. Scores are log odds (see ``weight_beliefs``).
    """
    if not len(scores):
        return scores
    return sigmoid(scores - find_reference_score(scores))


def select_pool(passages: NDArray[np.int64], scores: Floats) -> Places:
    """Select the pool: places of the ``POOL_SIZE`` best passages, best first, equal ones in id order."""
    return np.lexsort((passages, -scores))[:POOL_SIZE]


def build_pool(
    places: Places, entities: EntityIncidence, words: QuestionWords, cosines: GapSimilarities
) -> CandidatePool:
    """Compute what every candidate adds to each member."""
    links = np.stack([_links(at, place, entities, words, cosines) for at, place in enumerate(places.tolist())])
    links[np.arange(len(places)), places] = 0.0
    return CandidatePool(places, links)


def _links(
    at: int, place: int, entities: EntityIncidence, words: QuestionWords, cosines: GapSimilarities
) -> Floats:
    """Return the link features of one member, (n, len(PAIR_FEATURES))."""
    own, title, own_words = entities.mentions[place], entities.titles[place], words.in_passages[place]
    # Of all entities a passage names few, and only those can be shared with it.
    named_entities = np.flatnonzero(own)
    both = np.where(entities.mentions[:, named_entities], entities.rarity[named_entities], 0.0)
    along, across = float(cosines.sentences[at]), cosines.member_to_candidate[at]
    return np.column_stack(
        [
            entities.titles[:, named_entities].any(axis=1),
            entities.mentions[:, title].any(axis=1),
            both.max(axis=1, initial=0.0),
            both[:, ~entities.in_question[named_entities]].max(axis=1, initial=0.0),
            _share(
                entities.mentions & ~own & entities.in_question,
                np.where(entities.in_question, entities.rarity, 0.0),
            ),
            _share(words.in_passages & ~own_words, words.weight),
            (cosines.keys - along * across) / np.sqrt(max(1.0 - along * along, 1e-6)),
            (cosines.keys + across) / np.sqrt(max(2.0 + 2.0 * along, 1e-6)),
        ]
    )


def _share(flags: Flags, weight: Floats) -> Floats:
    """Return the share of the whole weight that each row holds, (n,); 0 where there is none."""
    total = weight.sum()
    return np.asarray(flags @ weight / total if total > 0 else np.zeros(len(flags)))


def compute_complementarity(pool: CandidatePool, probabilities: Floats) -> Floats:
    """Compute the features of complementarity, (n, len(COMPLEMENTARITY_FEATURES)).

    Args:
        probabilities: that each candidate is evidence, in [0, 1], (n,).
    """
    believed = probabilities[pool.places][:, None, None] * pool.links
    best = believed.max(axis=0) if len(pool.places) else np.zeros((len(probabilities), len(PAIR_FEATURES)))
    return np.column_stack([best, probabilities])


def find_best_partner(
    pool: CandidatePool, probabilities: Floats, weights: Sequence[float] | Floats
) -> NDArray[np.int64]:
    """Find the member to which each candidate adds most, (n,), by its place in ``places``; -1 if it adds nothing.

    Args:
        probabilities: that each candidate is evidence, in [0, 1], (n,).
        weights: of the pair features, (len(PAIR_FEATURES),).
    """
    if not len(pool.places):
        return np.full(len(probabilities), -1)
    added = probabilities[pool.places][:, None] * (pool.links @ np.asarray(weights))
    best = added.argmax(axis=0)
    return np.where(added.max(axis=0) > 0, best, -1)
