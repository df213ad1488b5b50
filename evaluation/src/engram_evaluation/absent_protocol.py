"""The protocol ``absent``: whether sufficiency tells that the corpus does not hold the answer.

A random half of the questions is asked without its evidence, the other half with it. An answer of the other half is
right if all its evidence is among the first five passages.
"""

import random
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from engram.core.ranking import sufficiency
from engram.services.question.search import RetrievalResult
from engram_evaluation.absent_evidence import MaskableCorpus, build_maskable_corpus
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.harness import Harness
from engram_evaluation.report_table import Grid
from engram_evaluation.run_options import Options
from engram_evaluation.run_progress import Begin
from engram_evaluation.sufficiency_measure import auc
from engram_evaluation.table_report import TableReport
from engram_evaluation.weight_fit import holds_all_relevant

WITHHELD_SHARE = 0.9
"""Share of the absent answers that are withheld where the given right ones are counted."""
NOTE = (
    "right: answers with all evidence among the first five; absent: questions asked without their evidence. AUC: "
    "probability that a right answer has more than an absent one, ties counting half. given: share of the right "
    f"answers that have more than {WITHHELD_SHARE:.0%} of the absent ones. mean: of the answers of a kind."
)


@dataclass(frozen=True, slots=True)
class AbsentFigures:
    """Figures of a signal that tells right answers from absent ones, for one draw of the half.

    Attributes:
        signal: "sufficiency", or "best cosine" of the question and a passage.
        right, absent: answers of each kind.
        auc: None if one of the kinds is missing.
        given: share of the right answers above ``WITHHELD_SHARE`` of the absent ones; None as ``auc``.
        mean_right, mean_absent: of the signal; None without answers of the kind.
    """

    seed: int
    signal: str
    right: int
    absent: int
    auc: float | None
    given: float | None
    mean_right: float | None
    mean_absent: float | None


@dataclass(frozen=True, slots=True)
class _Signals:
    """Signals of one answer."""

    sufficiency: float
    cosine: float


def measure_absent(harness: Harness, dataset: Dataset, options: Options, begin: Begin) -> TableReport:
    """Measure every seed's draw, and the means over them. What the collection had learned does not count."""
    questions = dataset.questions[: options.limit]
    corpus = build_maskable_corpus(harness)
    harness.services.retrieval.levels.measure(harness.scope.collection)
    present: dict[str, tuple[_Signals, bool]] = {}
    absent: dict[str, _Signals] = {}
    figures: list[AbsentFigures] = []
    for seed in options.seeds:
        half = set(random.Random(seed).sample([one.id for one in questions], len(questions) // 2))  # noqa: S311
        step = begin(f"absent, seed {seed}", len(questions))
        for question in questions:
            if question.id in half and question.id not in absent:
                absent[question.id] = _read_signals(corpus.ask(question, absent=True))
            elif question.id not in half and question.id not in present:
                present[question.id] = _ask_present(corpus, question)
            step()
        right = [
            signals
            for signals, is_right in (present[one.id] for one in questions if one.id not in half)
            if is_right
        ]
        figures += _compare(seed, right, [absent[one.id] for one in questions if one.id in half])
    return TableReport(
        "absent",
        dataset.name,
        options.command(dataset.name),
        {"": _build_grid(figures)},
        NOTE,
        [asdict(one) for one in figures],
    )


def _ask_present(corpus: MaskableCorpus, question: Question) -> tuple[_Signals, bool]:
    """Ask a question with its evidence; its signals, and whether the answer is right."""
    retrieved = corpus.ask(question)
    first = [name for _, name, _ in retrieved.shown_passages[: sufficiency.EVIDENCE_PASSAGES]]
    return _read_signals(retrieved), holds_all_relevant(question.relevant, first)


def _read_signals(retrieved: RetrievalResult) -> _Signals:
    estimate = retrieved.ranking.sufficiency
    return _Signals(
        0.0 if estimate is None else estimate.probability, max(retrieved.ranking.similarities.values(), default=0.0)
    )


def _compare(seed: int, right: Sequence[_Signals], absent: Sequence[_Signals]) -> list[AbsentFigures]:
    values = {
        "sufficiency": ([one.sufficiency for one in right], [one.sufficiency for one in absent]),
        "best cosine": ([one.cosine for one in right], [one.cosine for one in absent]),
    }
    return [
        AbsentFigures(
            seed,
            signal,
            len(high),
            len(low),
            auc(high, low),
            compute_given_share(high, low),
            *(statistics.fmean(kind) if kind else None for kind in (high, low)),
        )
        for signal, (high, low) in values.items()
    ]


def compute_given_share(right: Sequence[float], absent: Sequence[float]) -> float | None:
    """Share of the right values above the ``WITHHELD_SHARE`` quantile of the absent ones; None without both."""
    if not len(right) or not len(absent):
        return None
    return float((np.asarray(right) > np.quantile(absent, WITHHELD_SHARE)).mean())


def _build_grid(figures: Sequence[AbsentFigures]) -> Grid:
    rows = []
    for signal in dict.fromkeys(one.signal for one in figures):
        of_signal = [one for one in figures if one.signal == signal]
        rows.append(
            [
                signal,
                _format_mean([one.right for one in of_signal], ".0f"),
                _format_mean([one.absent for one in of_signal], ".0f"),
                _format_mean([one.auc for one in of_signal], ".3f"),
                _format_mean([one.given for one in of_signal], ".3f"),
                _format_mean([one.mean_right for one in of_signal], ".3f"),
                _format_mean([one.mean_absent for one in of_signal], ".3f"),
            ]
        )
    return Grid(["signal", "right", "absent", "AUC", "given", "mean, right", "mean, absent"], rows)


def _format_mean(values: Sequence[float | None], style: str) -> str:
    known = [value for value in values if value is not None]
    return format(statistics.fmean(known), style) if known else "-"
