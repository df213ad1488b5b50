"""Files read and written as lines of ``POST /passages``, for the commands that import."""

import json
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Annotated

import typer

from engram.cli.terminal import complain
from engram.context.errors import InvalidRequestError
from engram.wings.importing.cli.chosen_readers import ChosenReaders, DefaultReaders

if TYPE_CHECKING:
    from engram.wings.importing.conversion.converter import Converter
    from engram.wings.importing.conversion.folder import Listing, SourceFile
    from engram.wings.importing.sources.source import Source

SIZE = 1_200  # as engram.wings.importing.conversion.chunks, which only these commands need to import
OVERLAP = 200

SizeOption = Annotated[int, typer.Option("--size", min=100, max=20_000, help="Characters of a passage at most.")]
OverlapOption = Annotated[
    int,
    typer.Option("--overlap", min=0, help="Characters at most that a passage repeats of the one before it."),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict", help="Do not import a file whose words or figures differ from those that a second reader sees."
    ),
]
PrefixOption = Annotated[str, typer.Option("--prefix", help="What the names of all documents begin with.")]
ReadersOption = Annotated[
    str | None,
    typer.Option(
        "--readers",
        help="Who may read the passages: user:ana, group:hr with commas between, `everyone` or `nobody`. A line of "
        "a file `.engram-readers` has precedence; what no line names there is read by nobody without this option. "
        "Or a file of JSON that names the readers of each document. Where there is neither, passages keep their "
        "readers.",
    ),
]
DefaultReadersOption = Annotated[
    DefaultReaders | None,
    typer.Option("--default-readers", help="Who may read what neither a rule nor the file of readers names."),
]


class DocumentLines:
    """Writes documents, each with its passages.

    Args:
        source: reads the files.
        strict: whether a file fails whose passages differ from its plain text.
        claims: document -> metadata of its passages that rules give, unless its own say otherwise.

    Attributes:
        sources: of the documents that were written.
        failed: of the files that could not be read.
        passages: how many were written.
        written_for: of each line, its document.
    """

    def __init__(
        self,
        lines: IO[bytes],
        source: "Source",
        converter: "Converter",
        readers: ChosenReaders,
        size: int,
        overlap: int,
        *,
        strict: bool = False,
        claims: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._lines = lines
        self._source = source
        self._converter = converter
        self._readers = readers
        self._size = size
        self._overlap = overlap
        self._strict = strict
        self._claims = claims or {}
        self.sources: set[str] = set()
        self.failed: set[str] = set()
        self.passages = 0
        self.written_for: list[str] = []

    def write(self, file: "SourceFile") -> None:
        """Write a document and its passages, all or none; a file that cannot be read costs a line."""
        from engram.wings.importing.conversion.documents import UnreadableError
        from engram.wings.importing.conversion.version_rules import seal_version

        try:
            # one byte more than a file may have, which is refused
            content = self._source.read(file, self._converter.limits.file_bytes + 1)
            conversion = self._converter.convert(
                file.name, content.data, kind=content.kind, size=self._size, overlap=self._overlap
            )
        except (UnreadableError, OSError) as error:
            complain_unreadable(file, error)
            self.failed.add(file.name)
            return
        for note in conversion.notes:
            complain(note)
        if self._strict and conversion.differences:
            complain(f"{file.name}: not imported, as --strict says")
            self.failed.add(file.name)
            return
        self.sources.add(file.name)
        self.passages += len(conversion.passages)
        claims = self._claims.get(file.name, {})
        described = conversion.describe(file.name, content.data, file.folder)
        digest = content.digest or str(described["digest"])
        self._write_line(file.name, described | {"digest": seal_version(digest, claims)})
        readers = self._readers.find_for_writing(file)
        for passage in conversion.passages:
            line = passage.as_json(file.name)
            self._write_line(file.name, line | {"metadata": {**claims, **passage.metadata}} | readers)

    def write_missing(self, source: str, digest: str | None = None) -> None:
        """Write that there is no file of a document any more; ``digest`` is of the file that there was."""
        self._write_line(source, {"source": source, "missing": True, "digest": digest})

    def _write_line(self, document: str, line: Mapping[str, object]) -> None:
        self.written_for.append(document)
        self._lines.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def check_sizes(size: int, overlap: int) -> None:
    """Go on only if passages can be cut so.

    Raises:
        InvalidRequestError: the overlap is not smaller than the size.
    """
    if overlap >= size:
        raise InvalidRequestError("--overlap must be smaller than --size.")


def complain_unreadable(file: "SourceFile", error: Exception) -> None:
    """Name a file that cannot be read, and why."""
    complain(f"{file.name}: {error.strerror or error}" if isinstance(error, OSError) else str(error))


def complain_left_out(listed: "Listing") -> None:
    """Name what is not imported.

    Raises:
        InvalidRequestError: that is everything.
    """
    from engram.wings.importing.conversion.notes import list_names

    if listed.others:
        complain(f"left alone, being of other kinds: {list_names(listed.others)}")
    if listed.outside:
        complain(f"not followed, being links that leave the folder: {list_names(listed.outside)}")
    if listed.links:
        complain(f"not followed, being links to a folder or to nothing: {list_names(listed.links)}")
    if listed.locks:
        complain(f"left alone, only marking files that Office has open: {list_names(listed.locks)}")
    if listed.hidden:
        complain(f"left alone, being hidden: {list_names(listed.hidden)}")
    if listed.empty:
        complain(f"left alone, being empty: {list_names(listed.empty)}")
    if listed.twins:
        complain(f"not read, as another file has the same name in Unicode: {list_names(listed.twins)}")
    for note in listed.notes:
        complain(note)
    if listed.unreadable:
        complain(f"cannot be entered: {list_names(listed.unreadable)}")
    if not listed.sources:
        raise InvalidRequestError("There is nothing to import.")
