"""Shared parts of the readers of Office files."""

import re
import zipfile
from io import BytesIO
from typing import Any

from engram.wings.importing.conversion.outline import library

# Parts that no reader reads, by their names, and how a note calls them.
_UNREAD = {
    "pictures": r"(?:word|ppt|xl)/media/.+",
    "comments": r"(?:word/comments|ppt/comments/.+|xl/(?:comments|threadedComments/).*)\.xml|xl/comments\d*\.xml",
    "diagrams": r"(?:word|ppt|xl)/diagrams/data\d*\.xml",
    "charts": r"(?:word|xl)/charts/chart\d*\.xml",
    "text boxes or drawings": r"xl/drawings/drawing\d*\.xml",
    "page headers or footers": r"word/(?:header|footer)\d*\.xml",
    "embedded files": r"(?:word|ppt|xl)/embeddings/oleObject.+",
}
_TEXT = re.compile(rb"<(?:\w+:)?t(?:\s[^>]*)?>[^<]*\S[^<]*</")
_ONLY_WITH_TEXT = ("page headers or footers", "text boxes or drawings", "comments")


def note_unread_parts(source: str, data: bytes) -> tuple[str, ...]:
    """The line that names what a file holds and no reader reads: pictures, comments and the like."""
    notes = []
    with zipfile.ZipFile(BytesIO(data)) as archive:
        for name, pattern in _UNREAD.items():
            parts = [part for part in archive.namelist() if re.fullmatch(pattern, part)]
            if name in _ONLY_WITH_TEXT:
                parts = [part for part in parts if _TEXT.search(archive.read(part))]
            if parts:
                notes.append(f"{name} ({len(parts)})" if name in ("pictures", "charts") else name)
    return (f"{source}: not read: {', '.join(notes)}",) if notes else ()


def parse_xml(data: bytes) -> Any:
    """Parse XML of an untrusted file: no entity is resolved, nothing is fetched."""
    etree = library("lxml.etree")
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
