"""Step 5: walk the graph: each hop activates sentences, then stops or goes on through the entities they name."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import coverage, propagation
from engram.core.ranking.denied_answers import compute_undenied_share
from engram.core.ranking.neighbour_vote import NEIGHBOURS
from engram.core.ranking.propagation import ReachedSentences
from engram.core.ranking.question_memory import (
    compute_recall_probabilities,
    compute_reliability,
    compute_ungated_support,
    has_vote,
    net_rejection,
    net_support,
    select_likely,
)
from engram.core.ranking.remembered_sufficiency import PastEvidence
from engram.core.ranking.same_need import PRIOR_EVIDENCE_COUNT, ComparedQuestions
from engram.services.question.plan import QueryPlan, Search
from engram.services.question.query import Frontier, SessionPart
from engram.storage.database import Reader
from engram.storage.learning import judged_answers, question_supports
from engram.storage.learning import walk_opening as openings
from engram.storage.learning.question_supports import PastSupport
from engram.storage.learning.walk_opening import WalkOpening
from engram.storage.retrieval import graph_hops, passages_by_key
from engram.storage.retrieval.graph_hops import SelectedSentence

StopReason = Literal["max_hops", "sufficient", "no_entities", "no_candidates", "no_hops"]
QuestionComparison = Callable[[Sequence[PastSupport], Mapping[int, AbstractSet[int]]], ComparedQuestions | None]
"""Compares the past questions of supports, and the passages of each, with the present one."""

RECALL_QUESTIONS = NEIGHBOURS
RECALL_SENTENCES = 8
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
        recalled: sentences that supported nearby past questions and are recalled.
        recall_probabilities: sentence -> recall probability in [0, 1], the strongest few.
        rejection_probabilities: passage -> probability in [0, 1] that it is no evidence, by rejections.
        vouched: highest P(same need) x net support by a verdict that claimed to name all evidence, in [0, 1].
        undenied: what judges of earlier answers leave of the probability of sufficiency, in (0, 1].
        evidence_count: passages that answer a judged question of the collection on average.
        evidence_known: sentences that supported nearby past questions, by question.
        stop_reason: why it stopped; None while it may go on.
        near: passages near the question, best first; None where the collection is small.
        reached: result of the first hop without ``joining``, if the opening has read it.
    """

    frontier: Frontier | None = field(default_factory=lambda: Frontier({}, {}))
    joining: Sequence[int] = ()
    hops: tuple[WalkHop, ...] = ()
    recalled: Sequence[PastSupport] = ()
    recall_probabilities: Mapping[int, float] = field(default_factory=dict)
    rejection_probabilities: Mapping[int, float] = field(default_factory=dict)
    vouched: float = 0.0
    undenied: float = 1.0
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


