"""Reports of protocols that ingest nothing, which have tables of their own beside those of retrieval."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rich.table import Table

from engram_evaluation.report_table import Grid, terminal_table


@dataclass(frozen=True, slots=True)
class TableReport:
    """One run of such a protocol.

    Attributes:
        command: what made it.
        tables: title -> table; the title of an only table may be empty.
        note: explains the headings.
        rows: what the tables were made of, as JSON.
    """

    protocol: str
    dataset: str
    command: str
    tables: Mapping[str, Grid]
    note: str
    rows: Sequence[Mapping[str, Any]]

    def terminal_tables(self) -> list[Table]:
        """Return the tables for a terminal."""
        return [
            terminal_table(title or self.command, grid.headings, grid.rows) for title, grid in self.tables.items()
        ]

    def markdown(self) -> str:
        """Return the report as a Markdown page."""
        parts = [f"`{self.command}`"]
        for title, grid in self.tables.items():
            parts += [f"## {title}", grid.markdown()] if title else [grid.markdown()]
        return "\n\n".join([*parts, self.note]) + "\n"

    def titled_grids(self) -> list[Grid]:
        """Return the tables with the data set, and their title where there is one, in the first heading."""
        return [
            Grid([": ".join(filter(None, (self.dataset, title, grid.headings[0]))), *grid.headings[1:]], grid.rows)
            for title, grid in self.tables.items()
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the report as ``engram report`` reads it."""
        return {
            "protocol": self.protocol,
            "dataset": self.dataset,
            "command": self.command,
            "tables": [
                {"title": title, "headings": list(grid.headings), "rows": [list(row) for row in grid.rows]}
                for title, grid in self.tables.items()
            ],
            "note": self.note,
            "rows": list(self.rows),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read what ``as_json`` gave.

        Raises:
            KeyError, TypeError: it is something else.
        """
        tables = {table["title"]: Grid(table["headings"], table["rows"]) for table in document["tables"]}
        names = ("protocol", "dataset", "command", "note", "rows")
        return cls(tables=tables, **{name: document[name] for name in names})

    def write(self, folder: Path, slug: str) -> Path:
        """Write the report as Markdown and as JSON, and return the Markdown file."""
        folder.mkdir(parents=True, exist_ok=True)
        document = json.dumps(self.as_json(), indent=1, ensure_ascii=False)
        (folder / f"{slug}.json").write_text(document + "\n", encoding="utf-8")
        page = folder / f"{slug}.md"
        page.write_text(self.markdown(), encoding="utf-8")
        return page
