"""Reader of XML: a text with markup becomes a document, data become values as those of JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from engram.wings.importing.conversion import pages, structured
from engram.wings.importing.conversion.documents import Conversion, Document
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.inline_text import superscript
from engram.wings.importing.conversion.office import parse_xml
from engram.wings.importing.conversion.outline import Outline, flatten_text
from engram.wings.importing.conversion.table_model import Cell, lay_out, write_table

_TITLES = ("title", "head", "heading", "subject", "caption")
_PARAGRAPHS = {"p", "para", "simpara"}
_ROWS, _CELLS = ("tr", "row"), ("td", "th", "entry", "cell")
_TABLE_PARTS = ("thead", "tbody", "tfoot")
_RAISED = ("sup", "superscript")
_NOTES = ("footnote", "fn", "note")
_SPAN_DIGITS = 4
_LINES = ("programlisting", "screen", "literallayout", "code-block", "preformat", "lb")
_XHTML = "{http://www.w3.org/1999/xhtml}html"


def xml(source: str, data: bytes, limits: ConversionLimits) -> Conversion | Document:
    """XML without entities of its own.

    Where text stands beside elements or in a ``p`` or ``para`` (DocBook, JATS, TEI), it is a text: an element with
    text is a paragraph, and a first ``title`` or ``head`` the heading of what it stands in. Else it is data: names
    of elements and attributes are keys, and elements of one name a list; see ``structured.parse_json``.

    Raises:
        UnreadableError: it has no text.
    """
    root = parse_xml(data)
    if root.tag == _XHTML:
        return pages.html(source, data, limits)
    names = {_name(node).lower() for node in root.iter() if isinstance(node.tag, str)}
    if names & _PARAGRAPHS or any(_is_mixed(node) for node in root.iter()):
        outline = Outline(_find_title(root))
        _add(source, root, outline, 0)
        return outline.document(source, "xml")
    value = _find_value(root)
    listed = [inner for inner in value.values() if isinstance(inner, list)] if isinstance(value, dict) else []
    plain = isinstance(value, dict) and all(not isinstance(inner, dict) for inner in value.values())
    if len(listed) == 1 and plain and all(isinstance(item, dict) for item in listed[0]) and len(value) == 1:
        value = listed[0]
    return structured.convert_value(source, value, "xml", limits, ())


def _find_title(root: Any) -> str | None:
    """The title that stands before the first paragraph."""
    for node in root.iter():
        name = _name(node).lower()
        if name in _PARAGRAPHS:
            return None
        above = node.getparent()
        is_section = above is not None and above is not root and _has_paragraphs(above)
        if name in ("title", "article-title") and not is_section:
            return _write_texts(node) or None
    return None


def _has_paragraphs(node: Any) -> bool:
    return any(_name(inner).lower() in _PARAGRAPHS for inner in node.iter())


def _children(node: Any) -> list[Any]:
    """The elements inside, without comments and instructions."""
    return [child for child in node if isinstance(child.tag, str)]


def _name(node: Any) -> str:
    return str(node.tag).rpartition("}")[2]


def _is_mixed(node: Any) -> bool:
    """Whether text stands beside elements."""
    return bool(_children(node)) and any(part.strip() for part in _own_texts(node))


def _own_texts(node: Any) -> Iterator[str]:
    yield node.text or ""
    for child in node:
        yield child.tail or ""


def _add(source: str, node: Any, outline: Outline, level: int) -> None:
    """Add an element of a text."""
    children, name = _children(node), _name(node).lower()
    parts = [node, *(child for child in children if _name(child).lower() in _TABLE_PARTS)]
    rows = [row for part in parts for row in _children(part) if _name(row).lower() in _ROWS]
    if not rows and name in _LINES:
        outline.lines("".join(node.itertext()))
    elif not rows and (not children or any(part.strip() for part in _own_texts(node))):
        outline.add(flatten_text(_write_texts(node)))
    else:
        if rows:
            inner = [child for part in parts for child in _children(part)]
            children = [child for child in inner if _name(child).lower() not in (*_ROWS, *_TABLE_PARTS)]
        heading = next((child for child in children[:2] if _name(child).lower() in _TITLES), None)
        if heading is not None:
            outline.open_heading(level + 1, _write_texts(heading))
        if rows:
            places = {str(one.get("colname")): at for at, one in enumerate(node.iterchildren("{*}colspec"))}
            outline.table(write_table(lay_out(source, [_read_row(row, places) for row in rows])))
        for child in children:
            if child is not heading:
                _add(source, child, outline, level + (heading is not None))
        if heading is not None:
            outline.close(level + 1)


def _read_row(row: Any, places: Mapping[str, int]) -> list[Cell]:
    """Read a row of HTML's or of CALS' model, whose cells name the first and the last of the columns they cover."""
    named = row.getparent() is not None and _name(row.getparent()).lower() == "thead"
    return [
        Cell(
            flatten_text(_write_texts(cell)),
            columns=places.get(cell.get("nameend"), 0) - places.get(cell.get("namest"), 0) + _span(cell, "colspan"),
            rows=_span(cell, "rowspan") + _span(cell, "morerows", 0),
            heading=named or _name(cell).lower() == "th",
        )
        for cell in _children(row)
        if _name(cell).lower() in _CELLS
    ]


def _span(cell: Any, name: str, default: int = 1) -> int:
    value = str(cell.get(name))
    return int(value) if value.isascii() and value.isdigit() and len(value) < _SPAN_DIGITS else default


def _write_texts(node: Any, before: str = "") -> str:
    """Write the texts inside; elements that hold elements, or that follow each other without text, are apart.

    Args:
        before: the text that the node follows.
    """
    text = node.text or ""
    for child in node:
        if isinstance(child.tag, str):
            inner = _write_texts(child, before + text)
            if _name(child).lower() in _NOTES:
                inner = f" [{inner}]"
            elif _is_raised(child):
                reference = child.get("rid") is not None or any(
                    _name(one).lower() == "xref" for one in child.iter()
                )
                inner = superscript(inner, before + text, reference=reference)
            text += inner
        elif type(child).__name__ == "_Entity":
            text += str(child.text)
        apart = not (child.tail or "").strip() and child.getnext() is not None
        text += " " if apart else child.tail or ""
    return text


def _is_raised(node: Any) -> bool:
    """Whether an element is a superscript, or leads to a footnote."""
    raised = _name(node).lower() in _RAISED or "super" in str(node.get("rend"))
    number = node.get("ref-type") is not None and "".join(node.itertext()).strip().isdecimal()
    return raised or (number and _name(node.getparent()).lower() not in _RAISED)


def _find_value(node: Any) -> Any:
    """The value of an element of data: text, or its attributes and elements by their names."""
    children = _children(node)
    text = _write_texts(node).strip() if not children else ""
    members: dict[str, Any] = {str(name).rpartition("}")[2]: value for name, value in node.attrib.items()}
    for child in children:
        value, name = _find_value(child), _name(child)
        if name not in members:
            members[name] = value
        elif isinstance(members[name], list):
            members[name].append(value)
        else:
            members[name] = [members[name], value]
    if not members:
        return text
    return members | ({"text": text} if text else {})
