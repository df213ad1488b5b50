"""The formats that can be read, by the endings of file names, and the conversion of one file."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

from engram.context.errors import EngramError
from engram.wings.importing.conversion import (
    books,
    captions,
    chunks,
    mail,
    markdown,
    notebooks,
    old_office,
    open_documents,
    open_sheets,
    org_mode,
    outlook,
    pages,
    portable,
    prose,
    restructured,
    rich_text,
    scans,
    sheets,
    slides,
    structured,
    tables,
    word,
    xml_documents,
    yaml_values,
)
from engram.wings.importing.conversion.conversion_check import find_differences
from engram.wings.importing.conversion.documents import (
    Attachment,
    Conversion,
    Document,
    ImportedPassage,
    UnreadableError,
)
from engram.wings.importing.conversion.import_limits import MIB, ConversionLimits
from engram.wings.importing.conversion.outline import flatten_text, library
from engram.wings.importing.conversion.simple_readers import read_plainly

Reader = Callable[[str, bytes, ConversionLimits], Document | Conversion | tuple[Conversion, Document | None]]
READERS: dict[str, Reader] = {
    ".txt": prose.text,
    ".text": prose.text,
    ".md": markdown.markdown,
    ".markdown": markdown.markdown,
    ".html": pages.html,
    ".htm": pages.html,
    ".xhtml": pages.html,
    ".pdf": portable.pdf,
    ".docx": word.docx,
    ".docm": word.docx,
    ".pptx": slides.pptx,
    ".pptm": slides.pptx,
    ".xlsx": sheets.xlsx,
    ".xlsm": sheets.xlsx,
    ".odt": open_documents.odt,
    ".odp": open_documents.odp,
    ".ods": open_sheets.ods,
    ".rtf": rich_text.rtf,
    ".rst": restructured.rst,
    ".org": org_mode.org,
    ".csv": tables.table,
    ".tsv": tables.table,
    ".epub": books.epub,
    ".eml": mail.eml,
    ".msg": outlook.msg,
    ".ipynb": notebooks.notebook,
    ".vtt": captions.captions,
    ".srt": captions.captions,
    ".json": structured.parse_json,
    ".jsonl": structured.parse_json,
    ".ndjson": structured.parse_json,
    ".yaml": yaml_values.parse_yaml,
    ".yml": yaml_values.parse_yaml,
    ".xml": xml_documents.xml,
    **dict.fromkeys(scans.KINDS, scans.image),
}
KINDS = (*READERS, *old_office.PRESENT_KINDS)
ATTACHMENT_DEPTH = 3
"""Attachments inside each other."""


def find_kind(name: str) -> str:
    """The ending of a file's name, in lower case."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()


def is_wanted(name: str) -> bool:
    """Whether a file that lies in a folder is to be read: of pictures only where something reads them."""
    kind = find_kind(name)
    return kind in KINDS and (kind not in scans.KINDS or scans.find_program() is not None)


def is_lock_file(name: str) -> bool:
    """Whether Office made a file of this name beside one that it has open; it has no text of that one."""
    return PurePosixPath(name.replace("\\", "/")).name.startswith("~$")


def convert(
    source: str,
    data: bytes,
    *,
    kind: str | None = None,
    size: int = chunks.SIZE,
    overlap: int = chunks.OVERLAP,
    limits: ConversionLimits = ConversionLimits(),  # noqa: B008 - frozen
) -> Conversion:
    """Read a file and cut it into passages.

    Any failure of a parser is this file's failure only.

    Args:
        kind: the ending that says how it is read; None: that of the source.

    Raises:
        UnreadableError: the file is of no known kind, too large, damaged, locked or has no text.
        NotInstalledError: a library that reads it is not installed.
        ValueError: as ``chunks.passages``.
    """
    kind = find_kind(source) if kind is None else kind
    if kind in old_office.PRESENT_KINDS:
        kind, data = old_office.modernise(source, data, kind, limits)
    if kind not in READERS:
        raise UnreadableError(f"{source} is of none of the kinds {', '.join(KINDS)}.")
    if is_lock_file(source):
        raise UnreadableError(f"{source} only marks a file that Office has open.")
    if len(data) > limits.file_bytes:
        raise UnreadableError(f"{source} is larger than {limits.file_bytes // MIB} MiB.")
    if not data.strip():
        raise UnreadableError(f"{source} is empty.")
    if not 0 <= overlap < size:
        raise ValueError("overlap must be at least 0 and smaller than size")
    share = scans.PICTURE_TIME_SHARE if kind in scans.KINDS else scans.TIME_SHARE
    ends = min(limits.ends, time.monotonic() + limits.seconds)
    limits = replace(limits, recognise_until=ends - (1 - share) * limits.seconds)
    conversion = _convert(source, data, kind, size, overlap, limits, depth=0)
    if sum(len(passage.text) for passage in conversion.passages) > limits.characters:
        raise UnreadableError(f"{source} has more than {limits.characters:,} characters of text.")
    return conversion


