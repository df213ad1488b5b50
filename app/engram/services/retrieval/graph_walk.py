"""A walk through the graph as a value: how far it came, and where it would go on from."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import propagation
from engram.core.ranking.propagation import ReachedSentences
from engram.core.ranking.remembered_sufficiency import PastEvidence
from engram.core.ranking.same_need import PRIOR_EVIDENCE_COUNT, SameNeed
from engram.storage.learning.question_supports import PastSupport
from engram.storage.retrieval.graph_hops import SelectedSentence

StopReason = Literal["max_hops", "sufficient", "no_entities", "no_candidates", "no_hops"]


MOST_RESUMED_ENTITIES = 10
"""Entities that a walk which is resumed starts from besides its question's own, at most."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """Entities that a hop starts from: entity -> its activation, and its name."""

    activation: Mapping[int, float]
    names: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class WalkHop:
    """Candidates of one hop, and the selected ones.

    Attributes:
        start: what it started from.
        candidates: the sentences it reached, in id order.
        scores: of the candidates, (n,) (Eq. 6).
        order: positions of the candidates, best first.
        selected: the sentences it selected, best first, then those that joined it.
        evidence: the selected sentences as they can be read.
        counts: entity that the evidence names -> sentences that name it, counted up to the limit of hubs.
        coverage: of the question by all that is selected so far, in [0, 1]; None where it is not looked at.
    """

    start: Frontier
    candidates: ReachedSentences
    scores: NDArray[np.float64]
    order: NDArray[np.intp]
    selected: list[int]
    evidence: Mapping[int, SelectedSentence]
    counts: Mapping[int, int]
    coverage: float | None

    def position(self, sentence: int) -> int:
        """Return the position of a sentence in ``candidates`` and ``scores``."""
        return int(np.searchsorted(self.candidates.sentence_ids, sentence))

    def score(self, sentence: int) -> float:
        """Return the score of a candidate."""
        return float(self.scores[self.position(sentence)])


