"""What a logged verdict comes to: what it claims, and what it says of sentences."""

import math
from dataclasses import replace

import pytest

from engram.core.learning.logged_verdict import LikelySupport, LoggedVerdict

VERDICT = LoggedVerdict(supports=(1, 4), rejects=(2,))


class TestTargets:
    def test_activated_unnamed_sentences_count_as_rejected(self) -> None:
        assert VERDICT.targets([1, 2, 3]) == {1: 1, 2: 0, 3: 0, 4: 1}

    def test_a_partial_verdict_leaves_it_alone(self) -> None:
        assert replace(VERDICT, partial=True).targets([1, 2, 3]) == {1: 1, 2: 0, 4: 1}

    def test_sentences_of_a_passage_that_helped_as_a_whole_are_left_alone_unless_named(self) -> None:
        assert replace(VERDICT, spared=(2, 3, 4)).targets([1, 2, 3, 5]) == {1: 1, 2: 0, 4: 1, 5: 0}

    def test_of_these_the_likely_one_counts_as_supported_unless_it_is_named_otherwise(self) -> None:
        likely = (LikelySupport(3, 0.5), LikelySupport(2, 0.5))
        verdict = replace(VERDICT, spared=(2, 3, 4), likely=likely)
        assert verdict.targets([1, 2, 3, 5]) == {1: 1, 2: 0, 3: 1, 4: 1, 5: 0}
        assert replace(verdict, partial=True).targets([5]) == {1: 1, 2: 0, 3: 1, 4: 1}

    def test_a_verdict_that_names_nothing_rejects_all_that_was_activated(self) -> None:
        assert LoggedVerdict().targets([3, 1]) == {3: 0, 1: 0}


@pytest.mark.parametrize(
    ("passages", "named", "targets"),
    [
        ((), [], {}),
        ((), [(1, 0), (2, 1)], {1: 0, 2: 1}),
        ((), [(1, 1), (1, 0)], {1: 1}),
        ((), [(1, 0), (1, 1)], {1: 1}),
        ((3,), [(3, 0), (1, 0)], {3: 1, 1: 0}),
    ],
)
def test_a_passage_is_supported_as_a_whole_or_by_one_of_its_sentences(
    passages: tuple[int, ...], named: list[tuple[int, int]], targets: dict[int, int]
) -> None:
    assert LoggedVerdict(passages=passages).passage_targets(named) == targets


class TestExaminations:
    SILENT = LoggedVerdict(supports=(1,), rejects=(2, 3, 5), examined=(0.25, 0.5, 1.0))

    def test_examination_probabilities_exist_for_rejections_only(self) -> None:
        assert self.SILENT.examinations == {2: 0.25, 3: 0.5, 5: 1.0}
        assert VERDICT.examinations == {}

    def test_a_likely_support_holds_with_its_own_probability(self) -> None:
        likely = replace(self.SILENT, likely=(LikelySupport(7, 0.4),))
        assert likely.probabilities == {2: 0.25, 3: 0.5, 5: 1.0, 7: 0.4}
        assert likely.examinations == self.SILENT.examinations
        assert likely.passage_examinations({7: 70, 2: 20}) == {70: 1.0, 20: 0.25}

    @pytest.mark.parametrize("probability", [0.0, 1.1, math.nan])
    def test_no_other_probability_can_be(self, probability: float) -> None:
        with pytest.raises(ValueError, match="probability that a sentence helped"):
            LikelySupport(1, probability)

    def test_of_a_passage_the_sentence_counts_that_was_looked_at_most(self) -> None:
        holders = {1: 10, 2: 20, 3: 20, 5: 50, 6: 60}
        assert self.SILENT.passage_examinations(holders) == {10: 1.0, 20: 0.5, 50: 1.0, 60: 1.0}
        assert VERDICT.passage_examinations(holders) == {}

    @pytest.mark.parametrize("examined", [(0.5,), (0.0, 0.5), (0.5, 1.1), (math.nan, 0.5)])
    def test_each_rejected_sentence_has_a_probability_or_none_has(self, examined: tuple[float, ...]) -> None:
        with pytest.raises(ValueError, match="examination probability"):
            LoggedVerdict(rejects=(2, 3), examined=examined)


@pytest.mark.parametrize(
    ("partial", "retrieval_success", "complete"),
    [
        (False, None, True),
        (False, True, True),
        (False, False, False),
        (True, None, False),
        (True, True, False),
        (True, False, False),
    ],
)
def test_verdict_is_complete_unless_partial_or_without_found_evidence(
    partial: bool, retrieval_success: bool | None, complete: bool
) -> None:
    assert replace(VERDICT, partial=partial, retrieval_success=retrieval_success).complete is complete


@pytest.mark.parametrize(
    ("said", "score", "generated"),
    [
        (None, None, False),
        (None, 0.49, False),
        (None, 0.5, True),
        (True, 0.1, True),
        (False, 0.9, False),
    ],
)
def test_whether_the_answer_was_right_is_its_word_else_its_score(
    said: bool | None, score: float | None, generated: bool
) -> None:
    verdict = replace(VERDICT, generation_success=said, generation_score=score)
    assert verdict.is_answer_right(threshold=0.5) is generated


@pytest.mark.parametrize(
    ("verdict", "source"),
    [
        (LoggedVerdict(supports=(1,)), "sentences"),
        (LoggedVerdict(supports=(1,), partial=True), "sentences"),
        (LoggedVerdict(supports=(1,), rejects=(2,), examined=(0.5,)), "sentences"),
        (LoggedVerdict(supports=(1,), rejects=(2,), examined=(0.5,), partial=True), "click"),
        (LoggedVerdict(rejects=(2,), examined=(0.5,), partial=True, rating="down"), "rating"),
        (LoggedVerdict(supports=(1,), on_session=True, partial=True), "session"),
    ],
)
def test_source_follows_from_the_fields(verdict: LoggedVerdict, source: str) -> None:
    assert verdict.source == source