def _convert(
    source: str, data: bytes, kind: str, size: int, overlap: int, limits: ConversionLimits, depth: int
) -> Conversion:
    try:
        read = READERS[kind](source, data, limits)
        rows, document = (
            read
            if isinstance(read, tuple)
            else (read, None)
            if isinstance(read, Conversion)
            else (Conversion(()), read)
        )
        differences = _check(source, kind, data, document, rows)
        if document is None:
            return Conversion(rows.passages, (*rows.notes, *differences), differences)
        passages = (*rows.passages, *chunks.passages(document, size=size, overlap=overlap))
        attached = _convert_attachments(document, size, overlap, limits, depth + 1)
    except (EngramError, MemoryError):
        raise
    except RecursionError as error:
        raise UnreadableError(f"{source} is nested too deeply.") from error
    except Exception as error:  # parsers raise whatever a damaged file makes them stumble over
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UnreadableError(f"{source} cannot be read as {kind.lstrip('.').upper()} ({reason}).") from error
    return Conversion(
        (*passages, *attached.passages),
        (*rows.notes, *document.notes, *differences, *attached.notes),
        (*differences, *attached.differences),
    )


def _check(source: str, kind: str, data: bytes, document: Document | None, rows: Conversion) -> tuple[str, ...]:
    """Compare a conversion with the file as a simple reader sees it; see ``find_differences``."""
    try:
        plain = read_plainly(source, kind, data, () if document is None else document.plain_pages)
    except (KeyError, ValueError, library("lxml.etree").LxmlError) as error:  # its own reader is more patient
        return (f"{source}: could not be compared with its plain text ({flatten_text(str(error))})",)
    if plain is None:
        return ()
    texts = [f"{passage.title}\n{passage.text}" for passage in rows.passages]
    titles = [] if document is None else [document.title]
    return find_differences(source, plain, () if document is None else document.blocks, [*texts, *titles])


def _convert_attachments(
    document: Document, size: int, overlap: int, limits: ConversionLimits, depth: int
) -> Conversion:
    """Convert the files in a document; one that cannot be read is named in a note."""
    passages: list[ImportedPassage] = []
    notes: list[str] = []
    differences: list[str] = []
    unread: list[str] = []
    for attachment in document.attachments:
        kind = find_kind(attachment.name)
        has_text = attachment.data.strip() and not is_lock_file(attachment.name)
        if kind not in READERS or not is_wanted(attachment.name) or not has_text or depth > ATTACHMENT_DEPTH:
            unread.append(attachment.name)
            continue
        try:
            converted = _convert(attachment.name, attachment.data, kind, size, overlap, limits, depth)
        except UnreadableError as error:
            if kind in scans.KINDS:  # most pictures in messages show no text
                unread.append(attachment.name)
                continue
            notes.append(f"{document.source}: attachment not read: {error.detail}")
            continue
        passages += (_attach(document, attachment, passage) for passage in converted.passages)
        notes += (f"{document.source}: {note}" for note in converted.notes)
        differences += (f"{document.source}: {note}" for note in converted.differences)
    if unread:
        notes.insert(0, f"{document.source}: attachments were not read: {', '.join(unread)}")
    return Conversion(tuple(passages), tuple(notes), tuple(differences))


def _attach(document: Document, attachment: Attachment, passage: ImportedPassage) -> ImportedPassage:
    """A passage of an attachment as one of the document that it is attached to."""
    number = passage.id.removeprefix(f"{attachment.name}#")
    own = {"source": document.source, "attachment": attachment.name}
    if "attachment" in passage.metadata:  # of a message that is attached
        own["attachment"] = f"{attachment.name}/{passage.metadata['attachment']}"
    return replace(
        passage,
        id=f"{document.source}#{attachment.name}!{number}",
        metadata={**attachment.metadata, **passage.metadata, **own},
        titled_by_name=False,
    )
