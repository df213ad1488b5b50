"""The text of an HTML element in one line, as a browser would show it."""

import re
from collections.abc import Collection
from typing import Any

from engram.wings.importing.conversion.outline import flatten_text

HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    """address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption
    figure footer form head header hgroup hr html legend li main menu nav ol p pre search section summary table
    tbody td tfoot th thead tr ul""".split()
)
_PARTING = BLOCKS | HEADINGS.keys() | {"option"}
"""Elements that begin and end a line. All others are parts of words where no space stands beside them."""
_INVISIBLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MARK = re.compile(r"\s*(?:\d{1,3}|[*†‡§])\s*")
_STRUCK = ("del", "s", "strike")
_ORDINAL = re.compile(r"[^\W\d_]{2,}")
_SIMPLE = re.compile(r"[+\-−–]?\w+|\W")
_FORMULAS = {"msup": "{}^{}", "msub": "{}_{}", "msubsup": "{}_{}^{}", "mfrac": "({})/({})"}
_ANNOTATION = "application/x-tex"
# Numbers of characters that HTML forbids mean Windows-1252, also where a text was labelled as Latin-1.
WINDOWS = {code: bytes([code]).decode("cp1252", "replace") for code in range(0x80, 0xA0)}


def find_tags(node: Any, names: Collection[str]) -> list[Any]:
    """The elements of these names inside a node, in the order of the file."""
    return [tag for tag in node.descendants if getattr(tag, "name", None) in names]


def cell_text(node: Any) -> str:
    """The text of a heading or a cell in one line."""
    return flatten_text("".join(map(inline_text, node.children)))


def inline_text(node: Any) -> str:  # noqa: PLR0911 - a case each
    """The text of a node with the white space of its file; a block inside stands between spaces."""
    name = getattr(node, "name", None)
    if name is None:
        return str(node).translate(WINDOWS) if type(node).__name__ == "NavigableString" else ""
    if name == "br":
        return "\n"
    if name == "img":
        return f" {alt} " if (alt := str(node.get("alt") or "").strip()) else ""
    if name == "math":
        return f" {_formula(node)} "
    if name in ("rt", "rp"):  # how the word before is read
        reading = (
            flatten_text("".join(str(part) for part in node.children if part.name is None)) if name == "rt" else ""
        )
        return f"({reading})" if reading else ""
    text = "".join(map(inline_text, node.children))
    if name == "sup" or is_note_mark(node, text):
        return superscript(text, _text_before(node), reference=_is_reference(node))
    if name == "a" and getattr(node.previous_sibling, "name", None) == "a":
        return f" {text}"
    if name in _STRUCK and ends_apart(node, text):
        return f"{text} "
    return f"\n{text}\n" if name in _PARTING else text


def is_note_mark(node: Any, text: str) -> bool:
    """Whether an element is a link to a footnote that is no superscript, so that its figure ends no word."""
    if node.name != "a" or not _MARK.fullmatch(text) or node.find_parent("sup") is not None:
        return False
    named = any("noteref" in str(value) for value in node.attrs.values())
    return named or (str(node.get("href")).startswith("#") and _text_before(node)[-1:].isalnum())


def ends_apart(node: Any, text: str) -> bool:
    """Whether what stands right after a struck text replaces it: an insertion, or a figure after a figure."""
    after = node.next_sibling
    return getattr(after, "name", None) == "ins" or (text[-1:].isdigit() and str(after or "")[:1].isdigit())


def superscript(text: str, before: str, *, reference: bool = False) -> str:
    """Write a superscript so that it is no part of what it follows: ``10^6``, ``10^(n + 1)``, ``12 [1]``.

    An ordinal ("5th") and a sign ("Engram®") are as they look.

    Args:
        text: the superscript.
        before: the text that it follows.
        reference: whether it leads to a footnote.
    """
    text, before = flatten_text(text), before.rstrip()
    if not text or text[0] in "[(":
        return text
    if reference:
        return f" [{text}]"
    if not (before[-1:].isalnum() or before[-1:] in (")", "]")):
        return text
    if (before[-1].isdigit() and _ORDINAL.fullmatch(text)) or not any(map(str.isalnum, text)):
        return text
    return f"^{text}" if _SIMPLE.fullmatch(text) else f"^({text})"


def is_hidden(tag: Any) -> bool:
    """Whether browsers do not show an element."""
    hidden = tag.get("hidden")
    return (hidden is not None and str(hidden).casefold() != "until-found") or bool(
        _INVISIBLE.search(str(tag.get("style") or ""))
    )


def _text_before(node: Any) -> str:
    """The text before an element in its block."""
    before = node.previous_element
    while before is not None and (type(before).__name__ != "NavigableString" or before == ""):
        if getattr(before, "name", None) in _PARTING:
            return ""
        before = before.previous_element
    return str(before or "")


def _is_reference(node: Any) -> bool:
    return node.name == "a" or node.find("a") is not None or node.find_parent("a") is not None


def _formula(node: Any) -> str:
    """A formula of MathML as its author wrote it in TeX, else its parts in a row."""
    if getattr(node, "name", None) is None:
        return str(node).strip()
    tex = node.find("annotation", encoding=_ANNOTATION)
    if tex is not None:
        return str(tex.get_text()).strip()
    parts = [_formula(child) for child in node.children if getattr(child, "name", "") != "annotation-xml"]
    parts = [part for part in parts if part]
    if node.name in _FORMULAS and len(parts) > 1:
        return _FORMULAS[node.name].format(*parts)
    return "".join(parts)
