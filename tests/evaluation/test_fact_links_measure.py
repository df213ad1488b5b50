"""Facts as features of passages: what links, what says what is asked, and where a path leads on."""

import numpy as np

from engram_evaluation.fact_links_measure import FEATURES, ComparableFact, features, shares
from engram_evaluation.ranking_fit import JudgedQuestion

DIRECTOR, BORN = frozenset({"direct"}), frozenset({"born"})


def test_a_path_leads_from_what_is_named_through_a_likely_passage() -> None:
    film = [ComparableFact("the film", "ana diaz", DIRECTOR)]
    person = [ComparableFact("ana diaz", "lund", BORN)]
    other = [ComparableFact("ben ito", "oslo", BORN)]
    found = features(frozenset({"the film"}), [DIRECTOR, BORN], [film, person, other], {0: 0.8})
    rows = [dict(zip(FEATURES, row, strict=True)) for row in found.tolist()]
    assert rows[0] == {
        "linked": 0, "asked_here": 0.5, "asked_any": 0.5, "onward": 0, "onward_asked": 0, "chain": 0
    }  # fmt: skip
    assert rows[1] == {
        "linked": 0, "asked_here": 0, "asked_any": 0.5, "onward": 0.8, "onward_asked": 0.4, "chain": 0.4
    }  # fmt: skip
    assert rows[2] == rows[1] | {"onward": 0, "onward_asked": 0, "chain": 0}


def test_two_named_things_are_linked() -> None:
    (row,) = features(frozenset({"ana", "lund"}), [BORN], [[ComparableFact("ana", "lund", BORN)]], {}).tolist()
    assert row[:3] == [1, 1, 1]


def test_recall_is_by_the_weighted_sum() -> None:
    rows = [JudgedQuestion(np.array([[0.0], [2.0], [1.0]]), np.array([True, False, True]))]
    assert shares(rows, [2], np.array([1.0])) == [0.5, 1.0, 1.0]
    assert shares(rows, [3], np.array([1.0])) == [1 / 3, 2 / 3, 0.0]
