"""The JSON reports of several runs as one Markdown page: per protocol the commands, and what each data set gave."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from engram_evaluation import people_table
from engram_evaluation.report_files import read
from engram_evaluation.report_sections import INTRODUCTION, Section, corpora, makers, sections
from engram_evaluation.table_report import TableReport


def gather(folders: Sequence[Path]) -> str:
    """One Markdown page from the reports in ``folders``, the same whatever their order.

    Raises:
        ReportFileError: as ``report_files.read``.
    """
    reports = read(folders)
    parts = ["# Measured", INTRODUCTION]
    if reports.retrieval:
        parts.append(corpora(reports.retrieval).markdown())
    if people := people_table.build_grid(reports.retrieval):
        parts += [f"## {people_table.TITLE}", people_table.LEGEND, people.markdown()]
    for protocol, same in groupby(sections(reports.retrieval), lambda section: section.protocol):
        parts.append(f"## {protocol}")
        parts += [part for section in same for part in _section(section)]
    for protocol, runs in groupby(reports.tables, lambda run: run.protocol):
        parts.append(f"## {protocol}")
        parts += [part for run in runs for part in _list_tables(run)]
    if reports.retrieval:
        parts.append(makers(reports.retrieval))
    return "\n\n".join(parts) + "\n"


def _list_tables(run: TableReport) -> list[str]:
    return [f"```\n{run.command}\n```", run.note, *(grid.markdown() for grid in run.titled_grids())]


def _section(section: Section) -> list[str]:
    commands = "\n".join(section.commands)
    remark = f"**{section.remark}**" if section.remark else None
    parts = [f"```\n{commands}\n```", remark, section.legend, *(grid.markdown() for grid in section.grids)]
    return [part for part in parts if part]
