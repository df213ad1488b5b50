"""Relevance scores: falling with the rank, whatever the ranking goes by."""

from hypothesis import given
from hypothesis import strategies as st

from engram.services.question.answer import PassageAnswer
from engram.services.question.passage_source import PassageSource
from engram.wings.frontends.services.relevance import align_scores, relevance_scores

SOURCE = PassageSource("document", (), None, None, "en")


def passage(score: float, similarity: float | None) -> PassageAnswer:
    return PassageAnswer(1, "id", None, "text", "en", {}, score, SOURCE, [], similarity=similarity)


def test_cosines_are_handed_out_in_the_order_of_the_ranking() -> None:
    ranked = [passage(3.0, 0.2), passage(2.0, 0.9), passage(1.0, -0.1)]
    assert relevance_scores(ranked) == [0.9, 0.2, 0.0]


def test_without_cosines_scores_are_shares_of_the_highest() -> None:
    assert relevance_scores([passage(4.0, None), passage(1.0, None), passage(-1.0, None)]) == [1.0, 0.25, 0.0]
    assert relevance_scores([passage(0.0, None), passage(-1.0, 0.5)]) == [0.0, 0.0]
    assert relevance_scores([]) == []


def test_known_texts_share_their_places() -> None:
    # The encoder ranks 1, 0, 2, 3; the collection ranks its texts 3 before 0 before 1.
    assert align_scores([0.6, 0.8, 0.5, 0.1], [3, 0, 1]) == [0.6, 0.1, 0.5, 0.8]
    assert align_scores([0.3, 1.5, -0.2], []) == [0.3, 1.0, 0.0]


@given(
    encoded=st.lists(st.floats(-1, 1), min_size=1, max_size=20),
    order=st.randoms(use_true_random=False),
    share=st.floats(0, 1),
)
def test_sharing_keeps_scores_and_obeys_the_ranking(encoded: list[float], order: object, share: float) -> None:
    learned = list(range(len(encoded)))
    order.shuffle(learned)  # type: ignore[attr-defined]
    learned = learned[: int(share * len(learned))]
    scores = align_scores(encoded, learned)
    assert sorted(scores) == sorted(min(max(value, 0.0), 1.0) for value in encoded)
    ranked = [scores[place] for place in learned]
    assert ranked == sorted(ranked, reverse=True)
    others = set(range(len(encoded))) - set(learned)
    assert all(scores[place] == min(max(encoded[place], 0.0), 1.0) for place in others)
