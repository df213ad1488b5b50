"""The command that makes passages of documents."""

import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import typer

from engram.cli.http_client import Client, ClientError, build_path
from engram.cli.ingest_commands import ingest_stream, is_complete
from engram.cli.terminal import (
    STOCK,
    CollectionOption,
    EncoderOption,
    JsonOption,
    UrlOption,
    cli,
    complain,
    open_client,
    say,
    say_json,
)
from engram.context.errors import InvalidRequestError

if TYPE_CHECKING:
    from engram.wings.importing.conversion.converter import Converter
    from engram.wings.importing.conversion.folder import SourceFile
    from engram.wings.importing.conversion.known_documents import Absence, KnownDocument
    from engram.wings.importing.conversion.reader_rules import ReaderRules, ReadersOf

PAGE = 1_000
SIZE = 1_200  # as engram.wings.importing.conversion.chunks, which only this command needs to import
OVERLAP = 200
REPORTS = {
    "renamed": "under another name now",
    "removed": "deleted, being no longer in the folder",
    "orphans": "no longer in the folder (--delete removes them)",
}


@cli.command("import", rich_help_panel=STOCK)
def import_(
    paths: Annotated[list[Path], typer.Argument(help="Files or folders of documents.")],
    collection: CollectionOption = "default",
    size: Annotated[int, typer.Option(min=100, max=20_000, help="Characters of a passage at most.")] = SIZE,
    overlap: Annotated[
        int, typer.Option(min=0, help="Characters at most that a passage repeats of the one before it.")
    ] = OVERLAP,
    source: Annotated[
        str | None, typer.Option(help="What the document of one file is called, instead of by its path.")
    ] = None,
    prefix: Annotated[str, typer.Option(help="What the names of all documents begin with.")] = "",
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete documents of files that the folders no longer have.")
    ] = False,
    readers: Annotated[
        str | None,
        typer.Option(
            help="Who may read the passages: user:ana, group:hr with commas between, `everyone` or `nobody`. A "
            "file `.engram-readers` in a folder has precedence. Without either, passages keep their readers."
        ),
    ] = None,
    encoder: EncoderOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the passages to this file, for `engram ingest`; send nothing.")
    ] = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make passages of documents, cut along their structure, and wait until they are searchable.

    Reads text, Markdown, HTML, PDF, Word, PowerPoint, Excel, CSV, e-mail and JSON. Each file makes a document. Its
    name is the path below the imported folder. It replaces the document of this name, and what was learned follows
    the text, also where a section moves or a file is renamed. A file that cannot be read costs a line and exit code
    1; its earlier passages stay, and the other files are imported.
    """
    from engram.wings.importing.conversion.converter import Converter
    from engram.wings.importing.conversion.import_limits import PATIENT
    from engram.wings.importing.conversion.known_documents import find_absent

    if overlap >= size:
        raise InvalidRequestError("--overlap must be smaller than --size.")
    files, known = _choose_files(paths, source, prefix, None if out else (url, collection))
    absence = find_absent(known, {file.name: file.folder for file in files})
    chosen = _Readers.prepare(readers, paths)
    read = _Read()
    with tempfile.TemporaryFile() if out is None else out.open("wb") as lines:
        with Converter(PATIENT) as converter:
            for file in files:
                _write(lines, file, converter, read, chosen, size, overlap)
        say_or_complain = complain if as_json else say
        say_or_complain(
            f"{len(read.sources)} files, {read.passages} passages" + ("" if out is None else f" in {out}")
        )
        good = not read.failed
        if out is None and read.passages:
            missing = ({"source": one.source, "missing": True} for one in (*absence.orphans, *absence.strays))
            lines.writelines(map(_encode, missing))
            lines.seek(0)
            with open_client(url) as client:
                stream = cast(io.BufferedIOBase, lines)
                job = ingest_stream(client, stream, "import", collection, quiet=as_json, encoder=encoder)
                report = _settle(client, collection, absence, delete=delete) if is_complete(job) else {}
            if as_json:
                say_json({"jobs": [job], **report, "failed": sorted(read.failed)})
            else:
                _say_report(report)
            good &= is_complete(job)
    if not good:
        raise typer.Exit(1)


class _Read:
    """Outcome of reading the files."""

    def __init__(self) -> None:
        self.sources: set[str] = set()
        self.failed: set[str] = set()
        self.passages = 0


def _choose_files(
    paths: list[Path], source: str | None, prefix: str, destination: tuple[str | None, str] | None
) -> tuple[list["SourceFile"], list["KnownDocument"]]:
    """The files, named as their documents, and the documents that there are.

    Args:
        destination: URL and collection; None: nothing is sent.
    """
    from engram.wings.importing.conversion.folder import check_names, escape_name, list_files
    from engram.wings.importing.conversion.known_documents import name_file

    listed = list_files(paths, prefix)
    if listed.others:
        complain(f"left alone, being of other kinds: {_format_names(listed.others)}")
    if listed.outside:
        complain(f"not followed, being links that leave the folder: {_format_names(listed.outside)}")
    if not listed.sources:
        raise InvalidRequestError("There is nothing to import.")
    files = list(listed.sources)
    known: list[KnownDocument] = []
    if destination is not None:
        url, collection = destination
        with open_client(url) as client:
            known = _list_documents(client, collection)
    if source is not None:
        if len(paths) != 1 or paths[0].is_dir() or prefix:
            raise InvalidRequestError("--source names the document of one file, without --prefix.")
        files = [replace(files[0], name=escape_name(source))]
    elif not prefix:
        files = [file if file.folder else replace(file, name=name_file(file, known)) for file in files]
    check_names(files)
    return files, known


def _list_documents(client: Client, collection: str) -> list["KnownDocument"]:
    """The documents of the collection; none if it does not exist yet."""
    from engram.wings.importing.conversion.known_documents import KnownDocument

    known: list[KnownDocument] = []
    after: str | None = None
    while True:
        try:
            where = {"collection": collection, "limit": PAGE, "after": after}
            page = client.send("GET", "/documents", params=where)
        except ClientError as error:
            if error.extra.get("status_code") == HTTPStatus.NOT_FOUND:
                return []
            raise
        known += (KnownDocument(one["source"], one["folder"]) for one in page["documents"])
        after = page["next_after"]
        if after is None:
            return known


@dataclass(frozen=True)
class _Readers:
    """Who may read what is imported: as folders say, else as the command says."""

    given: "ReadersOf | None"
    folders: "Sequence[ReaderRules]"

    @classmethod
    def prepare(cls, option: str | None, paths: Sequence[Path]) -> "_Readers":
        from engram.wings.importing.conversion.reader_rules import parse_readers, read_rules

        try:
            given = None if option is None else parse_readers(option)
        except ValueError as error:
            raise InvalidRequestError(f"--readers: {error}.") from error
        folders = [path.resolve() for path in paths if path.is_dir()]
        return cls(given, [read_rules(folder) for folder in folders])

    def find(self, path: Path) -> dict[str, list[str] | None]:
        """Return field ``readers`` of the passages of a file, if anything is said of it."""
        ruled = (rules.find(path) for rules in self.folders)
        chosen = next((one for one in ruled if one is not None), self.given)
        if chosen is None:
            return {}
        return {"readers": None if chosen.readers is None else list(chosen.readers)}


def _write(
    lines: IO[bytes],
    source: "SourceFile",
    converter: "Converter",
    read: _Read,
    chosen: _Readers,
    size: int,
    overlap: int,
) -> None:
    """Write a document and its passages, all or none."""
    from engram.wings.importing.conversion.documents import UnreadableError
    from engram.wings.importing.conversion.formats import find_kind

    try:
        with source.path.open("rb") as file:
            data = file.read(converter.limits.file_bytes + 1)  # one more than it may have, which is refused
        kind = find_kind(source.path.name)
        conversion = converter.convert(source.name, data, kind=kind, size=size, overlap=overlap)
    except UnreadableError as error:
        complain(error.detail)
        read.failed.add(source.name)
        return
    except OSError as error:
        complain(f"{source.name}: {error.strerror or error}")
        read.failed.add(source.name)
        return
    for note in conversion.notes:
        complain(note)
    read.sources.add(source.name)
    read.passages += len(conversion.passages)
    chosen_readers = chosen.find(source.path)
    lines.write(_encode(conversion.describe(source.name, data, source.folder)))
    lines.writelines(_encode(passage.as_json(source.name) | chosen_readers) for passage in conversion.passages)


def _encode(line: Mapping[str, object]) -> bytes:
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _settle(client: Client, collection: str, absence: "Absence", *, delete: bool) -> dict[str, list[str]]:
    """What became of documents that the import does not have; orphans are deleted if ``delete``."""
    absent = (*absence.orphans, *absence.strays)
    left = {one.source for one in _list_documents(client, collection)} if absent else set()
    renamed = [one.source for one in absent if one.source not in left]
    found = {one.folder for one in absence.strays if one.source not in left}
    own = (*absence.orphans, *(one for one in absence.strays if one.folder in found))
    orphans = sorted(one.source for one in own if one.source in left)
    if not delete:
        return {"renamed": sorted(renamed), "orphans": orphans, "removed": []}
    for source in orphans:
        client.send("DELETE", build_path("documents", source), params={"collection": collection})
    return {"renamed": sorted(renamed), "orphans": [], "removed": orphans}


def _say_report(report: Mapping[str, list[str]]) -> None:
    for name, text in REPORTS.items():
        if report.get(name):
            say(f"{text}: {', '.join(report[name])}")


def _format_names(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
