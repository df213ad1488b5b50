"""Websites by the address of a sitemap or a feed."""

import hashlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from engram.context.errors import InvalidRequestError
from engram.wings.importing.conversion.folder import NAME_CHARACTERS, Listing, SourceFile, escape_name
from engram.wings.importing.conversion.notes import list_names
from engram.wings.importing.conversion.reader_rules import ReaderRules
from engram.wings.importing.sources.page_list import PageList, list_pages
from engram.wings.importing.sources.source import FileContent, ListKnown, Source, is_settled, read_http_date
from engram.wings.importing.sources.web_client import WebClient, WebResponse

PAGE_BYTES = 32 << 20
DIGEST_CHARACTERS = 128
"""Of the version of a document at most, as the service stores it."""
KINDS = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "application/pdf": ".pdf",
    "text/csv": ".csv",
    "application/json": ".json",
}
"""Media type -> how a page of it is read; others make no document."""
_GONE = {404, 410}


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of a run.

    Attributes:
        url: where the last redirect led.
        digest: None: it could not be read, as ``failure`` says, or is of another kind.
        stored: its content on this machine; None: it did not change, or could not be read.
    """

    url: str
    digest: str | None
    kind: str = ""
    stored: Path | None = None
    failure: str = ""


class Website(Source):
    """Pages that a sitemap or a feed lists; each URL names a document.

    A page is asked for by the ETag or time that its document has as version, so that it is sent only if it changed.
    A page that is not there any more is deleted by the second run that misses it.

    Args:
        address: of a sitemap or a feed, or of a website whose robots.txt names one.
        allow_private: as for ``WebClient``.

    Raises:
        InvalidRequestError: the address has no host.
    """

    def __init__(self, address: str, *, allow_private: bool = False) -> None:
        parts = urlsplit(address)
        if not parts.hostname or parts.username:
            raise InvalidRequestError(f"{parts.hostname or address}: an address has a host and no password.")
        self._address = urlunsplit((parts.scheme, parts.netloc, parts.path or "/", parts.query, ""))
        self.name = escape_name(self._address)
        self.missing_folder = f"{self.name} (missing)"
        self._allow_private = allow_private
        self._pages: dict[str, _Page] = {}
        self._store = tempfile.TemporaryDirectory(prefix="engram-site-")

    def list_files(self, prefix: str, list_known: ListKnown) -> Listing:
        """List the pages, and read those that changed since their documents were made."""
        prefix = f"{prefix.rstrip('/')}/" if prefix else ""
        self._pages = {}
        self._store.cleanup()
        self._store = tempfile.TemporaryDirectory(prefix="engram-site-")
        folders = self.name, self.missing_folder
        known = {one.source: one.digest or "" for one in list_known() if one.folder in folders}
        others: list[str] = []
        forbidden: list[str] = []
        with WebClient(self._address, allow_private=self._allow_private) as client:
            listed = self._list_pages(client)
            if listed.is_feed:
                for name in known:
                    listed.add(client, name.removeprefix(prefix))
            for url in listed.urls:
                name = escape_name(f"{prefix}{url}")
                if not client.may_read(url):
                    forbidden.append(url)
                elif len(name) > NAME_CHARACTERS:
                    others.append(name)
                elif (page := self._fetch(client, url, known.get(name, ""))) is None:
                    continue
                elif page.digest is None and not page.failure:
                    others.append(name)
                elif page.url == url or page.url not in listed.urls:
                    self._pages[name] = page
        notes = [f"{self.name}: {failure}" for failure in listed.failures]
        if forbidden:
            notes.append(f"not read, as robots.txt forbids it: {list_names(forbidden)}")
        if listed.elsewhere:
            notes.append(f"not read, being of another website: {list_names(listed.elsewhere)}")
        files = [SourceFile(Path("/", name), name, self.name) for name in self._pages]
        whole = () if not listed.failures else (self.name,)
        return Listing(tuple(files), tuple(others), (), unreadable=whole, notes=tuple(notes))

    def read_rules(self, files: Sequence[SourceFile]) -> ReaderRules:
        """Return no rules: a website has none."""
        return ReaderRules.parse({}, (), [file.path for file in files])

    def find_digest(self, file: SourceFile) -> str:
        """Return the ETag, time or hash of a page."""
        page = self._pages[file.name]
        if page.digest is None:
            raise OSError(page.failure)
        return page.digest

    def read(self, file: SourceFile, most_bytes: int) -> FileContent:
        """Return the page as it was read by ``list_files``; one that had not changed is read now."""
        page = self._pages[file.name]
        if page.stored is None:
            with WebClient(self._address, allow_private=self._allow_private) as client:
                client.read_robots()
                page = self._fetch(client, page.url, "") or page
        if page.stored is None:
            raise OSError(page.failure or "is not there any more")
        return FileContent(page.stored.read_bytes()[:most_bytes], page.kind, page.digest)

    def _list_pages(self, client: WebClient) -> PageList:
        try:
            client.read_robots()
            is_home = urlsplit(self._address).path == "/"
            lists = list(filter(client.has, client.list_sitemaps())) if is_home else [self._address]
            return list_pages(client, lists)
        except OSError as error:
            raise InvalidRequestError(f"{self.name} cannot be listed: {error}.") from error

    def _fetch(self, client: WebClient, url: str, known: str) -> _Page | None:
        """Read a page unless its version is the known one; None: it is not there."""
        try:
            answer = client.get(url, PAGE_BYTES, _build_condition(url, known))
        except OSError as error:
            return _Page(url, None, failure=str(error))
        if answer.status in _GONE:
            return None
        if answer.status == 304:
            return _Page(answer.url, known)
        if answer.status != 200:
            return _Page(url, None, failure=f"is answered with {answer.status}")
        kind = KINDS.get(answer.headers.get("content-type", "").partition(";")[0].strip().lower(), "")
        if not kind:
            return _Page(answer.url, None)
        stored = Path(self._store.name, hashlib.sha256(url.encode()).hexdigest())
        stored.write_bytes(answer.data)
        return _Page(answer.url, _find_version(url, answer), kind, stored)


def _find_version(url: str, answer: WebResponse) -> str:
    """ETag or time with a hash of the URL, since pages share times; else the hash of the content.

    A page that had just changed is hashed: its next change may leave it the same time, of which servers make ETags.
    """
    if not _has_settled(answer.headers):
        return hashlib.sha256(answer.data).hexdigest()
    suffix = f" {_hash_url(url)}"
    for version in (
        f"etag {answer.headers.get('etag', '')}",
        f"time {answer.headers.get('last-modified', '')}",
    ):
        if (
            version[5:]
            and len(version + suffix) <= DIGEST_CHARACTERS
            and version.isascii()
            and version.isprintable()
        ):
            return version + suffix
    return hashlib.sha256(answer.data).hexdigest()


def _has_settled(headers: Mapping[str, str]) -> bool:
    """Whether a later change of a page gives it another time, by the website's own clock where it tells it."""
    changed = read_http_date(headers.get("last-modified", ""))
    moment = read_http_date(headers.get("date", ""))
    return changed is None or is_settled(changed, time.time() if moment is None else moment)


def _build_condition(url: str, known: str) -> Mapping[str, str]:
    """Headers that ask for a page only if its version is another one."""
    version = known.removesuffix(f" {_hash_url(url)}")
    if version == known:
        return {}
    header = {"etag ": "if-none-match", "time ": "if-modified-since"}.get(version[:5])
    return {} if header is None else {header: version[5:]}


def _hash_url(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()[:16]
