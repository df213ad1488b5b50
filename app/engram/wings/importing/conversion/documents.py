"""Content of a document, whatever its format."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from engram.context.errors import NotInstalledError, UnreadableError

__all__ = [
    "Attachment",
    "Block",
    "Conversion",
    "Document",
    "ImportedPassage",
    "NotInstalledError",
    "UnreadableError",
]

MOST_NOTES = 1_000
"""Notes that a document keeps."""


@dataclass(frozen=True)
class Block:
    """A piece of text that belongs together: a paragraph, a list item, a row of a table, a line of code.

    Attributes:
        text: not blank.
        headings: the headings above it, outermost first, without the document's title.
        page: the page or slide that it begins on, from 1; None where the format has no pages.
        whole: whether the text is one unit (a row, a line of code, a heading without a section) and not sentences.
        header: of a row the names of its table's columns in one line, which each passage with such rows repeats.
        quoted: whether a message quotes it from an earlier one.
        is_header: whether it is the header of a message: searched with the text below it, and no sentence of it.
        metadata: what holds for it in place of the document's metadata; None: those hold.
        lead: what a passage shows before it and no sentence has: the number of an item, the indentation of code.
    """

    text: str
    headings: tuple[str, ...] = ()
    page: int | None = None
    whole: bool = False
    header: str = ""
    quoted: bool = False
    is_header: bool = False
    metadata: Mapping[str, object] | None = None
    lead: str = ""


@dataclass(frozen=True)
class Attachment:
    """A file inside a file, by its name.

    Attributes:
        metadata: of what it is attached to.
    """

    name: str
    data: bytes
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """Blocks in reading order.

    Attributes:
        source: the file's name; passages cite it and their ids begin with it.
        title: the document's own title, else its file's name.
        blocks: at least one.
        format: as the metadata of its passages name it, such as ``text`` or ``pdf``.
        notes: what the reader of the import should know, a line each.
        metadata: what holds for the whole document, as the sender of a message.
        attachments: files in it, which are converted by themselves.
        plain_pages: the plain text of the pages of a PDF, which the conversion is checked against.
        titled_by_name: whether the title is the file's name.
    """

    source: str
    title: str
    blocks: tuple[Block, ...]
    format: str
    notes: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()
    plain_pages: tuple[str, ...] = ()
    titled_by_name: bool = False


@dataclass(frozen=True)
class ImportedPassage:
    """A passage to ingest.

    Attributes:
        id: the source and the passage's number in it, so that a second import replaces the first.
        title: the document's title.
        text: the sentences, separated by a space or a line break.
        sentences: as Engram would split the text, except that headings, rows and lines of code stay whole, and
            headers of messages are left out; where nothing else is there, the title.
        metadata: ``source`` and ``format``; where they exist ``heading`` (a list, outermost first), ``page``,
            ``quoted``, ``attachment`` (its name) and the document's own metadata.
        titled_by_name: whether the title is the file's name; None: it is, and is a sentence too.
    """

    id: str
    title: str
    text: str
    sentences: tuple[str, ...]
    metadata: Mapping[str, object] = field(default_factory=dict)
    titled_by_name: bool | None = False

    def as_json(self, source: str) -> dict[str, object]:
        """The passage of a document as a line of NDJSON for ``POST /passages``."""
        return {
            "id": self.id,
            "document": source,
            "title": self.title,
            "text": self.text,
            "sentences": list(self.sentences),
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True)
class Conversion:
    """The passages of one file, and notes on how it was read.

    Attributes:
        differences: those of the notes that say in what the passages differ from the plain text of the file.
    """

    passages: tuple[ImportedPassage, ...]
    notes: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()

    @property
    def pages(self) -> int | None:
        """The last page or slide that has text; None where the format has no pages."""
        pages = [page for passage in self.passages if isinstance(page := passage.metadata.get("page"), int)]
        return max(pages, default=None)

    @property
    def titled_by_name(self) -> bool | None:
        """Whether the titles of all passages are the file's name, or of none; None: of some."""
        titled = {passage.titled_by_name for passage in self.passages}
        return titled.pop() if len(titled) == 1 else None

    def describe(self, source: str, data: bytes, folder: str | None = None) -> dict[str, object]:
        """The document as a line of NDJSON for ``POST /passages``, before its passages.

        Args:
            data: the file.
            folder: the folder that it was read from.
        """
        digest = hashlib.sha256(data).hexdigest()
        return {
            "source": source,
            "folder": folder,
            "digest": digest,
            "pages": self.pages,
            "notes": list(self.notes[:MOST_NOTES]),
            "titled_by_name": self.titled_by_name,
        }
