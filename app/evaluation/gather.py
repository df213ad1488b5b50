"""The JSON reports of several runs as one page: per protocol, what each data set gave, and the commands."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.errors import EngramError
from app.evaluation import opinions, robustness, worth
from app.evaluation.options import PROTOCOLS, fit_command
from app.evaluation.table import FITTED, TOKENS, Line, cell, label, legend, markdown_table
from app.evaluation.variations import FLIPPED

INTRODUCTION = """\
What `engram evaluate` measured, gathered by `engram report`. A data set is named by its folder. A turn is one round
of verdicts; of many turns the first and the last are shown, and where arms are compared only the last. R@k: share
of the relevant passages among the first k. ms: median wall-clock time of a query. n: questions. Figures are means
over seeds where a command names several."""


class ReportFileError(EngramError):
    """A file is no report of ``engram evaluate``, or two are of the same run."""

    type = "report-file"
    title = "Unusable report"


@dataclass(frozen=True, slots=True)
class Gathered:
    """One JSON report, as far as the page needs it.

    Attributes:
        command: what made it.
        fit: what made the ranking weights it started from; None for the shipped ones.
        asked: the command without data set and weights; runs that share it stand in one table.
        corpus: passages and questions of the data set.
        made_by: version, code and encoder.
        fitted: whether the ranking weights it started from were fitted to this data set.
    """

    dataset: str
    protocol: str
    command: str
    fit: str | None
    asked: str
    corpus: tuple[int, int]
    made_by: str
    lines: tuple[Line, ...]
    fitted: bool


def gather(folders: Sequence[Path]) -> str:
    """One Markdown page from the reports in ``folders``, the same whatever their order.

    Raises:
        ReportFileError: a folder holds no report or a file that is none, or a run was reported twice.
    """
    reports: dict[str, Gathered] = {}
    for folder in folders:
        files = sorted(folder.glob("*.json"))
        if not files:
            raise ReportFileError(f"{folder}: there is no JSON report of `engram evaluate`.")
        for path in files:
            report = _read(path)
            if report.command in reports:
                raise ReportFileError(f"{path}: another report is of the same run: {report.command}")
            reports[report.command] = report
    return page(reports.values())


def page(reports: Iterable[Gathered]) -> str:
    """The Markdown page: protocols in their usual order, data sets by name."""
    ordered = sorted(reports, key=lambda one: (PROTOCOLS.index(one.protocol), one.asked, one.dataset))
    corpora = sorted({(one.dataset, *one.corpus) for one in ordered})
    parts = [
        "# Measured",
        INTRODUCTION,
        markdown_table(
            ["data set", "passages", "questions"],
            [[name, f"{passages:,}", f"{questions:,}"] for name, passages, questions in corpora],
        ),
    ]
    for protocol in dict.fromkeys(one.protocol for one in ordered):
        parts.append(f"## {protocol}")
        of_protocol = [one for one in ordered if one.protocol == protocol]
        for asked in dict.fromkeys(one.asked for one in of_protocol):
            parts += _section([one for one in of_protocol if one.asked == asked])
    parts.append("Made by: " + "; ".join(sorted({one.made_by for one in ordered})) + ".")
    return "\n\n".join(parts) + "\n"


def _section(runs: Sequence[Gathered]) -> list[str]:
    """The runs of one command on several data sets."""
    commands = "\n".join(dict.fromkeys(command for one in runs for command in (one.fit, one.command) if command))
    fitted = [f"**{FITTED.capitalize()}: {', '.join(one.dataset for one in runs if one.fitted)}.**"]
    return [f"```\n{commands}\n```", *(fitted if any(one.fitted for one in runs) else ()), *_tables(runs)]


def _tables(runs: Sequence[Gathered]) -> list[str]:
    match runs[0].protocol:
        case "adapt":
            return [worth.LEGEND, *map(_worth, runs), _prices(runs)]
        case "human":
            return [opinions.LEGEND, *(_opinions(run, metric) for run in runs for metric in opinions.METRICS)]
        case "answers":
            return [legend("answers"), *(_figures(heading, runs, write) for heading, write in ANSWERS.items())]
        case protocol:
            main = [_figures("R@5 / R@10", runs, _recall), _figures("n, hops, ms", runs, _costs)]
            return [*main, _robustness(runs)] if protocol == "noise" else main


def _figures(heading: str, runs: Sequence[Gathered], write: Callable[[Line], str]) -> str:
    columns = [{_label(one, line): write(line) for line in _shown(one.lines)} for one in runs]
    return _side_by_side(heading, runs, columns)


def _worth(run: Gathered) -> str:
    heading, *groups = worth.headings(worth.METRIC)
    return markdown_table([f"{run.dataset}: {heading}", *groups], worth.rows(run.lines, worth.METRIC))


def _opinions(run: Gathered, metric: str) -> str:
    heading, *columns = opinions.headings(run.lines, metric)
    return markdown_table([f"{run.dataset}: {heading}", *columns], opinions.rows(run.lines, metric))


def _prices(runs: Sequence[Gathered]) -> str:
    return _side_by_side(worth.PRICE_TITLE, runs, [worth.prices(run.lines) for run in runs])


def _robustness(runs: Sequence[Gathered]) -> str:
    columns = [
        {f"{one.group}, {one.rule}": " / ".join(one.cells("recall@5")) for one in robustness.of(run.lines)}
        for run in runs
    ]
    shares = " / ".join(f"{share:.0%}" for share in FLIPPED)
    return _side_by_side(f"R@5 gained at {shares} flipped / kept", runs, columns)


def _side_by_side(heading: str, runs: Sequence[Gathered], columns: Sequence[Mapping[str, str]]) -> str:
    """One table: a column (label -> text) for each run's data set, empty where it has nothing under a label."""
    labels = dict.fromkeys(name for column in columns for name in column)
    rows = [[name, *(column.get(name, "") for column in columns)] for name in labels]
    return markdown_table([heading, *(run.dataset for run in runs)], rows)


