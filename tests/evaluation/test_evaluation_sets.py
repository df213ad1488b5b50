"""The committed evaluation sets: they load, their ids are unique, and their labels and splits hold."""

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from engram_evaluation.dataset import load

SETS = Path(__file__).parents[2] / "evaluation_sets"
SIZES = {"project_docs": (497, 120), "support_forum": (320, 150)}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", SIZES)
def test_every_question_is_loaded_with_its_passages(name: str) -> None:
    dataset = load(SETS / name)

    assert (len(dataset.passages), len(dataset.questions)) == SIZES[name]
    assert dataset.unlabelled == ()


@pytest.mark.parametrize("name", SIZES)
def test_ids_and_questions_are_unique(name: str) -> None:
    corpus, queries = rows(SETS / name / "corpus.jsonl"), rows(SETS / name / "queries.jsonl")

    assert len({row["_id"] for row in corpus}) == len(corpus)
    assert len({row["text"] for row in corpus}) == len(corpus)
    assert len({row["_id"] for row in queries}) == len(queries)
    assert len({row["text"].lower() for row in queries}) == len(queries)


@pytest.mark.parametrize("name", SIZES)
def test_labels_name_passages_and_questions_that_exist(name: str) -> None:
    corpus = {row["_id"] for row in rows(SETS / name / "corpus.jsonl")}
    queries = {row["_id"] for row in rows(SETS / name / "queries.jsonl")}
    with (SETS / name / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        labels = list(csv.DictReader(file, delimiter="\t"))

    assert {label["corpus-id"] for label in labels} <= corpus
    assert {label["query-id"] for label in labels} == queries
    assert len({(label["query-id"], label["corpus-id"]) for label in labels}) == len(labels)
    assert {label["score"] for label in labels} == {"1"}


@pytest.mark.parametrize("name", SIZES)
def test_split_follows_from_the_text(name: str) -> None:
    for row in rows(SETS / name / "queries.jsonl"):
        even = hashlib.sha256(row["text"].lower().encode()).digest()[0] % 2 == 0
        assert row["metadata"]["split"] == ("dev" if even else "heldout"), row["_id"]
