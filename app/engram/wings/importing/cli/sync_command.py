"""The command that keeps documents in step with a folder or an address."""

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from engram.wings.importing.cli.chosen_readers import ReadersOptions
from engram.wings.importing.cli.document_lines import (
    OVERLAP,
    SIZE,
    DefaultReadersOption,
    OverlapOption,
    PrefixOption,
    ReadersOption,
    SizeOption,
    StrictOption,
    check_sizes,
)
from engram.wings.importing.cli.mass_deletion import AllowOption
from engram.wings.importing.cli.source_sync import SourceSync

if TYPE_CHECKING:
    from engram.wings.importing.sources.source import Source

RETRY_MILLISECONDS = 5_000
"""How long `--watch` waits before it tries again what the service was away for, and looks for another folder."""
RERUN_SECONDS = 300.0
"""After this time `--watch` compares all files: systems do not tell of changes on network drives."""
_INTERVAL = re.compile(r"(\d+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


@cli.command(rich_help_panel=STOCK)
def sync(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder, or an address: s3://bucket/handbook, sftp://host/path, webdav://host/path, the sitemap "
            "or feed of a website."
        ),
    ],
    collection: CollectionOption = "default",
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and follow each change of the folder until Ctrl-C.")
    ] = False,
    every: Annotated[
        str | None, typer.Option("--every", help="Stay, and run again after this time: 30s, 15m, 6h, 1d.")
    ] = None,
    size: SizeOption = SIZE,
    overlap: OverlapOption = OVERLAP,
    prefix: PrefixOption = "",
    readers: ReadersOption = None,
    default_readers: DefaultReadersOption = None,
    versions: Annotated[
        Path | None,
        typer.Option(
            "--versions",
            help="A file of rules by path: `policies/2024/: valid_from=2024-01-01, supersedes=policies/2023/`.",
        ),
    ] = None,
    encoder: EncoderOption = None,
    allow_mass_deletion: AllowOption = False,
    strict: StrictOption = False,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Read a website at an address of a private network too.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what a run would do, and change nothing.")
    ] = False,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring documents in step with a folder or an address: read what changed, move, and delete what is gone.

    Files of a folder are known by their hashes, those of an address by ETag, or by size and time. A moved file is
    not embedded again, and what was learned follows. Deletions come last, and only if all files could be opened
    and the job succeeded. Many at once are confirmed at a terminal or by --allow-mass-deletion, else nothing is
    deleted and the exit code is 1. You can stop at any moment: the next run goes on. A file that cannot be read
    costs a line and exit code 1; its earlier document stays.
    """
    check_sizes(size, overlap)
    seconds = None if every is None else _parse_interval(every)
    opened = _open_source(source, allow_private=allow_private)
    folder = None if "://" in source else Path(os.path.abspath(source))
    if watch and folder is None:
        raise InvalidRequestError("--watch follows a folder of this machine. For an address give --every 15m.")
    stays = watch or seconds is not None
    task = SourceSync(
        opened,
        collection,
        prefix,
        ReadersOptions(readers, default_readers),
        size,
        overlap,
        encoder,
        quiet=as_json,
        allow_mass_deletion=allow_mass_deletion,
        strict=strict,
        versions=versions,
        may_ask=not stays and not as_json,
    )
    with open_client(url) as client:
        if stays and not dry_run:
            watched = folder if watch else None
            _follow(client, task, watched, RERUN_SECONDS if seconds is None else seconds)
            return
        report = task.plan(client) if dry_run else task.run(client)
    if dry_run and not as_json:
        for line in report.list_steps():
            say(line)
    task.say(report)
    if not report.is_good:
        raise typer.Exit(1)


def _open_source(name: str, *, allow_private: bool) -> "Source":
    """The source of this name.

    Raises:
        InvalidRequestError: it is neither a folder nor an address that can be read.
    """
    if name.startswith(("https://", "http://")):
        from engram.wings.importing.sources.website import Website

        return Website(name, allow_private=allow_private)
    if "://" in name:
        from engram.wings.importing.sources.file_system import FileSystem

        return FileSystem(name)
    from engram.wings.importing.sources.local_files import LocalFiles

    folder = Path(name)
    if not folder.is_dir():
        raise InvalidRequestError(f"{name} is no folder. `engram import` reads a file.")
    return LocalFiles([Path(os.path.abspath(folder))])


def _parse_interval(text: str) -> float:
    parts = _INTERVAL.fullmatch(text)
    if parts is None or int(parts[1]) == 0:
        raise InvalidRequestError("--every is a number and a unit: 30s, 15m, 6h or 1d.")
    return float(int(parts[1]) * _SECONDS[parts[2]])


def _follow(client: Client, task: SourceSync, watched: Path | None, rerun_seconds: float) -> None:
    """Run whenever the watched folder changed, and each time that many seconds have passed since the last run."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell without jobs has `&` ignore it
    complain(f"watching {task.source.name}; Ctrl-C ends it")
    is_due = True
    last_run = 0.0
    try:
        for has_changed in _poll() if watched is None else _watch(watched):
            is_by_time = time.monotonic() - last_run >= rerun_seconds
            is_due |= has_changed
            if not is_due and not is_by_time:
                continue
            try:
                report = task.run(client)
            except (AwayError, InvalidRequestError) as error:
                complain(error.detail)
                is_due = isinstance(error, AwayError) and watched is not None
                continue
            finally:
                last_run = time.monotonic()
            if is_due or report.has_changes():
                task.say(report)
            is_due = False
    except KeyboardInterrupt:
        return


def _poll() -> Iterator[bool]:
    """Wake up every few seconds, where nobody tells of changes."""
    while True:
        yield False
        time.sleep(RETRY_MILLISECONDS / 1_000)


def _watch(folder: Path) -> Iterator[bool]:
    """Whether the folder changed, whenever it did and every few seconds.

    Changes are noted from the first answer on, also those while the caller is at work. The system tells only of the
    folder that was there at first: another one under its path, such as a mount or where a link leads now, counts as
    a change.
    """
    try:
        from watchfiles import watch
    except ImportError as error:
        raise NotInstalledError("--watch needs watchfiles: pip install 'engram[import]'.") from error
    from engram.wings.importing.conversion.folder import is_left_out
    from engram.wings.importing.conversion.reader_rules import FILE

    def concerns(_change: object, path: str) -> bool:
        parts = Path(path).relative_to(place).parts
        return not any(map(is_left_out, parts[:-1] if parts[-1:] == (FILE,) else parts))

    while True:
        watched = _identify(folder)
        if watched is None:
            yield False
            time.sleep(RETRY_MILLISECONDS / 1_000)
            continue
        is_new, place = True, folder.resolve()
        for changes in watch(
            place, watch_filter=concerns, yield_on_timeout=True, rust_timeout=RETRY_MILLISECONDS, debounce=1_000
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
