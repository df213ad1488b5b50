"""The protocol ``session`` against the oracle, and what its sessions are exported as."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError, LlmNotConfiguredError
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_trajectories import Trajectory
from engram_evaluation.dataset import Dataset
from engram_evaluation.evaluation_run import evaluate
from engram_evaluation.report_page import gather
from engram_evaluation.run_options import Options
from engram_evaluation.run_report import RunReport
from engram_evaluation.session_protocol import arms
from engram_evaluation.trajectory_export import ExportCounts, build_judge_reward, export, is_right, reward_by_gold
from tests.evaluation.conftest import Evaluate
from tests.support.command import UNREACHABLE_URL, Cli
from tests.support.decomposed import FILM, MAKER, MOTHER, write_decomposed

NAME = "session-tests"


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return write_decomposed(NAME)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def measured(reasoning: Application, dataset: Dataset, folder: Path) -> RunReport:
    options = Options(
        protocol="session",
        planners=("pool", "socratic", "tree"),
        rounds=4,
        oracle_errors=0.0,
        top_k=1,
        without=("update",),
    )
    return evaluate(reasoning, lambda _: reasoning, dataset, options, folder, Console(file=io.StringIO()))


@pytest.fixture
def trajectories(reasoning: Application, measured: RunReport) -> list[Trajectory]:
    return list(sessions_of(reasoning).trajectories.read_all(reasoning.auth.access.scope(f"evaluate-{NAME}")))


def values(report: RunReport, arm: str) -> dict[str, float]:
    return next(line.values for line in report.lines() if line.arm == arm)


def test_every_planner_stands_beside_a_query_as_wide(measured: RunReport) -> None:
    names = [line.arm for line in measured.lines()]
    assert names[0] == "query"
    assert {"pool, by rules", "pool, by rules, always 4 rounds", "pool", "socratic", "tree"} <= set(names)
    assert "tree without update" in names
    for name in [name for name in names[1:] if "without" not in name and "as wide" not in name]:
        wide = values(measured, f"{name}: one query as wide")
        assert wide["read"] == pytest.approx(values(measured, name)["read"], abs=0.5)
        assert wide["rounds"] == 1.0


def test_sessions_find_and_answer_what_one_query_misses(measured: RunReport) -> None:
    tree = values(measured, "tree")
    assert tree["read_all"] == tree["pool_recall"] == tree["f1"] == tree["answered"] == 1.0
    assert tree["llm_calls"] > values(measured, "socratic")["llm_calls"] > 0
    assert tree["prompt_tokens"] > 0
    assert values(measured, "pool, by rules")["llm_calls"] == 0.0
    assert "f1" not in values(measured, "pool, by rules")
    assert values(measured, "query")["rounds"] == 1.0


def test_the_report_shows_costs_and_what_rounds_asked(measured: RunReport, folder: Path) -> None:
    markdown = measured.markdown()
    assert "of pool gold" in markdown
    assert "--planners pool,socratic,tree --rounds 4 --oracle-errors 0 --without update" in markdown
    document = json.loads(next(folder.glob("*.json")).read_text(encoding="utf-8"))
    phase = next(one for one in document["phases"] if one["arm"] == "socratic")
    asked = [
        query for question in phase["questions"] for one in question["said"]["rounds"] for query in one["queries"]
    ]
    assert "What is the mother of Ana Bellotti?" in asked
    assert document["engine"]["llm_model"]
    page = gather([folder])
    assert "gold in pool / of pool gold" in page


def test_a_finished_run_is_not_done_again(
    measured: RunReport, reasoning: Application, dataset: Dataset, folder: Path
) -> None:
    assert reasoning.models.llm is not None
    before = reasoning.models.llm.calls
    again = evaluate(reasoning, lambda _: reasoning, dataset, measured.options, folder, Console(file=io.StringIO()))
    assert reasoning.models.llm.calls == before
    assert [line.values for line in again.lines()] == [line.values for line in measured.lines()]


def test_without_an_endpoint_the_pool_goes_by_rules(run_protocol: Evaluate, dataset: Dataset) -> None:
    report = run_protocol("session", replace(dataset, name=f"{NAME}-bare"), rounds=2)
    assert [line.arm for line in report.lines()][1::2] == ["pool, by rules", "pool, by rules, always 2 rounds"]
    assert values(report, "pool, by rules, always 2 rounds")["llm_calls"] == 0.0
    with pytest.raises(LlmNotConfiguredError, match="--oracle-errors"):
        arms(["tree"], 3, (), (), llm=False)


def test_paraphrases_need_some(run_protocol: Evaluate, dataset: Dataset) -> None:
    with pytest.raises(InvalidRequestError, match="no paraphrases"):
        run_protocol("session", replace(dataset, name=f"{NAME}-bare"), paraphrased=True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"planners": ("chess",)}, "--planners"),
        ({"rounds": 0}, "--rounds"),
        ({"oracle_errors": 1.5}, "--oracle-errors"),
        ({"turns": 2}, "--turns means nothing"),
        ({"seeds": (0, 1)}, "--seed is given once"),
    ],
)
def test_options_are_checked(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        Options(protocol="session", **wrong)
    with pytest.raises(InvalidRequestError, match="--rounds means nothing"):
        Options(protocol="cold", rounds=2)


def lines(
    trajectories: list[Trajectory], dataset: Dataset, shape: Any, reward: Any = reward_by_gold
) -> list[dict[str, Any]]:
    return list(export(trajectories, dataset, shape, reward, ExportCounts()))


def test_steps_tell_state_action_observation_and_reward(trajectories: list[Trajectory], dataset: Dataset) -> None:
    of_tree = [one for one in lines(trajectories, dataset, "steps") if one["planner"] == "tree"]
    first = next(one for one in of_tree if one["step"] == 0)
    assert first["state"]["question"] == MOTHER
    assert first["state"]["memory"] == []
    assert first["action"] == {"name": "ask", "question": MOTHER, "queries": [MOTHER]}
    later = next(one for one in of_tree if one["step"] == 1 and one["action"]["name"] == "decompose")
    assert {line["text"] for line in later["state"]["memory"]} <= {FILM, MAKER}
    # The first step keeps one of two gold sentences and nothing else: (1/2 + 1) / 2.
    assert first["reward"]["path"] == pytest.approx((1 / 2 + 1) / 2)
    for one in of_tree:
        assert 0.0 <= one["reward"]["path"] <= 1.0
        assert 0.0 <= one["reward"]["objective"] <= 3.0


def test_messages_to_imitate_are_the_prompt_and_the_reply(trajectories: list[Trajectory], dataset: Dataset) -> None:
    made = lines(trajectories, dataset, "sft")
    assert made
    for one in made:
        system, user, assistant = one["messages"]
        assert (system["role"], user["role"], assistant["role"]) == ("system", "user", "assistant")
        assert '"kept"' in system["content"]
        kept = json.loads(assistant["content"])["kept"]
        numbered = user["content"].count("\n[") + user["content"].startswith("[")
        assert all(1 <= number <= numbered + 1 for number in kept)
    user = next(one["messages"] for one in made if json.loads(one["messages"][2]["content"])["kept"])
    number = json.loads(user[2]["content"])["kept"][0]
    assert f"[{number}] {FILM}" in user[1]["content"] or f"[{number}] {MAKER}" in user[1]["content"]


def test_prompts_to_reinforce_have_what_a_reward_needs(trajectories: list[Trajectory], dataset: Dataset) -> None:
    for one in lines(trajectories, dataset, "grpo"):
        assert [message["role"] for message in one["prompt"]] == ["system", "user"]
        assert [message["role"] for message in one["completion"]] == ["assistant"]
        assert one["reward"] == pytest.approx(one["rewards"]["objective"])
        for number in one["gold"]:
            assert f"[{number}] {FILM}" in one["prompt"][1]["content"] or (
                f"[{number}] {MAKER}" in one["prompt"][1]["content"]
            )


def test_wrong_and_foreign_trajectories_are_left_out(trajectories: list[Trajectory], dataset: Dataset) -> None:
    one = next(one for one in trajectories if one.question == MOTHER)
    counted = ExportCounts()
    several = [replace(one, answer="Ana Bellotti"), replace(one, question="Who else?"), one]
    made = list(export(several, dataset, "steps", reward_by_gold, counted))
    assert (counted.trajectories, counted.wrong, counted.unknown) == (3, 1, 1)
    assert counted.lines == len(made) == len(one.steps)
    assert is_right("It was ida ferrero.", dataset.questions[0])


def test_a_judge_can_grade_instead(
    reasoning: Application, trajectories: list[Trajectory], dataset: Dataset
) -> None:
    assert reasoning.models.llm is not None
    of_tree = [one for one in trajectories if one.planner == "tree"]
    made = lines(of_tree, dataset, "steps", build_judge_reward(reasoning.models.llm))
    # Every answer is right; a path that concluded before it asked for all is not complete.
    assert {one["reward"]["outcome"] for one in made} <= {0.5, 1.0}
    assert max(one["reward"]["outcome"] for one in made) == 1.0
    assert {one["reward"]["path"] for one in made} <= {0.0, 0.25, 0.5, 1.0}


def test_a_data_set_without_gold_cannot_reward(trajectories: list[Trajectory], sample_dataset: Dataset) -> None:
    questions = tuple(replace(question, answers=()) for question in sample_dataset.questions)
    mute = replace(sample_dataset, questions=questions, paraphrases={})
    with pytest.raises(InvalidRequestError, match="no questions with accepted answers"):
        lines(trajectories, mute, "steps")


def test_the_command_writes_a_file(
    measured: RunReport, tmp_path: Path, application: Application, env: dict[str, str], dataset: Dataset
) -> None:
    rows = {
        "corpus.jsonl": [{"_id": p["id"], "title": p["title"], "text": p["text"]} for p in dataset.passages],
        "queries.jsonl": [
            {
                "_id": question.id,
                "text": question.text,
                "metadata": {
                    "answers": list(question.answers),
                    "supporting_sentences": [[gold.passage_id, 0, gold.text] for gold in question.gold],
                },
            }
            for question in dataset.questions
        ],
    }
    data = tmp_path / NAME
    data.mkdir()
    for name, content in rows.items():
        (data / name).write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    labels = [f"{q.id}\t{passage}\t1" for q in dataset.questions for passage in q.relevant]
    (data / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *labels]) + "\n", encoding="utf-8")
    cli = Cli(tmp_path, UNREACHABLE_URL, application.settings.data_dir)
    out = tmp_path / "train.jsonl"
    done = cli("trajectories", "export", str(data), "--out", str(out), "--shape", "sft", **env)
    assert done.returncode == 0, done.stderr
    assert "lines of" in done.stdout
    assert json.loads(out.read_text(encoding="utf-8").splitlines()[0])["messages"]
    assert "--shape must be one of" in cli.fails("trajectories", "export", str(data), "--out", "x", "--shape", "y")
