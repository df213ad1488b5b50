"""Table of what verdicts change: each group of questions before, after, and after with memory off."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engram_evaluation.finished_phases import Phase
from engram_evaluation.report_table import Grid

RESAMPLES = 2000
SAMPLES_PER_CALL = 100
"""Of them drawn by one call."""
LEAST_CHANGE = 1e-9
"""A question that changes by less stays as it is."""
TITLE = "What verdicts change"
METRICS = {"recall@5": "R@5", "ndcg@10": "nDCG@10", "graded": "nDCG@10 by grades"}
"""Metrics of groups of turns of verdicts; the last one where passages are graded."""
LEGEND = """\
change: after less before, with the 95% bootstrap interval over questions (a question and its paraphrases are drawn
together). memory off: the same questions after the verdicts, without what these taught; it differs from before only
if something else than memory has changed. gain, lose: questions whose figure rises or falls."""


@dataclass(frozen=True, slots=True)
class GroupChange:
    """One metric of one group of questions, before and after verdicts.

    Attributes:
        turn: rounds of verdicts before ``after``.
        before, after: means over the questions.
        low, high: 95% interval of the mean change.
        off: the mean after the verdicts with memory off; None where that was not measured.
        gained, lost: questions whose figure rose and fell.
    """

    arm: str
    group: str
    metric: str
    turn: int
    questions: int
    before: float
    after: float
    low: float
    high: float
    off: float | None
    gained: int
    lost: int


def compute_changes(
    phases: Sequence[Phase],
    drift: Sequence[Phase],
    turn: int,
    metrics: Callable[[str], Iterable[str]],
    original_ids: Mapping[str, str],
    find_base_arm: Callable[[str], str] = str,
) -> list[GroupChange]:
    """Compute the change of each group and arm from turn 0 to ``turn``, seeds averaged per question.

    Args:
        drift: the groups with memory off, after the verdicts.
        metrics: the metrics of a group.
        original_ids: id of a paraphrase -> id of the question that it rewords.
        find_base_arm: the arm that an arm is compared with, before.
    """
    changes = []
    for group, arm in dict.fromkeys((phase.group, phase.arm) for phase in phases):
        for metric in metrics(group):
            before = _average_per_question(phases, find_base_arm(arm), group, 0, metric)
            after = _average_per_question(phases, arm, group, turn, metric)
            ids = sorted(before.keys() & after.keys())
            if not ids:
                continue
            difference = np.array([after[key] - before[key] for key in ids])
            low, high = bootstrap_interval(difference, [original_ids.get(key, key) for key in ids])
            off = _average_per_question(drift, arm, group, turn, metric)
            changes.append(
                GroupChange(
                    arm,
                    group,
                    metric,
                    turn,
                    len(ids),
                    float(np.mean([before[key] for key in ids])),
                    float(np.mean([after[key] for key in ids])),
                    low,
                    high,
                    float(np.mean([off[key] for key in ids])) if off.keys() >= set(ids) else None,
                    int(np.sum(difference > LEAST_CHANGE)),
                    int(np.sum(difference < -LEAST_CHANGE)),
                )
            )
    return changes


def build_grid(changes: Sequence[GroupChange], names: Mapping[str, str]) -> Grid:
    """Build the table, a row for each metric of each group and arm.

    Args:
        names: metric -> how it is shown.
    """
    several = len({change.arm for change in changes}) > 1
    has_drift = any(change.off is not None for change in changes)
    headings = ["", "n", "before", "after", "change", "95% interval"]
    headings += ["memory off"] if has_drift else []
    rows = []
    for change in changes:
        name = f"{change.group}: {names[change.metric]}" + (f", {change.arm}" if several else "")
        cells = [name, str(change.questions), f"{change.before:.3f}", f"{change.after:.3f}"]
        cells += [f"{change.after - change.before:+.3f}", f"{change.low:+.3f} to {change.high:+.3f}"]
        if has_drift:
            cells.append("" if change.off is None else f"{change.off:.3f}")
        rows.append([*cells, str(change.gained), str(change.lost)])
    return Grid([*headings, "gain", "lose"], rows)


def write_change(change: GroupChange) -> str:
    """A change in one cell: before -> after, the interval of the change, and the questions that lose."""
    interval = f"{change.low:+.3f} to {change.high:+.3f}"
    return f"{change.before:.3f} -> {change.after:.3f} ({interval}), {change.lost} of {change.questions} lose"


def bootstrap_interval(differences: np.ndarray, clusters: Sequence[str] | None = None) -> tuple[float, float]:
    """The 95% percentile interval of the mean, questions drawn with replacement, always alike.

    Args:
        differences: one of each question, (n,).
        clusters: what each question belongs to; those of one cluster are drawn together. None: each stands alone.
    """
    numbers = np.arange(len(differences)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    sums, counts = np.bincount(numbers, weights=differences), np.bincount(numbers)
    draw = np.random.default_rng(0)
    means = []
    for _ in range(RESAMPLES // SAMPLES_PER_CALL):
        drawn = draw.choice(len(sums), (SAMPLES_PER_CALL, len(sums)))
        means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def _average_per_question(
    phases: Iterable[Phase], arm: str, group: str, turn: int, metric: str
) -> dict[str, float]:
    """A metric of each question that has it, seeds averaged."""
    values: dict[str, list[float]] = {}
    for phase in phases:
        if (phase.arm, phase.group, phase.turn) == (arm, group, turn):
            for row in phase.rows:
                if metric in row.values:
                    values.setdefault(row.id, []).append(row.values[metric])
    return {key: float(np.mean(seen)) for key, seen in values.items()}
