"""Tables of figures that commands print."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType


def show(table: "RenderableType", width: int | None = None) -> None:
    """Print a table that Engram made; ``width`` in columns, by default the terminal's."""
    from rich.console import Console

    Console(width=width).print(table)


def figures(document: dict[str, Any], before: str = "") -> list[list[str]]:
    """Every figure of nested ones by the names that lead to it."""
    rows: list[list[str]] = []
    for name, value in document.items():
        if isinstance(value, dict):
            rows += figures(value, f"{before}{name}, ")
        else:
            rows.append([f"{before}{name}", f"{value:.3f}" if isinstance(value, float) else _text(value)])
    return rows


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
