"""Reader of Org mode's outlines."""

import re

from engram.wings.importing.conversion.documents import Document
from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.outline import Outline, flatten_text, library
from engram.wings.importing.conversion.prose import add_paragraphs
from engram.wings.importing.conversion.table_model import Cell, lay_out, write_table

_BEGIN = re.compile(r"\s*#\+begin_(?P<kind>\w+)", re.IGNORECASE)
_END = re.compile(r"\s*#\+end_\w+", re.IGNORECASE)
_KEYWORD = re.compile(r"\s*(?:#\+(?P<name>\w+):\s*(?P<value>.*)|#(?:\s.*)?|:\w[\w-]*:.*)$")
_PLANNED = re.compile(r"\s*(?:DEADLINE|SCHEDULED|CLOSED):")
_FIXED = re.compile(r"\s*: ")
_TEXT_BLOCKS = ("quote", "verse", "center", "abstract")
_EMPHASIS = re.compile(r"(?<![\w*/_=~+])([*/_=~+])(?=\S)(.+?)(?<=\S)\1(?![\w*/_=~+])")
_LIST_ITEM = re.compile(r"\s*(?:[-+]|\d+[.)])\s+")
_RULE = re.compile(r"[|\s+-]+")


def org(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """An outline of Org mode: headings, paragraphs, list items, tables and code, without drawers and settings."""
    text, _, notes = decode_text(source, data)
    root = library("orgparse").loads(text)
    outline = Outline(root.get_file_property("TITLE"))
    for node in root:
        if not node.is_root():
            outline.open_heading(node.level, _plain(" ".join(filter(None, (node.todo, node.heading)))))
            outline.add(" ".join(filter(_PLANNED.match, str(node).split("\n")[1:2])).strip(), whole=True)
        _add_body(source, node.get_body(), outline)
    return outline.document(source, "org", notes)


def _add_body(source: str, body: str, outline: Outline) -> None:
    lines, paragraph, rows = body.split("\n"), list[str](), list[list[Cell]]()
    kind = ""

    def end_run() -> None:
        add_paragraphs(_plain("\n".join(paragraph)), outline)
        paragraph.clear()
        outline.table(write_table(lay_out(source, rows), 1 if len(rows) > 1 else None))
        rows.clear()

    for line in lines:
        begin = _BEGIN.match(line)
        if begin or _END.match(line):
            end_run()
            kind = begin["kind"].lower() if begin else ""
        elif kind and kind not in _TEXT_BLOCKS:
            outline.add(line.rstrip(), whole=True)
        elif fixed := _FIXED.match(line):
            end_run()
            outline.add(line[fixed.end() :].rstrip(), whole=True)
        elif line.lstrip().startswith("|"):
            if paragraph:
                end_run()
            if not _RULE.fullmatch(line.strip()):
                cells = line.strip().strip("|").split("|")
                rows.append([Cell(flatten_text(_plain(cell))) for cell in cells])
        elif keyword := _KEYWORD.match(line):
            if (keyword["name"] or "").lower() == "caption":
                paragraph.append(keyword["value"])
        else:
            item = _LIST_ITEM.match(line)
            if rows or item:
                end_run()
            paragraph.append(line[item.end() :] if item else line)
    end_run()


def _plain(text: str) -> str:
    """The text without marks of emphasis."""
    return _EMPHASIS.sub(r"\2", text)
