"""The command that makes passages of documents."""

import contextlib
import io
import tempfile
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from engram.cli.http_client import Client
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
from engram.core.text.words import count_noun
from engram.wings.importing.cli.chosen_readers import ChosenReaders, ReadersOptions
from engram.wings.importing.cli.collection_documents import list_documents
from engram.wings.importing.cli.document_lines import (
    OVERLAP,
    SIZE,
    DefaultReadersOption,
    DocumentLines,
    OverlapOption,
    PrefixOption,
    ReadersOption,
    SizeOption,
    StrictOption,
    check_sizes,
    complain_left_out,
)
from engram.wings.importing.cli.source_sync import FolderComparison

if TYPE_CHECKING:
    from engram.wings.importing.conversion.folder import Listing, SourceFile
    from engram.wings.importing.sources.local_files import LocalFiles

REPORTS = {
    "renamed": "under another name now",
    "orphans": "no longer in the folder (`engram sync` deletes them)",
}


@cli.command("import", rich_help_panel=STOCK)
def import_(
    paths: Annotated[list[Path], typer.Argument(help="Files or folders of documents.")],
    collection: CollectionOption = "default",
    size: SizeOption = SIZE,
    overlap: OverlapOption = OVERLAP,
    source: Annotated[
        str | None, typer.Option(help="What the document of one file is called, instead of by its path.")
    ] = None,
    prefix: PrefixOption = "",
    strict: StrictOption = False,
    readers: ReadersOption = None,
    default_readers: DefaultReadersOption = None,
    encoder: EncoderOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the passages to this file, for `engram ingest`; send nothing.")
    ] = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make passages of documents, cut along their structure, and wait until they are searchable.

    Reads text, Markdown, HTML, PDF, Word, PowerPoint, Excel, OpenDocument, RTF, reStructuredText, Org, CSV, e-mail,
    EPUB, notebooks, captions, JSON, YAML and XML; pictures with Tesseract, and Office files of before 2007 with
    LibreOffice. `docs/import.md` lists their endings.
    Each file makes a document. Its name is the path below the imported folder. It replaces the document of this
    name, and what was learned follows the text, also where a section moves or a file is renamed. A file that
    cannot be read costs a line and exit code 1; its earlier passages stay, and the other files are imported.
    """
    from engram.wings.importing.conversion.converter import Converter
    from engram.wings.importing.conversion.import_limits import PATIENT
    from engram.wings.importing.sources.local_files import LocalFiles

    check_sizes(size, overlap)
    local = LocalFiles(paths)
    files, listed = _choose_files(local, source, prefix, None if out else (url, collection))
    options = ReadersOptions(readers, default_readers)
    chosen = ChosenReaders.prepare(options, files, local, listed.list_left_out())
    if out is None:
        with open_client(url) as client:
            chosen = chosen.close_new(client, collection, files)
    with tempfile.TemporaryFile() if out is None else out.open("wb") as lines:
        with Converter(PATIENT) as converter:
            read = DocumentLines(lines, local, converter, chosen, size, overlap, strict=strict)
            for file in files:
                read.write(file)
        say_or_complain = complain if as_json else say
        say_or_complain(
            f"{count_noun(len(read.sources), 'file')}, {count_noun(read.passages, 'passage')}"
            + ("" if out is None else f" in {out}")
        )
        good = not listed.unreadable and not listed.twins and not read.failed
        if out is None and read.passages:
            folders = _ImportedFolders.prepare(local, collection, files)
            with open_client(url) as client:
                absent = folders.find_absent(client)
                for name, digest in absent.items():
                    read.write_missing(name, digest)
                lines.seek(0)
                stream = cast(io.BufferedIOBase, lines)
                job = ingest_stream(
                    client,
                    stream,
                    "import",
                    collection,
                    quiet=as_json,
                    encoder=encoder,
                    documents=read.written_for,
                )
                report = {}
                if is_complete(job):
                    report = folders.settle(client, absent)
            if as_json:
                say_json({"jobs": [job], **report, "failed": sorted(read.failed)})
            else:
                _say_report(report)
            good &= is_complete(job)
    if not good:
        raise typer.Exit(1)


def _choose_files(
    local: "LocalFiles", source: str | None, prefix: str, destination: tuple[str | None, str] | None
) -> tuple[list["SourceFile"], "Listing"]:
    """The files, named as their documents, and what the folders have beside them.

    Args:
        destination: URL and collection; None: nothing is sent.
    """
    from engram.wings.importing.conversion.folder import check_names, escape_name
    from engram.wings.importing.conversion.known_documents import name_file

    listed = local.list_files(prefix, tuple)
    complain_left_out(listed)
    files = list(listed.sources)
    if source is not None:
        if len(files) != 1 or files[0].folder or prefix:
            raise InvalidRequestError("--source names the document of one file, without --prefix.")
        files = [replace(files[0], name=escape_name(source))]
    elif destination is not None and not prefix and not all(file.folder for file in files):
        url, collection = destination
        with open_client(url) as client:
            known = list_documents(client, collection)
        files = [file if file.folder else replace(file, name=name_file(file, known)) for file in files]
    check_names(files)
    return files, listed


@dataclass(frozen=True)
class _ImportedFolders:
    """The folders of an import, and the names of all its files."""

    comparisons: Sequence[FolderComparison]
    names: Set[str]

    @classmethod
    def prepare(cls, local: "LocalFiles", collection: str, files: Sequence["SourceFile"]) -> "_ImportedFolders":
        """Hash the files of folders; one that cannot be read has no hash."""
        documents: dict[str, list[dict[str, Any]]] = {}
        for file in files:
            if file.folder is not None:
                digest = None
                with contextlib.suppress(OSError):  # the import named it
                    digest = local.find_digest(file)
                documents.setdefault(file.folder, []).append({"source": file.name, "digest": digest})
        comparisons = [FolderComparison(local, folder, collection, listed) for folder, listed in documents.items()]
        return cls(comparisons, {file.name for file in files})

    def find_absent(self, client: Client) -> dict[str, str | None]:
        """Documents that the folders no longer have -> hash of their file, if it has another name now."""
        absent: dict[str, str | None] = {}
        for comparison in self.comparisons:
            steps = comparison.run(client)
            digests = {one["source"]: one["digest"] for one in comparison.documents}
            absent |= dict.fromkeys(steps["delete"])
            absent |= {move["before"]: digests[move["source"]] for move in steps["moved"]}
        return {source: digest for source, digest in absent.items() if source not in self.names}

    def settle(self, client: Client, absent: Collection[str]) -> dict[str, list[str]]:
        """Settle the absent documents, and return what became of them."""
        absent_documents = self.find_absent(client) if absent else {}
        orphans = sorted(source for source, digest in absent_documents.items() if digest is None)
        return {"renamed": sorted(set(absent) - absent_documents.keys()), "orphans": orphans}


def _say_report(report: Mapping[str, list[str]]) -> None:
    for name, text in REPORTS.items():
        if report.get(name):
            say(f"{text}: {', '.join(report[name])}")
