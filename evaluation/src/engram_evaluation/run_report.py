"""Figures of a run as a terminal table, as JSON with every question, and as Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from rich.table import Table

from engram import __version__
from engram.providers.embedder.model_folder import DEFAULT_MODEL
from engram_evaluation import adapt_table, change_table, robustness
from engram_evaluation.change_table import GroupChange
from engram_evaluation.dataset import Dataset
from engram_evaluation.finished_phases import Phase, code_fingerprint
from engram_evaluation.own_tables import OWN_TABLES
from engram_evaluation.report_changes import build_change_grid, list_changes
from engram_evaluation.report_table import (
    FITTED_NOTE,
    FURTHER_COLUMNS,
    HEADINGS,
    SummaryLine,
    cell,
    cells,
    columns,
    label,
    legend,
    markdown_table,
    terminal_table,
)
from engram_evaluation.retrieval_metrics import summary
from engram_evaluation.run_options import TURNS, Options


@dataclass(frozen=True, slots=True)
class IndexingCost:
    """Cost of bringing the collection up to date with the data set; near zero after an earlier run.

    Attributes:
        tokens: that the encoder read; None where it does not count them.
    """

    seconds: float
    tokens: int | None

    def remark(self) -> str:
        """In words."""
        parts = (
            "the encoder does not count its tokens" if self.tokens is None else f"{self.tokens:,} tokens embedded"
        )
        before = " (it was there from an earlier run)" if self.tokens == 0 else ""
        return f"Indexing the corpus took {self.seconds:.1f} s, {parts}{before}."


@dataclass(frozen=True, slots=True)
class RunReport:
    """A finished run.

    Attributes:
        indexing: what it began with.
        fitted: whether the ranking weights that it started from were fitted to its data set.
        drift: the groups with memory off after the last verdicts, where that was measured.
    """

    dataset: Dataset
    options: Options
    engine: Mapping[str, Any]
    phases: Sequence[Phase]
    seconds: float
    indexing: IndexingCost | None = None
    fitted: bool = False
    drift: Sequence[Phase] = ()

    def lines(self) -> list[SummaryLine]:
        """The table, seeds averaged, in the order in which groups and turns first came."""
        same: dict[tuple[str, str, int], list[Phase]] = {}
        for phase in sorted(self.phases, key=lambda phase: phase.turn):
            same.setdefault((phase.arm, phase.group, phase.turn), []).append(phase)
        order = {group: at for at, group in enumerate(dict.fromkeys(phase.group for phase in self.phases))}
        lines = []
        for (arm, group, turn), phases in same.items():
            summaries = [summary(phase.rows) for phase in phases]
            names = [name for name in summaries[0] if all(name in one for one in summaries)]
            values = {name: float(np.mean([one[name] for one in summaries])) for name in names}
            lines.append(
                SummaryLine(arm, group, turn, round(np.mean([len(phase.rows) for phase in phases])), values)
            )
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
        if self.options.protocol == "adapt":
            rows = adapt_table.rows(self.lines(), adapt_table.METRIC)
            return terminal_table(
                self.options.command(self.dataset.name), adapt_table.headings(adapt_table.METRIC), rows
            )
        if self.options.protocol in OWN_TABLES:
            grid, *_ = OWN_TABLES[self.options.protocol].build(self.lines(), self._changes())
            return terminal_table(self.options.command(self.dataset.name), grid.headings, grid.rows)
        # In a terminal every column counts: one that says of each line that no model was asked says nothing.
        metric_names = [
            name for name in columns(self.options.protocol) if name != "llm_calls" or self._asks_models()
        ]
        rows = [
            [self._label(line), str(line.questions), *(cell(line.values, name) for name in metric_names)]
            for line in self.lines()
        ]
        headings = ["", "n", *(HEADINGS[name] for name in metric_names)]
        table = terminal_table(self.options.command(self.dataset.name), headings, rows, no_wrap=True)
        table.padding = (0, 1, 0, 0)
        return table

    def build_further_tables(self) -> list[Table]:
        """For the terminal, after ``table``.

        Of ``noise`` what flipped verdicts cost each rule, of ``adapt`` what a query costs by either key and
        expanded, of ``session`` answers and costs, of ``OWN_TABLES`` their other tables. Where groups were asked
        with memory off as well, also what verdicts change.
        """
        changes = build_change_grid(self.options, self._changes()) if self.drift else None
        further = [] if changes is None else [terminal_table(change_table.TITLE, changes.headings, changes.rows)]
        return [*further, *self._build_protocol_tables()]

    def _build_protocol_tables(self) -> list[Table]:
        """Further tables of single protocols."""
        match self.options.protocol:
            case "noise":
                return [terminal_table(self._robustness_title(), robustness.headings(), self._robustness())]
            case "adapt":
                rows = adapt_table.price_rows(self.lines())
                return [terminal_table(adapt_table.PRICE_TITLE, ["", *adapt_table.PRICED_ARMS], rows)]
            case protocol if protocol in OWN_TABLES:
                _, *grids = OWN_TABLES[protocol].build(self.lines(), self._changes())
                return [terminal_table(None, grid.headings, grid.rows) for grid in grids]
            case _ if self._further_columns():
                headings, rows = self._build_second_table()
                return [terminal_table(None, headings, rows, no_wrap=True)]
            case _:
                return []

    def as_json(self) -> dict[str, Any]:
        """Everything, every question included."""
        return {
            "command": self.options.command(self.dataset.name),
            "options": self.options.as_json(),
            "dataset": {
                "name": self.dataset.name,
                "fingerprint": self.dataset.fingerprint,
                "passages": len(self.dataset.passages),
                "questions": self.dataset.size,
                "unlabelled": len(self.dataset.unlabelled),
                "without_gold_sentences": self._count_without_gold(),
            },
            "engine": {"version": __version__, "code": code_fingerprint(), **self.engine},
            "fitted_to_same_questions": self.fitted,
            "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 1),
            "indexing": None if self.indexing is None else asdict(self.indexing),
            "summary": [
                {"arm": line.arm, "group": line.group, "turn": line.turn, "n": line.questions} | line.values
                for line in self.lines()
            ],
            "changes": [asdict(change) for change in self._changes()],
            "phases": [_phase_as_json(phase) for phase in self.phases],
            "memory_off": [_phase_as_json(phase) for phase in self.drift],
        }

    def markdown(self) -> str:
        """For people."""
        dataset = self.dataset
        parts = [
            f"# {dataset.name}: {self.options.protocol}",
            f"```\n{self.options.command(dataset.name)}\n```",
            f"{len(dataset.passages):,} passages, {dataset.size:,} questions. " + " ".join(self._remarks()),
            *self._main(),
        ]
        if changes := build_change_grid(self.options, self._changes()):
            parts += [f"## {change_table.TITLE}", changes.markdown(), change_table.LEGEND]
        if rows := self._robustness():
            parts += [f"## {self._robustness_title()}", markdown_table(robustness.headings(), rows)]
        if kinds := self._format_types():
            parts += [f"## {HEADINGS[self._metric()]} by type of question", *kinds]
        engine = ", ".join(f"{name} {value}" for name, value in self.engine.items())
        parts.append(f"Engram {__version__}, code {code_fingerprint()}; {engine}.")
        return "\n\n".join(parts) + "\n"

    def _main(self) -> list[str]:
        """The tables of all that was measured, and what their words mean."""
        if self.options.protocol in OWN_TABLES:
            own = OWN_TABLES[self.options.protocol]
            return [own.legend, *(grid.markdown() for grid in own.build(self.lines(), self._changes()))]
        if self.options.protocol != "adapt":
            further = [markdown_table(*self._build_second_table())] if self._further_columns() else []
            main = markdown_table(self._list_headings(), self._rows())
            return [main, *further, legend(self.options.protocol)]
        lines = self.lines()
        tables = [
            markdown_table(adapt_table.headings(metric), adapt_table.rows(lines, metric))
            for metric in adapt_table.METRICS
        ]
        price = markdown_table(["", *adapt_table.PRICED_ARMS], adapt_table.price_rows(lines))
        return [adapt_table.LEGEND, *tables, f"## {adapt_table.PRICE_TITLE}", price]

    def _metric(self) -> str:
        """Return the metric that types of questions are compared by."""
        return "all@5" if self.options.protocol == "session" else "recall@5"

    def _list_headings(self) -> list[str]:
        """Headings of the main table."""
        return ["", "n", *(HEADINGS[name] for name in columns(self.options.protocol))]

    def _rows(self) -> list[list[str]]:
        """Under the headings ``_list_headings``."""
        protocol = self.options.protocol
        return [[self._label(line), str(line.questions), *cells(line.values, protocol)] for line in self.lines()]

    def _build_second_table(self) -> tuple[list[str], list[list[str]]]:
        """Headings and rows of the second table."""
        further = self._further_columns()
        rows = [[self._label(line), *(cell(line.values, name) for name in further)] for line in self.lines()]
        return ["", *(HEADINGS[name] for name in further)], rows

    def _further_columns(self) -> Sequence[str]:
        """Metrics of the second table; none where there is no such table."""
        return FURTHER_COLUMNS.get(self.options.protocol, ())

    def _asks_models(self) -> bool:
        return any(line.values.get("llm_calls") for line in self.lines())

    def _label(self, line: SummaryLine) -> str:
        several = len({phase.arm for phase in self.phases}) > 1
        return label(line, self.options.protocol, several=several)

    def _count_without_gold(self) -> int:
        return sum(not question.gold for question in self.dataset.questions)

    def _describe_oracle(self) -> str:
        """Describe the oracle's verdicts where sentences are not marked."""
        without, every = self._count_without_gold(), len(self.dataset.questions)
        if without == every:
            return "No question has gold sentences: verdicts name passages."
        return f"{without} of {every} questions have no gold sentences: verdicts on these name passages."

    def _remarks(self) -> list[str]:
        remarks = [f"**{FITTED_NOTE.capitalize()}.**"] if self.fitted else []
        if self.options.protocol == "human":
            bare = sum(question.id in self.dataset.ratings for question in self.dataset.unlabelled)
            remarks.append(f"{len(self.dataset.ratings):,} rated, {bare:,} of them besides these.")
        if self.dataset.unlabelled and self.options.protocol != "human":
            remarks.append(f"{len(self.dataset.unlabelled)} queries without a relevant passage were left out.")
        if self._count_without_gold() and self.options.protocol in TURNS:
            remarks.append(self._describe_oracle())
        if self.indexing is not None:
            remarks.append(self.indexing.remark())
        model = self.engine.get("embedding_model", DEFAULT_MODEL)
        if model != DEFAULT_MODEL and self.options.weighted:
            remarks.append(f"Encoder: {model}. The shipped ranking weights were fitted with {DEFAULT_MODEL}.")
        if len(self.options.seeds) > 1:
            remarks.append(f"Means over {len(self.options.seeds)} seeds.")
        return remarks

    def _robustness(self) -> list[list[str]]:
        if self.options.protocol != "noise":
            return []
        return [robustness.row(one) for one in robustness.rows(self.lines())]

    def _robustness_title(self) -> str:
        return f"Gain by turn {self.options.turns}, and the share kept under flipped verdicts"

    def _changes(self) -> list[GroupChange]:
        return list_changes(self.options, self.phases, self.drift, self.dataset.paraphrases)

    def _format_types(self) -> list[str]:
        kinds = sorted({row.type for phase in self.phases for row in phase.rows})
        if not 1 < len(kinds) <= 12 or self.options.protocol in {"clicks", "adapt", *OWN_TABLES}:
            return []
        groups = list(dict.fromkeys(phase.group for phase in self.phases))
        last = [phase for phase in self.phases if phase.turn in {0, self.options.turns}]
        rows = []
        for phase in sorted(last, key=lambda phase: groups.index(phase.group)):
            if phase.seed not in {None, self.options.seeds[0]}:
                continue
            line = SummaryLine(phase.arm, phase.group, phase.turn, len(phase.rows), {})
            cells = []
            for kind in kinds:
                values = [row.values[self._metric()] for row in phase.rows if row.type == kind]
                cells.append(f"{np.mean(values):.3f} ({len(values)})" if values else "")
            rows.append([self._label(line), *cells])
        return [markdown_table(["", *kinds], rows)]


def _phase_as_json(phase: Phase) -> dict[str, Any]:
    return {
        "arm": phase.arm,
        "group": phase.group,
        "turn": phase.turn,
        "seed": phase.seed,
        "questions": [row.as_json() for row in phase.rows],
    }