def recalls(plan: QueryPlan) -> bool:
    """Whether walks of this plan read question memory."""
    return plan.profile.recalls and plan.focus.use_memory


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
    reader, plan = search.reader, search.plan
    session = plan.query.part(SessionPart) or SessionPart()
    near = _find_near_passages(search, start) if opened is None else opened.near
    walk = Walk(start, near=near, reached=None if opened is None else opened.reached)
    if not recalls(plan):
        return replace(walk, joining=session.pool)
    recalled = None if opened is None else opened.recalled
    if recalled is None:
        recalled = question_supports.recall(reader, plan.focus, RECALL_QUESTIONS)
    judgements = (
        judged_answers.list_judgements(reader, plan.collection.id, plan.query.text)
        if opened is None
        else opened.judgements
    )
    compared = compare_questions(recalled, group_passages(recalled))
    recalled = judge_needs(recalled, compared)
    if not plan.focus.policy.gated:
        recalled = [
            replace(past, support=compute_ungated_support(past.support, past.perplexity), perplexity=0.0)
            for past in recalled
        ]
    probabilities, vouched = summarise_recall(recalled)
    joining = list(dict.fromkeys([*select_likely(probabilities), *session.pool]))
    return replace(
        walk,
        joining=joining,
        recalled=[past for past in recalled if past.sentence_id in probabilities],
        recall_probabilities=probabilities,
        rejection_probabilities=summarise_rejections(recalled),
        vouched=vouched,
        undenied=compute_undenied_share(judgements),
        evidence_count=walk.evidence_count if compared is None else compared.evidence_count,
        evidence_known=_collect_past_evidence(recalled),
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
    leading = {} if len(walk.hops) > 1 else select_likely(walk.recall_probabilities)
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


def group_passages(supports: Sequence[PastSupport]) -> dict[int, set[int]]:
    """Past question -> passages of its supports."""
    passages: dict[int, set[int]] = {}
    for past in supports:
        passages.setdefault(past.question_id, set()).add(past.passage_id)
    return passages


def judge_needs(recalled: Sequence[PastSupport], compared: ComparedQuestions | None) -> list[PastSupport]:
    """Return the supports with the probability that each one's passage is evidence, by all past questions."""
    if compared is None:
        return list(recalled)
    needs = compared.count_votes(group_passages(select_voting(recalled)))
    return [
        replace(past, same_need=needs.get((past.question_id, past.passage_id), needs[past.question_id, None]))
        for past in recalled
    ]


def select_voting(recalled: Sequence[PastSupport]) -> list[PastSupport]:
    """Select the supports of passages with a vote, as ``question_samples`` selects them in SQL."""
    nets: defaultdict[tuple[int, int | None], float] = defaultdict(float)
    for past in recalled:
        for passage in (past.passage_id, None):
            nets[past.question_id, passage] += net_support(past.support, past.perplexity)
    return [
        past for past in recalled if has_vote(nets[past.question_id, past.passage_id], nets[past.question_id, None])
    ]


def summarise_recall(recalled: Sequence[PastSupport]) -> tuple[dict[int, float], float]:
    """Return the highest recall probabilities, and how far past verdicts vouch for its evidence.

    A verdict that claimed to name all evidence vouches with net support x the probability of the least probable
    passage of that evidence. This is no recall probability.
    """
    supports = [(past, _get_probability(past), net_support(past.support, past.perplexity)) for past in recalled]
    probabilities = compute_recall_probabilities(
        (past.sentence_id, same_need, net) for past, same_need, net in supports
    )
    strongest = sorted(probabilities.items(), key=lambda pair: (-pair[1], pair[0]))[:RECALL_SENTENCES]
    whole: dict[int, float] = {}
    for past, same_need, net in supports:
        if net > 0:
            whole[past.question_id] = min(same_need, whole.get(past.question_id, 1.0))
    vouched = max(
        (whole[past.question_id] * net for past, _, net in supports if past.complete and net > 0), default=0.0
    )
    return dict(strongest), vouched


def summarise_rejections(recalled: Sequence[PastSupport]) -> dict[int, float]:
    """Passage -> probability that it is no evidence, by what judges rejected for past questions.

    A passage with a supported sentence is not rejected for the same question: its other sentences may be beside it.
    """
    supported = {
        (past.question_id, past.passage_id) for past in recalled if net_support(past.support, past.perplexity) > 0
    }
    return compute_recall_probabilities(
        (past.passage_id, _get_probability(past), net_rejection(past.support, past.perplexity))
        for past in recalled
        if (past.question_id, past.passage_id) not in supported
    )


def _get_probability(past: PastSupport) -> float:
    """Return the probability that the support's passage is evidence of the present question."""
    return 0.0 if past.same_need is None else past.same_need.probability


def _collect_past_evidence(recalled: Sequence[PastSupport]) -> list[PastEvidence]:
    """Collect the evidence of past questions, which tells how sufficient an answer is if it leads the ranking.

    A weak support, as of a thumb without citations, says little of another question. An answer to the same question
    is as sufficient as the judged one, whichever of its passages was the evidence.
    """
    evidence = []
    for past in recalled:
        probability, net = _get_probability(past), net_support(past.support, past.perplexity)
        evidence.append(
            PastEvidence(
                question_id=past.question_id,
                passage_id=past.passage_id,
                near=probability if probability == 1.0 else probability * compute_reliability(net),
                supported=net > 0,
                answered=past.answered,
                sufficiency=past.sufficiency,
            )
        )
    return evidence


def _is_covered(hop: WalkHop, walk: Walk) -> bool:
    """Apply the coverage rule: the evidence has all content words of the question, or verdicts vouch for it."""
    return (hop.coverage or 0.0) >= 1.0 or walk.vouched >= coverage.VOUCHED_ENOUGH
