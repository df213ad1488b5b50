"""Sufficiency of an answer by verdicts on nearby past questions whose evidence leads it.

The features of ``sufficiency`` describe a ranking before recall. Once recall brings up the evidence of a question,
and ends the walk earlier for that, they describe another answer than the one that is shown. What was learned of the
evidence itself is a lower bound beside them: see ``sufficiency_memory``.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby

from engram.core.ranking.sufficiency import EVIDENCE_PASSAGES


@dataclass(frozen=True, slots=True)
class PastEvidence:
    """A sentence that supported a nearby past question.

    Attributes:
        near: probability that the passage is evidence of the present question, in [0, 1]; 1 of the same question.
        supported: whether verdicts support the sentence rather than reject it.
        answered, sufficiency: see ``sufficiency_memory``, in [0, 1].
    """

    question_id: int
    passage_id: int
    near: float
    supported: bool
    answered: float
    sufficiency: float


def compute_remembered_sufficiency(evidence: Iterable[PastEvidence], leading: Collection[int]) -> float:
    """Least probability that an answer is sufficient, in [0, 1]; 0 if nothing is known.

    Args:
        evidence: of nearby past questions, by question.
        leading: the first ``EVIDENCE_PASSAGES`` passages of the answer.
    """
    least = 0.0
    for _, of_question in groupby(evidence, key=lambda one: one.question_id):
        sentences = list(of_question)
        least = max([least, *(one.near * one.answered for one in sentences if one.passage_id in leading)])
        supported = [one for one in sentences if one.supported]
        passages = {one.passage_id for one in supported}
        if passages and len(passages & set(leading)) == min(len(passages), EVIDENCE_PASSAGES):
            whole = min(one.near for one in supported)
            least = max([least, *(whole * one.sufficiency for one in supported)])
    return least
