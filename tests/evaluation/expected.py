"""Published figures as a regression file: commands and the figures that they must give again."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engram_evaluation.run_options import Options, fit_command
from engram_evaluation.run_report import RunReport

FILE = Path(__file__).with_name("expected.toml")
WEIGHTS = "weights.json"


@dataclass(frozen=True, slots=True)
class Figure:
    """One expected figure; ``arm`` None takes the only one there is."""

    group: str
    turn: int
    metric: str
    value: float
    tolerance: float
    arm: str | None = None

    def __str__(self) -> str:
        arm = f"{self.arm}, " if self.arm else ""
        return f"{self.metric} of {arm}{self.group}, turn {self.turn}"


@dataclass(frozen=True, slots=True)
class ExpectedFigures:
    """A run and its figures.

    Attributes:
        quick: whether every test run checks it.
        fitted: data sets that the ranking weights are fitted to first; none for the shipped weights.
    """

    dataset: str
    options: Options
    quick: bool
    figures: tuple[Figure, ...]
    fitted: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """Command that reproduces these figures."""
        if not self.fitted:
            return self.options.command(self.dataset)
        evaluate = replace(self.options, prior=WEIGHTS).command(self.dataset)
        return f"{fit_command(self.fitted, WEIGHTS)} && {evaluate}"

    def deviations(self, report: RunReport) -> list[str]:
        """A line for every figure that the report contradicts."""
        lines = []
        for figure in self.figures:
            got = report.value(figure.metric, figure.group, figure.turn, figure.arm)
            if abs(got - figure.value) > figure.tolerance:
                lines.append(f"{figure}: expected {figure.value} ± {figure.tolerance}, got {got:.4f}")
        return lines


def read_published(file: Path = FILE) -> Sequence[ExpectedFigures]:
    """Every run of the regression file."""
    runs = tomllib.loads(file.read_text(encoding="utf-8"))["run"]
    return [
        ExpectedFigures(
            run["dataset"],
            _options(run["options"]),
            run["quick"],
            tuple(Figure(**figure) for figure in run["figures"]),
            tuple(run.get("fitted", ())),
        )
        for run in runs
    ]


def _options(option_values: Mapping[str, Any]) -> Options:
    """A list of TOML is a tuple here."""
    plain: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in option_values.items()
    }
    return Options(**plain)
