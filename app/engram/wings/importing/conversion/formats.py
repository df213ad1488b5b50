"""The formats that can be read, by the endings of file names, and the conversion of one file."""

from collections.abc import Callable
from pathlib import PurePosixPath

from engram.context.errors import EngramError
from engram.wings.importing.conversion import chunks, mail, office, pages, portable, prose, structured, tables
from engram.wings.importing.conversion.documents import Conversion, Document, ImportedPassage, UnreadableError
from engram.wings.importing.conversion.import_limits import MIB, ConversionLimits

Reader = Callable[
    [str, bytes, ConversionLimits], Document | Conversion | tuple[list[ImportedPassage], Document | None]
]
READERS: dict[str, Reader] = {
    ".txt": prose.text,
    ".text": prose.text,
    ".md": prose.markdown,
    ".markdown": prose.markdown,
    ".html": pages.html,
    ".htm": pages.html,
    ".xhtml": pages.html,
    ".pdf": portable.pdf,
    ".docx": office.docx,
    ".pptx": office.pptx,
    ".xlsx": tables.xlsx,
    ".csv": tables.table,
    ".tsv": tables.table,
    ".eml": mail.eml,
    ".json": structured.parse_json,
    ".jsonl": structured.parse_json,
    ".ndjson": structured.parse_json,
}
KINDS = tuple(READERS)


def find_kind(name: str) -> str:
    """The ending of a file's name, in lower case."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()


def convert(
    source: str,
    data: bytes,
    *,
    size: int = chunks.SIZE,
    overlap: int = chunks.OVERLAP,
    limits: ConversionLimits = ConversionLimits(),  # noqa: B008 - frozen
) -> Conversion:
    """Read a file and cut it into passages.

    Any failure of a parser is this file's failure only.

    Raises:
        UnreadableError: the file is of no known kind, too large, damaged, locked or has no text.
        NotInstalledError: a library that reads it is not installed.
        ValueError: as ``chunks.passages``.
    """
    kind = find_kind(source)
    if kind not in READERS:
        raise UnreadableError(f"{source} is of none of the kinds {', '.join(KINDS)}.")
    if len(data) > limits.file_bytes:
        raise UnreadableError(f"{source} is larger than {limits.file_bytes // MIB} MiB.")
    if not data.strip():
        raise UnreadableError(f"{source} is empty.")
    if not 0 <= overlap < size:
        raise ValueError("overlap must be at least 0 and smaller than size")
    try:
        conversion = _build_conversion(READERS[kind](source, data, limits), size, overlap)
    except (EngramError, MemoryError):
        raise
    except RecursionError as error:
        raise UnreadableError(f"{source} is nested too deeply.") from error
    except Exception as error:  # parsers raise whatever a damaged file makes them stumble over
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UnreadableError(f"{source} cannot be read as {kind.lstrip('.').upper()} ({reason}).") from error
    if sum(len(passage.text) for passage in conversion.passages) > limits.characters:
        raise UnreadableError(f"{source} has more than {limits.characters:,} characters of text.")
    return conversion


def _build_conversion(
    read: Document | Conversion | tuple[list[ImportedPassage], Document | None], size: int, overlap: int
) -> Conversion:
    if isinstance(read, Conversion):
        return read
    rows, document = read if isinstance(read, tuple) else ([], read)
    if document is None:
        return Conversion(tuple(rows))
    return Conversion((*rows, *chunks.passages(document, size=size, overlap=overlap)), document.notes)
