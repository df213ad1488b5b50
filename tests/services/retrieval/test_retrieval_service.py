"""What the first hop of a walk starts from."""

from itertools import permutations

from engram.services.retrieval.answer_trace import EntityAnswer
from engram.services.retrieval.retrieval_service import build_first_frontier


def test_of_several_mentions_of_an_entity_the_best_counts() -> None:
    aligned = [
        EntityAnswer("Marie Curie", 7, "Marie Curie", 1.0),
        EntityAnswer("Mme Curie", 7, "Marie Curie", 0.8),
        EntityAnswer("Warschau", 9, "Warsaw", 0.6),
    ]

    for order in permutations(aligned):
        started = build_first_frontier(order)
        assert started.activation == {7: 1.0, 9: 0.6}
        assert started.names == {7: "Marie Curie", 9: "Warsaw"}
