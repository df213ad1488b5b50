"""Formulas of Office (OMML) in one line of plain text: ``E=(1/2)mv^2``."""

from typing import Any

MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_M = f"{{{MATH}}}"


def write_formula(node: Any) -> str:
    """Write a formula, or a part of one, from its XML element."""
    name = node.tag.removeprefix(_M) if isinstance(node.tag, str) else ""
    if name == "t":
        return node.text or ""
    write = _WRITERS.get(name)
    if write is not None:
        return write({child.tag.removeprefix(_M): write_formula(child) for child in node}, node)
    return "".join(
        write_formula(child) for child in node if isinstance(child.tag, str) and child.tag.startswith(_M)
    )


def _group(text: str) -> str:
    """The text as one factor: in parentheses if it has more than one sign."""
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def _property(node: Any, name: str, default: str) -> str:
    element = node.find(f"./*/{_M}{name}")
    return default if element is None else str(element.get(f"{_M}val", ""))


def _fraction(parts: dict[str, str], node: Any) -> str:
    return f"({_group(parts.get('num', ''))}/{_group(parts.get('den', ''))})"


def _script(parts: dict[str, str], node: Any) -> str:
    below, above = parts.get("sub"), parts.get("sup")
    raised = (f"_{_group(below)}" if below else "") + (f"^{_group(above)}" if above else "")
    return _group(parts.get("e", "")) + raised


def _scripts_before(parts: dict[str, str], node: Any) -> str:
    return _script(parts | {"e": ""}, node) + parts.get("e", "")


def _root(parts: dict[str, str], node: Any) -> str:
    return f"{parts.get('deg', '')}√({parts.get('e', '')})"


def _operator(parts: dict[str, str], node: Any) -> str:
    return f"{_script(parts | {'e': _property(node, 'chr', '∫')}, node)} {parts.get('e', '')}"


def _delimiters(parts: dict[str, str], node: Any) -> str:
    inside = _property(node, "sepChr", "|").join(write_formula(child) for child in node.findall(f"{_M}e"))
    return f"{_property(node, 'begChr', '(')}{inside}{_property(node, 'endChr', ')')}"


def _function(parts: dict[str, str], node: Any) -> str:
    return f"{parts.get('fName', '')}{_group(parts.get('e', ''))}"


def _limit(parts: dict[str, str], node: Any) -> str:
    return f"{parts.get('e', '')}_({parts['lim']})" if parts.get("lim") else parts.get("e", "")


def _rows(parts: dict[str, str], node: Any) -> str:
    rows = node.findall(f"{_M}mr")
    cells = [[write_formula(cell) for cell in row.findall(f"{_M}e")] for row in rows]
    return "[" + "; ".join(", ".join(row) for row in cells) + "]"


_WRITERS = {
    "f": _fraction,
    "sSup": _script,
    "sSub": _script,
    "sSubSup": _script,
    "sPre": _scripts_before,
    "rad": _root,
    "nary": _operator,
    "d": _delimiters,
    "func": _function,
    "limLow": _limit,
    "limUpp": _limit,
    "m": _rows,
}
