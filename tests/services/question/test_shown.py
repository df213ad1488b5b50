"""Which passages an answer shows, and which candidates its episode keeps."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from engram.services.question.episode import select_recorded
from engram.services.question.shown import ShownPassages, choose_best


def test_an_answer_at_the_asked_level_is_shown() -> None:
    plan: Any = SimpleNamespace(query=SimpleNamespace(min_sufficiency=0.5, top_k=1))
    ranking: Any = SimpleNamespace(
        sufficiency=SimpleNamespace(probability=0.5), level=None, ordered=[(1, 1.0), (2, 0.5)]
    )
    assert choose_best(plan, ranking).best == [(1, 1.0)]


def test_a_passage_that_made_room_is_not_recorded() -> None:
    ranking: Any = SimpleNamespace(candidates=np.array([4, 7, 9]))
    shown = ShownPassages([(4, 1.0), (9, 0.5)], displaced=frozenset({7}))
    assert select_recorded(shown, ranking).tolist() == [0, 2]
