"""The passages of one query in order: as published, or by features whose weights are a belief."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core import belief, ranking
from app.core.profiles import Profile
from app.core.ranking import Reach
from app.core.recall import lifts
from app.providers.language import normalise_entity, title_entities
from app.providers.prior import RankingPrior
from app.services.retrieval.propagate import Hop, Walk
from app.services.retrieval.query import Query
from app.services.retrieval.search import by_words, term_weights
from app.storage.corpus import lexical
from app.storage.database import Reader
from app.storage.learning import weights
from app.storage.retrieval import hops
from app.storage.retrieval.hops import Focus, GraphLimits, Keyed

RECORDED = 64
"""Candidates whose features an episode keeps: verdicts on the ranking compare the best ones."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranked passages of one query.

    Attributes:
        best: passage and score of the ``top_k`` best, best first.
        candidates: all that were ranked by features, best before recall first, (n,); none if ranked as published.
        features: of the candidates, (n, k).
        recalled: whether recall had a say in what was reached and in which order.
        expanded: whether the question came with expansions.
        beyond: passage and score of those that come after ``best``, as many as were reached, best first.
    """

    best: list[tuple[int, float]]
    candidates: NDArray[np.int64]
    features: NDArray[np.float64]
    recalled: bool
    expanded: bool = False
    beyond: Sequence[tuple[int, float]] = ()

    @property
    def teaches(self) -> bool:
        """Whether a verdict speaks of the ranking weights: not where what is known of the question had a say.

        Nor where expansions had one: they change what likeness comes to, and the weights are those of questions as
        they are asked.
        """
        return len(self.candidates) > 0 and not self.recalled and not self.expanded


def by_keys(found: list[tuple[int, float]], top_k: int) -> Ranking:
    """The ranking of a plain search, which has no features; ``found`` is best first."""
    return Ranking(found[:top_k], *_NO_FEATURES, recalled=False, beyond=found[top_k:])


_NO_FEATURES = np.zeros(0, dtype=np.int64), np.zeros((0, len(ranking.FEATURES)))


@dataclass(frozen=True, slots=True)
class Ranker:
    """Ranks what a walk reached."""

    limits: GraphLimits
    prior: RankingPrior

    def rank(self, reader: Reader, focus: Focus, query: Query, profile: Profile, walk: Walk) -> Ranking:
        """Rank the passages that the walk touched and those nearest to the question."""
        if profile.by_features:
            return self._by_features(reader, focus, query, profile, walk)
        touched = {passage for bonus in walk.bonuses for passage in bonus}
        touched.update(e.passage_id for e in walk.evidence.values())
        keyed = self._keyed(reader, focus, query.top_k, touched)
        similarities = {passage: key.similarity for passage, key in keyed.items()}
        scores = ranking.passage_scores(similarities, walk.bonuses, profile.prior_weight)
        ordered = ranking.best(scores, len(scores))
        return Ranking(
            ordered[: query.top_k], *_NO_FEATURES, recalled=bool(walk.priors), beyond=ordered[query.top_k :]
        )

    def _by_features(self, reader: Reader, focus: Focus, query: Query, profile: Profile, walk: Walk) -> Ranking:
        wanted = max(query.top_k, profile.ranked_passages)
        asked = term_weights(query)
        matching = by_words(reader, focus, asked, wanted)
        touched = {e.passage_id for e in walk.evidence.values()} | matching.keys()
        for hop in walk.hops:
            touched.update(hop.candidates.passage_ids[hop.order[: profile.ranked_sentences]].tolist())
        keyed = self._keyed(reader, focus, wanted, touched)
        if asked:
            others = sorted(keyed.keys() - matching.keys())
            matching |= lexical.scores(reader, focus.collection, asked, others, evolved=focus.evolved)
        titles = _titles(keyed)
        length = max(sum(asked.values()), 1)
        passages, features = ranking.passage_features(
            {passage: key.similarity for passage, key in keyed.items()},
            {passage: score / length for passage, score in matching.items()},
            hops.timely_passages(reader, focus, sorted(keyed)),
            [_reach(hop, titles) for hop in walk.hops],
        )
        values = features @ self._mean(reader, focus)
        order = np.lexsort((passages, -values))
        scores = dict(zip(passages.tolist(), values.tolist(), strict=True))
        reach = float(np.ptp(values)) if len(values) else 0.0
        for sentence, lift in lifts(walk.priors).items():
            if sentence in walk.evidence:
                passage = walk.evidence[sentence].passage_id
                scores[passage] = scores.get(passage, 0.0) + profile.recall_weight * reach * lift
        ordered = ranking.best(scores, len(scores))
        return Ranking(
            ordered[: query.top_k],
            passages[order],
            features[order],
            recalled=bool(walk.priors),
            expanded=bool(query.expansions),
            beyond=ordered[query.top_k :],
        )

    def _keyed(self, reader: Reader, focus: Focus, wanted: int, touched: set[int]) -> dict[int, Keyed]:
        """The nearest passages and the touched ones, each with its similarity."""
        keyed = hops.nearest_passages(reader, focus, wanted, self.limits)
        missing = sorted(touched - keyed.keys())
        return keyed | hops.keyed_passages(reader, focus, missing) if missing else keyed

    def _mean(self, reader: Reader, focus: Focus) -> NDArray[np.float64]:
        """The weights: what the collection learned if memory is read, else what is believed before any verdict."""
        learned = weights.find(reader, focus.collection.id, self.prior.name) if focus.use_memory else None
        if learned is None:
            return self.prior.prior.mean
        return belief.posterior(self.prior.prior, learned.evidence).mean


def _reach(hop: Hop, titles: Mapping[int, Sequence[str]]) -> Reach:
    """What a hop reached, and the passages titled after the entities it started from."""
    highest = max(hop.activation.values(), default=0.0)
    active: dict[str, float] = {}
    for entity, activation in hop.activation.items():
        name = normalise_entity(hop.names[entity])
        active[name] = max(active.get(name, 0.0), activation / highest if highest > 0 else 0.0)
    titled = (
        (passage, max(active[name] for name in names if name in active))
        for passage, names in titles.items()
        if not active.keys().isdisjoint(names)
    )
    return Reach(
        passage_ids=hop.candidates.passage_ids[hop.order],
        semantic=hop.candidates.semantic[hop.order],
        scores=hop.scores[hop.order],
        titled=dict(titled),
    )


def _titles(keyed: Mapping[int, Keyed]) -> dict[int, list[str]]:
    """Passage -> the normalised names that its title stands for."""
    return {
        passage: [normalise_entity(name) for name in title_entities(key.title)] for passage, key in keyed.items()
    }
