"""Step 5, before the first hop: recall what verdicts on past questions with the same need say of this one."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from engram.core.ranking.denied_answers import compute_undenied_share
from engram.core.ranking.neighbour_vote import NEIGHBOURS
from engram.core.ranking.question_memory import (
    compute_recall_probabilities,
    compute_reliability,
    compute_ungated_support,
    has_vote,
    net_acceptance,
    net_support,
)
from engram.core.ranking.question_priors import PRIOR_EVIDENCE_COUNT
from engram.core.ranking.remembered_sufficiency import PastEvidence
from engram.core.ranking.same_need import ComparedQuestions
from engram.services.question.plan import QueryPlan, Search
from engram.storage.learning import judged_answers, question_supports
from engram.storage.learning.question_supports import PastSupport
from engram.storage.learning.walk_opening import WalkOpening

QuestionComparison = Callable[[Sequence[PastSupport], Mapping[int, AbstractSet[int]]], ComparedQuestions | None]
"""Compares the past questions of supports, and the passages of each, with the present one."""

RECALL_QUESTIONS = NEIGHBOURS
RECALL_SENTENCES = 8


@dataclass(frozen=True, slots=True)
class Recall:
    """Verdicts on nearby past questions as evidence for and against passages of this one.

    Attributes:
        supports: of the sentences that are recalled, one for each past question that they supported.
        probabilities: sentence -> probability in [0, 1] that it is evidence, the strongest few.
        rejections: passage -> probability in [0, 1] that it is no evidence.
        vouched: highest P(same need) x net support by a verdict that claimed to name all evidence, in [0, 1].
        undenied: what judges of earlier answers leave of the probability of sufficiency, in (0, 1].
        evidence_count: passages that answer a judged question of the collection on average.
        past_evidence: sentences that supported nearby past questions, by question.
    """

    supports: Sequence[PastSupport] = ()
    probabilities: Mapping[int, float] = field(default_factory=dict)
    rejections: Mapping[int, float] = field(default_factory=dict)
    vouched: float = 0.0
    undenied: float = 1.0
    evidence_count: float = PRIOR_EVIDENCE_COUNT
    past_evidence: Sequence[PastEvidence] = ()


def recalls(plan: QueryPlan) -> bool:
    """Whether walks of this plan read question memory."""
    return plan.profile.recalls and plan.focus.use_memory


def recall_past_questions(
    search: Search, compare_questions: QuestionComparison, opened: WalkOpening | None
) -> Recall:
    """Recall what past questions say; nothing where the plan reads no memory.

    Args:
        compare_questions: compares past questions with the present one.
        opened: the opening of the walk, if it was read.
    """
    reader, plan = search.reader, search.plan
    if not recalls(plan):
        return Recall()
    supports = None if opened is None else opened.recalled
    if supports is None:
        supports = question_supports.recall(reader, plan.focus, RECALL_QUESTIONS)
    judgements = (
        judged_answers.list_judgements(reader, plan.collection.id, plan.query.text)
        if opened is None
        else opened.judgements
    )
    compared = compare_questions(supports, group_passages(supports))
    supports = judge_needs(supports, compared)
    if not plan.focus.policy.gated:
        supports = [
            replace(past, support=compute_ungated_support(past.support, past.perplexity), perplexity=0.0)
            for past in supports
        ]
    probabilities, vouched = summarise_recall(supports)
    return Recall(
        supports=[past for past in supports if past.sentence_id in probabilities],
        probabilities=probabilities,
        rejections=summarise_rejections(supports),
        vouched=vouched,
        undenied=compute_undenied_share(judgements),
        evidence_count=PRIOR_EVIDENCE_COUNT if compared is None else compared.evidence_count,
        past_evidence=_collect_past_evidence(supports),
    )


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
        (past.sentence_id, same_need, compute_reliability(net)) for past, same_need, net in supports
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

    A passage with an accepted sentence is not rejected for the same question: its other sentences may be beside it.
    Nor is one that judges accept as surely for another question.
    """
    nets = [(past, _get_probability(past), net_acceptance(past.acceptance, past.perplexity)) for past in recalled]
    accepted_for = {(past.question_id, past.passage_id) for past, _, net in nets if net > 0}
    accepted = compute_recall_probabilities((past.passage_id, same_need, net) for past, same_need, net in nets)
    rejected = compute_recall_probabilities(
        (past.passage_id, same_need, -net)
        for past, same_need, net in nets
        if (past.question_id, past.passage_id) not in accepted_for
    )
    return {passage: one for passage, one in rejected.items() if one > accepted.get(passage, 0.0)}


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
