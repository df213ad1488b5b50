"""The hops of one query: activate sentences, then stop or go on through the entities they name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from app.core import coverage, propagation
from app.core.profiles import Profile
from app.core.propagation import Candidates
from app.core.recall import nearness, net_support, recall_priors, ungated_support
from app.services.retrieval.query import StopReason, Sufficiency
from app.storage.corpus.collections import Collection
from app.storage.database import Database
from app.storage.learning import experience
from app.storage.learning.experience import PastSupport
from app.storage.retrieval import hops
from app.storage.retrieval.hops import Evidence, Focus, GraphLimits

RECALL_QUESTIONS = 8
RECALL_SENTENCES = 8
# A question without entities scans every sentence of a collection up to this size, then the nearest passages'.
SCANNED_SENTENCES = 50_000
SCANNED_PASSAGES = 1_000


@dataclass(frozen=True, slots=True)
class Hop:
    """What one round reached and what it selected of it, best first.

    Attributes:
        candidates: the sentences it reached, in id order.
        order: positions of the candidates, best first.
    """

    activation: dict[int, float]
    names: dict[int, str]
    candidates: Candidates
    scores: NDArray[np.float64]
    order: NDArray[np.intp]
    selected: list[int]
    evidence: dict[int, Evidence]
    coverage: float | None

    def position(self, sentence: int) -> int:
        """Where in ``candidates`` and ``scores`` one of them stands."""
        return int(np.searchsorted(self.candidates.sentence_ids, sentence))

    def score(self, sentence: int) -> float:
        """What one of the candidates scored."""
        return float(self.scores[self.position(sentence)])


@dataclass(slots=True)
class Walk:
    """All rounds of one query.

    Attributes:
        bonuses: per hop, passage -> summed score of its ranking sentences (Eq. 7).
        recalled: what nearby past questions were supported by.
        priors: sentence -> recall prior in [0, 1], the strongest few.
        vouched: strongest prior from a verdict that claimed to name all evidence.
    """

    hops: list[Hop] = field(default_factory=list)
    bonuses: list[dict[int, float]] = field(default_factory=list)
    recalled: list[PastSupport] = field(default_factory=list)
    priors: dict[int, float] = field(default_factory=dict)
    vouched: float = 0.0
    stop_reason: StopReason = "max_hops"

    @property
    def evidence(self) -> dict[int, Evidence]:
        """Every selected sentence, in order of selection."""
        return {sentence: hop.evidence[sentence] for hop in self.hops for sentence in hop.selected}


@dataclass(frozen=True, slots=True)
class Propagation:
    """Runs the hops of queries over one database.

    Attributes:
        limits: bounds on what one statement reads.
        recall_gate: least cosine of a past question that is heard.
    """

    database: Database
    limits: GraphLimits
    recall_gate: float

    def walk(
        self,
        focus: Focus,
        question: str,
        entities: dict[int, tuple[str, float]],
        profile: Profile,
        max_hops: int,
        sufficiency: Sufficiency,
        is_sufficient: Callable[[str, Sequence[str]], bool],
    ) -> Walk:
        """Propagate from ``entities`` (entity -> name and similarity), at most ``max_hops`` times.

        ``is_sufficient`` is asked between hops, with no connection held, when ``sufficiency`` is "llm".
        """
        walk = Walk()
        if profile.recalls and focus.use_memory:
            self._recall(focus, list(entities), walk)
        activation = {entity: similarity for entity, (_, similarity) in entities.items()}
        names = {entity: name for entity, (name, _) in entities.items()}
        while True:
            hop = self._hop(focus, question, activation, names, profile, walk, sufficiency)
            if hop is None:
                walk.stop_reason = "no_candidates"
                return walk
            walk.hops.append(hop)
            if len(walk.hops) >= max_hops:
                return walk
            if (
                _is_covered(hop, walk)
                if sufficiency == "coverage"
                else sufficiency == "llm" and is_sufficient(question, [e.text for e in walk.evidence.values()])
            ):
                walk.stop_reason = "sufficient"
                return walk
            activation = self._onward(focus.collection, hop, walk, profile)
            names = {entity: name for e in hop.evidence.values() for entity, name in e.entities.items()}
            if not activation:
                walk.stop_reason = "no_entities"
                return walk

    def _recall(self, focus: Focus, entities: Sequence[int], walk: Walk) -> None:
        with self.database.read() as reader:
            walk.recalled = experience.recall(reader, focus, entities, self.recall_gate, RECALL_QUESTIONS)
        if focus.ungated:
            walk.recalled = [
                replace(past, support=ungated_support(past.support, past.perplexity), perplexity=0.0)
                for past in walk.recalled
            ]
        walk.priors, walk.vouched = heard(walk.recalled, self.recall_gate)

    def _hop(
        self,
        focus: Focus,
        question: str,
        activation: dict[int, float],
        names: dict[int, str],
        profile: Profile,
        walk: Walk,
        sufficiency: Sufficiency,
    ) -> Hop | None:
        recalled = [] if walk.hops else list(walk.priors)
        with self.database.read() as reader:
            if activation:
                candidates = hops.linked_sentences(reader, focus, activation, recalled, self.limits)
            else:
                within = None
                if focus.collection.sentence_count > SCANNED_SENTENCES:
                    within = list(hops.nearest_passages(reader, focus, SCANNED_PASSAGES, self.limits))
                candidates = hops.all_sentences(reader, focus, within, recalled, self.limits)
            if not len(candidates):
                return None
            scores = propagation.sentence_scores(candidates, learned_only=profile.learned_only)
            order = propagation.strongest(scores, candidates.sentence_ids, len(candidates))
            chosen = order[: profile.sentences_per_hop]
            walk.bonuses.append(propagation.passage_bonuses(scores[chosen], candidates.passage_ids[chosen]))
            selected = candidates.sentence_ids[chosen].tolist()
            selected += [
                sentence
                for sentence in recalled
                if sentence not in selected and sentence in candidates.sentence_ids
            ]
            evidence = hops.evidence(reader, focus.collection, selected)
        covered = None
        if sufficiency == "coverage":
            texts = [e.text for e in (walk.evidence | evidence).values()]
            covered = coverage.coverage(question, texts)
        selected = [sentence for sentence in selected if sentence in evidence]
        return Hop(activation, names, candidates, scores, order, selected, evidence, covered)

    def _onward(self, collection: Collection, hop: Hop, walk: Walk, profile: Profile) -> dict[int, float]:
        """Entities that lead the next hop (Eq. 9); a recalled sentence counts with its prior."""
        scores = {
            sentence: hop.score(sentence) + (0.0 if len(walk.hops) > 1 else walk.priors.get(sentence, 0.0))
            for sentence in hop.selected
        }
        links = [(sentence, entity) for sentence in hop.selected for entity in hop.evidence[sentence].entities]
        if not profile.rare_first:
            return propagation.next_entities(scores, links, profile.entities_per_hop)
        left = {entity for past in walk.hops for entity in past.activation}
        links = [(sentence, entity) for sentence, entity in links if entity not in left]
        if not links:
            return {}
        with self.database.read() as reader:
            named = sorted({entity for _, entity in links})
            counts = hops.sentence_counts(reader, collection, named, self.limits.hub_limit)
        links = [(sentence, entity) for sentence, entity in links if counts[entity]]
        return propagation.next_entities(scores, links, profile.entities_per_hop, counts)


def heard(recalled: Sequence[PastSupport], gate: float) -> tuple[dict[int, float], float]:
    """What past questions' supports make of sentences: the strongest priors, and the strongest that vouches.

    A prior vouches for a question's evidence if the verdict behind it claimed to name all of it.
    """
    near = [
        (
            past,
            nearness(past.similarity, gate, shares_entity=past.shares_entity),
            net_support(past.support, past.perplexity),
        )
        for past in recalled
    ]
    priors = recall_priors((past.sentence_id, nearby, net) for past, nearby, net in near)
    strongest = sorted(priors.items(), key=lambda pair: (-pair[1], pair[0]))[:RECALL_SENTENCES]
    return dict(strongest), max((nearby * net for past, nearby, net in near if past.complete), default=0.0)


def _is_covered(hop: Hop, walk: Walk) -> bool:
    """The coverage rule: the evidence names all that the question names, or verdicts vouch for it."""
    return (hop.coverage or 0.0) >= 1.0 or walk.vouched >= coverage.VOUCHED_PRIOR
