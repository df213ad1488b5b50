"""Step 5: walk the graph: each hop activates sentences, then stops or goes on through the entities they name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import coverage, propagation
from engram.core.ranking.propagation import ReachedSentences
from engram.core.ranking.question_memory import select_likely
from engram.services.question.plan import QueryPlan, Search
from engram.services.question.query import Frontier, SessionPart
from engram.services.question.recall import (
    RECALL_QUESTIONS,
    QuestionComparison,
    Recall,
    recall_past_questions,
    recalls,
)
from engram.storage.database import Reader
from engram.storage.learning import walk_opening as openings
from engram.storage.learning.walk_opening import WalkOpening
from engram.storage.question import graph_hops, passages_by_key
from engram.storage.question.graph_hops import SelectedSentence

StopReason = Literal["max_hops", "sufficient", "no_entities", "no_candidates", "no_hops"]
# A question without entities scans all sentences of a collection up to this size. In a larger one it scans those of
# the nearest passages, so that it costs hardly more than a question with entities.
SCANNED_SENTENCES = 5_000
SCANNED_PASSAGES = 1_000
NEAR_PASSAGES = 100
"""Passages near the question that hubs are read in, where the collection has a vector index."""


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
        recall: what verdicts on past questions say of this one.
        stop_reason: why it stopped; None while it may go on.
        near: passages near the question, best first; None where the collection is small.
        reached: result of the first hop without ``joining``, if the opening has read it.
    """

    frontier: Frontier | None = field(default_factory=lambda: Frontier({}, {}))
    joining: Sequence[int] = ()
    hops: tuple[WalkHop, ...] = ()
    recall: Recall = field(default_factory=Recall)
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


def read_opening(reader: Reader, plan: QueryPlan) -> WalkOpening | None:
    """Read the entities named, the first hop and past questions in one statement.

    None if the question names nothing, if names had to be embedded for this plan, or if a wing makes the hops.
    """
    if not plan.mentions or plan.unknown or plan.retriever is not None:
        return None
    return openings.read(
        reader,
        plan.focus,
        list(plan.mentions),
        question=plan.query.text,
        recall=RECALL_QUESTIONS if recalls(plan) else None,
        near=NEAR_PASSAGES if _reads_near_hubs(plan) else None,
    )


def begin(
    search: Search,
    start: Frontier,
    compare_questions: QuestionComparison,
    opened: WalkOpening | None = None,
) -> Walk:
    """Begin a walk: before its first hop, with what past questions recall and what a session's pool holds.

    Args:
        compare_questions: compares past questions with the present one.
        opened: the opening, if it was read for a walk from this start.
    """
    near = _find_near_passages(search, start) if opened is None else opened.near
    recall = recall_past_questions(search, compare_questions, opened)
    session = search.plan.query.part(SessionPart) or SessionPart()
    return Walk(
        start,
        joining=list(dict.fromkeys([*select_likely(recall.probabilities), *session.pool])),
        recall=recall,
        near=near,
        reached=None if opened is None else opened.reached,
    )


def _find_near_passages(search: Search, start: Frontier) -> Sequence[int] | None:
    """Find passages near the question, best first; None where the collection is small enough to read all.

    A large collection names a country in more sentences than can be read, so hubs are read in these passages only.
    A question without entities reads the sentences of these passages.
    """
    plan = search.plan
    if start.activation:
        near_count = NEAR_PASSAGES if _reads_near_hubs(plan) else 0
    else:
        near_count = SCANNED_PASSAGES if plan.collection.sentence_count > SCANNED_SENTENCES else 0
    if not near_count:
        return None
    return search.keys(near_count) or list(
        passages_by_key.find_nearest_passages(search.reader, plan.focus, near_count)
    )


def _reads_near_hubs(plan: QueryPlan) -> bool:
    """Whether a hub contributes sentences of near passages instead of its oldest."""
    return not plan.focus.limits.exact and "passage" in plan.collection.indexed


def advance(search: Search, walk: Walk) -> Walk:
    """Make hops until the walk stops.

    With stop rule "learned" or "llm", make one hop: the caller decides on the next.
    """
    while walk.stop_reason is None:
        walk = _step(search, walk)
        if search.plan.stop_rule in ("learned", "llm"):
            break
    return walk


