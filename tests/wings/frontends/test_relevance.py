"""Relevance scores: each passage has its own, on the scale that its ranking has."""

from hypothesis import given
from hypothesis import strategies as st

from engram.core.text.passage_source import PassageSource
from engram.services.question.answer import PassageAnswer
from engram.wings.frontends.services.relevance import compute_relevance_scores, merge_scores

SOURCE = PassageSource("document", (), None, None, "en")


def passage(score: float, probability: float | None = None) -> PassageAnswer:
    return PassageAnswer(1, "id", None, "text", "en", {}, score, SOURCE, [], probability=probability)


def test_each_passage_has_its_own_probability() -> None:
    explored_last = [passage(3.0, 0.8), passage(-2.0, 0.1), passage(-1.0, 0.2)]
    assert compute_relevance_scores(explored_last, "graph") == [0.8, 0.1, 0.2]
    assert compute_relevance_scores([], "graph") == []


def test_each_dense_passage_has_its_own_cosine() -> None:
    assert compute_relevance_scores([passage(0.5), passage(-0.1), passage(0.2)], "dense") == [0.5, 0.0, 0.2]


def test_scores_without_a_scale_are_shares_of_the_highest() -> None:
    assert compute_relevance_scores([passage(4.0), passage(1.0), passage(-1.0)], "lexical") == [1.0, 0.25, 0.0]
    assert compute_relevance_scores([passage(0.0), passage(-1.0)], "graph") == [0.0, 0.0]
    assert compute_relevance_scores([], "hybrid") == []


def test_known_texts_share_their_places() -> None:
    # The encoder ranks 1, 0, 2, 3; the collection ranks its texts 3 before 0 before 1.
    assert merge_scores([0.6, 0.8, 0.5, 0.1], [3, 0, 1]) == [0.6, 0.1, 0.5, 0.8]
    assert merge_scores([0.3, 1.5, -0.2], []) == [0.3, 1.0, 0.0]


@given(
    encoded=st.lists(st.floats(-1, 1), min_size=1, max_size=20),
    order=st.randoms(use_true_random=False),
    share=st.floats(0, 1),
)
def test_sharing_keeps_scores_and_obeys_the_ranking(encoded: list[float], order: object, share: float) -> None:
    learned = list(range(len(encoded)))
    order.shuffle(learned)  # type: ignore[attr-defined]
    learned = learned[: int(share * len(learned))]
    scores = merge_scores(encoded, learned)
    assert sorted(scores) == sorted(min(max(value, 0.0), 1.0) for value in encoded)
    ranked = [scores[place] for place in learned]
    assert ranked == sorted(ranked, reverse=True)
    others = set(range(len(encoded))) - set(learned)
    assert all(scores[place] == min(max(encoded[place], 0.0), 1.0) for place in others)
