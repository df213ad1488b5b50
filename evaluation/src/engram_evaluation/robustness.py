"""Cost of flipped verdicts for each rule of learning: the gain with and without them, and the share left."""

from collections.abc import Sequence
from dataclasses import dataclass

from engram_evaluation.learning_variations import FLIP_RATES, RULES, format_noisy_arm
from engram_evaluation.report_table import HEADINGS, SummaryLine

METRICS = ("recall@5", "ndcg@10")
LEAST_GAIN = 0.0005
"""A gain that is shown as 0.000 has no share that could be kept."""


@dataclass(frozen=True, slots=True)
class Robustness:
    """One rule on one group of questions.

    Attributes:
        gains: metric -> gain over turn 0 by the last turn, one per share of flipped verdicts (``FLIP_RATES``).
    """

    rule: str
    group: str
    gains: dict[str, tuple[float, ...]]

    def share_kept(self, metric: str) -> float | None:
        """The share of the honest verdicts' gain that is left under flipped ones; None if there was no gain."""
        honest, flipped = self.gains[metric][0], self.gains[metric][-1]
        return flipped / honest if honest >= LEAST_GAIN else None

    def cells(self, metric: str) -> list[str]:
        """Return the gains and the share as text."""
        kept_share = self.share_kept(metric)
        return [*(f"{gain:+.3f}" for gain in self.gains[metric]), "" if kept_share is None else f"{kept_share:.0%}"]


def headings() -> list[str]:
    """Return the headings of the columns of ``row``."""
    shares = [f"gain at {share:.0%}" for share in FLIP_RATES]
    return ["", *(f"{HEADINGS[metric]} {what}" for metric in METRICS for what in (*shares, "kept"))]


def row(robustness: Robustness) -> list[str]:
    """A line of the table."""
    return [
        f"{robustness.group}, {robustness.rule}",
        *(text for metric in METRICS for text in robustness.cells(metric)),
    ]


def rows(lines: Sequence[SummaryLine]) -> list[Robustness]:
    """Every rule on every group of a ``noise`` run, groups in the order of its lines."""
    values = {(line.arm, line.group, line.turn): line.values for line in lines}
    last = max((line.turn for line in lines), default=0)
    rows = []
    for group in dict.fromkeys(line.group for line in lines):
        for rule in RULES:
            arms = [format_noisy_arm(rule.name, share) for share in FLIP_RATES]
            if all((arm, group, turn) in values for arm in arms for turn in (0, last)):
                gains = {
                    metric: tuple(values[arm, group, last][metric] - values[arm, group, 0][metric] for arm in arms)
                    for metric in METRICS
                }
                rows.append(Robustness(rule.name, group, gains))
    return rows
