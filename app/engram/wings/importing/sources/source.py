"""A source of documents: it lists files, each with a version, and reads one of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any

from engram.context.errors import NotInstalledError
from engram.wings.importing.conversion.folder import Listing, SourceFile
from engram.wings.importing.conversion.known_documents import KnownDocument
from engram.wings.importing.conversion.reader_rules import ReaderRules

ListKnown = Callable[[], Sequence[KnownDocument]]
"""Lists the documents that the collection has."""

UNSETTLED_SECONDS = 2.0
"""Two changes within it may leave a file the same time: many systems store whole seconds, FAT every second one."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file as it was read.

    Attributes:
        kind: the ending that says how it is read, such as ``.html``.
        digest: the version to store; None: the SHA-256 of the data.
    """

    data: bytes
    kind: str
    digest: str | None = None


class Source(ABC):
    """A source of documents.

    Attributes:
        name: field ``folder`` of its documents.
        reads_moved: whether a file with the version of a missing one is read: its version may not tell its content.
        missing_folder: field ``folder`` of documents that were missing once and are deleted if they are missing
            again; None: missing documents are deleted at once.
    """

    name: str
    reads_moved: bool = True
    missing_folder: str | None = None

    @abstractmethod
    def list_files(self, prefix: str, list_known: ListKnown) -> Listing:
        """List the files.

        Raises:
            InvalidRequestError: the source cannot be listed.
        """

    @abstractmethod
    def read_rules(self, files: Sequence[SourceFile]) -> ReaderRules:
        """Read the rules of readers.

        Raises:
            InvalidRequestError: a rule cannot be read or decides nothing.
        """

    @abstractmethod
    def find_digest(self, file: SourceFile) -> str:
        """Return the version of a listed file: another one after each change.

        Raises:
            OSError: the file cannot be read.
        """

    @abstractmethod
    def read(self, file: SourceFile, most_bytes: int) -> FileContent:
        """Read a listed file, or its first bytes.

        Raises:
            OSError: the file cannot be read.
        """

    def choose_earlier_names(self, folders: Sequence[str]) -> list[str]:
        """Return those of other folders with the same documents that this source was called before."""
        del folders
        return []


def is_settled(changed: float, moment: float) -> bool:
    """Whether any change after a moment gives a file another time than it has, as git asks of its index.

    Args:
        changed: time of the file, in seconds since 1970.
        moment: before the file was read, in seconds since 1970.
    """
    return changed < moment - UNSETTLED_SECONDS


def read_http_date(text: str) -> float | None:
    """Return seconds since 1970 of a date such as ``Mon, 30 Nov 2026 08:00:00 GMT``; None: it is none."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None


def load_library(name: str, package: str = "engram[sources]") -> Any:
    """Import a library of the extra ``engram[sources]``, or of another package.

    Raises:
        NotInstalledError: it is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"{name} is not installed: pip install '{package}'.") from error
