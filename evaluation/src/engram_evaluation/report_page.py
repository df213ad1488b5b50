"""The JSON reports of several runs as one Markdown page: per protocol the commands, and what each data set gave."""

from collections.abc import Sequence
from pathlib import Path

from engram_evaluation.report_files import read
from engram_evaluation.report_sections import INTRODUCTION, Section, corpora, makers, sections


def gather(folders: Sequence[Path]) -> str:
    """One Markdown page from the reports in ``folders``, the same whatever their order.

    Raises:
        ReportFileError: as ``report_files.read``.
    """
    reports = read(folders)
    parts, protocol = ["# Measured", INTRODUCTION, corpora(reports).markdown()], None
    for section in sections(reports):
        if section.protocol != protocol:
            protocol = section.protocol
            parts.append(f"## {protocol}")
        parts += _section(section)
    return "\n\n".join([*parts, makers(reports)]) + "\n"


def _section(section: Section) -> list[str]:
    commands = "\n".join(section.commands)
    remark = f"**{section.remark}**" if section.remark else None
    parts = [f"```\n{commands}\n```", remark, section.legend, *(grid.markdown() for grid in section.grids)]
    return [part for part in parts if part]
