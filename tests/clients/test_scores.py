"""Scores in the shapes of RAGAS and TruLens, posted to a running service."""

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from engram_client import Engram, scores
from engram_client.models import EpisodeOut

QUESTION = "Where was Marie Curie born?"


@pytest.fixture
def answered(service: str, curie: str) -> EpisodeOut:
    with Engram(service, collection=curie) as engram:
        return engram.episode(engram.query(QUESTION, top_k=3).query_id)


def ids(answered: EpisodeOut) -> list[str]:
    return [passage.passage_id for passage in answered.passages]


def test_relevance_in_the_order_of_the_answer(answered: EpisodeOut) -> None:
    said = scores.verdict(answered, {"context_relevance": [0.9, 0.1, math.nan]})
    assert said is not None
    assert said["supporting_passages"] == ids(answered)[:1]
    assert said["rejected"] == [sentence.sentence_id for sentence in answered.passages[1].sentences]
    assert said["complete"] is False
    assert said["confidence"] == pytest.approx(0.8)
    assert "retrieval_success" not in said


def test_only_what_lacks_nothing_claims_to_be_whole(answered: EpisodeOut) -> None:
    all_three: dict[str, Any] = {"context_relevance": dict(zip(ids(answered), [1, 1, 0], strict=True))}
    for recall, complete in ((1.0, True), (0.9, False), (None, False)):
        said = scores.verdict(answered, all_three | {"context_recall": recall})
        assert said is not None
        assert said["complete"] is complete
    two = scores.verdict(answered, {"context_relevance": [1, 1], "context_recall": 1.0})
    assert two is not None
    assert two["complete"] is False, "the third was not looked at"


def test_success_is_set_only_with_vouching(answered: EpisodeOut) -> None:
    line = {"context_relevance": [1], "context_recall": 0.5, "factual_correctness": 0.75}
    said = scores.verdict(answered, line, vouch=True)
    assert said is not None
    assert (said["retrieval_success"], said["generation_score"]) == (False, 0.75)


def test_thumbs_speak_of_what_was_cited(answered: EpisodeOut) -> None:
    best = answered.passages[0].passage_id
    up = scores.verdict(answered, {"thumb": "up", "cited": [best]})
    down = scores.verdict(answered, {"thumb": "down", "cited": [best], "reason": "outdated"})
    assert up == {"rating": "up", "cited": [best]}
    assert down == {"rating": "down", "cited": [best], "reason": "outdated"}
    assert scores.verdict(answered, {"thumb": "up", "cited": []}) == {"rating": "up"}
    scored = scores.verdict(answered, {"thumb": "up", "context_relevance": [1]})
    assert scored is not None
    assert "rating" not in scored, "what the passages were scored says more"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"context_relevance": [2]}, "no number from 0 to 1"),
        ({"context_relevance": [1, 1, 1, 1]}, "4 scores for 3 passages"),
        ({"context_relevance": "high"}, "neither a list nor an object"),
        ({"thumb": "sideways"}, "neither up nor down"),
        ({"thumb": "up", "cited": "titan"}, "no list of ids"),
        ({"thumb": "up", "cited": [7]}, "no list of ids"),
        ({"thumb": "down", "reason": 7}, "no text"),
    ],
)
def test_scores_that_cannot_be_read(answered: EpisodeOut, line: dict[str, Any], reason: str) -> None:
    with pytest.raises(scores.ScoreError, match=reason):
        scores.verdict(answered, line)


def test_a_file_is_posted_once(
    service: str,
    curie: str,
    answered: EpisodeOut,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        {"query_id": answered.query_id, "context_relevance": [1.0, 0.0, 0.0], "context_recall": 1.0},
        {"query_id": answered.query_id, "faithfulness": 1.0},
        {"query_id": "00000000-0000-0000-0000-000000000000", "context_relevance": [1.0]},
    ]
    file = tmp_path / "scores.jsonl"
    file.write_text("\n".join([*map(json.dumps, rows), "{"]))
    given = ["--url", service, "--collection", curie, "--judge", "ragas"]
    for _ in range(2):
        assert scores.main([str(file), *given]) == 1
        shown = capsys.readouterr()
        assert shown.out.splitlines()[-1] == "1 verdicts, 1 lines that say nothing of what helped, 2 failed"
        assert [line.split(":")[0] for line in shown.err.splitlines()] == ["line 3", "line 4"]
    with Engram(service, collection=curie) as engram:
        (verdict,) = engram.verdicts()
        assert verdict.judge == "ragas"
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert scores.main(["-", *given]) == 0
