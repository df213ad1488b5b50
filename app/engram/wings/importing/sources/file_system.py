"""File systems by address, read by fsspec, such as ``s3://bucket/handbook``."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from engram.context.errors import InvalidRequestError, NotInstalledError
from engram.wings.importing.conversion.folder import (
    Listing,
    SourceFile,
    escape_name,
    is_left_out,
    name_hidden,
    part_twins,
)
from engram.wings.importing.conversion.formats import find_kind, is_wanted
from engram.wings.importing.conversion.reader_rules import FILE, ReaderRules, check_rules_name
from engram.wings.importing.sources.source import (
    FileContent,
    ListKnown,
    Source,
    is_settled,
    load_library,
    read_http_date,
)

Result = TypeVar("Result")
ETAGS = "ETag", "etag", "md5Hash"
TIMES = "mtime", "LastModified", "last_modified", "modified", "updated", "created"
RULES_BYTES = 1 << 20
"""Bytes of a rules file at most."""


class FileSystem(Source):
    """Files below an address.

    The version of a file is its ETag and size, or its path, size and time. A file that has neither is hashed, as is
    one that changed just before it was listed: its next change may leave it the same time, of which WebDAV servers
    make ETags.

    Raises:
        InvalidRequestError: the address is of no known kind, or nobody answers there.
        NotInstalledError: a package that reads such addresses is not installed.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme in ("file", "local"):
            raise InvalidRequestError(f"{address}: name a folder of this machine by its path.")
        self.name = escape_name(_hide_password(parts))
        self._address = address
        self._system, self._top = self._open()
        self._etags_are_times = parts.scheme.startswith("webdav")
        self._versions: dict[Path, str] = {}
        self._names: list[str] = []
        self._rules: list[Path] = []

    def list_files(self, prefix: str, list_known: ListKnown) -> Listing:
        """List the files below the address, without hidden ones and links."""
        del list_known
        prefix = f"{prefix.rstrip('/')}/" if prefix else ""
        self._versions, self._names, self._rules = {}, [], []
        listed_at = time.time()
        if self._system is None:
            self._system, self._top = self._open()
        self._system.invalidate_cache()
        files: list[SourceFile] = []
        left_out: dict[str, list[str]] = {"others": [], "outside": [], "empty": [], "unreadable": [], "hidden": []}
        folders = [Path("/")]
        while folders:
            folder = folders.pop()
            try:
                entries = self._list_folder(folder)
            except OSError as error:
                if folder == Path("/"):
                    self._system = None  # its connection may be lost
                    reason = "nothing is there" if isinstance(error, FileNotFoundError) else error
                    raise InvalidRequestError(f"{self.name} cannot be listed: {reason}.") from error
                left_out["unreadable"].append(escape_name(str(folder)))
                continue
            for path, entry in entries.items():
                below = path.relative_to("/").as_posix()
                is_folder = entry["type"] == "directory"
                left_out["hidden"] += name_hidden(path, f"{prefix}{below}", is_folder=is_folder)
                if is_folder and not is_left_out(path.name):
                    folders.append(path)
                    self._names.append(escape_name(f"{below}/"))
                elif not is_folder:
                    self._add_file(path, entry, prefix, files, left_out, listed_at)
        chosen, twins = part_twins(sorted(files, key=lambda file: file.path))
        return Listing(
            tuple(chosen),
            twins=tuple(file.name for file in twins),
            **{kind: tuple(sorted(names)) for kind, names in left_out.items()},
        )

    def read_rules(self, files: Sequence[SourceFile]) -> ReaderRules:
        """Read the rules files that were listed; those above the address do not count."""
        try:
            texts = {path.parent: self._read(path, RULES_BYTES + 1) for path in self._rules}
        except OSError as error:
            raise InvalidRequestError(f"A file {FILE} of {self.name} cannot be read: {error}.") from error
        for folder, text in texts.items():
            if len(text) > RULES_BYTES:
                raise InvalidRequestError(f"{folder / FILE} of {self.name} is larger than {RULES_BYTES >> 20} MiB.")
        return ReaderRules.parse(texts, self._names, [file.path for file in files])

    def find_digest(self, file: SourceFile) -> str:
        """Return the version as it was listed, else the hash of the content."""
        return self._versions.get(file.path) or hashlib.sha256(self._read(file.path)).hexdigest()

    def read(self, file: SourceFile, most_bytes: int) -> FileContent:
        """Read a file."""
        data = self._read(file.path, most_bytes)
        return FileContent(data, find_kind(file.path.name), self._versions.get(file.path))

    def _open(self) -> tuple[Any, str]:
        """The file system of the address, and the path in it."""
        parts = urlsplit(self._address)
        fsspec = load_library("fsspec")
        transports = {"webdav": "https", "webdav+https": "https", "webdav+http": "http"}
        try:
            if parts.scheme in transports:
                host = parts.netloc.rpartition("@")[2]
                url = urlunsplit((transports[parts.scheme], host, parts.path, "", ""))
                auth = fsspec.config.conf.get("webdav", {}).get("auth")
                if parts.username:
                    auth = unquote(parts.username), unquote(parts.password or "")
                auth = None if auth is None else tuple(auth)
                return fsspec.filesystem("webdav", base_url=url, auth=auth, skip_instance_cache=True), ""
            options: dict[str, Any] = {"skip_instance_cache": True}
            if parts.scheme in ("sftp", "ssh"):
                load_library("sshfs", "sshfs")  # fsspec's own class takes the key of any host
                options["known_hosts"] = fsspec.config.conf.get(parts.scheme, {}).get("known_hosts", ())
            system, top = fsspec.core.url_to_fs(self._address, **options)
        except NotInstalledError:
            raise
        except ImportError as error:
            raise NotInstalledError(f"{self.name}: {error}.") from error
        except Exception as error:  # each file system has errors of its own
            raise InvalidRequestError(f"{self.name} cannot be opened: {_describe(error)}.") from error
        return system, top

    def _list_folder(self, folder: Path) -> dict[Path, Mapping[str, Any]]:
        """The entries of a folder by their paths below the address."""
        where = self._find_path(folder)
        entries = _translate(lambda: self._system.ls(where, detail=True))
        found: dict[Path, Mapping[str, Any]] = {}
        for entry in entries:
            below = entry["name"].strip("/").removeprefix(self._top.strip("/")).strip("/")
            path = Path("/", below)
            if path.parent == folder and path != folder:
                found[path] = entry
        return found

    def _add_file(
        self,
        path: Path,
        entry: Mapping[str, Any],
        prefix: str,
        files: list[SourceFile],
        left_out: dict[str, list[str]],
        listed_at: float,
    ) -> None:
        check_rules_name(path)
        below = path.relative_to("/").as_posix()
        if path.name == FILE:
            self._rules.append(path)
        if is_left_out(path.name):
            return
        self._names.append(escape_name(below))
        file = SourceFile(path, escape_name(f"{prefix}{below}"), self.name)
        if entry["type"] != "file":
            left_out["outside"].append(file.name)
        elif not is_wanted(path.name):
            left_out["others"].append(file.name)
        elif entry.get("size") == 0:
            left_out["empty"].append(file.name)
        else:
            files.append(file)
            version = self._find_version(below, entry, listed_at)
            if version is not None:
                self._versions[path] = hashlib.sha256(version.encode()).hexdigest()

    def _find_version(self, below: str, entry: Mapping[str, Any], listed_at: float) -> str | None:
        """Version of a file; without an ETag it differs from those of other files as well."""
        etag = next((entry[name] for name in ETAGS if entry.get(name)), None)
        changed = next((entry[name] for name in TIMES if entry.get(name)), None)
        if changed is not None and (etag is None or self._etags_are_times):
            moment = _read_time(changed)
            if moment is None or not is_settled(moment, listed_at):
                return None
        if etag is not None:
            return f"etag {etag} {entry.get('size')}"
        changed = changed.isoformat() if isinstance(changed, datetime) else changed
        return None if changed is None else f"{below} {entry.get('size')} {changed}"

    def _read(self, path: Path, most_bytes: int | None = None) -> bytes:
        where = self._find_path(path)
        data: bytes = _translate(lambda: self._system.cat_file(where, end=most_bytes))
        return data

    def _find_path(self, path: Path) -> str:
        below = path.relative_to("/").as_posix()
        if below == ".":
            return self._top
        return f"{self._top.rstrip('/')}/{below}" if self._top else below


def _translate(call: Callable[[], Result]) -> Result:
    """Call a file system; all its errors become ``OSError``."""
    try:
        return call()
    except OSError:
        raise
    except Exception as error:  # each file system has errors of its own
        raise OSError(_describe(error)) from error


def _read_time(value: Any) -> float | None:
    """Seconds since 1970 of a time as a file system writes it; None: it cannot be read."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return read_http_date(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return float(value) if isinstance(value, int | float) else None


def _hide_password(parts: SplitResult) -> str:
    host = parts.netloc.rpartition("@")[2]
    user = f"{parts.username}@" if parts.username else ""
    return urlunsplit((parts.scheme, f"{user}{host}", parts.path.rstrip("/"), parts.query, parts.fragment))


def _describe(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
