"""Reader of EPUB books: chapters of XHTML in the order of reading."""

import posixpath
import re
import zipfile
from dataclasses import replace
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from engram.wings.importing.conversion import pages
from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.encodings import declared_encoding, decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits, check_zip
from engram.wings.importing.conversion.notes import list_some
from engram.wings.importing.conversion.office import parse_xml
from engram.wings.importing.conversion.outline import flatten_text, library

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGE_TYPES = ("application/xhtml+xml", "text/html")
_PICTURE = re.compile(r".+\.(?:jpe?g|png|gif|svg|webp)", re.IGNORECASE)
_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)\w+;")


def epub(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """A book without copy protection: its chapters as one page, in the order of reading.

    Raises:
        UnreadableError: it is no such file, its chapters are encrypted, or there are too many of them.
    """
    check_zip(source, data, limits)
    with zipfile.ZipFile(BytesIO(data)) as archive:
        names = archive.namelist()
        chapters, title, missing = _read_package(source, archive)
        if len(chapters) > limits.pages:
            raise UnreadableError(f"{source} has more than {limits.pages:,} chapters.")
        if _ENCRYPTION in names and (locked := _list_encrypted(archive) & set(chapters)):
            raise UnreadableError(f"{source} is protected against copying: {list_some(sorted(locked))}")
        bodies = [_read_body(source, archive.read(name)) for name in chapters]
    read = pages.markup(source, f"<html><body>{''.join(bodies)}</body></html>", "epub", title=title)
    notes = [f"{source}: chapters that are not in the file: {list_some(missing)}"] if missing else []
    if pictures := sum(_PICTURE.fullmatch(name) is not None for name in names):
        notes.append(f"{source}: not read: pictures ({pictures})")
    return replace(read, notes=(*read.notes, *notes))


def read_chapters(source: str, data: bytes) -> list[str]:
    """Return the text of each chapter's file, in the order of reading."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return [_decode(source, archive.read(name)) for name in _read_package(source, archive)[0]]


def _read_package(source: str, archive: zipfile.ZipFile) -> tuple[list[str], str | None, list[str]]:
    """Return the parts that are chapters, the title, and chapters that are listed and not there."""
    names = set(archive.namelist())
    if _CONTAINER not in names:
        raise UnreadableError(f"{source} has no {_CONTAINER}: it is no EPUB.")
    root_files = list(parse_xml(archive.read(_CONTAINER)).iter("{*}rootfile"))
    package_name = next((str(one.get("full-path")) for one in root_files), "")
    if package_name not in names:
        raise UnreadableError(f"{source} names no package of its chapters.")
    package = parse_xml(archive.read(package_name))
    folder = posixpath.dirname(package_name)
    items = {one.get("id"): one for one in package.iter("{*}item")}
    listed = [items[one.get("idref")] for one in package.iter("{*}itemref") if one.get("idref") in items]
    places = [_resolve(folder, str(one.get("href"))) for one in listed if one.get("media-type") in _PAGE_TYPES]
    places = list(dict.fromkeys(places))
    title = next((flatten_text(one.text or "") for one in package.iter("{*}title")), None)
    return [one for one in places if one in names], title or None, [one for one in places if one not in names]


def _resolve(folder: str, address: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(address.partition("#")[0])))


def _list_encrypted(archive: zipfile.ZipFile) -> set[str]:
    """The parts that are encrypted; fonts often are, in books that anybody may read."""
    references = parse_xml(archive.read(_ENCRYPTION)).iter("{*}CipherReference")
    return {_resolve("", str(one.get("URI"))) for one in references}


def _decode(source: str, data: bytes) -> str:
    return decode_text(source, data, declared_encoding(data)).text


def _read_body(source: str, data: bytes) -> str:
    """Return the elements of a chapter's body as HTML. A chapter that is no XML is read as browsers read it."""
    etree, html = library("lxml.etree"), library("lxml.html")
    text = _ENTITY.sub(lambda found: library("html").unescape(found[0]), _decode(source, data))
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)
    try:
        root = etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False, no_network=True))
        html.xhtml_to_html(root)
    except etree.XMLSyntaxError:
        root = html.document_fromstring(text.encode("utf-8", "replace"), html.HTMLParser(encoding="utf-8"))
    body: Any = root.find("body")
    if body is None:
        return ""
    body.tag = "section"
    for main in body.iter("main"):
        main.tag = "section"  # text outside of it belongs to the book
    return str(html.tostring(body, encoding="unicode"))
