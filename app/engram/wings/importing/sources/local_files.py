"""Files and folders of this machine."""

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

from engram.wings.importing.conversion.folder import Listing, SourceFile, escape_name, list_files
from engram.wings.importing.conversion.formats import find_kind
from engram.wings.importing.conversion.reader_rules import ReaderRules
from engram.wings.importing.sources.source import FileContent, ListKnown, Source, is_settled


class LocalFiles(Source):
    """Files and folders of this machine; the version of a file is the SHA-256 of its content."""

    reads_moved = False

    def __init__(self, paths: Sequence[Path]) -> None:
        self.name = escape_name(str(paths[0]))
        self._paths = paths
        self._digests: dict[Path, tuple[tuple[int, int], str]] = {}

    def list_files(self, prefix: str, list_known: ListKnown) -> Listing:
        """List the files, as ``folder.list_files`` does."""
        del list_known
        return list_files(self._paths, prefix)

    def read_rules(self, files: Sequence[SourceFile]) -> ReaderRules:
        """Read the rules of the folders and of those above them."""
        return ReaderRules.read([file.path for file in files])

    def find_digest(self, file: SourceFile) -> str:
        """Hash a file, unless its size and time are those of the last time, and it had not just changed then."""
        moment = time.time()
        state = file.path.stat()
        version = (state.st_mtime_ns, state.st_size)
        known = self._digests.get(file.path)
        if known is not None and known[0] == version:
            return known[1]
        with file.path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        if is_settled(state.st_mtime, moment):
            self._digests[file.path] = (version, digest)
        return digest

    def read(self, file: SourceFile, most_bytes: int) -> FileContent:
        """Read a file."""
        with file.path.open("rb") as opened:
            return FileContent(opened.read(most_bytes), find_kind(file.path.name))

    def choose_earlier_names(self, folders: Sequence[str]) -> list[str]:
        """Return the folders of this machine that are not there any more."""
        return [name for name in folders if Path(name).is_absolute() and not Path(name).is_dir()]
