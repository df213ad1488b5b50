"""The command that makes passages of documents."""

import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import typer

from engram.cli.http_client import Client, build_path
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
    from engram.wings.importing.conversion.reader_rules import ReaderRules, ReadersOf

PAGE = 1_000
SIZE = 1_200  # as engram.wings.importing.conversion.chunks, which only this command needs to import
OVERLAP = 200


@cli.command("import", rich_help_panel=STOCK)
def import_(
    paths: Annotated[list[Path], typer.Argument(help="Files or folders of documents.")],
    collection: CollectionOption = "default",
    size: Annotated[int, typer.Option(min=100, max=20_000, help="Characters of a passage at most.")] = SIZE,
    overlap: Annotated[
        int, typer.Option(min=0, help="Characters at most that a passage repeats of the one before it.")
    ] = OVERLAP,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove what was imported from files that the folders no longer have.")
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

    Reads text, Markdown, HTML, PDF, Word, PowerPoint, Excel, CSV, e-mail and JSON. A second import of a file
    replaces the first. A file that cannot be read costs a line and exit code 1; its earlier passages stay, and the
    other files are imported.
    """
    from engram.wings.importing.conversion.converter import Converter
    from engram.wings.importing.conversion.folder import list_files
    from engram.wings.importing.conversion.import_limits import PATIENT

    if overlap >= size:
        raise InvalidRequestError("--overlap must be smaller than --size.")
    listed = list_files(paths)
    if listed.others:
        complain(f"left alone, being of other kinds: {_format_names(listed.others)}")
    if listed.outside:
        complain(f"not followed, being links that leave the folder: {_format_names(listed.outside)}")
    if not listed.sources:
        raise InvalidRequestError("There is nothing to import.")
    chosen = _Readers.prepare(readers, paths)
    read = _Read()
    with tempfile.TemporaryFile() if out is None else out.open("wb") as lines:
        with Converter(PATIENT) as converter:
            for source in listed.sources:
                _write(lines, source, converter, read, chosen, size, overlap)
        say_or_complain = complain if as_json else say
        say_or_complain(
            f"{len(read.sources)} files, {len(read.ids)} passages" + ("" if out is None else f" in {out}")
        )
        good = not read.failed
        if out is None and read.ids:
            lines.seek(0)
            good &= _send(
                lines,
                read,
                collection,
                url,
                encoder=encoder,
                removed_ids=listed.folders if delete else (),
                as_json=as_json,
            )
    if not good:
        raise typer.Exit(1)


class _Read:
    """Outcome of reading the files."""

    def __init__(self) -> None:
        self.sources: set[str] = set()
        self.failed: set[str] = set()
        self.ids: set[str] = set()


@dataclass(frozen=True)
class _Readers:
    """Who may read what is imported: as folders say, else as the command says."""

    given: "ReadersOf | None"
    folders: "Sequence[ReaderRules]"

    @classmethod
    def prepare(cls, option: str | None, paths: Sequence[Path]) -> "_Readers":
        from engram.wings.importing.conversion.folder import escape_name
        from engram.wings.importing.conversion.reader_rules import parse_readers, read_rules

        try:
            given = None if option is None else parse_readers(option)
        except ValueError as error:
            raise InvalidRequestError(f"--readers: {error}.") from error
        folders = [path.resolve() for path in paths if path.is_dir()]
        return cls(given, [read_rules(folder, escape_name(folder.name)) for folder in folders])

    def find(self, source: str) -> dict[str, list[str] | None]:
        """Return field ``readers`` of the passages of a document, if anything is said of it."""
        ruled = (rules.find(source) for rules in self.folders)
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
    """Write a file's passages, all or none."""
    from engram.wings.importing.conversion.documents import UnreadableError

    try:
        with source.path.open("rb") as file:
            data = file.read(converter.limits.file_bytes + 1)  # one more than it may have, which is refused
        conversion = converter.convert(source.name, data, size=size, overlap=overlap)
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
    read.ids.update(passage.id for passage in conversion.passages)
    lines.writelines(
        json.dumps(passage.as_json() | chosen.find(source.name), ensure_ascii=False).encode("utf-8", "replace")
        + b"\n"
        for passage in conversion.passages
    )


def _send(
    lines: IO[bytes],
    read: _Read,
    collection: str,
    url: str | None,
    *,
    encoder: str | None,
    removed_ids: tuple[str, ...],
    as_json: bool,
) -> bool:
    """Whether all of it arrived; what an earlier import left of these files is gone then."""
    with open_client(url) as client:
        stream = cast(io.BufferedIOBase, lines)
        job = ingest_stream(client, stream, "import", collection, quiet=as_json, encoder=encoder)
        listed = _list_imported_ids(client, collection) if is_complete(job) else ()
        removed = [identifier for identifier in listed if _is_stale(identifier, read, removed_ids)]
        for stale in removed:
            client.send("DELETE", build_path("passages", stale), params={"collection": collection})
    if removed and not as_json:
        say(f"{len(removed)} removed that the files no longer have")
    if as_json:
        say_json({"jobs": [job], "removed": removed, "failed": sorted(read.failed)})
    return is_complete(job)


def _list_imported_ids(client: Client, collection: str) -> Iterator[str]:
    """Ids of passages that look like an import's."""
    after: str | None = None
    while True:
        path = build_path("collections", collection, "passages")
        page = client.send("GET", path, params={"limit": PAGE, "after": after})
        yield from (listed["id"] for listed in page["passages"] if "#" in listed["id"])
        after = page["next_after"]
        if after is None:
            return


def _is_stale(identifier: str, read: _Read, removed_ids: tuple[str, ...]) -> bool:
    source = identifier.rpartition("#")[0]
    if identifier in read.ids or source in read.sources:
        return identifier not in read.ids
    return source not in read.failed and source.startswith(tuple(f"{folder}/" for folder in removed_ids))


def _format_names(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
