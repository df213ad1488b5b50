"""The pages that a sitemap or a feed lists."""

import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from urllib.parse import urldefrag, urljoin

from engram.wings.importing.conversion.outline import library
from engram.wings.importing.sources.source import load_library
from engram.wings.importing.sources.web_client import WebClient

LIST_BYTES = 50 << 20
"""Of a sitemap or a feed, unpacked: what the protocol of sitemaps allows."""
SITEMAPS = 1_000
DEPTH = 3
"""Indexes of sitemaps inside each other."""
PAGES = 20_000


@dataclass
class PageList:
    """Pages of a website.

    Attributes:
        urls: each once, in order.
        is_feed: whether pages leave the list with time, though they are still there.
        failures: what could not be read whole, a line each.
        elsewhere: pages of other websites.
    """

    urls: dict[str, None] = field(default_factory=dict)
    is_feed: bool = False
    failures: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def add(self, client: WebClient, url: str) -> None:
        """Add a page."""
        url = urldefrag(url.strip()).url
        if not client.has(url):
            self.elsewhere.append(url)
        elif len(self.urls) < PAGES or url in self.urls:
            self.urls[url] = None
        elif (failure := f"more than {PAGES:,} pages") not in self.failures:
            self.failures.append(failure)


def list_pages(client: WebClient, addresses: Sequence[str]) -> PageList:
    """List the pages of sitemaps, indexes of sitemaps, feeds, or lists of addresses in plain text.

    Raises:
        OSError: the only list cannot be read, or is none.
    """
    listed = PageList()
    waiting = [(address, 0) for address in addresses]
    known = set(addresses)
    while waiting:
        url, depth = waiting.pop(0)
        try:
            sitemaps = _read_list(client, url, listed)
        except OSError as error:
            if [url] == list(addresses):
                raise
            listed.failures.append(f"{url}: {error}")
            continue
        for sitemap in sitemaps:
            if sitemap in known:
                continue
            if depth == DEPTH or len(known) == SITEMAPS or not client.has(sitemap):
                listed.failures.append(f"{sitemap}: not read, being too deep, one too many or of another website")
            else:
                known.add(sitemap)
                waiting.append((sitemap, depth + 1))
    return listed


def _read_list(client: WebClient, url: str, listed: PageList) -> list[str]:
    """Add the pages of one list, and return the sitemaps that it names."""
    answer = client.get(url, LIST_BYTES)
    if answer.status != 200:
        raise OSError(f"is answered with {answer.status}")
    data = _unpack(answer.data)
    etree = library("lxml.etree")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if answer.headers.get("content-type", "").startswith("text/plain"):
            for line in data.decode(errors="replace").split():
                listed.add(client, line)
            return []
        raise OSError(f"is neither a sitemap nor a feed: {error}") from error
    kind = etree.QName(root).localname.lower()
    if kind in ("urlset", "sitemapindex"):
        entries = [(one.text or "").strip() for one in root.iterfind("{*}*/{*}loc")]
        if kind == "sitemapindex":
            return [urljoin(answer.url, entry) for entry in entries]
    elif kind in ("rss", "feed", "rdf"):
        listed.is_feed = True
        entries = [entry.get("link", "") for entry in load_library("feedparser").parse(data).entries]
    else:
        raise OSError(f"is neither a sitemap nor a feed, but <{kind}>")
    for entry in filter(None, entries):
        listed.add(client, urljoin(answer.url, entry))
    return []


def _unpack(data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as packed:
            unpacked = packed.read(LIST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise OSError(f"is damaged: {error}") from error
    if len(unpacked) > LIST_BYTES:
        raise OSError(f"unpacks to more than {LIST_BYTES >> 20} MiB")
    return unpacked
