"""The lower bound of sufficiency by evidence of past questions: only while that evidence leads."""

import pytest

from engram.core.ranking.remembered_sufficiency import PastEvidence, compute_remembered_sufficiency


def build_evidence(passage: int, *, question: int = 1, near: float = 1.0, supported: bool = True) -> PastEvidence:
    return PastEvidence(question, passage, near, supported, answered=0.6, sufficiency=0.9)


@pytest.mark.parametrize(
    ("evidence", "leading", "wanted"),
    [
        ([], {1, 2}, 0.0),
        ([build_evidence(1), build_evidence(2)], {1, 2, 3}, 0.9),
        ([build_evidence(1), build_evidence(2)], {1, 3}, 0.6),
        ([build_evidence(1), build_evidence(2)], {3}, 0.0),
        ([build_evidence(1), build_evidence(2, supported=False)], {1}, 0.9),
        ([build_evidence(1, supported=False)], {1}, 0.6),
        ([build_evidence(1, near=0.5)], {1}, 0.45),
        ([build_evidence(1, near=0.5), build_evidence(2, question=2)], {1, 3}, 0.45),
        ([build_evidence(passage) for passage in range(7)], set(range(5)), 0.9),
        ([build_evidence(passage) for passage in range(7)], {0, 1, 2, 3, 9}, 0.6),
    ],
)
def test_leading_evidence_counts(evidence: list[PastEvidence], leading: set[int], wanted: float) -> None:
    assert compute_remembered_sufficiency(evidence, leading) == pytest.approx(wanted)
