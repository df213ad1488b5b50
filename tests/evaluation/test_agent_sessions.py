"""The agent beside other planners, with the oracle for a model, and its turns as lines to train on."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from engram.composition.container import Application
from engram.wings.agent.core.agent_turns import read_turn
from engram.wings.agent.llm import agent_prompts
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_trajectories import Trajectory
from engram_evaluation.dataset import Dataset
from engram_evaluation.evaluation_run import evaluate
from engram_evaluation.run_options import Options
from engram_evaluation.run_report import RunReport
from engram_evaluation.trajectory_export import ExportCounts, export, reward_by_gold
from tests.support.decomposed import write_decomposed

NAME = "agent-tests"


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return write_decomposed(NAME)


@pytest.fixture(scope="module")
def measured(reasoning: Application, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    options = Options(
        protocol="session", planners=("agent",), oracle_errors=0.0, top_k=5, without=("update", "extractor")
    )
    folder: Path = tmp_path_factory.mktemp("reports")
    return evaluate(reasoning, lambda _: reasoning, dataset, options, folder, Console(file=io.StringIO()))


@pytest.fixture
def trajectories(reasoning: Application, measured: RunReport) -> list[Trajectory]:
    return list(sessions_of(reasoning).trajectories.read_all(reasoning.auth.access.scope(f"evaluate-{NAME}")))


def test_the_agent_stands_beside_one_query_and_itself_without_updates(
    measured: RunReport, dataset: Dataset
) -> None:
    arms = [line.arm for line in measured.lines()]
    assert arms == ["query", "agent", "agent: one query as wide", "agent without update"]
    whole = next(line.values for line in measured.lines() if line.arm == "agent")
    assert whole["llm_calls"] > whole["rounds"] > 1  # two more for each text whose facts are extracted
    assert whole["answered"] == 1.0
    assert whole["pool_precision"] > 0.9  # the oracle keeps gold sentences alone


def test_turns_are_lines_to_imitate_and_to_reinforce(trajectories: list[Trajectory], dataset: Dataset) -> None:
    counted = ExportCounts()
    imitated = list(export(trajectories, dataset, "sft", reward_by_gold, counted))
    assert counted.lines == len(imitated) > 0
    for line in imitated:
        system, user, reply = line["messages"]
        assert system["content"] in {agent_prompts.system(insert_only=only) for only in (False, True)}
        assert "<memory_obs>" in user["content"]
        assert read_turn(reply["content"]).content
    assert {line["messages"][0]["content"] for line in imitated} > {agent_prompts.system()}
    reinforced = list(export(trajectories, dataset, "grpo", reward_by_gold, ExportCounts()))
    assert [line["completion"][0] for line in reinforced] == [line["messages"][2] for line in imitated]
    assert {line["reward"] for line in reinforced} == {1.1}
    assert all(line["answers"] and line["rewards"]["format"] == 1.0 for line in reinforced)
    steps = list(export(trajectories, dataset, "steps", reward_by_gold, ExportCounts()))
    first = next(line for line in steps if line["step"] == 0)
    assert first["action"]["name"] in {"insert", "skip"}
    assert first["observation"]["seen"]
    assert first["reply"] == imitated[0]["messages"][2]["content"]
    assert json.dumps(steps)
