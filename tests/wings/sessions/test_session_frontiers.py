"""Where the walks of a session's queries would have gone on."""

import json

from engram.services.question.query import Frontier
from engram.wings.sessions.services.session_state import (
    MOST_RESUMED_ENTITIES,
    format_frontier,
    load_frontier,
    merge_frontiers,
)


def test_several_are_gone_on_from_as_one() -> None:
    one = Frontier({1: 0.5, 2: 0.2}, {1: "a", 2: "b"})
    other = Frontier({2: 0.9, **dict.fromkeys(range(10, 30), 0.1)}, dict.fromkeys((2, *range(10, 30)), ""))
    both = merge_frontiers([one, other])
    assert list(both.activation.items())[:3] == [(2, 0.9), (1, 0.5), (10, 0.1)]
    assert len(both.activation) == MOST_RESUMED_ENTITIES


def test_a_stored_frontier_is_loaded_as_it_was() -> None:
    frontier = Frontier({7: 0.25, 3: 0.5}, {7: "", 3: ""})
    loaded = load_frontier(json.loads(json.dumps(format_frontier(frontier))))
    assert loaded == frontier
    assert list(loaded.activation) == [7, 3]
