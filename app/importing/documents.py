"""What is read of a file, whatever its format."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.errors import EngramError


class UnreadableError(EngramError):
    """The file is not what its name says, is locked, or holds no text."""


@dataclass(frozen=True)
class Block:
    """A piece that belongs together: a paragraph, an item of a list, a row of a table, a piece of code.

    Attributes:
        text: its text, not blank.
        headings: those it stands below, from the outermost in; without the document's title.
        page: the page it begins on, from 1; None where there are no pages.
        whole: whether it is one unit as it is (a row, a line of code) and not prose made of sentences.
    """

    text: str
    headings: tuple[str, ...] = ()
    page: int | None = None
    whole: bool = False


@dataclass(frozen=True)
class Document:
    """Blocks in the order in which they are read.

    Attributes:
        source: where it is from: what passages cite and are named after.
        title: what it calls itself, else its file's name.
        blocks: at least one.
        format: ``text``, ``markdown``, ``html`` or ``pdf``.
    """

    source: str
    title: str
    blocks: tuple[Block, ...]
    format: str


@dataclass(frozen=True)
class Passage:
    """What is sent to be ingested.

    Attributes:
        id: the source and the number of the passage in it, so that importing again replaces it.
        text: its sentences, apart by a space or a line break.
        sentences: as Engram would split them, but that rows and lines of code stay whole.
        metadata: ``source``, ``format``, and where they are ``heading``, ``page`` and what a row of a table says.
    """

    id: str
    title: str
    text: str
    sentences: tuple[str, ...]
    metadata: Mapping[str, object] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """The line of NDJSON that ``POST /passages`` takes."""
        shown = {"id": self.id, "title": self.title, "text": self.text, "sentences": list(self.sentences)}
        return {**shown, "metadata": dict(self.metadata)}
