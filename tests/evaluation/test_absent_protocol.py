"""Questions without their evidence, and how well sufficiency tells them from right answers."""

from pathlib import Path

import pytest

from engram.composition.container import Application
from engram_evaluation.absent_evidence import build_maskable_corpus
from engram_evaluation.absent_protocol import compute_given_share, measure_absent
from engram_evaluation.commands.dataset_names import load_dataset
from engram_evaluation.harness import Harness, open_harness
from engram_evaluation.run_options import Options

SAMPLE = load_dataset(Path("sample"))


@pytest.fixture
def harness(application: Application) -> Harness:
    return open_harness(application, SAMPLE, lambda _done, _total: None)


def test_question_finds_all_passages_but_its_evidence(harness: Harness) -> None:
    corpus = build_maskable_corpus(harness)
    assert set(corpus.ids) == {passage["id"] for passage in SAMPLE.passages}
    for question in SAMPLE.questions[:5]:
        everything = len(corpus.ids)
        found = {name for _, name, _ in corpus.ask(question, top_k=everything).shown_passages}
        left = {name for _, name, _ in corpus.ask(question, absent=True, top_k=everything).shown_passages}
        assert question.relevant <= found
        assert left
        assert not left & question.relevant


def test_report_has_a_row_for_each_signal_and_seed(harness: Harness) -> None:
    options = Options(protocol="absent", seeds=(0, 1), limit=20)
    report = measure_absent(harness, SAMPLE, options, lambda _label, _total: lambda: None)

    assert report.command == "engram evaluate sample --protocol absent --seed 0 --seed 1 --limit 20"
    assert [(row["seed"], row["signal"]) for row in report.rows] == [
        (0, "sufficiency"),
        (0, "best cosine"),
        (1, "sufficiency"),
        (1, "best cosine"),
    ]
    for row in report.rows:
        assert row["absent"] == 10
        assert 0 < row["right"] <= 10
        assert 0.5 < row["auc"] <= 1.0
        assert 0.0 <= row["given"] <= 1.0
        assert row["mean_absent"] < row["mean_right"]
    ((signal, _, _, area, *_), _) = report.tables[""].rows
    assert signal == "sufficiency"
    assert float(area) == pytest.approx((report.rows[0]["auc"] + report.rows[2]["auc"]) / 2, abs=0.0005)


def test_given_share_counts_what_is_above_nine_tenths_of_the_absent() -> None:
    absent = [float(value) for value in range(11)]  # nine tenths of them are up to 9
    assert compute_given_share([9.5, 8.5, 10.0, 9.0], absent) == 0.5
    assert compute_given_share([], absent) is None
    assert compute_given_share([1.0], []) is None
