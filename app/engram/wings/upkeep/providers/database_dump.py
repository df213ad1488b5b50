"""Postgres's own programs that copy a database into a file and back."""

import hashlib
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import IO

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from engram.context.errors import ConfigurationError, UnavailableError
from engram.migrations.rules import GRANTS

PIECE_BYTES = 1024 * 1024
TAIL_LINES = 5
LOCK_WAIT_MS = 30_000
LineHandler = Callable[[str], None]
Stop = Callable[[], bool]


def dump(
    url: str, target: Path, snapshot: str, on_line: LineHandler, should_stop: Stop, programs: Path | None = None
) -> str:
    """Copy the database, as a snapshot shows it, into a new file; the file's SHA-256.

    Args:
        snapshot: as ``pg_export_snapshot`` named it; it need not last for longer than until the program speaks.
        on_line: is told each line that the program says.
        should_stop: polled; once true, the program is ended.
        programs: the folder of ``pg_dump``.

    Raises:
        ConfigurationError: the program cannot copy this database.
        UnavailableError: it was told to stop.
    """
    options = ["--format=custom", "--no-owner", "--no-privileges", "--verbose"]
    options += ["--exclude-extension=*", f"--snapshot={snapshot}", f"--lock-wait-timeout={LOCK_WAIT_MS}"]
    digest = hashlib.sha256()
    with target.open("xb") as file, _RunningProgram("pg_dump", options, url, programs, on_line) as running:
        while piece := running.output.read1(PIECE_BYTES):
            if should_stop():
                raise UnavailableError("Stopped; there is no backup.")
            digest.update(piece)
            file.write(piece)
        running.finish()
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def restore(url: str, source: Path, *, on_line: LineHandler, programs: Path | None = None) -> None:
    """Put a file's database in place of what the schema holds, in one transaction: all of it, or nothing.

    Args:
        on_line: is told each line that ``pg_restore`` says.
        programs: the folder of ``pg_restore`` and ``psql``.

    Raises:
        ConfigurationError: that is not possible, and nothing has changed.
    """
    quiet = ["--no-psqlrc", "--quiet", "--output=/dev/null", "--set=ON_ERROR_STOP=1"]
    with _RunningProgram("psql", quiet, url, programs, lambda _: None, stdin=PIPE) as psql:
        try:
            psql.input.write(_EMPTIED)
            for section in _SECTIONS:
                _write(section, source, psql.input, on_line, programs)
            psql.input.write(f"\nRESET search_path;{GRANTS};".encode())
            psql.input.write(b"\nCOMMIT;\n")  # what ends before that is rolled back
            psql.input.close()
        except BrokenPipeError:  # psql met an error, and says which
            pass
        psql.finish()


def _write(section: str, source: Path, to: IO[bytes], on_line: LineHandler, programs: Path | None) -> None:
    """Write what puts a section of the file back, the definitions as any server understands them."""
    options = [f"--section={section}", "--file=-", "--no-owner", "--no-privileges", "--verbose", str(source)]
    with _RunningProgram("pg_restore", options, None, programs, on_line) as script:
        if section == _DEFINITIONS:
            to.write(_clean_definitions(script.output.read()))
        while piece := script.output.read1(PIECE_BYTES):
            to.write(piece)
        script.finish()


def _clean_definitions(definitions: bytes) -> bytes:
    """The definitions of tables without what their server noted for itself.

    Since its releases of November 2026 (17.12 is one) Postgres keeps a version, ``pg_attver``, among the options of
    each column. A ``pg_dump`` of before writes it out with them, and no server takes it.
    """

    def drop_options(match: re.Match[bytes]) -> bytes:
        options = [option for option in match[2].split(b", ") if not option.startswith(b"pg_attver=")]
        return match[1] + b", ".join(options) + match[3] if options else b""

    return _NOTED.sub(drop_options, definitions)


_DEFINITIONS = "pre-data"
_SECTIONS = (_DEFINITIONS, "data", "post-data")
_NOTED = re.compile(
    rb"^(ALTER TABLE [^\n]+ ALTER COLUMN [^\n]+ SET \()([^\n]*pg_attver=[^\n]*)(\);\n)", re.MULTILINE
)
_EMPTIED = b"""
SET client_min_messages = warning;
BEGIN;
DO $$ DECLARE named text; BEGIN
    FOREACH named IN ARRAY ARRAY(
        SELECT format(
            '%s IF EXISTS %s',
            CASE c.relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
                ELSE 'TABLE' END,
            c.oid::regclass
        )
        FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                          AND d.objsubid = 0 AND d.deptype IN ('a', 'e', 'i'))
        UNION ALL
        SELECT format('ROUTINE IF EXISTS %s', p.oid::regprocedure) FROM pg_proc p
        WHERE p.pronamespace = current_schema()::regnamespace
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                          AND d.deptype = 'e')
    ) LOOP EXECUTE 'DROP ' || named || ' CASCADE'; END LOOP;
END $$;
"""
"""Takes away what is there, but for extensions and what is theirs: those are not in the file.

All names are read first: one that goes with another has none any more.
"""


class _RunningProgram:
    """A program at work; it is ended with the block."""

    def __init__(
        self,
        name: str,
        options: Sequence[str],
        url: str | None,
        programs: Path | None,
        on_line: LineHandler,
        stdin: int = DEVNULL,
    ) -> None:
        if programs is None:
            raise ConfigurationError(
                f"{name}: set ENGRAM_UPKEEP_POSTGRES_PROGRAMS to the folder of Postgres's own programs."
            )
        program = programs / name
        connection = conninfo_to_dict((url or "").replace("+psycopg", "", 1))
        password = connection.pop("password", None)  # for whoever lists processes to see
        env = {**os.environ, "LC_MESSAGES": "C"} | ({} if password is None else {"PGPASSWORD": str(password)})
        to = [] if url is None else [f"--dbname={make_conninfo(**connection)}"]  # type: ignore[arg-type]
        self._name = name
        self._on_line = on_line
        self._last_lines: deque[str] = deque(maxlen=TAIL_LINES)
        try:
            command = [str(program), *to, *options]
            self._process = Popen(command, stdin=stdin, stdout=PIPE, stderr=PIPE, env=env)
        except OSError as error:
            raise ConfigurationError(f"{program} cannot be run: {error.strerror}.") from error
        self._listening = threading.Thread(target=self._listen, name=name, daemon=True)
        self._listening.start()

    def __enter__(self) -> "_RunningProgram":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        self._listening.join()
        self.output.close()

    @property
    def output(self) -> BufferedReader:
        """Stream that the program writes."""
        assert isinstance(self._process.stdout, BufferedReader)  # noqa: S101 - asked for above
        return self._process.stdout

    @property
    def input(self) -> IO[bytes]:
        """Stream that the program reads."""
        assert self._process.stdin is not None  # noqa: S101 - asked for
        return self._process.stdin

    def finish(self) -> None:
        """Wait for its end.

        Raises:
            ConfigurationError: it failed; the message has its last lines.
        """
        status = self._process.wait()
        self._listening.join()
        if status:
            raise ConfigurationError(f"{self._name} failed (status {status}): {' '.join(self._last_lines)}")

    def _listen(self) -> None:
        assert self._process.stderr is not None  # noqa: S101
        with self._process.stderr as lines:
            for raw in lines:
                line = raw.decode("utf-8", "replace").strip()
                self._last_lines.append(line)
                self._on_line(line)
