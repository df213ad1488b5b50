"""Each combination of a rating has one meaning: the table of docs/feedback.md, line by line."""

import pytest

from engram.core.learning.ratings import RATED_PASSAGES, REASONS, RatingMeaning, find_meaning

HALF = 0.5  # the probability of a likely support


@pytest.mark.parametrize(
    ("rating", "reason", "cites", "wanted"),
    [
        ("up", None, True, RatingMeaning(target=1, citation_probability=1.0)),
        ("up", "thank you", True, RatingMeaning(target=1, citation_probability=1.0)),
        ("up", None, False, RatingMeaning(target=1, top_probability=HALF / 8)),
        ("down", None, False, RatingMeaning(target=0, citation_probability=HALF, top_probability=HALF)),
        ("down", "too long", True, RatingMeaning(target=0, citation_probability=HALF, top_probability=HALF)),
        ("down", "wrong_answer", False, RatingMeaning(generation_success=False)),
        ("down", "wrong_answer", True, RatingMeaning(generation_success=False)),
        ("down", "missing", False, RatingMeaning(retrieval_success=False)),
        ("down", "missing", True, RatingMeaning(retrieval_success=False)),
        ("down", "irrelevant", False, RatingMeaning(target=0, top_probability=1.0, retrieval_success=False)),
        ("down", "irrelevant", True, RatingMeaning(target=0, citation_probability=1.0)),
        ("down", "outdated", False, RatingMeaning(target=0, citation_probability=HALF, top_probability=HALF)),
        ("down", "outdated", True, RatingMeaning(target=0, citation_probability=1.0)),
        ("withdrawn", None, False, RatingMeaning()),
    ],
)
def test_each_combination_of_rating_citations_and_reason(
    rating: str, reason: str | None, cites: bool, wanted: RatingMeaning
) -> None:
    assert find_meaning(rating, reason, has_citations=cites) == wanted


@pytest.mark.parametrize("reason", REASONS)
def test_reasons_of_a_thumb_down_do_not_go_with_up(reason: str) -> None:
    with pytest.raises(ValueError, match="thumb down"):
        find_meaning("up", reason, has_citations=False)


@pytest.mark.parametrize(("reason", "cites"), [("why", False), (None, True)])
def test_withdrawn_rating_has_no_meaning(reason: str | None, cites: bool) -> None:
    with pytest.raises(ValueError, match="taken back"):
        find_meaning("withdrawn", reason, has_citations=cites)


def test_a_rating_alone_falls_with_the_rank() -> None:
    alone = find_meaning("up", None, has_citations=False)
    assert [alone.compute_reference_probability(rank) for rank in range(1, RATED_PASSAGES + 1)] == [
        HALF / 8 / rank for rank in range(1, RATED_PASSAGES + 1)
    ]
    assert alone.compute_reference_probability(RATED_PASSAGES + 1) == 0.0
