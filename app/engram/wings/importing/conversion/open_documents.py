"""Readers of OpenDocument texts and presentations; ``open_sheets`` reads spreadsheets."""

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.import_limits import ConversionLimits, check_zip
from engram.wings.importing.conversion.inline_text import superscript
from engram.wings.importing.conversion.notes import list_some
from engram.wings.importing.conversion.office import parse_xml
from engram.wings.importing.conversion.outline import Outline, flatten_text
from engram.wings.importing.conversion.pages import TICKED, UNTICKED
from engram.wings.importing.conversion.shape_order import sort_by_place
from engram.wings.importing.conversion.symbol_fonts import find_font, read_signs
from engram.wings.importing.conversion.table_model import Cell, lay_out, write_table

_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
OFFICE, TEXT, TABLE, DRAW, STYLE, PRESENTATION, _FORM = (
    f"{{{_NAMESPACE.format(name)}}}"
    for name in ("office", "text", "table", "drawing", "style", "presentation", "form")
)
_FORMAT, _SVG = (f"{{{_NAMESPACE.format(f'{name}-compatible')}}}" for name in ("xsl-fo", "svg"))
_FIELD = "{urn:openoffice:names:experimental:ooo-ms-interop:xmlns:field:1.0}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_MANIFEST = "META-INF/manifest.xml"
_PICTURE = re.compile(r"(?:Pictures|media)/.+")
_LENGTH = re.compile(r"(-?[\d.]+)(cm|mm|in|pt)")
_POINTS = {"cm": 28.35, "mm": 2.835, "in": 72.0, "pt": 1.0}
_NO_TEXT = {
    OFFICE + "annotation": "comments",
    TEXT + "tracked-changes": "",
    TEXT + "table-of-content": "",
    TEXT + "note": "",
    OFFICE + "forms": "",
}
"""Elements whose text is not a part of what stands around them, and how a note calls them."""
_FRAMES = (DRAW + "frame", DRAW + "g", DRAW + "custom-shape", DRAW + "text-box", DRAW + "rect", DRAW + "ellipse")
_TITLES = ("Title", "title")


@dataclass(frozen=True)
class _Place:
    """A shape of a slide, with its place in points; None: it has none of its own."""

    element: Any
    left: float | None
    top: float | None
    width: float | None
    height: float | None


@dataclass
class OpenFile:
    """The content of a file, and what its styles say.

    Attributes:
        body: the element below ``office:body``.
        parents: names of styles -> those that they are made of.
        properties: names of styles -> their own properties by qualified names.
        formulas: addresses of embedded formulas -> their text.
        notes: what no reader reads.
        title: of the file's properties.
    """

    body: Any
    parents: dict[str, str] = field(default_factory=dict)
    properties: dict[str, dict[str, str]] = field(default_factory=dict)
    formulas: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    title: str | None = None

    def find_property(self, style: str | None, name: str) -> str | None:
        """Return a property of a style or of the styles that it is made of."""
        for _ in range(20):
            if not style:
                return None
            if name in self.properties.get(style, {}):
                return self.properties[style][name]
            style = self.parents.get(style)
        return None

    def is_a(self, style: str | None, names: tuple[str, ...]) -> bool:
        """Whether a style is one of these, or is made of one."""
        for _ in range(20):
            if not style or style in names:
                return bool(style)
            style = self.parents.get(style)
        return False


