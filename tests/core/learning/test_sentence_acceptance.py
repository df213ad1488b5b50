"""Acceptance: what judges say for a sentence counts in full against rejections."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given

from engram.core.learning.logged_verdict import NEAREST_SENTENCE_PROBABILITY
from engram.core.learning.ratings import FIRST_PASSAGE_PROBABILITY
from engram.core.learning.state_rows import SupportRows
from engram.core.learning.states import Support
from engram.core.learning.steps import LabelledEvent, apply_events
from engram.core.ranking.question_memory import net_acceptance, net_support
from tests.support.logs import EVENT, Verdict, logs

Word = tuple[str, int, float]
"""A judge, its target, and the probability that it speaks of the sentence."""


def up(judge: str) -> Word:
    """A thumb up under an answer, for its first passage."""
    return judge, 1, FIRST_PASSAGE_PROBABILITY


def down(judge: str) -> Word:
    return judge, 0, NEAREST_SENTENCE_PROBABILITY


def say(words: Sequence[Word]) -> Support:
    """What the words make of one sentence, within the shipped caps."""
    event = replace(EVENT, share=0.8, contested_share=0.1)
    said = [
        LabelledEvent(replace(event, id=place, judge=judge), {1: target}, {1: probability})
        for place, (judge, target, probability) in enumerate(words)
    ]
    (support,) = apply_events(said, [1], SupportRows.from_rows([])).supports
    return support


@pytest.mark.parametrize(
    ("words", "rejection"),
    [
        ([down("a")], 1 / 3),
        ([("a", 0, 1.0)], 1 / 2),
        ([down("a"), down("b")], 1 / 2),
        ([("a", 0, 1.0), ("b", 0, 1.0)], 2 / 3),
        ([down("a"), up("b")], 0),
        ([up("a"), down("b")], 0),
        ([down("a"), up("a")], 0),
        ([("a", 0, 1.0), ("b", 1, 1.0)], 0),
        ([("a", 1, 1.0), ("b", 0, 1.0)], 0),
        ([("a", 0, 1.0), ("b", 0, 1.0), ("c", 1, 1.0)], 0.2),
        ([("a", 0, 1.0), up("b")], 0.13),
        ([*map(up, "abcdefg"), *map(down, "xyz")], 0),
        ([*map(down, "xyz"), *map(up, "abcdefg")], 0),
        ([*map(up, "abc"), *map(down, "tuvwxyz")], 0.27),
        ([*map(down, "tuvwxyz"), *map(up, "abc")], 0.25),
    ],
)
def test_a_thumb_up_weighs_as_much_as_a_thumb_down(words: Sequence[Word], rejection: float) -> None:
    support = say(words)
    assert max(0.0, -net_acceptance(support.acceptance, support.perplexity)) == pytest.approx(rejection, abs=0.01)


def test_a_thumb_up_recalls_no_more_than_it_did() -> None:
    support = say([down("a"), up("b"), up("c")])
    assert net_support(support.support, support.perplexity) == 0.0
    assert net_acceptance(support.acceptance, support.perplexity) > 0.0


@given(logs())
def test_where_all_is_certain_and_nobody_contradicts_the_acceptance_is_the_support(log: list[Verdict]) -> None:
    certain = [
        LabelledEvent(replace(one.event, share=1.0, contested_share=1.0), one.targets, {}, {}) for one in log
    ]
    for support in apply_events(certain, range(100), SupportRows.from_rows([])).supports:
        assert support.acceptance == support.support


@given(logs())
def test_an_acceptance_is_at_least_the_support(log: list[Verdict]) -> None:
    for support in apply_events([one.label()[0] for one in log], range(100), SupportRows.from_rows([])).supports:
        assert support.support - 1e-12 <= support.acceptance <= 1.0
