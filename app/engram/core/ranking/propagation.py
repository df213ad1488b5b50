"""Memory-guided propagation over the entity-sentence-passage graph (GAM-RAG, section 3.2.2, Eqs. 4-6, 9)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ChannelMemories:
    """Memories of one channel of n sentences, as a wing's hops read them; arrays are (n,).

    Attributes:
        perplexity: π in [0, 1]; 1 where no verdict has touched the channel.
        similarity: cosine of memory and question; counts only where π < 1.
    """

    perplexity: Floats
    similarity: Floats

    @property
    def factor(self) -> Floats:
        """g = 1 + (1 - π) cos(m, q): 1 while nothing is known, up to 2 for a sure, aligned memory (Eq. 4)."""
        return 1.0 + (1.0 - self.perplexity) * self.similarity


@dataclass(frozen=True, slots=True)
class ReachedSentences:
    """The sentences one hop reached; all arrays are (n,), one entry per sentence.

    Attributes:
        sentence_ids: their ids.
        passage_ids: the passage that holds each.
        activation: u, the summed activation of the entities that lead here (Eq. 5).
        semantic: cosine of sentence and question, in [-1, 1].
        agreement: how well the days a sentence speaks of agree with those asked for, in [0, 1]; 0 for all where
            that is not looked at.
        memories: channel -> what the sentences remember; none where hops read no memories.
    """

    sentence_ids: Ids
    passage_ids: Ids
    activation: Floats
    semantic: Floats
    agreement: Floats
    memories: Mapping[str, ChannelMemories] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sentence_ids)

    def join(self, others: "ReachedSentences") -> "ReachedSentences":
        """Return these sentences and others, in id order, without memories."""
        order = np.argsort(np.concatenate([self.sentence_ids, others.sentence_ids]))
        sentences, passages, activation, semantic, agreement = (
            np.concatenate([getattr(self, name), getattr(others, name)])[order]
            for name in ("sentence_ids", "passage_ids", "activation", "semantic", "agreement")
        )
        return ReachedSentences(sentences, passages, activation, semantic, agreement)

    def get_memories(self, channel: str) -> ChannelMemories:
        """Return what the sentences remember in a channel; nothing where hops do not read it."""
        count = len(self)
        return self.memories.get(channel) or ChannelMemories(np.ones(count), np.zeros(count))


def sentence_weights(candidates: ReachedSentences) -> Floats:
    """w = s_sem · (1 + agreement) · Π g, (n,), none below 0: Eq. 4 where hops read memories and no days.

    A cosine can be negative, which the paper does not speak of; such a sentence counts as unlike the question
    and no worse, because a negative score would leave Eq. 8 with the logarithm of a negative number.
    """
    weights = np.maximum(candidates.semantic, 0.0) * (1.0 + candidates.agreement)
    for memories in candidates.memories.values():
        weights = weights * np.maximum(memories.factor, 0.0)
    return weights


def normalise_l1(values: Floats) -> Floats:
    """Scale so that absolute values sum to 1; all zeros stay zeros (Norm_1 in Eq. 6)."""
    total = np.abs(values).sum()
    return values / total if total > 0 else np.zeros_like(values)


def sentence_scores(candidates: ReachedSentences) -> Floats:
    """Norm_1(w · u) over all candidates of the hop, (n,) (Eq. 6)."""
    return normalise_l1(sentence_weights(candidates) * candidates.activation)


def select_strongest(scores: Floats, ids: Ids, limit: int) -> NDArray[np.intp]:
    """Positions of the ``limit`` largest scores, best first; equal scores in id order."""
    return np.lexsort((ids, -scores))[:limit]


def select_next_entities(
    sentence_score: Mapping[int, float],
    links: Sequence[tuple[int, int]],
    limit: int,
    counts: Mapping[int, int] | None = None,
) -> dict[int, float]:
    """Entities that lead the next hop: the mean score of each one's activated sentences (Eq. 9).

    The mean, not the sum, so that an entity in many middling sentences does not win over one in a good one.

    With ``counts`` the mean is divided by 1 + ln(sentences that name the entity), which favours rare entities: all
    names of one sentence have the same mean.

    Args:
        sentence_score: activated sentence -> its score in this hop.
        links: (sentence, entity) pairs: the activated sentences and the entities that they mention.
        limit: how many entities are kept (top 5 in Appendix C); ties in id order.
        counts: entity -> sentences that name it, at least 1.
    """
    sums: dict[int, list[float]] = {}
    for sentence, entity in links:
        sums.setdefault(entity, []).append(sentence_score[sentence])
    means = {
        entity: sum(scores) / len(scores) / (1.0 + math.log(counts[entity]) if counts else 1.0)
        for entity, scores in sums.items()
    }
    positive = ((entity, mean) for entity, mean in means.items() if mean > 0)
    return dict(sorted(positive, key=lambda pair: (-pair[1], pair[0]))[:limit])
