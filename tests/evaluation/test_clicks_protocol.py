"""The protocol ``clicks``: who clicks what, what a click says, and what becomes of first results."""

from dataclasses import replace

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram_evaluation.clicks_protocol import (
    READINGS,
    REPEATED_GROUP,
    examination,
    measure_repeats,
    simulate_clicks,
)
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.protocols import MEMORY_OFF
from engram_evaluation.retrieval_metrics import QuestionScores
from engram_evaluation.run_options import Options
from tests.evaluation.conftest import Evaluate
from tests.support.state import rows


@pytest.fixture
def few(sample_dataset: Dataset) -> Dataset:
    return replace(sample_dataset, questions=sample_dataset.questions[:4])


RANKING = [f"p{rank}" for rank in range(1, 11)]
QUESTION = Question("q", "Who?", frozenset({"p1", "p5"}), (), "one")


def share(passage: str) -> float:
    """How often a passage is clicked."""
    draws = 3_000
    return sum(passage in simulate_clicks(QUESTION, RANKING, str(draw)) for draw in range(draws)) / draws


@pytest.mark.parametrize(
    ("passage", "expected"), [("p1", 1.0), ("p5", 1 / 5), ("p2", 0.1 / 2), ("p10", 0.1 / 10), ("p11", 0.0)]
)
def test_click_rates_follow_position_and_relevance(passage: str, expected: float) -> None:
    assert share(passage) == pytest.approx(expected, abs=0.02)


def test_attention_falls_with_the_rank() -> None:
    assert [examination(rank) for rank in (1, 2, 4)] == [1.0, 0.5, 0.25]


def arrival(at: int, question: str, ranking: str, right: bool) -> QuestionScores:
    return QuestionScores(f"{question}#{at}", "one", tuple(ranking), {"ndcg@1": float(right)})


def test_first_results_are_followed_from_a_questions_first_arrival_to_its_last() -> None:
    stream = [
        arrival(1, "a", "xy", False),
        arrival(2, "b", "xy", False),
        arrival(3, "a", "yx", True),
        arrival(4, "c", "x", True),
        arrival(5, "b", "xz", False),
        arrival(6, "c", "y", False),
        arrival(7, "once", "x", True),
        arrival(8, "d#1", "x", False),
        arrival(9, "d#1", "z", False),
    ]
    assert {row.id: row.values for row in measure_repeats(stream)} == {
        "a": {"wrong": 1.0, "mended": 1.0, "stuck": 0.0},
        "b": {"wrong": 1.0, "mended": 0.0, "stuck": 1.0},
        "c": {"wrong": 0.0, "spoiled": 1.0},
        "d#1": {"wrong": 1.0, "mended": 0.0, "stuck": 0.0},
    }


def test_clicks_teach_and_silence_says_as_much_as_was_looked_at(
    run_protocol: Evaluate, application: Application, few: Dataset
) -> None:
    report = run_protocol("clicks", few, limit=12)
    assert [line.arm for line in report.lines() if line.group == "last tenth"] == [MEMORY_OFF, *READINGS]
    # The last of the readings is the last that was learned by: no rejection is in the log.
    collection = f"evaluate-{few.name}"
    assert {row["role"] for row in rows(application, collection, "verdict_sentence")} == {"supported"}
    assert {line.arm for line in report.lines() if line.group == REPEATED_GROUP} == {MEMORY_OFF, *READINGS}
    found = {
        arm: [row.ranking for p in report.phases if p.arm == arm for row in p.rows]
        for arm in (MEMORY_OFF, *READINGS)
    }
    assert all(found[arm] != found[MEMORY_OFF] for arm in READINGS)
    assert "asked again" in report.markdown()
    again = run_protocol("clicks", few, limit=12)
    assert again.phases == report.phases


def test_weighed_silence_is_in_the_log(run_protocol: Evaluate, application: Application, few: Dataset) -> None:
    import engram_evaluation.clicks_protocol as protocol

    only = {"silence weighed": READINGS["silence weighed"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "READINGS", only)
        run_protocol("clicks", few, limit=4)
    said = rows(application, f"evaluate-{few.name}", "verdict_sentence")
    assert any(row["examined"] is not None and row["examined"] < 1 for row in said)
    assert all(row["examined"] is None for row in said if row["role"] == "supported")
    collection = application.auth.access.scope(f"evaluate-{few.name}")
    assert application.revocation.verification.verify(collection).differences == []


@pytest.mark.parametrize("option", [{"turns": 2}, {"verdicts": "returned"}, {"top_k": 3}])
def test_options_foreign_to_clicks_are_refused(option: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError, match="means nothing to --protocol clicks"):
        replace(Options(protocol="clicks"), **option)
