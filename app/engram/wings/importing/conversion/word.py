"""Reader of Word documents."""

import re
import zipfile
from io import BytesIO
from typing import Any

from engram.wings.importing.conversion.documents import Document
from engram.wings.importing.conversion.import_limits import ConversionLimits, check_zip
from engram.wings.importing.conversion.office import note_unread_parts, parse_xml
from engram.wings.importing.conversion.office_math import MATH, write_formula
from engram.wings.importing.conversion.outline import library
from engram.wings.importing.conversion.pages import markup
from engram.wings.importing.conversion.symbol_fonts import NAMED, write_signs

_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"
_PROPERTIES = "docProps/core.xml"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_STYLES_PART = "word/styles.xml"
_STYLE_PARTS = tuple(f"{{{_WORD}}}{name}" for name in ("name", "basedOn", "pPr"))
_TEXTS = re.compile(r"word/(?:document|footnotes|endnotes)\d*\.xml")
_OFF = ("0", "false", "off")
_UNREAD = re.compile(
    rb'vanish|<(?:\w+:)?(?:fldSimple|bdo|dir|cr|ptab|ruby|ddList|position)\b|type="(?:page|column)"'
)
"""What mammoth does not read as Word shows it."""
_WAY_BACK = re.compile(r' ?<a href="#(?:foot|end)note-ref-\d+">↑</a>')
"""mammoth's link from a note to its figure."""
_FIELD = re.compile(rb'fldCharType="(\w)')