def _step(search: Search, walk: Walk) -> Walk:
    """Make one hop, or set the reason why the walk stops."""
    plan = search.plan
    if walk.hops and len(walk.hops) >= plan.max_hops:
        return replace(walk, stop_reason="max_hops")
    frontier = walk.frontier or _compute_next_frontier(plan, walk)
    if walk.hops and not frontier.activation and not walk.joining:
        return replace(walk, frontier=frontier, stop_reason="no_entities")
    hop = _hop(search, walk, frontier)
    if hop is None:
        return replace(walk, frontier=frontier, stop_reason="no_candidates")
    walk = replace(walk, frontier=None, joining=(), hops=(*walk.hops, hop), reached=None)
    if len(walk.hops) >= plan.max_hops:
        return replace(walk, stop_reason="max_hops")
    if plan.stop_rule == "coverage" and _is_covered(hop, walk):
        return replace(walk, stop_reason="sufficient")
    return walk


def _hop(search: Search, walk: Walk, start: Frontier) -> WalkHop | None:
    reader, plan = search.reader, search.plan
    focus, profile, hops = plan.focus, plan.profile, plan.retriever or graph_hops
    if walk.reached is not None:
        candidates = walk.reached
        if missing := set(walk.joining).difference(candidates.sentence_ids.tolist()):
            candidates = candidates.join(graph_hops.find_linked_sentences(reader, focus, {}, sorted(missing)))
    elif start.activation or walk.hops:
        near = (walk.near or ())[:NEAR_PASSAGES] if _reads_near_hubs(plan) else None
        candidates = hops.find_linked_sentences(reader, focus, start.activation, walk.joining, near)
    else:
        candidates = hops.find_all_sentences(reader, focus, walk.near, walk.joining)
    if not len(candidates):
        return None
    scores = propagation.sentence_scores(candidates)
    order = propagation.select_strongest(scores, candidates.sentence_ids, len(candidates))
    selected = candidates.sentence_ids[order[: profile.sentences_per_hop]].tolist()
    selected += [
        sentence for sentence in walk.joining if sentence not in selected and sentence in candidates.sentence_ids
    ]
    evidence, counts = search.graph.read_sentences(reader, selected)
    covered = None
    if plan.stop_rule == "coverage":
        texts = [evidence_sentence.text for evidence_sentence in (walk.evidence | evidence).values()]
        covered = coverage.coverage(plan.question, texts)
    selected = [sentence for sentence in selected if sentence in evidence]
    return WalkHop(start, candidates, scores, order, selected, evidence, counts, covered)


def _compute_next_frontier(plan: QueryPlan, walk: Walk) -> Frontier:
    """Return the frontier after the last hop (GAM-RAG, Eq. 9).

    After the first hop, likely recalled sentences add how much more likely evidence they are than not.
    """
    hop, profile = walk.hops[-1], plan.profile
    leading = {} if len(walk.hops) > 1 else select_likely(walk.recall.probabilities)
    scores = {sentence: hop.score(sentence) + leading.get(sentence, 0.0) for sentence in hop.selected}
    links = [(sentence, entity) for sentence in hop.selected for entity in hop.evidence[sentence].entities]
    if profile.rare_first:
        visited = {entity for past in walk.hops for entity in past.start.activation}
        links = [(sentence, entity) for sentence, entity in links if entity not in visited]
    names = {
        entity: name
        for evidence_sentence in hop.evidence.values()
        for entity, name in evidence_sentence.entities.items()
    }
    activation = propagation.select_next_entities(
        scores, links, profile.entities_per_hop, hop.counts if profile.rare_first else None
    )
    return Frontier(activation, {entity: names[entity] for entity in activation})


def _is_covered(hop: WalkHop, walk: Walk) -> bool:
    """Apply the coverage rule: the evidence has all content words of the question, or verdicts vouch for it."""
    return (hop.coverage or 0.0) >= 1.0 or walk.recall.vouched >= coverage.VOUCHED_ENOUGH
