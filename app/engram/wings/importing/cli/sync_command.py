"""The command that keeps the documents of a folder in step with it."""

import signal
import time
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
    say,
)
from engram.context.errors import InvalidRequestError, NotInstalledError
from engram.wings.importing.cli.document_lines import (
    OVERLAP,
    SIZE,
    OverlapOption,
    PrefixOption,
    ReadersOption,
    SizeOption,
    StrictOption,
    check_sizes,
)
from engram.wings.importing.cli.folder_sync import FolderSync
from engram.wings.importing.cli.mass_deletion import AllowOption

RETRY_MILLISECONDS = 5_000
"""How long `--watch` waits before it tries again what the service was away for, and looks for another folder."""
RERUN_SECONDS = 300.0
"""After this time `--watch` compares all files: systems do not tell of changes on network drives."""


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
    allow_mass_deletion: AllowOption = False,
    strict: StrictOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what a run would do, and change nothing.")
    ] = False,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring the documents of a folder in step with it: read what changed, move, and delete what is gone.

    Files are known by their hashes. A moved file is neither read nor embedded again, and what was learned follows.
    Deletions come last, and only if everything else succeeded. Many at once are confirmed at a terminal or by
    --allow-mass-deletion, else nothing is deleted and the exit code is 1. You can stop at any moment: the next run
    goes on. A file that cannot be read costs a line and exit code 1; its earlier document stays.
    """
    check_sizes(size, overlap)
    task = FolderSync(
        folder.resolve(),
        collection,
        prefix,
        readers,
        size,
        overlap,
        encoder,
        quiet=as_json,
        allow_mass_deletion=allow_mass_deletion,
        strict=strict,
        may_ask=not watch and not as_json,
    )
    with open_client(url) as client:
        if watch and not dry_run:
            _follow(client, task)
            return
        report = task.plan(client) if dry_run else task.run(client)
    if dry_run and not as_json:
        for line in report.list_steps():
            say(line)
    task.say(report)
    if not report.is_good:
        raise typer.Exit(1)


def _follow(client: Client, task: FolderSync) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell without jobs has `&` ignore it
    complain(f"watching {task.folder}; Ctrl-C ends it")
    is_due = True
    last_run = 0.0
    try:
        for has_changed in _watch(task.folder):
            is_by_time = time.monotonic() - last_run >= RERUN_SECONDS
            is_due |= has_changed
            if not is_due and not is_by_time:
                continue
            last_run = time.monotonic()
            try:
                report = task.run(client)
            except (AwayError, InvalidRequestError) as error:
                complain(error.detail)
                is_due = isinstance(error, AwayError)
                continue
            if is_due or report.has_changes():
                task.say(report)
            is_due = False
    except KeyboardInterrupt:
        return


def _watch(folder: Path) -> Iterator[bool]:
    """Whether the folder changed, whenever it did and every few seconds.

    Changes are noted from the first answer on, also those while the caller is at work. The system tells only of the
    folder that was there at first: another one under its path, such as a mount, counts as a change.
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

    while True:
        watched = _identify(folder)
        if watched is None:
            yield False
            time.sleep(RETRY_MILLISECONDS / 1_000)
            continue
        is_new = True
        for changes in watch(
            folder, watch_filter=concerns, yield_on_timeout=True, rust_timeout=RETRY_MILLISECONDS, debounce=1_000
        ):
            if _identify(folder) != watched:
                break
            yield bool(changes) or is_new
            is_new = False


def _identify(folder: Path) -> tuple[int, int] | None:
    """The folder that a path leads to now; None: none."""
    try:
        state = folder.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino
