"""The command that keeps the documents of a folder in step with it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from engram.cli.http_client import AwayError, Client
from engram.cli.terminal import (
    STOCK,
    CollectionOption,
    EncoderOption,
    JsonOption,
    UrlOption,
    cli,
    complain,
    open_client,
)
from engram.context.errors import InvalidRequestError, NotInstalledError
from engram.wings.importing.cli.document_lines import (
    OVERLAP,
    SIZE,
    OverlapOption,
    PrefixOption,
    ReadersOption,
    SizeOption,
    check_sizes,
)
from engram.wings.importing.cli.folder_sync import FolderSync

RETRY_MILLISECONDS = 5_000
"""How long `--watch` waits before it tries again what the service was away for."""


@cli.command(rich_help_panel=STOCK)
def sync(
    folder: Annotated[Path, typer.Argument(help="A folder of documents.", file_okay=False, exists=True)],
    collection: CollectionOption = "default",
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and follow each change of the folder until Ctrl-C.")
    ] = False,
    size: SizeOption = SIZE,
    overlap: OverlapOption = OVERLAP,
    prefix: PrefixOption = "",
    readers: ReadersOption = None,
    encoder: EncoderOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring the documents of a folder in step with it: read what changed, move, and delete what is gone.

    Files are known by their hashes. A moved file is neither read nor embedded again, and what was learned follows.
    Deletions come last, and only if everything else succeeded. You can stop at any moment: the next run goes on.
    A file that cannot be read costs a line and exit code 1; its earlier document stays.
    """
    check_sizes(size, overlap)
    task = FolderSync(folder.resolve(), collection, prefix, readers, size, overlap, encoder, quiet=as_json)
    with open_client(url) as client:
        if watch:
            _follow(client, task)
            return
        report = task.run(client)
    task.say(report)
    if not report.is_good:
        raise typer.Exit(1)


def _follow(client: Client, task: FolderSync) -> None:
    is_due = True
    try:
        for has_changed in _watch(task.folder):
            is_due |= has_changed
            if not is_due:
                continue
            try:
                report = task.run(client)
            except (AwayError, InvalidRequestError) as error:
                complain(error.detail)
                is_due = isinstance(error, AwayError)
                continue
            is_due = False
            task.say(report)
    except KeyboardInterrupt:
        return


def _watch(folder: Path) -> Iterator[bool]:
    """Whether the folder changed, whenever it did and every few seconds.

    Changes are noted from the first answer on, also those while the caller is at work.
    """
    try:
        from watchfiles import watch
    except ImportError as error:
        raise NotInstalledError("--watch needs watchfiles: pip install 'engram[import]'.") from error
    from engram.wings.importing.conversion.folder import is_left_out
    from engram.wings.importing.conversion.reader_rules import FILE

    def concerns(_change: object, path: str) -> bool:
        parts = Path(path).relative_to(folder).parts
        return not any(map(is_left_out, parts[:-1] if parts[-1:] == (FILE,) else parts))

    for changes in watch(
        folder, watch_filter=concerns, yield_on_timeout=True, rust_timeout=RETRY_MILLISECONDS, debounce=1_000
    ):
        yield bool(changes)
