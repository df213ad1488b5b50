"""The sample corpus is well formed and its questions can be answered from the sentences they name."""

import csv
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SAMPLE = Path(__file__).resolve().parents[3] / "app/engram/wings/local/sample"

Row = dict[str, Any]


def read_rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (SAMPLE / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def passages() -> list[Row]:
    return read_rows("corpus.jsonl")


@pytest.fixture(scope="module")
def questions() -> list[Row]:
    return read_rows("questions.jsonl")


@pytest.fixture(scope="module")
def by_id(passages: list[Row]) -> dict[str, Row]:
    return {passage["_id"]: passage for passage in passages}


def gold_ids(question: Row) -> set[str]:
    return {passage_id for passage_id, _, _ in question["metadata"]["supporting_sentences"]}


def names(text: str, title: str) -> bool:
    """Whether `text` contains the title, less a bracketed explanation, as whole words."""
    return re.search(rf"(?<!\w){re.escape(title.split(' (', maxsplit=1)[0])}(?!\w)", text) is not None


def test_counts(passages: list[Row], questions: list[Row]) -> None:
    types = Counter(question["metadata"]["type"] for question in questions)
    assert len(passages) >= 130
    assert len(questions) >= 48
    assert set(types) == {"bridge", "comparison", "time"}
    assert min(types.values()) >= 8


def test_sample_has_no_duplicates(passages: list[Row], questions: list[Row]) -> None:
    wordings = [question["text"] for question in questions]
    wordings += [question["metadata"]["paraphrase"] for question in questions]
    for values in (
        [row["_id"] for row in passages],
        [row["_id"] for row in questions],
        [row["title"] for row in passages],
        [row["text"] for row in passages],
        [sentence for row in passages for sentence in row["metadata"]["sentences"]],
        wordings,
    ):
        assert [value for value, count in Counter(values).items() if count > 1] == []


def test_passages_are_short_and_made_of_their_sentences(passages: list[Row]) -> None:
    for passage in passages:
        assert set(passage) == {"_id", "title", "text", "metadata"}
        assert set(passage["metadata"]) == {"topic", "sentences"}
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", passage["_id"])
        sentences = passage["metadata"]["sentences"]
        assert 2 <= len(sentences) <= 5, passage["_id"]
        assert 30 <= len(passage["text"].split()) <= 90, passage["_id"]
        assert " ".join(sentences) == passage["text"], passage["_id"]
        assert all(sentence == sentence.strip() != "" for sentence in sentences), passage["_id"]


def test_passages_name_each_other(passages: list[Row]) -> None:
    """Entities shared by passages are what a multi-hop walk follows."""
    linked = [
        passage["_id"]
        for passage in passages
        if any(
            names(passage["text"], other["title"]) or names(other["text"], passage["title"])
            for other in passages
            if other is not passage
        )
    ]
    assert len(linked) >= 0.8 * len(passages)


def test_gold_sentences_are_exact_and_span_passages(questions: list[Row], by_id: dict[str, Row]) -> None:
    for question in questions:
        assert set(question) == {"_id", "text", "metadata"}
        assert set(question["metadata"]) - {"steps"} == {"answers", "type", "supporting_sentences", "paraphrase"}
        for step in question["metadata"].get("steps", []):  # the README's question, for the oracle
            assert step["answer"] in by_id[step["passage_id"]]["text"]
        for passage_id, index, sentence in question["metadata"]["supporting_sentences"]:
            assert index >= 0, question["_id"]
            assert by_id[passage_id]["metadata"]["sentences"][index] == sentence, question["_id"]
        assert len(gold_ids(question)) >= 2, question["_id"]


def test_an_answer_stands_in_the_gold_sentences(questions: list[Row]) -> None:
    for question in questions:
        gold = " ".join(sentence for _, _, sentence in question["metadata"]["supporting_sentences"]).lower()
        assert any(answer.lower() in gold for answer in question["metadata"]["answers"]), question["_id"]


def test_wordings_give_no_answer_away(questions: list[Row], by_id: dict[str, Row]) -> None:
    """A comparison may name its two candidates; a bridge question leaves at least one passage unnamed."""
    for question in questions:
        metadata = question["metadata"]
        for wording in (question["text"], metadata["paraphrase"]):
            if metadata["type"] != "comparison":
                assert not any(answer.lower() in wording.lower() for answer in metadata["answers"]), wording
            if metadata["type"] == "bridge":
                assert any(not names(wording, by_id[gold]["title"]) for gold in gold_ids(question)), wording


def test_qrels_are_derived_from_the_gold_sentences(questions: list[Row]) -> None:
    with (SAMPLE / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header == ["query-id", "corpus-id", "score"]
    expected = [[question["_id"], gold, "1"] for question in questions for gold in gold_ids(question)]
    assert sorted(rows) == sorted(expected)
