"""The JSON reports of ``engram evaluate``, as far as a page of several needs them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.context.errors import EngramError
from engram_evaluation.change_table import GroupChange
from engram_evaluation.report_table import SummaryLine
from engram_evaluation.run_options import PROTOCOLS, fit_command
from engram_evaluation.table_report import TableReport


class ReportFileError(EngramError):
    """A file is no report of ``engram evaluate``, or two are of the same run."""

    type = "report-file"
    title = "Unusable report"


@dataclass(frozen=True, slots=True)
class ReportExtract:
    """One JSON report, as far as the page needs it.

    Attributes:
        command: what made it.
        fit: what made the ranking weights it started from; None for the shipped ones.
        shared_command: the command without data set and weights; runs that share it stand in one table.
        corpus: passages and questions of the data set.
        made_by: version, code and encoder.
        fitted: whether the ranking weights it started from were fitted to this data set.
        changes: what verdicts changed of each group.
    """

    dataset: str
    protocol: str
    command: str
    fit: str | None
    shared_command: str
    corpus: tuple[int, int]
    made_by: str
    lines: tuple[SummaryLine, ...]
    fitted: bool
    changes: tuple[GroupChange, ...] = ()


@dataclass(frozen=True, slots=True)
class GatheredReports:
    """The reports in some folders: protocols in their usual order, then commands, then data sets by name.

    Attributes:
        retrieval: of protocols that ask a collection.
        tables: of protocols that ingest nothing.
    """

    retrieval: Sequence[ReportExtract]
    tables: Sequence[TableReport]


def read(folders: Sequence[Path]) -> GatheredReports:
    """Read the reports in ``folders``.

    Raises:
        ReportFileError: a folder holds no report or a file that is none, or a run was reported twice.
    """
    reports: dict[str, ReportExtract | TableReport] = {}
    for folder in folders:
        files = sorted(folder.glob("*.json"))
        if not files:
            raise ReportFileError(f"{folder}: there is no JSON report of `engram evaluate`.")
        for path in files:
            report = _read(path)
            if report.command in reports:
                raise ReportFileError(f"{path}: another report is of the same run: {report.command}")
            reports[report.command] = report
    retrieval = [one for one in reports.values() if isinstance(one, ReportExtract)]
    tables = [one for one in reports.values() if isinstance(one, TableReport)]
    return GatheredReports(
        sorted(retrieval, key=lambda one: (PROTOCOLS.index(one.protocol), one.shared_command, one.dataset)),
        sorted(tables, key=lambda one: (PROTOCOLS.index(one.protocol), one.dataset, one.command)),
    )


def _read(path: Path) -> ReportExtract | TableReport:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        has_tables = "tables" in document
        protocol = document["protocol"] if has_tables else document["options"]["protocol"]
        if protocol not in PROTOCOLS:
            raise ReportFileError(f"{path}: there is no protocol {protocol!r}.")
        if has_tables:
            return TableReport.from_json(document)
        dataset, engine, weights = document["dataset"], document["engine"], document["options"].get("prior")
        name, command = str(dataset["name"]), str(document["command"])
        command_line = command.replace(f"engram evaluate {name} ", "engram evaluate DATASET ", 1)
        return ReportExtract(
            name,
            protocol,
            command,
            fit_command(engine["ranking_prior"][1:], weights) if weights else None,
            command_line.replace(f" --prior {weights}", " --prior WEIGHTS") if weights else command_line,
            (int(dataset["passages"]), int(dataset["questions"])),
            f"Engram {engine['version']}, code {engine['code']}, {_encoder(engine)}",
            tuple(_line(row) for row in document["summary"]),
            bool(document.get("fitted_to_same_questions", name in engine.get("ranking_prior", [])[1:])),
            tuple(GroupChange(**change) for change in document.get("changes", ())),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReportFileError(f"{path}: this is no report of `engram evaluate`.") from error


def _encoder(engine: Mapping[str, Any]) -> str:
    precision = engine.get("embedding_precision", "float32")
    note = {"float32": "", "auto": " in the precision that suits the processor"}.get(precision, " in eight bits")
    return f"{_find_last_part(engine['embedding_model'])}{note}"


def _line(row: Mapping[str, Any]) -> SummaryLine:
    keys = {"arm", "group", "turn", "n"}
    values = {name: float(value) for name, value in row.items() if name not in keys}
    return SummaryLine(str(row["arm"]), str(row["group"]), int(row["turn"]), int(row["n"]), values)


def _find_last_part(model: str) -> str:
    """An encoder may be given as a folder of this machine; its name is enough."""
    return model.replace("\\", "/").rstrip("/").rpartition("/")[2]
