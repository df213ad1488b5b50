"""What is measured of extraction: facts found, strictly and not, relations by nearest name, cost in tokens."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram_evaluation.dataset import Dataset, load
from engram_evaluation.dataset_files import DatasetError
from engram_evaluation.extraction_protocol import (
    compression,
    is_same_name,
    is_same_object,
    measure,
    measure_functional,
    read_corpus,
    read_gold_facts,
    recall,
)
from engram_evaluation.run_options import Options
from tests.support.command import UNREACHABLE_URL, Cli

PASSAGES = {
    "p1": ("Blue Harbour", "Blue Harbour is a 1951 Danish drama film directed by Nils Holm."),
    "p2": (
        "Nils Holm",
        "Nils August Holm (4 May 1901 – 1970) was a Danish director. He was born in Ribe, Denmark.",
    ),
}
EVIDENCES = [
    ["Blue Harbour", "director", "Nils Holm"],
    ["Nils Holm", "date of birth", "May 4, 1901"],
    ["Nils Holm", "place of birth", "Ribe, Denmark"],
    ["Nils Holm", "spouse", "Eva Lind"],
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "films", EVIDENCES)


def write_dataset(folder: Path, evidences: Any) -> Path:
    folder.mkdir()
    passages = [{"_id": number, "title": title, "text": text} for number, (title, text) in PASSAGES.items()]
    question = {
        "_id": "q1",
        "text": "When was the director of Blue Harbour born?",
        "metadata": {"evidences": evidences, "context_ids": ["p1", "p2"]},
    }
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, passages)), encoding="utf-8")
    with gzip.open(folder / "queries.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps(question))
    (folder / "qrels.tsv").write_text("q\tp\ts\nq1\tp1\t1\nq1\tp2\t1\n", encoding="utf-8")
    return folder


@pytest.fixture
def dataset(folder: Path) -> Dataset:
    return load(folder)


def test_three_of_four_gold_facts_are_found(application: Application, folder: Path, dataset: Dataset) -> None:
    facts = read_corpus(dataset, application.models.language).facts

    found = recall(read_gold_facts(folder, dataset), facts, application.models.embedder)

    assert found["pair"] == 3 / 4
    assert found["pair_strict"] == 2 / 4  # "Ribe" is not "Ribe, Denmark"
    assert found["relation"] == 3 / 4
    assert found["by_relation"]["spouse"] == {"gold": 1, "pair": 0, "relation": 0}


def test_facts_cost_fewer_tokens_than_passages(application: Application, folder: Path, dataset: Dataset) -> None:
    found = measure(folder, dataset, application.models.language, application.models.embedder)

    assert found["passages"] == 2
    assert 0 < found["tokens"]["gold"] < found["tokens"]["subgraph"]
    assert found["tokens"]["gold_share"] == found["tokens"]["gold"] / found["tokens"]["passages"]
    assert found["alignment"]["precision"] == 1.0  # "Nils August Holm" joins "Nils Holm", alone it is new


def test_rare_predicates_are_left_out(application: Application, dataset: Dataset) -> None:
    assert measure_functional(read_corpus(dataset, application.models.language).facts) == {}


@pytest.mark.parametrize(
    ("one", "other", "strictly", "same"),
    [
        ("Blue Harbour (film)", "Blue Harbour", True, True),
        ("Nils Holm", "Nils August Holm", True, False),
        ("Nils Holm", "Nils August Holm", False, True),
        ("Nils Holm", "Nils Lind", False, False),
    ],
)
def test_names_of_one_thing(one: str, other: str, strictly: bool, same: bool) -> None:
    assert is_same_name(one, other, strictly=strictly) is same


@pytest.mark.parametrize(
    ("one", "other", "strictly", "same"),
    [
        ("4 May 1901", "May 4, 1901", True, True),
        ("Danish", "Denmark", True, True),
        ("Ribe", "Ribe, Denmark", True, False),
        ("Ribe", "Ribe, Denmark", False, True),
        ("Rib", "Ribe", False, False),
        ("1901", "1902", False, False),
    ],
)
def test_objects_that_are_one(one: str, other: str, strictly: bool, same: bool) -> None:
    assert is_same_object(one, other, strictly=strictly) is same


@pytest.mark.parametrize("evidences", [[], None, [["Blue Harbour", "director"]], [["a", "b", 3]]])
def test_evidences_that_cannot_be_used(tmp_path: Path, evidences: Any) -> None:
    bad = write_dataset(tmp_path / "bad", evidences)

    with pytest.raises(DatasetError, match="evidences"):
        read_gold_facts(bad, load(bad))


def test_the_command_measures_without_a_server(folder: Path, application: Application) -> None:
    cli = Cli(folder.parent, UNREACHABLE_URL, application.settings.data_dir)

    done = cli("evaluate", "films", "--protocol", "extraction", "--limit", "1")

    assert done.returncode == 0, done.stderr
    written = json.loads((folder.parent / "reports" / "extraction" / "films.json").read_text(encoding="utf-8"))
    assert written["recall"]["gold"] == 4
    assert "recall, pair" in done.stdout


@pytest.mark.parametrize("given", [{"turns": 3}, {"seeds": (1,)}, {"stop_rule": "none"}, {"top_k": 3}])
def test_options_foreign_to_extraction_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="means nothing to --protocol extraction"):
        Options(protocol="extraction", **given)

    assert (
        Options(protocol="extraction", limit=5).command("x") == "engram evaluate x --protocol extraction --limit 5"
    )


@pytest.mark.evaluation_data
def test_the_rules_find_what_annotators_wrote_down(application: Application, evaluation_data: Path) -> None:
    folder = evaluation_data / "2wiki"
    dataset = load(folder)
    gold = read_gold_facts(folder, dataset, 150)
    facts = read_corpus(
        dataset, application.models.language, {passage for fact in gold for passage in fact.passages}
    ).facts

    found = recall(gold, facts, application.models.embedder)

    assert found["pair"] >= 0.88
    assert found["relation"] >= 0.8
    assert compression(dataset, gold, facts)["gold_share"] <= 0.2
