"""Readers of Word documents and presentations.

MarkItDown wraps the same libraries, and flattens what they know into Markdown: slide numbers become comments.
"""

import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.import_limits import ConversionLimits, check_zip
from engram.wings.importing.conversion.outline import Outline, flatten_text, library
from engram.wings.importing.conversion.pages import markup

_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"

_PROPERTIES = "docProps/core.xml"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"


def docx(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """A Word document: headings by their styles, lists, tables, footnotes. It stores no page numbers.

    Raises:
        UnreadableError: it is no such file, is locked or too large, or has no text.
    """
    check_zip(source, data, limits)
    mammoth = library("mammoth")
    nothing = mammoth.images.img_element(lambda image: {"src": ""})  # an image is not read, let alone copied
    result = mammoth.convert_to_html(BytesIO(data), convert_image=nothing, style_map=_STYLES)
    return markup(source, result.value, "docx", title=_title(data))


def _title(data: bytes) -> str | None:
    """The title among the file's properties."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        if _PROPERTIES not in archive.namelist():
            return None
        properties = archive.read(_PROPERTIES)
    # Expat refuses entities that grow too large and fetches none; the process is bounded besides.
    return ElementTree.fromstring(properties).findtext(_TITLE)  # noqa: S314


def pptx(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """A presentation: a slide is a section below its title, its number the page; tables and notes included.

    Raises:
        UnreadableError: it is no such file, is locked or too large, or has no text.
    """
    check_zip(source, data, limits)
    deck = library("pptx").Presentation(BytesIO(data))
    if len(deck.slides) > limits.pages:
        raise UnreadableError(f"{source} has more than {limits.pages:,} slides.")
    outline = Outline(deck.core_properties.title)
    for number, slide in enumerate(deck.slides, 1):
        outline.page = number
        title = slide.shapes.title
        # Level 2: the first slide's title is not the document's, or its text would stand below no heading.
        if title is not None and title.has_text_frame and flatten_text(title.text_frame.text):
            outline.open_heading(2, title.text_frame.text)
        else:
            outline.open_heading(2, f"Slide {number}")
        for shape in _shapes(slide.shapes):
            if title is None or shape.shape_id != title.shape_id:
                _add_shape(shape, outline)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            for line in slide.notes_slide.notes_text_frame.text.splitlines():
                outline.add(flatten_text(line))
    return outline.document(source, "pptx")


def _shapes(shapes: Any) -> Iterator[Any]:
    """The shapes with those inside groups, in the file's order."""
    waiting = list(reversed(list(shapes)))
    while waiting:
        shape = waiting.pop()
        if hasattr(shape, "shapes"):
            waiting += reversed(list(shape.shapes))
        else:
            yield shape


def _add_shape(shape: Any, outline: Outline) -> None:
    if getattr(shape, "has_table", False) and shape.has_table:
        for row in shape.table.rows:
            outline.row([flatten_text(cell.text) for cell in row.cells])
    elif shape.has_text_frame:
        for paragraph in shape.text_frame.paragraphs:
            outline.add(flatten_text(paragraph.text))