def open_file(source: str, data: bytes, limits: ConversionLimits) -> OpenFile:
    """Read the parts of an OpenDocument file.

    Raises:
        UnreadableError: it is no such file, is locked or too large.
    """
    check_zip(source, data, limits)
    with zipfile.ZipFile(BytesIO(data)) as archive:
        names = archive.namelist()
        if _MANIFEST in names and b"encryption-data" in archive.read(_MANIFEST):
            raise UnreadableError(f"{source} needs a password.")
        content = parse_xml(archive.read("content.xml"))
        (body,) = content.find(f"{OFFICE}body")
        file = OpenFile(body)
        roots = [parse_xml(archive.read("styles.xml")), content] if "styles.xml" in names else [content]
        for root in roots:
            for style in root.iter(f"{STYLE}style"):
                name = str(style.get(f"{STYLE}name"))
                file.parents[name] = str(style.get(f"{STYLE}parent-style-name") or "")
                file.properties[name] = {key: value for part in style for key, value in part.attrib.items()}
        for place in names:
            if place.endswith("/content.xml"):
                formula = parse_xml(archive.read(place)).find(".//{http://www.w3.org/1998/Math/MathML}annotation")
                file.formulas[place.removesuffix("/content.xml")] = "" if formula is None else formula.text or ""
        if "meta.xml" in names:
            file.title = parse_xml(archive.read("meta.xml")).findtext(".//{http://purl.org/dc/elements/1.1/}title")
    pictures = sum(_PICTURE.fullmatch(name) is not None for name in names)
    unread = [f"pictures ({pictures})"] if pictures else []
    unread += ["comments"] if next(body.iter(f"{OFFICE}annotation"), None) is not None else []
    embedded = [name for name, text in file.formulas.items() if not text]
    unread += [f"embedded charts or files ({len(embedded)})"] if embedded else []
    file.notes = [f"{source}: not read: {', '.join(unread)}"] if unread else []
    return file