def docx(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """A Word document: headings by their styles, lists, tables, footnotes, formulas. It stores no page numbers.

    Raises:
        UnreadableError: it is no such file, is locked or too large, or has no text.
    """
    check_zip(source, data, limits)
    readable, hidden = _make_readable(data)
    mammoth = library("mammoth")
    picture = mammoth.images.img_element(lambda image: {"src": ""})  # an image is not read, let alone copied
    result = mammoth.convert_to_html(BytesIO(readable), convert_image=picture, style_map=_STYLES)
    ignored = (message.message for message in result.messages if "unrecognised element" in message.message)
    notes = [f"{source}: {message}" for message in dict.fromkeys(ignored)]
    notes += [f"{source}: left out hidden text"] if hidden else []
    html = _WAY_BACK.sub("", result.value)
    return markup(
        source, html, "docx", (*notes, *note_unread_parts(source, data)), title=_title(data), numbered=False
    )


def _make_readable(data: bytes) -> tuple[bytes, bool]:
    """Write what mammoth ignores, such as formulas, as text, and remove hidden text; whether there was any.

    The look of styles goes too: mammoth reads their names alone, and takes most of its time to parse the rest.
    """
    with zipfile.ZipFile(BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if _TEXTS.fullmatch(name)}
        changed, hidden = {}, False
        if _STYLES_PART in archive.namelist():
            changed[_STYLES_PART] = _name_styles(archive.read(_STYLES_PART))
        for name, xml in parts.items():
            nested = b"bb" in b"".join(_FIELD.findall(xml))
            if nested or MATH.encode() in xml or _UNREAD.search(xml) or NAMED.search(xml):
                root = parse_xml(xml)
                write_signs(root)
                _write_formulas(root)
                _write_unread(root)
                if nested:
                    remove_codes(root)
                hidden |= _remove_hidden(root)
                changed[name] = library("lxml.etree").tostring(root)
        if not changed:
            return data, False
        file = BytesIO()
        with zipfile.ZipFile(file, "w") as copy:
            for name in archive.namelist():
                if name.startswith("word/media/"):  # no picture is opened
                    continue
                copy.writestr(name, changed[name] if name in changed else archive.read(name))
    return file.getvalue(), hidden


def _name_styles(xml: bytes) -> bytes:
    """The styles with their names and their numbering alone."""
    root = parse_xml(xml)
    for child in list(root):
        if child.tag != f"{{{_WORD}}}style":
            root.remove(child)
            continue
        for part in list(child):
            if part.tag not in _STYLE_PARTS:
                child.remove(part)
    return bytes(library("lxml.etree").tostring(root))


def _write_formulas(root: Any) -> None:
    """Put a run with its text in the place of each formula."""
    for formula in list(root.iter(f"{{{MATH}}}oMath")):
        run = _element("r")
        run.append(_text_element(write_formula(formula)))
        run.tail = formula.tail
        around = formula.getparent()
        around.replace(formula, run)
    for display in list(root.iter(f"{{{MATH}}}oMathPara")):
        paragraph = display.getparent()
        at = paragraph.index(display)
        for run in [child for child in display if child.tag == f"{{{_WORD}}}r"]:
            paragraph.insert(at, run)
            at += 1
        paragraph.remove(display)


def _write_unread(root: Any) -> None:
    """Write elements that mammoth ignores with their text as others that it reads."""
    for name in ("fldSimple", "bdo", "dir"):
        for around in list(root.iter(f"{{{_WORD}}}{name}")):
            for inner in list(around):
                around.addprevious(inner)
            around.getparent().remove(around)
    for old, new in (("cr", "br"), ("ptab", "tab")):
        for sign in list(root.iter(f"{{{_WORD}}}{old}")):
            sign.tag = f"{{{_WORD}}}{new}"
    for line_end in root.iter(f"{{{_WORD}}}br"):  # of a page or a column, too
        line_end.attrib.clear()
    for raised in list(root.iter(f"{{{_WORD}}}position")):
        if not str(raised.get(f"{{{_WORD}}}val")).startswith(("-", "0")):
            raised.tag = f"{{{_WORD}}}vertAlign"
            raised.set(f"{{{_WORD}}}val", "superscript")
    for ruby in list(root.iter(f"{{{_WORD}}}ruby")):
        base, reading = ("".join(_texts(ruby.find(f"{{{_WORD}}}{name}"))) for name in ("rubyBase", "rt"))
        ruby.addprevious(_text_element(f"{base}({reading})" if reading else base))
        ruby.getparent().remove(ruby)
    for choices in list(root.iter(f"{{{_WORD}}}ddList")):
        entries = [entry.get(f"{{{_WORD}}}val", "") for entry in choices.iter(f"{{{_WORD}}}listEntry")]
        result = choices.find(f"{{{_WORD}}}result")
        chosen = 0 if result is None else int(result.get(f"{{{_WORD}}}val", "0"))
        field = next(choices.iterancestors(f"{{{_WORD}}}r"), None)
        if field is not None and chosen < len(entries):
            run = _element("r")
            run.append(_text_element(entries[chosen]))
            field.addprevious(run)


def remove_codes(root: Any) -> None:
    """Remove the text of fields that stand inside the code of another field, which Word does not show."""
    is_code: list[bool] = []
    for node in list(root.iter(f"{{{_WORD}}}fldChar", f"{{{_WORD}}}t")):
        kind = node.get(f"{{{_WORD}}}fldCharType")
        if kind == "begin":
            is_code.append(True)
        elif kind == "separate" and is_code:
            is_code[-1] = False
        elif kind == "end" and is_code:
            is_code.pop()
        elif kind is None and any(is_code):
            node.text = ""


def _texts(node: Any) -> list[str]:
    return [] if node is None else [text.text or "" for text in node.iter(f"{{{_WORD}}}t")]


def _remove_hidden(root: Any) -> bool:
    """Remove runs that Word does not show; whether one had text."""
    changed = False
    for mark in list(root.iter(f"{{{_WORD}}}vanish")):
        run = mark.getparent().getparent()
        if run is not None and run.tag == f"{{{_WORD}}}r" and mark.get(f"{{{_WORD}}}val") not in _OFF:
            changed |= any(text.text for text in run.iter(f"{{{_WORD}}}t"))
            run.getparent().remove(run)
    return changed


def _text_element(text: str) -> Any:
    element = _element("t")
    element.text = text
    element.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
    return element


def _element(name: str) -> Any:
    return library("lxml.etree").Element(f"{{{_WORD}}}{name}")


def _title(data: bytes) -> str | None:
    """The title among the file's properties."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        if _PROPERTIES not in archive.namelist():
            return None
        properties = archive.read(_PROPERTIES)
    title = parse_xml(properties).findtext(_TITLE)
    return None if title is None else str(title)
