"""Figures of a run as a terminal table, as JSON with every question, and as Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from app import __version__
from app.evaluation.dataset import Dataset
from app.evaluation.metrics import COSTS, RANKING, summary
from app.evaluation.options import Options
from app.evaluation.phases import Phase, code_fingerprint

HEADINGS = {
    "recall@2": "R@2",
    "recall@5": "R@5",
    "recall@10": "R@10",
    "ndcg@10": "nDCG",
    "mrr": "MRR",
    "support": "support",
    "hops": "hops",
    "shown": "shown",
    "llm_calls": "LLM",
    "ms": "ms",
}
DIGITS = {"hops": 2, "shown": 1, "llm_calls": 2, "ms": 1}
LEGEND = """\
R@k: share of the relevant passages among the first k. nDCG, MRR: of the first 10.
support: share of the gold sentences among those that retrieval selected. shown: sentences selected, which is what a
judge reads. LLM: requests to a language model per question. ms: median wall-clock time of a query."""
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: means over the questions and seeds of equal phases."""

    arm: str
    group: str
    turn: int
    questions: int
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Report:
    """A finished run."""

    dataset: Dataset
    options: Options
    engine: Mapping[str, Any]
    phases: Sequence[Phase]
    seconds: float

    def lines(self) -> list[Line]:
        """The table, seeds averaged, in the order in which groups and turns first came."""
        same: dict[tuple[str, str, int], list[Phase]] = {}
        for phase in sorted(self.phases, key=lambda phase: phase.turn):
            same.setdefault((phase.arm, phase.group, phase.turn), []).append(phase)
        order = {group: at for at, group in enumerate(dict.fromkeys(phase.group for phase in self.phases))}
        lines = []
        for (arm, group, turn), phases in same.items():
            each = [summary(phase.rows) for phase in phases]
            values = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
            lines.append(Line(arm, group, turn, len(phases[0].rows), values))
        return sorted(lines, key=lambda line: order[line.group])

    def value(self, metric: str, group: str, turn: int, arm: str | None = None) -> float:
        """One figure of the table.

        Raises:
            KeyError: the run has no such figure.
        """
        for line in self.lines():
            if (line.group, line.turn) == (group, turn) and arm in {None, line.arm}:
                return line.values[metric]
        raise KeyError(f"{metric} of {group}, turn {turn}")

    def table(self) -> Table:
        """For the terminal."""
        title = self.options.command(self.dataset.name)
        table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("")
        table.add_column("n", justify="right", no_wrap=True)
        for name in (*RANKING, *COSTS):
            table.add_column(HEADINGS[name], justify="right", no_wrap=True)
        for line in self.lines():
            table.add_row(self._label(line), str(line.questions), *_cells(line.values))
        return table

    def as_json(self) -> dict[str, Any]:
        """Everything, every question included."""
        return {
            "command": self.options.command(self.dataset.name),
            "options": self.options.as_json(),
            "dataset": {
                "name": self.dataset.name,
                "fingerprint": self.dataset.fingerprint,
                "passages": len(self.dataset.passages),
                "questions": len(self.dataset.questions),
                "unlabelled": self.dataset.unlabelled,
                "without_gold_sentences": self._without_gold(),
            },
            "engine": {"version": __version__, "code": code_fingerprint(), **self.engine},
            "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 1),
            "summary": [
                {"arm": line.arm, "group": line.group, "turn": line.turn, "n": line.questions} | line.values
                for line in self.lines()
            ],
            "phases": [
                {
                    "arm": phase.arm,
                    "group": phase.group,
                    "turn": phase.turn,
                    "seed": phase.seed,
                    "questions": [row.as_json() for row in phase.rows],
                }
                for phase in self.phases
            ],
        }

    def markdown(self, plots: Iterable[str] = ()) -> str:
        """For people."""
        dataset = self.dataset
        parts = [
            f"# {dataset.name}: {self.options.protocol}",
            f"```\n{self.options.command(dataset.name)}\n```",
            f"{len(dataset.passages):,} passages, {len(dataset.questions):,} questions. "
            + " ".join(self._remarks()),
            _markdown_table(
                ["", "n", *(HEADINGS[name] for name in (*RANKING, *COSTS))],
                [[self._label(line), str(line.questions), *_cells(line.values)] for line in self.lines()],
            ),
            LEGEND,
        ]
        if changes := self._changes():
            headings = ["", "R@5 before", "R@5 after", "change", "95% interval"]
            parts += ["## Change", _markdown_table(headings, changes)]
        if kinds := self._by_type():
            parts += ["## R@5 by type of question", *kinds]
        parts += [f"![{name}]({name})" for name in plots]
        engine = ", ".join(f"{name} {value}" for name, value in self.engine.items())
        parts.append(f"Engram {__version__}, code {code_fingerprint()}; {engine}.")
        return "\n\n".join(parts) + "\n"

    def _label(self, line: Line) -> str:
        if self.options.protocol == "cold":
            return line.arm
        if self.options.protocol == "stream":
            return f"{line.group}, {line.arm}"
        when = "before" if line.turn == 0 else f"turn {line.turn}"
        several = len({phase.arm for phase in self.phases}) > 1
        return f"{line.group}, {when}" + (f", {line.arm}" if several else "")

    def _without_gold(self) -> int:
        return sum(not question.gold for question in self.dataset.questions)

    def _remarks(self) -> list[str]:
        remarks = []
        if self.dataset.unlabelled:
            remarks.append(f"{self.dataset.unlabelled} queries without a relevant passage were left out.")
        if self._without_gold() and self.options.protocol != "cold" and self.options.judge == "oracle":
            remarks.append(f"{self._without_gold()} questions have no gold sentences and get no verdict.")
        if len(self.options.seeds) > 1:
            remarks.append(f"Means over {len(self.options.seeds)} seeds.")
        return remarks

    def _changes(self) -> list[list[str]]:
        """Recall@5 before the first and after the last turn, with a bootstrap interval over questions."""
        rows: list[list[str]] = []
        if self.options.protocol in {"cold", "stream"}:
            return rows
        several = len({phase.arm for phase in self.phases}) > 1
        for group, arm in dict.fromkeys((phase.group, phase.arm) for phase in self.phases):
            phases = [phase for phase in self.phases if phase.arm == arm]
            before, after = (_per_question(phases, group, turn) for turn in (0, self.options.turns))
            shared = sorted(before.keys() & after.keys())
            if not shared:
                continue
            change = np.array([after[key] - before[key] for key in shared])
            low, high = bootstrap_interval(change)
            means = [float(np.mean([values[key] for key in shared])) for values in (before, after)]
            cells = [f"{means[0]:.3f}", f"{means[1]:.3f}", f"{change.mean():+.3f}", f"{low:+.3f} to {high:+.3f}"]
            rows.append([f"{group}, {arm}" if several else group, *cells])
        return rows

    def _by_type(self) -> list[str]:
        kinds = sorted({row.type for phase in self.phases for row in phase.rows})
        if not 1 < len(kinds) <= 12 or self.options.protocol == "stream":
            return []
        groups = list(dict.fromkeys(phase.group for phase in self.phases))
        last = [phase for phase in self.phases if phase.turn in {0, self.options.turns}]
        rows = []
        for phase in sorted(last, key=lambda phase: groups.index(phase.group)):
            if phase.seed not in {None, self.options.seeds[0]}:
                continue
            line = Line(phase.arm, phase.group, phase.turn, len(phase.rows), {})
            cells = []
            for kind in kinds:
                values = [row.values["recall@5"] for row in phase.rows if row.type == kind]
                cells.append(f"{np.mean(values):.3f} ({len(values)})" if values else "")
            rows.append([self._label(line), *cells])
        return [_markdown_table(["", *kinds], rows)]


def bootstrap_interval(differences: np.ndarray) -> tuple[float, float]:
    """The 95% percentile interval of the mean, questions drawn with replacement, always alike."""
    draw = np.random.default_rng(0)
    means = [draw.choice(differences, len(differences)).mean() for _ in range(RESAMPLES)]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def _per_question(phases: Iterable[Phase], group: str, turn: int) -> dict[str, float]:
    """Recall@5 of each question, seeds averaged."""
    values: dict[str, list[float]] = {}
    for phase in phases:
        if (phase.group, phase.turn) == (group, turn):
            for row in phase.rows:
                values.setdefault(row.id, []).append(row.values["recall@5"])
    return {key: float(np.mean(seen)) for key, seen in values.items()}


def _cells(values: Mapping[str, float]) -> list[str]:
    return [f"{values[name]:.{DIGITS.get(name, 3)}f}" if name in values else "" for name in (*RANKING, *COSTS)]


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---", *("---:" for _ in headings[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
