"""Options of planners over HTTP; what they do is tested with the planners."""

import pytest

from tests.support.strict_client import TestClient

START = {"collection": "default", "question": "Who built it?", "planner": "tree"}


@pytest.mark.parametrize(
    "options", [{"depth": 0}, {"rollouts": "ten"}, {"chess": 1}, {"combine": "shout"}, {"without": ["memory"]}]
)
def test_options_that_no_planner_has_are_refused(http: TestClient, options: dict[str, object]) -> None:
    response = http.post("/sessions", json=START | {"options": options})
    assert response.status_code == 422
    assert "options" in response.text


def test_a_tree_needs_an_endpoint(http: TestClient, curie: str) -> None:
    response = http.post("/sessions", json=START | {"collection": curie, "options": {"depth": 3}})
    assert response.json()["detail"] == "Planner 'tree' needs ENGRAM_LLM_BASE_URL to be set."
