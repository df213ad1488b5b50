"""Reader of Jupyter notebooks, which become Markdown first."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from engram.wings.importing.conversion import markdown
from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.import_limits import ConversionLimits

FENCE = "`" * 12
"""Longer than the fences that cells themselves have."""


def notebook(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """A notebook: texts as Markdown, code and its printed output as code. Pictures are left out.

    Raises:
        UnreadableError: it is no such file.
    """
    content = json.loads(data.decode("utf-8-sig"))
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise UnreadableError(f"{source} has no cells: it is no notebook of format 4.")
    text = "\n\n".join(part for cell in cells if isinstance(cell, dict) for part in _list_parts(cell))
    pictures = sum(_count_pictures(cell) for cell in cells if isinstance(cell, dict))
    read = markdown.markdown(source, text.encode(), limits)
    notes = [f"{source}: left out pictures of outputs: {pictures}"] if pictures else []
    return replace(read, format="notebook", notes=(*read.notes, *notes))


def _list_parts(cell: Mapping[str, Any]) -> Iterator[str]:
    """List a cell's text, or its code and outputs, as Markdown."""
    own = _join(cell.get("source"))
    if cell.get("cell_type") != "code":
        yield own
        return
    outputs = [_read_output(one) for one in cell.get("outputs") or () if isinstance(one, dict)]
    for code in (own, *outputs):
        if code.strip():
            yield f"{FENCE}\n{code.rstrip()}\n{FENCE}"


def _read_output(output: Mapping[str, Any]) -> str:
    if output.get("output_type") == "error":
        return f"{output.get('ename', '')}: {output.get('evalue', '')}"
    held = output.get("data")
    return _join(held.get("text/plain") if isinstance(held, dict) else output.get("text"))


def _count_pictures(cell: Mapping[str, Any]) -> int:
    kinds = [kind for one in cell.get("outputs") or () if isinstance(one, dict) for kind in one.get("data") or ()]
    return sum(str(kind).startswith("image/") for kind in kinds)


def _join(text: object) -> str:
    """Return a text that may be stored as a list of lines."""
    return "".join(map(str, text)) if isinstance(text, list) else text if isinstance(text, str) else ""
