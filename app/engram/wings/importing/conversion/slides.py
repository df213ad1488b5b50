"""Reader of presentations."""

from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.import_limits import ConversionLimits, check_zip
from engram.wings.importing.conversion.inline_text import superscript
from engram.wings.importing.conversion.notes import list_some
from engram.wings.importing.conversion.number_formats import plain_number
from engram.wings.importing.conversion.office import note_unread_parts
from engram.wings.importing.conversion.office_math import MATH, write_formula
from engram.wings.importing.conversion.outline import Outline, flatten_text, library
from engram.wings.importing.conversion.shape_order import sort_by_place
from engram.wings.importing.conversion.symbol_fonts import write_signs
from engram.wings.importing.conversion.table_model import Cell, Grid, lay_out, write_table

_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"


def pptx(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """A presentation: a slide is a section below its title, its number the page.

    Tables, the figures of charts and notes are included. Hidden slides are left out; a note names them.

    Raises:
        UnreadableError: it is no such file, is locked or too large, or has no text.
    """
    check_zip(source, data, limits)
    deck = library("pptx").Presentation(BytesIO(data))
    if len(deck.slides) > limits.pages:
        raise UnreadableError(f"{source} has more than {limits.pages:,} slides.")
    outline = Outline(deck.core_properties.title)
    hidden = []
    for number, slide in enumerate(deck.slides, 1):
        if slide.element.get("show") in ("0", "false"):
            hidden.append(str(number))
            continue
        outline.page = number
        _add_slide(source, slide, f"Slide {number}", outline)
    notes = (f"{source}: left out hidden slides: {list_some(hidden)}",) if hidden else ()
    return outline.document(source, "pptx", (*notes, *note_unread_parts(source, data)))


def _add_slide(source: str, slide: Any, name: str, outline: Outline) -> None:
    _choose_alternatives(slide.element)
    write_signs(slide.element)
    title = slide.shapes.title
    text = _frame_text(title.text_frame) if title is not None and title.has_text_frame else ""
    # Level 2: the first slide's title is not the document's, or its text would stand below no heading.
    outline.open_heading(2, text or name)
    for shape in _shapes(one for one in slide.shapes if title is None or one.shape_id != title.shape_id):
        _add_shape(source, shape, outline)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        for paragraph in slide.notes_slide.notes_text_frame.paragraphs:
            outline.add(_paragraph_text(paragraph))


def _choose_alternatives(slide: Any) -> None:
    """Put the newest of the alternative forms of a shape, which python-pptx skips, in the place of all."""
    for alternatives in list(slide.iter(f"{_COMPATIBILITY}AlternateContent")):
        choice = alternatives.find(f"{_COMPATIBILITY}Choice")
        around = alternatives.getparent()
        for shape in [] if choice is None else list(choice):
            alternatives.addprevious(shape)
        around.remove(alternatives)


def _shapes(shapes: Iterable[Any]) -> Iterator[Any]:
    """The shapes with those inside groups, in the order of their places."""
    waiting = list(reversed(sort_by_place(list(shapes))))
    while waiting:
        shape = waiting.pop()
        if hasattr(shape, "shapes"):
            waiting += reversed(sort_by_place(list(shape.shapes)))
        else:
            yield shape


def _add_shape(source: str, shape: Any, outline: Outline) -> None:
    if getattr(shape, "has_table", False) and shape.has_table:
        rows = [[_cell(cell) for cell in row.cells if not cell.is_spanned] for row in shape.table.rows]
        outline.table(write_table(lay_out(source, rows), 1 if shape.table.first_row and len(rows) > 1 else None))
    elif getattr(shape, "has_chart", False) and shape.has_chart:
        _add_chart(shape.chart, outline)
    elif shape.has_text_frame:
        for paragraph in shape.text_frame.paragraphs:
            outline.add(_paragraph_text(paragraph))


def _cell(cell: Any) -> Cell:
    text = _frame_text(cell.text_frame)
    return Cell(text, columns=cell.span_width, rows=cell.span_height) if cell.is_merge_origin else Cell(text)


def _add_chart(chart: Any, outline: Outline) -> None:
    """Add a chart as the table that it shows: a row for each category, a column for each series."""
    if chart.has_title and chart.chart_title.has_text_frame:
        outline.add(_frame_text(chart.chart_title.text_frame), whole=True)
    for plot in chart.plots:
        rows: Grid = [[Cell(""), *(Cell(flatten_text(series.name or "")) for series in plot.series)]]
        for at, category in enumerate(plot.categories):
            values = (series.values[at] if at < len(series.values) else None for series in plot.series)
            figures = ("" if value is None else plain_number(value) for value in values)
            rows.append([Cell(flatten_text(str(category))), *map(Cell, figures)])
        outline.table(write_table(rows, 1))


def _frame_text(frame: Any) -> str:
    return flatten_text(" ".join(map(_paragraph_text, frame.paragraphs)))


def _paragraph_text(paragraph: Any) -> str:
    """The text of a paragraph in one line, with superscripts and formulas."""
    text = ""
    for child in paragraph._p:  # noqa: SLF001 - python-pptx has no public name
        if child.tag == f"{_DRAWING}br":
            text += " "
        elif child.tag in (f"{_DRAWING}r", f"{_DRAWING}fld"):
            run = child.findtext(f"{_DRAWING}t") or ""
            properties = child.find(f"{_DRAWING}rPr")
            raised = properties is not None and _is_raised(properties.get("baseline"))
            text += superscript(run, text) if raised else run
        else:
            text += "".join(write_formula(formula) for formula in child.iter(f"{{{MATH}}}oMath"))
    return flatten_text(text)


def _is_raised(baseline: str | None) -> bool:
    return baseline is not None and not baseline.startswith("-") and baseline.rstrip("0%") != ""
