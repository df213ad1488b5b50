"""Commands that measure, and that fit the ranking weights: data sets and priors as files."""

import json
from pathlib import Path
from typing import Any

import pytest

from engram.composition.container import Application
from engram.config.settings import Settings
from engram.core.ranking.passage_scores import PASSAGE_FEATURES
from engram.providers.ranking_prior import load_priors
from engram.wings.local import sample
from tests.support.command import UNREACHABLE_URL, Cli

QUESTIONS = 15
"""Questions of the sample that are asked: enough to tell good weights from bad ones."""
EACH_OTHER_PASSAGE = {"sample": 1, "part": 6}
"""Data set -> one of how many of the passages that answer none of them it has; a fit needs wrong answers too."""


@pytest.fixture
def cli(tmp_path: Path, settings: Settings, application: Application) -> Cli:
    """The command, on the servers of these tests, and parts of the sample."""
    write_parts(tmp_path)
    return Cli(tmp_path, UNREACHABLE_URL, settings.data_dir)


def write_parts(folder: Path) -> None:
    """Write the sample's first questions with passages of ``EACH_OTHER_PASSAGE`` where the command looks first."""
    whole = Path(sample.__path__[0])

    def read(name: str) -> list[str]:
        return (whole / name).read_text(encoding="utf-8").splitlines(keepends=True)

    questions = read("questions.jsonl")[:QUESTIONS]
    asked = {json.loads(line)["_id"] for line in questions} | {"query-id"}
    labels = [line for line in read("qrels.tsv") if line.split("\t")[0] in asked]
    relevant = {line.split("\t")[1] for line in labels}
    for name, each in EACH_OTHER_PASSAGE.items():
        passages = [
            line
            for place, line in enumerate(read("corpus.jsonl"))
            if json.loads(line)["_id"] in relevant or place % each == 0
        ]
        (folder / name).mkdir()
        for file, lines in (("questions.jsonl", questions), ("qrels.tsv", labels), ("corpus.jsonl", passages)):
            (folder / name / file).write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory, settings: Settings, application: Application) -> Path:
    """A prior fitted to the sample corpus, though the one configured is of no use."""
    folder = tmp_path_factory.mktemp("fit")
    write_parts(folder)
    done = Cli(folder, UNREACHABLE_URL, settings.data_dir)(
        "fit", "sample", "--out", "new/prior.json", ENGRAM_RANKING_PRIOR=str(folder / "absent.json")
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "new/prior.json\n"
    return folder / "new" / "prior.json"


def write_encyclopedic(path: Path, fitted: Path, weights: dict[str, Any]) -> None:
    """Write the fitted weights with others for encyclopedic corpora."""
    both = json.loads(fitted.read_text(encoding="utf-8"))
    path.write_text(json.dumps(both | {"encyclopedic": weights}), encoding="utf-8")


def run_evaluation(cli: Cli, *arguments: str) -> tuple[str, dict[str, Any], dict[str, float]]:
    """What a run of three questions printed, its document, and recall@5 of each arm."""
    done = cli("evaluate", "part", "--limit", "3", *arguments)
    assert done.returncode == 0, done.stderr
    written = cli.folder / done.stdout.splitlines()[-1].removesuffix(".md and .json")
    document = json.loads(Path(f"{written}.json").read_text(encoding="utf-8"))
    return done.stdout, document, {row["arm"]: row["recall@5"] for row in document["summary"]}


def test_fitted_weights_can_be_loaded_and_prefer_what_answers(fitted: Path) -> None:
    prior = load_priors(fitted).encyclopedic

    assert prior.fitted == ("sample",)
    assert prior.name != load_priors().encyclopedic.name
    assert load_priors(fitted).general.name == load_priors().general.name
    assert prior.prior.mean[PASSAGE_FEATURES.index("similarity")] > 0


def test_fitting_again_gives_the_same_weights(cli: Cli, fitted: Path) -> None:
    assert cli("fit", "sample").stdout == "ranking_prior.json\n"

    assert load_priors(cli.folder / "ranking_prior.json").name == load_priors(fitted).name


def test_sufficiency_is_fitted_to_given_ranking_weights(cli: Cli, fitted: Path) -> None:
    whole = json.loads(fitted.read_text(encoding="utf-8"))["encyclopedic"]
    other = whole | {"mean": [value / 2 for value in whole["mean"]]}
    del other["sufficiency"]  # whatever that was of
    write_encyclopedic(cli.folder / "ranking.json", fitted, other)
    done = cli("fit", "sample", "--ranking", "ranking.json", "--out", "both.json")
    assert done.returncode == 0, done.stderr
    both = json.loads((cli.folder / "both.json").read_text(encoding="utf-8"))["encyclopedic"]
    assert both["mean"] == pytest.approx(other["mean"], rel=1e-5)  # rounded
    assert {name: both[name] for name in other if name != "mean"} == {
        name: other[name] for name in other if name != "mean"
    }
    assert both["sufficiency"]["features"] == whole["sufficiency"]["features"]
    assert both["sufficiency"]["mean"] != whole["sufficiency"]["mean"]

    write_encyclopedic(cli.folder / "ranking.json", fitted, other | {"fitted": ["musique"]})
    assert cli("fit", "sample", "--ranking", "ranking.json", "--out", "both.json").returncode == 0
    both = json.loads((cli.folder / "both.json").read_text(encoding="utf-8"))["encyclopedic"]
    assert (both["fitted"], both["sufficiency"]["fitted"]) == (["musique"], ["sample"])


def test_sufficiency_draws_share_one_pass_of_answers(cli: Cli) -> None:
    done = cli("sufficiency", "part", "--draws", "3", "--verdicts", "2", "--verdicts", "5", "--limit", "12")
    assert done.returncode == 0, done.stderr
    file = cli.folder / "reports" / "sufficiency" / "draws-part.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    assert (document["questions"], document["draws"], document["noise"]) == (12, 3, 0.5)
    assert [(one["verdicts"], one["measured"]) for one in document["after"]] == [(0, 12), (2, 10), (5, 7)]
    assert len({one["loss"] for one in document["after"]}) == 3
    head, *rows = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert head == ["verdicts", "answers", "AUC", "ECE", "least", "ECE", "log", "loss"]
    printed = [row[:2] for row in rows if row[0].isdigit()]
    assert printed == [["0", "12"], ["2", "10"], ["5", "7"]]
    refused = cli("sufficiency", "part", "--verdicts", "2", "--verdicts", "5")
    assert refused.returncode != 0
    assert "go with --draws" in refused.stderr


def test_a_run_starts_from_the_given_weights_and_says_so(cli: Cli, fitted: Path) -> None:
    content = json.loads(fitted.read_text(encoding="utf-8"))
    given = cli.folder / "mine.json"
    given.write_text(json.dumps(content), encoding="utf-8")
    ours = content["encyclopedic"]
    opposite = ours | {"mean": [-value for value in ours["mean"]]}
    write_encyclopedic(cli.folder / "opposite.json", fitted, opposite)
    printed, document, recall = run_evaluation(cli, "--prior", "mine.json")
    _, otherwise, lost = run_evaluation(cli, "--prior", "opposite.json")

    assert document["engine"]["ranking_prior"] == [load_priors(given).name, *load_priors(given).fitted]
    assert otherwise["engine"]["ranking_prior"][0] == load_priors(cli.folder / "opposite.json").name
    assert document["command"] == "engram evaluate part --protocol cold --limit 3 --prior mine.json"
    assert "mine" in printed
    page = next(cli.folder.glob("reports/*mine*.md")).read_text(encoding="utf-8")
    assert document["command"] in page
    assert load_priors(given).name in page
    assert recall["default"] > 0.5 > lost["default"]
    assert {arm: value for arm, value in lost.items() if arm != "default"} == {
        arm: value for arm, value in recall.items() if arm != "default"
    }


def test_weights_fitted_to_the_measured_questions_are_reported_once(cli: Cli, fitted: Path) -> None:
    again = ("evaluate", "sample", "--limit", "2", "--prior", str(fitted))
    done = cli(*again)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("weights fitted to the same questions") == 1
    page = next(cli.folder.glob("reports/*prior*.md")).read_text(encoding="utf-8")
    assert "**Weights fitted to the same questions.**" in page
    document = json.loads(next(cli.folder.glob("reports/*prior*.json")).read_text(encoding="utf-8"))
    assert document["fitted_to_same_questions"] is True
    assert "**Weights fitted to the same questions: sample.**" in cli("report", "reports").stdout
    harmless = cli(*again, "--protocol", "similar", "--profile", "paper")  # ranks by no weights
    assert harmless.returncode == 0, harmless.stderr
    assert "fitted to the same" not in harmless.stderr


def test_a_finished_run_deletes_its_collection_unless_it_is_to_stay(cli: Cli, application: Application) -> None:
    def is_there() -> bool:
        scopes = application.auth.access.list_scopes()
        return "evaluate-part" in [scope.collection.name for scope in scopes]

    run_evaluation(cli, "--keep")
    assert is_there()
    started = cli("evaluate", "part", "--limit", "2", "--out", str(cli.folder / "taken"))
    assert started.returncode == 0, started.stderr
    assert not is_there()
    (cli.folder / "file").write_text("", encoding="utf-8")
    stopped = cli("evaluate", "part", "--limit", "2", "--out", str(cli.folder / "file"))
    assert stopped.returncode != 0
    assert is_there(), "a run that was stopped goes on with what it ingested"


def test_human_protocol_fails_without_ratings(cli: Cli) -> None:
    done = cli("evaluate", "part", "--protocol", "human", "--questions", "2")
    assert done.returncode == 1
    assert "part has too few ratings (ratings.jsonl) by several people, which human needs." in done.stderr
    assert "Traceback" not in done.stderr


def test_evaluate_without_a_valid_prior_fails_in_one_line(cli: Cli) -> None:
    (cli.folder / "broken.json").write_text("{", encoding="utf-8")
    for name in ("absent.json", "broken.json"):
        said = cli.fails("evaluate", "part", "--limit", "3", "--prior", name)
        assert f"{name} holds no ranking prior" in said
    assert not (cli.folder / "reports").exists()


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_invalid_data_set_fails_in_one_line(cli: Cli, command: str) -> None:
    (cli.folder / "empty").mkdir()
    assert "is no folder" in cli.fails(command, "absent")
    assert "there is no queries.jsonl" in cli.fails(command, "empty")
    if command == "fit":
        assert "is no folder" in cli.fails("fit", "sample", "absent", "--out", "prior.json")
    assert not (cli.folder / "prior.json").exists()


def test_fit_fails_without_comparisons(cli: Cli, collection: str) -> None:
    folder = cli.folder / collection
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"_id": "a", "text": "Bees fly."}\n', encoding="utf-8")
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "What do bees do?"}\n', encoding="utf-8")
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n", encoding="utf-8")
    done = cli("fit", collection, "--out", "prior.json")

    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]  # below the progress bars
    assert last.startswith("engram: No ranking weights can be fitted")
    assert "Traceback" not in done.stderr
    assert not (cli.folder / "prior.json").exists()