def _recall(line: Line) -> str:
    return f"{cell(line.values, 'recall@5')} / {cell(line.values, 'recall@10')}"


def _costs(line: Line) -> str:
    hops = f"{cell(line.values, 'hops')} hops, " if "hops" in line.values else ""
    return f"{line.questions}: {hops}{cell(line.values, 'ms')} ms"


def _joined(line: Line, *names: str) -> str:
    return " / ".join(cell(line.values, name) for name in names if name in line.values)


ANSWERS: Mapping[str, Callable[[Line], str]] = {
    "EM / F1 / contains": lambda line: _joined(line, "em", "f1", "contains"),
    "right, strictly / leniently": lambda line: _joined(line, "strict", "lenient"),
    "n, tokens in / out, of judging": lambda line: (
        f"{line.questions}: {_joined(line, *TOKENS[:2])}, {_joined(line, *TOKENS[2:])}"
    ),
}
"""Tables of ``answers``: heading -> what a line says there."""


def _shown(lines: Sequence[Line]) -> list[Line]:
    """Of many turns the state before, the first and the last; where several arms are compared, not the first."""
    turns = {0, max(line.turn for line in lines)}
    if len({line.arm for line in lines}) == 1:
        turns.add(1)
    return [line for line in lines if line.turn in turns]


def _label(one: Gathered, line: Line) -> str:
    return label(line, one.protocol, several=len({other.arm for other in one.lines}) > 1)


def _read(path: Path) -> Gathered:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        dataset, engine = document["dataset"], document["engine"]
        name, command = str(dataset["name"]), str(document["command"])
        protocol, weights = document["options"]["protocol"], document["options"].get("prior")
        asked = command.replace(f"engram evaluate {name} ", "engram evaluate DATASET ", 1)
        if protocol not in PROTOCOLS:
            raise ReportFileError(f"{path}: there is no protocol {protocol!r}.")
        return Gathered(
            name,
            protocol,
            command,
            fit_command(engine["ranking_prior"][1:], weights) if weights else None,
            asked.replace(f" --prior {weights}", " --prior WEIGHTS") if weights else asked,
            (int(dataset["passages"]), int(dataset["questions"])),
            f"Engram {engine['version']}, code {engine['code']}, {_last(engine['embedding_model'])}",
            tuple(_line(row) for row in document["summary"]),
            bool(document.get("fitted_to_same_questions", name in engine.get("ranking_prior", [])[1:])),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReportFileError(f"{path}: this is no report of `engram evaluate`.") from error


def _line(row: Mapping[str, Any]) -> Line:
    keys = {"arm", "group", "turn", "n"}
    values = {name: float(value) for name, value in row.items() if name not in keys}
    return Line(str(row["arm"]), str(row["group"]), int(row["turn"]), int(row["n"]), values)


def _last(model: str) -> str:
    """An encoder may be given as a folder of this machine; its name is enough."""
    return model.replace("\\", "/").rstrip("/").rpartition("/")[2]
