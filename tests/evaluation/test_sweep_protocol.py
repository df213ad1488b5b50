"""K_S and K_E: what is tried, that it reaches the retrieval, what comes out; learning by the published profile."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engram.context.errors import InvalidRequestError
from engram.core.ranking.profiles import DEFAULT, PAPER
from engram_evaluation.dataset import Dataset
from engram_evaluation.harness import Harness
from engram_evaluation.protocols import JUDGED_GROUP
from engram_evaluation.run_options import Options
from engram_evaluation.sweep_protocol import ENTITIES, GROUP, SENTENCES, VALUES, courses, settings
from tests.evaluation.conftest import Evaluate


def test_one_number_is_varied_and_the_other_is_the_profiles_own() -> None:
    for profile in (PAPER, DEFAULT):
        own = (profile.sentences_per_hop, profile.entities_per_hop)
        tried = settings(profile)
        assert len(tried) == sum(map(len, VALUES.values()))
        assert tried[f"{profile.name}, K_S 12"] == (12, own[1])
        assert tried[f"{profile.name}, K_E 1"] == (own[0], 1)
        assert list(tried.values()).count(own) == 2  # where both lines cross


def test_courses_ascend() -> None:
    arms = [("paper, K_S 12", 0.9), ("paper, K_S 3", 0.5), ("default, K_E 5", 0.1)]
    assert courses(arms) == {"K_S": {"paper": [(3.0, 0.5), (12.0, 0.9)]}, "K_E": {"default": [(5.0, 0.1)]}}


def test_the_numbers_reach_the_retrieval(run_protocol: Evaluate, sample_dataset: Dataset, tmp_path: Path) -> None:
    report = run_protocol("sweep", replace(sample_dataset, questions=sample_dataset.questions[:4]), drawn=True)
    arms = [line.arm for line in report.lines()]
    assert arms == [arm for profile in (PAPER, DEFAULT) for arm in settings(profile)]
    shown = [report.value("shown", GROUP, 0, f"paper, {SENTENCES} {value}") for value in VALUES[SENTENCES]]
    assert shown == sorted(shown)
    assert shown[0] < shown[-1]
    # One sentence a hop, at most three hops.
    assert shown[0] <= PAPER.max_hops
    one, many = (report.value("shown", GROUP, 0, f"paper, {ENTITIES} {value}") for value in (1, 20))
    assert one != many
    own = [report.value("recall@5", GROUP, 0, f"paper, {name}") for name in ("K_S 3", "K_E 5")]
    assert own[0] == own[1]
    assert [path.name for path in tmp_path.glob("*.png")] == ["sample-sweep-sweep.png"]
    assert report.options.command("sample") == "engram evaluate sample --protocol sweep"
    assert "paper, K_S 12" in report.markdown()


def test_a_setting_is_measured_once(
    run_protocol: Evaluate, sample_dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    ask = Harness.ask

    def ask_and_record(self: Harness, question: Any, arm: Any, **more: Any) -> Any:
        asked.append(arm)
        return ask(self, question, arm, **more)

    monkeypatch.setattr(Harness, "ask", ask_and_record)
    run_protocol("sweep", sample_dataset, limit=1)
    assert len(asked) == len(set(asked)) == 2 * (sum(map(len, VALUES.values())) - 1)
    asked.clear()
    run_protocol("sweep", sample_dataset, limit=1)
    assert asked == []


def test_learning_options_are_refused_for_sweeps() -> None:
    for foreign in ({"profile": "paper"}, {"turns": 2}, {"freeze": ("task",)}, {"top_k": 3}):
        with pytest.raises(InvalidRequestError, match="means nothing to --protocol sweep"):
            Options(protocol="sweep", **foreign)  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", ["same", "similar", "different"])
def test_the_published_profile_learns_over_turns(
    run_protocol: Evaluate, sample_dataset: Dataset, protocol: str
) -> None:
    few = replace(sample_dataset, questions=sample_dataset.questions[:8])
    report = run_protocol(protocol, few, profile="paper", turns=3, limit=3)
    assert {line.arm for line in report.lines()} == {"paper"}
    assert [line.turn for line in report.lines() if line.group == JUDGED_GROUP] == [0, 1, 2, 3]
    assert report.value("support", JUDGED_GROUP, 3) >= report.value("support", JUDGED_GROUP, 0)
    assert f"--protocol {protocol} --profile paper --turns 3" in report.options.command("sample")
