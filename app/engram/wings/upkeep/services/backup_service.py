"""Backups: a database as one snapshot shows it, in a folder that is there whole or not at all, and the way back."""

import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engram import __version__
from engram.context.errors import ConfigurationError, ConflictError
from engram.storage.database import Database
from engram.storage.maintenance.schema_standing import load_standing
from engram.wings.upkeep.providers import database_dump
from engram.wings.upkeep.services.held_locks import exclude_upkeep
from engram.wings.upkeep.storage import database_contents

FORMAT = 1
DATA, MANIFEST = "data.dump", "manifest.json"
UNFINISHED_SUFFIX = ".unfinished"
SPEAK_SECONDS = 30.0
PIECE_BYTES = 4 * 1024 * 1024

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much."""


def ignore_progress(_stage: str, _done: int, _total: int) -> None:
    """For whoever does not look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Contents of a backup.

    Attributes:
        rows: table -> its rows.
        collections: with the encoders that their vectors are of.
        sha256, bytes: of the data.
        schema: revision of the schema.
    """

    format: int
    engram: str
    made_at: str
    postgres: str
    pgvector: str | None
    schema: str | None
    bytes: int
    sha256: str
    rows: Mapping[str, int]
    collections: Sequence[Mapping[str, Any]]


class BackupService:
    """Makes backups of one database and puts them back."""

    def __init__(self, database: Database, url: str, programs: Path | None = None) -> None:
        """``url``: of the database; ``programs``: the folder of Postgres's own, None where there is none."""
        self._database = database
        self._url = url
        self._programs = programs

    def backup(
        self, target: Path, progress: Progress = ignore_progress, should_stop: Callable[[], bool] = lambda: False
    ) -> Manifest:
        """Copy the database into the new folder ``target``, while it is read and written.

        Until all of it is on the disk the folder has another name, so that nothing unfinished looks whole.

        Raises:
            ConflictError: there is something at ``target``.
            ConfigurationError: the database cannot be copied.
            UnavailableError: Postgres is out of reach, others maintain it for too long, or it was told to stop.
        """
        target = target.absolute()
        if target.exists():
            raise ConflictError(f"There is something at {target} already.")
        unfinished = target.with_name(target.name + UNFINISHED_SUFFIX)
        with exclude_upkeep(self._database):
            shutil.rmtree(unfinished, ignore_errors=True)  # of one that was killed: nobody else is at it
            unfinished.mkdir(parents=True, mode=0o700)
            try:
                manifest = self._write(unfinished, progress, should_stop)
                unfinished.rename(target)
                _sync(target.parent)
            except BaseException:
                shutil.rmtree(unfinished, ignore_errors=True)
                raise
        return manifest

    def _write(self, folder: Path, progress: Progress, should_stop: Callable[[], bool]) -> Manifest:
        snapshot_seen, dumped = threading.Event(), 0
        tables: list[str] = []

        def on_line(line: str) -> None:
            nonlocal dumped
            if "last built-in OID" in line:  # which it says once it sees the snapshot
                snapshot_seen.set()
            if "dumping contents of table" in line:
                dumped += 1
                progress("tables copied", min(dumped, len(tables)), len(tables))

        with self._database.write_long(should_stop) as reader:
            versions, tables = database_contents.versions(reader), database_contents.tables(reader)
            made, snapshot = database_contents.collections(reader), database_contents.export_snapshot(reader)
            began = _Dump(self._url, folder / DATA, snapshot, on_line, should_stop, self._programs)
            try:
                rows = database_contents.count_rows(reader, tables)
            finally:
                began.wait_for(snapshot_seen)
        sha256 = began.result()
        manifest = Manifest(
            format=FORMAT,
            engram=__version__,
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            postgres=versions.postgres,
            pgvector=versions.pgvector,
            schema=versions.schema,
            bytes=(folder / DATA).stat().st_size,
            sha256=sha256,
            rows=rows,
            collections=[asdict(one) for one in made],
        )
        with (folder / MANIFEST).open("x", encoding="utf-8") as file:
            json.dump(asdict(manifest), file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        _sync(folder)
        return manifest

    def restore(self, source: Path, *, replace: bool = False, progress: Progress = ignore_progress) -> Manifest:
        """Put a backup back into the database, which is migrated to the backup's schema or an empty one's.

        The data are put back in one transaction. Rows are counted after it, so a wrong count leaves them there.

        Args:
            replace: the database may hold collections, which are gone then.

        Raises:
            ConfigurationError: the backup is not whole, or of another version, or cannot be put into this database;
                or tables do not have the rows that the backup counted.
            ConflictError: the database holds collections, or others are connected to it.
            UnavailableError: Postgres is out of reach.
        """
        manifest = read(source)
        check(source, manifest, progress)
        with self._database.read() as reader:
            if others := database_contents.count_other_sessions(reader):
                raise ConflictError(f"{others} others are connected to the database; stop the API and all workers.")
            if load_standing(reader) != "current" or database_contents.versions(reader).schema != manifest.schema:
                raise ConfigurationError(
                    f"The backup has schema {manifest.schema}, another than this version of Engram: restore it "
                    f"with Engram {manifest.engram}, then migrate."
                )
            if database_contents.collections(reader) and not replace:
                raise ConflictError("The database holds collections; --replace removes them.")
        done = 0

        def on_line(line: str) -> None:
            nonlocal done
            if "processing data for table" in line:
                done += 1
                progress("tables put back", min(done, len(manifest.rows)), len(manifest.rows))

        self._database.close()  # their sessions know types that are about to be made anew
        database_dump.restore(self._url, source / DATA, on_line=on_line, programs=self._programs)
        with self._database.administer() as administrator:
            database_contents.analyse(administrator)
            row_counts = database_contents.count_rows(administrator, database_contents.tables(administrator))
        if row_counts != manifest.rows:
            different = sorted(table for table in row_counts if row_counts[table] != manifest.rows.get(table))
            raise ConfigurationError(f"These tables do not have the rows that the backup counted: {different}.")
        return manifest


class _Dump:
    """A dump under way in a thread of its own."""

    def __init__(
        self,
        url: str,
        target: Path,
        snapshot: str,
        on_line: database_dump.LineHandler,
        should_stop: database_dump.Stop,
        programs: Path | None,
    ) -> None:
        self._sha256: str | None = None
        self._error: BaseException | None = None

        def run() -> None:
            try:
                self._sha256 = database_dump.dump(url, target, snapshot, on_line, should_stop, programs)
            except BaseException as error:  # noqa: BLE001 - raised by whoever waits for the result
                self._error = error

        self._thread = threading.Thread(target=run, name="dump", daemon=True)
        self._thread.start()

    def wait_for(self, event: threading.Event) -> None:
        """Wait for the event, or for the end if that comes before it."""
        until = time.monotonic() + SPEAK_SECONDS
        while self._thread.is_alive() and not event.wait(0.1) and time.monotonic() < until:
            pass

    def result(self) -> str:
        """The data's SHA-256, at the end."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._sha256 is not None  # noqa: S101 - it is one or the other
        return self._sha256


def read(folder: Path) -> Manifest:
    """Read the manifest of a backup.

    Raises:
        ConfigurationError: this is none, or one of another version.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise ConfigurationError(
                f"{folder} is a backup of format {manifest['format']}, which is not known here."
            )
        return Manifest(**manifest)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{folder} is no backup: its {MANIFEST} cannot be read ({error}).") from error


def check(folder: Path, manifest: Manifest, progress: Progress = ignore_progress) -> None:
    """See that the data are those that the backup was made of.

    Raises:
        ConfigurationError: they are not.
    """
    digest, done = hashlib.sha256(), 0
    try:
        with (folder / DATA).open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                digest.update(piece)
                done += len(piece)
                progress("MiB checked", done // 2**20, manifest.bytes // 2**20)
    except OSError as error:
        raise ConfigurationError(f"{folder} is no whole backup: {DATA}: {error.strerror}.") from error
    if digest.hexdigest() != manifest.sha256:
        raise ConfigurationError(f"{folder / DATA} is not what the backup was made of: its SHA-256 differs.")


def _sync(folder: Path) -> None:
    """Have the folder's entries on the disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