@dataclass(frozen=True, slots=True)
class Walk:
    """All hops of one query so far.

    Attributes:
        frontier: what the next hop starts from; None where it is still to be computed from the last hop.
        joining: sentences that the next hop reaches whatever it starts from.
        hops: the hops made.
        recalled: sentences that supported nearby past questions and have a prior.
        priors: sentence -> recall prior in [0, 1], the strongest few.
        vouched: highest P(same need) x net support by a verdict that claimed to name all evidence, in [0, 1].
        evidence_count: passages that answer a judged question of the collection on average.
        evidence_known: sentences that supported nearby past questions, by question.
        stop_reason: why it stopped; None while it may go on.
        near: passages near the question, best first; None where the collection is small, see ``hop_loop``.
        reached: result of the first hop, if the opening has read it. It is not stored; a loaded walk reads it anew.
    """

    frontier: Frontier | None = field(default_factory=lambda: Frontier({}, {}))
    joining: Sequence[int] = ()
    hops: tuple[WalkHop, ...] = ()
    recalled: Sequence[PastSupport] = ()
    priors: Mapping[int, float] = field(default_factory=dict)
    vouched: float = 0.0
    evidence_count: float = PRIOR_EVIDENCE_COUNT
    evidence_known: Sequence[PastEvidence] = ()
    stop_reason: StopReason | None = None
    near: Sequence[int] | None = None
    reached: ReachedSentences | None = None

    @property
    def evidence(self) -> dict[int, SelectedSentence]:
        """Every selected sentence, in order of selection."""
        return {sentence: hop.evidence[sentence] for hop in self.hops for sentence in hop.selected}

    @property
    def texts(self) -> list[str]:
        """The texts of the selected sentences, in that order."""
        return [sentence.text for sentence in self.evidence.values()]

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON has it; ``load_walk`` makes an equal walk of that."""
        return {
            "frontier": None if self.frontier is None else _frontier(self.frontier),
            "joining": list(self.joining),
            "hops": [
                {
                    "start": _frontier(hop.start),
                    "candidates": {name.name: _column(hop, name.name) for name in fields(ReachedSentences)},
                    "scores": hop.scores.tolist(),
                    "selected": list(hop.selected),
                    "evidence": [
                        asdict(sentence) | {"entities": list(sentence.entities.items())}
                        for sentence in hop.evidence.values()
                    ],
                    "counts": list(hop.counts.items()),
                    "coverage": hop.coverage,
                }
                for hop in self.hops
            ],
            "recalled": [asdict(past) for past in self.recalled],
            "priors": list(self.priors.items()),
            "vouched": self.vouched,
            "evidence_count": self.evidence_count,
            "evidence_known": [asdict(one) for one in self.evidence_known],
            "stop_reason": self.stop_reason,
            "near": None if self.near is None else list(self.near),
        }


def load_walk(stored: Mapping[str, Any]) -> Walk:
    """The walk that ``Walk.to_json`` gave."""
    return Walk(
        frontier=None if stored["frontier"] is None else _load_frontier(stored["frontier"]),
        joining=stored["joining"],
        hops=tuple(_load_hop(hop) for hop in stored["hops"]),
        recalled=[_load_support(past) for past in stored["recalled"]],
        priors=dict(stored["priors"]),
        vouched=stored["vouched"],
        evidence_count=stored["evidence_count"],
        evidence_known=[PastEvidence(**one) for one in stored["evidence_known"]],
        stop_reason=stored["stop_reason"],
        near=stored["near"],
    )


def merge_walks(walks: Sequence[Walk]) -> Walk:
    """Merge walks that wait to be resumed into one.

    It has the ``MOST_RESUMED_ENTITIES`` entities that they lead to most, best first. An entity that several lead to
    counts as where it is strongest; what hops they made is left out.
    """
    best_names: dict[int, tuple[float, str]] = {}
    for walk in walks:
        onward = walk.frontier or Frontier({}, {})
        for entity, score in onward.activation.items():
            if entity not in best_names or score > best_names[entity][0]:
                best_names[entity] = (score, onward.names[entity])
    best = sorted(best_names, key=lambda entity: (-best_names[entity][0], entity))[:MOST_RESUMED_ENTITIES]
    return Walk(
        Frontier(
            {entity: best_names[entity][0] for entity in best}, {entity: best_names[entity][1] for entity in best}
        ),
        stop_reason=walks[0].stop_reason if len(walks) == 1 else None,
    )


def _load_support(stored: Mapping[str, Any]) -> PastSupport:
    need = stored["same_need"]
    return PastSupport(**{**stored, "same_need": SameNeed(**{**need, "contrasts": tuple(need["contrasts"])})})


def _frontier(frontier: Frontier) -> list[list[Any]]:
    """Entity, name and activation of each, in order: JSON's objects have no numbers for keys."""
    return [[entity, frontier.names[entity], score] for entity, score in frontier.activation.items()]


def _column(hop: WalkHop, name: str) -> list[Any]:
    values: list[Any] = getattr(hop.candidates, name).tolist()
    return values


def _load_frontier(rows: Sequence[Sequence[Any]]) -> Frontier:
    return Frontier(
        activation={entity: score for entity, _, score in rows}, names={entity: name for entity, name, _ in rows}
    )


def _load_hop(stored: Mapping[str, Any]) -> WalkHop:
    columns: dict[str, Any] = {
        name: np.array(values, dtype=np.int64 if name.endswith("_ids") else np.float64)
        for name, values in stored["candidates"].items()
    }
    candidates = ReachedSentences(**columns)
    scores = np.array(stored["scores"], dtype=np.float64)
    selected = [SelectedSentence(**row | {"entities": dict(row["entities"])}) for row in stored["evidence"]]
    return WalkHop(
        start=_load_frontier(stored["start"]),
        candidates=candidates,
        scores=scores,
        order=propagation.select_strongest(scores, candidates.sentence_ids, len(candidates)),
        selected=stored["selected"],
        evidence={evidence.sentence_id: evidence for evidence in selected},
        counts=dict(stored["counts"]),
        coverage=stored["coverage"],
    )