def odt(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """An OpenDocument text: headings, lists, tables, footnotes, formulas. It stores no page numbers.

    Raises:
        UnreadableError: it is no such file, is locked or too large, or has no text.
    """
    file = open_file(source, data, limits)
    outline = Outline(file.title)
    reader = _OpenConverter(source, file, outline)
    reader.walk(file.body)
    for number, text in enumerate(reader.footnotes, 1):
        outline.close(1)
        outline.add(f"[{number}] {text}")
    hidden = [f"{source}: left out hidden text"] if reader.has_hidden else []
    return outline.document(source, "odt", (*hidden, *file.notes))


def odp(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """An OpenDocument presentation: a slide is a section below its title, its number the page, see ``slides.pptx``.

    Raises:
        UnreadableError: it is no such file, is locked or too large, or has no text.
    """
    file = open_file(source, data, limits)
    slides = file.body.findall(f"{DRAW}page")
    if len(slides) > limits.pages:
        raise UnreadableError(f"{source} has more than {limits.pages:,} slides.")
    outline = Outline(file.title)
    reader = _OpenConverter(source, file, outline)
    hidden = []
    for number, slide in enumerate(slides, 1):
        if file.find_property(slide.get(f"{DRAW}style-name"), f"{PRESENTATION}visibility") == "hidden":
            hidden.append(str(number))
            continue
        outline.page = number
        titles = [shape for shape in slide if shape.get(f"{PRESENTATION}class") == "title"]
        title = " ".join(text for shape in titles[:1] for text in reader.list_paragraphs(shape))
        outline.open_heading(2, title or f"Slide {number}")
        shapes = [shape for shape in slide if shape.tag in _FRAMES and shape not in titles[:1]]
        for place in sort_by_place([_find_place(shape) for shape in shapes]):
            reader.walk(place.element)
        for notes in slide.findall(f"{PRESENTATION}notes"):
            for frame in notes.findall(f"{DRAW}frame"):
                if frame.get(f"{PRESENTATION}class") == "notes":
                    reader.walk(frame)
    left_out = [f"{source}: left out hidden slides: {list_some(hidden)}"] if hidden else []
    return outline.document(source, "odp", (*left_out, *file.notes))


class _OpenConverter:
    """Reads paragraphs, lists, tables and frames into an outline.

    Attributes:
        footnotes: texts of the notes so far.
        has_hidden: whether hidden text was left out.
    """

    def __init__(self, source: str, file: OpenFile, outline: Outline) -> None:
        self.footnotes: list[str] = []
        self.has_hidden = False
        self._source = source
        self._file = file
        self._outline = outline
        self._controls = {one.get(f"{_FORM}id"): one for one in file.body.iter(f"{_FORM}*")}

    def walk(self, node: Any) -> None:
        """Add what an element holds."""
        if node.tag in _NO_TEXT:
            return
        if node.get(f"{TEXT}display") == "none":
            self.has_hidden = True
        elif node.tag == f"{TEXT}h":
            self._outline.open_heading(int(node.get(f"{TEXT}outline-level") or 1), self.read_text(node))
            self._walk_frames(node)
        elif node.tag == f"{TEXT}p":
            self._add_paragraph(node)
        elif node.tag == f"{DRAW}control":
            self._outline.add(self._read_control(node), whole=True)
        elif node.tag == f"{TABLE}table":
            self._outline.table(write_table(lay_out(self._source, self._read_rows(node))))
        else:
            children = list(node)
            if node.tag == f"{DRAW}g":
                children = [place.element for place in sort_by_place([_find_place(child) for child in children])]
            for child in children:
                self.walk(child)

    def read_text(self, node: Any) -> str:
        """Return the text of a paragraph without what frames in it hold."""
        return flatten_text("".join(self._pieces(node, [])))

    def list_paragraphs(self, node: Any) -> Iterator[str]:
        """Yield the texts of the paragraphs inside."""
        for inner in node.iter(f"{TEXT}p", f"{TEXT}h"):
            yield self.read_text(inner)

    def _add_paragraph(self, node: Any) -> None:
        text, style = self.read_text(node), node.get(f"{TEXT}style-name")
        if text and self._file.is_a(style, _TITLES):
            self._outline.open_heading(1, text)
        else:
            self._outline.add(text)
        self._walk_frames(node)

    def _walk_frames(self, node: Any) -> None:
        for frame in node.iter(*_FRAMES):
            if not any(above.tag in _FRAMES for above in _list_between(frame, node)):
                self.walk(frame)

    def _pieces(self, node: Any, before: list[str]) -> list[str]:
        """Append the pieces of a line to those before; returns them."""
        start = len(before)
        before.append(node.text or "")
        for child in node:
            if isinstance(child.tag, str):
                self._add_piece(child, before)
            before.append(child.tail or "")
        if font := find_font(self._file.find_property(node.get(f"{TEXT}style-name"), f"{STYLE}font-name")):
            before[start:] = [read_signs(piece, font) for piece in before[start:]]
        return before

    def _add_piece(self, node: Any, before: list[str]) -> None:
        style = node.get(f"{TEXT}style-name")
        if node.tag in (f"{TEXT}s", f"{TEXT}tab", f"{TEXT}line-break"):
            before.append(" ")
        elif node.tag == f"{TEXT}note":
            self.footnotes.append(flatten_text(" ".join(self.list_paragraphs(node.find(f"{TEXT}note-body")))))
            before.append(f" [{len(self.footnotes)}]")
        elif node.tag == f"{TEXT}ruby":
            base, reading = (node.find(f"{TEXT}ruby-{part}") for part in ("base", "text"))
            before.append(f"{self.read_text(base)}({self.read_text(reading)})")
        elif node.tag in _FRAMES:
            for embedded in node.iter(f"{DRAW}object"):
                before.append(f" {self._file.formulas.get(_find_target(embedded), '')} ")
        elif node.tag in (f"{TEXT}hidden-text", f"{TEXT}hidden-paragraph") or self._is_hidden(style):
            self.has_hidden |= bool("".join(node.itertext()).strip())
        elif node.tag in _NO_TEXT:
            pass
        elif node.tag == f"{TEXT}span" and self._is_raised(style):
            before.append(superscript("".join(self._pieces(node, [])), "".join(before)))
        elif node.tag == f"{_FIELD}fieldmark" and str(node.get(f"{_FIELD}type")).endswith("FORMCHECKBOX"):
            ticked = any(one.get(f"{_FIELD}value") == "true" for one in node)
            before.append(TICKED if ticked else UNTICKED)
        elif node.tag == f"{DRAW}control":
            before.append(f" {self._read_control(node)} ")
        elif node.tag == f"{TEXT}drop-down":
            before.append((node.xpath("text()") or [""])[-1])
        else:
            self._pieces(node, before)

    def _read_control(self, node: Any) -> str:
        """Return what a field of a form shows: its value, or a box with its label."""
        control = self._controls.get(node.get(f"{DRAW}control"))
        if control is None or control.tag in (f"{_FORM}password", f"{_FORM}hidden", f"{_FORM}button"):
            return ""
        label = control.get(f"{_FORM}label") or ""
        if control.tag in (f"{_FORM}checkbox", f"{_FORM}radio"):
            state = {_read_present(control, "state"), _read_present(control, "selected")}
            return f"{TICKED if state & {'checked', 'true'} else UNTICKED} {label}"
        chosen = [
            one.get(f"{_FORM}label") or ""
            for one in control.findall(f"{_FORM}option")
            if _read_present(one, "selected") == "true"
        ]
        return " ".join([_read_present(control, "value") or label, *chosen, *self.list_paragraphs(control)])

    def _is_hidden(self, style: str | None) -> bool:
        return self._file.find_property(style, f"{TEXT}display") == "none"

    def _is_raised(self, style: str | None) -> bool:
        place = (self._file.find_property(style, f"{STYLE}text-position") or "0").split()[0]
        return place == "super" or (place.endswith("%") and not place.startswith(("-", "0")))

    def _read_rows(self, table: Any) -> Iterator[list[Cell]]:
        for row in list_rows(table):
            named = row.getparent().tag == f"{TABLE}table-header-rows"
            yield [
                Cell(
                    flatten_text(" ".join(self.list_paragraphs(cell))),
                    columns=int(cell.get(f"{TABLE}number-columns-spanned") or 1),
                    rows=int(cell.get(f"{TABLE}number-rows-spanned") or 1),
                    heading=named,
                    strong=self._is_strong(cell),
                )
                for cell in row.findall(f"{TABLE}table-cell")
            ]

    def _is_strong(self, cell: Any) -> bool:
        styles = [node.get(f"{TEXT}style-name") for node in cell.iter(f"{TEXT}p", f"{TEXT}span")]
        return any(is_bold(self._file, style) for style in styles)


def _read_present(control: Any, name: str) -> str | None:
    """Return an attribute of a field as it is, or else as it began."""
    value = control.get(f"{_FORM}current-{name}")
    return str(value) if value is not None else control.get(f"{_FORM}{name}")


def is_bold(file: OpenFile, style: str | None) -> bool:
    """Whether a style writes in bold letters."""
    return file.find_property(style, f"{_FORMAT}font-weight") == "bold"


def list_rows(table: Any) -> list[Any]:
    """The rows of a table, also those in groups, but not those of tables in its cells."""
    rows = []
    for child in table:
        if child.tag == f"{TABLE}table-row":
            rows.append(child)
        elif child.tag in (f"{TABLE}table-header-rows", f"{TABLE}table-rows", f"{TABLE}table-row-group"):
            rows += list_rows(child)
    return rows


def _list_between(node: Any, top: Any) -> Iterator[Any]:
    above = node.getparent()
    while above is not None and above is not top:
        yield above
        above = above.getparent()


def _find_target(embedded: Any) -> str:
    return str(embedded.get(f"{_XLINK}href") or "").removeprefix("./")


def _find_place(shape: Any) -> _Place:
    left, top, width, height = (_find_length(shape.get(f"{_SVG}{name}")) for name in ("x", "y", "width", "height"))
    if shape.tag == f"{DRAW}g":
        inner = [place for place in map(_find_place, shape) if None not in (place.left, place.top)]
        left, top = (min((getattr(one, name) for one in inner), default=None) for name in ("left", "top"))
        right, bottom = (
            max((getattr(one, name) + (getattr(one, size) or 0.0) for one in inner), default=0.0)
            for name, size in (("left", "width"), ("top", "height"))
        )
        width, height = right - (left or 0.0), bottom - (top or 0.0)
    return _Place(shape, left, top, width, height)


def _find_length(text: str | None) -> float | None:
    match = _LENGTH.fullmatch(text or "")
    return float(match[1]) * _POINTS[match[2]] if match else None
