"""Documents that follow a website; its server runs here."""

import gzip
import hashlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.wings.importing.conversion.known_documents import KnownDocument
from engram.wings.importing.sources import page_list, web_client
from engram.wings.importing.sources.web_client import WebClient, is_public
from engram.wings.importing.sources.website import Website
from tests.support import state
from tests.support.command import Cli
from tests.support.dripping_server import drip_headers
from tests.wings.importing.test_file_systems import assert_equal, documents, kill_runs, wait_for_jobs
from tests.wings.importing.test_learning_follows import assert_sound, passages, taught, teach

PAGES = int(os.environ.get("ENGRAM_EVALUATION_SYNC_FILES", "12"))
CHANGED, RENAMED, GONE = max(2, PAGES // 15), max(1, PAGES // 60), max(2, PAGES // 100)
HTML = {"content-type": "text/html; charset=utf-8"}


@dataclass
class Site:
    """A website.

    Attributes:
        answers: path -> status, headers and body.
        asked: paths that were asked for and not answered with 304, in order.
    """

    url: str = ""
    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    with_etags: bool = True

    def put(self, path: str, body: str | bytes, status: int = 200, **headers: str) -> None:
        data = body.encode() if isinstance(body, str) else body
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers[path] = (status, HTML | named, data)

    def list(self, *paths: str, at: str = "/sitemap.xml") -> None:
        entries = "".join(f"<url><loc>{self.url}{path}</loc></url>" for path in paths)
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        self.put(at, f'<?xml version="1.0"?><urlset xmlns="{space}">{entries}</urlset>')


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(web_client, "DELAY_SECONDS", 0.0)
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, body = site.answers.get(self.path, (404, HTML, b"none"))
            etag = f'"{hashlib.md5(body).hexdigest()}"'
            if status == 200 and site.with_etags:
                if self.headers.get("if-none-match") == etag:
                    status, body = 304, b""
                headers = headers | {"etag": etag}
            if status != 304:
                site.asked.append(self.path)
            self.send_response_only(status)
            for name, value in ({"date": self.date_time_string()} | headers).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *parts: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    yield site
    server.shutdown()
    server.server_close()


def page(number: int, fact: str = "old") -> str:
    return (
        f"<title>Town {number}</title><body><nav>Menu of all pages</nav><main><h1>Town {number}</h1>"
        f"<p>Town number {number} lies on river {number}. Its bridge number {number} is {fact}.</p></main></body>"
    )


def read(site: Site, path: str = "/sitemap.xml", *known: KnownDocument) -> Any:
    website = Website(f"{site.url}{path}", allow_private=True)
    return website, website.list_files("", lambda: known)


def names(site: Site, path: str = "/sitemap.xml") -> list[str]:
    _, listed = read(site, path)
    return [file.name.removeprefix(site.url) for file in listed.sources]


@pytest.fixture
def collection() -> str:
    return f"site-{uuid4().hex[:8]}"


def quick(cli: Cli) -> Cli:
    """The command without pauses between requests."""
    return replace(cli, constants={"engram.wings.importing.sources.web_client:DELAY_SECONDS": 0})


def command(site: Site, collection: str) -> list[str]:
    options = ["--json", "--allow-private", "--allow-mass-deletion"]
    return ["sync", f"{site.url}/sitemap.xml", "-c", collection, *options]


def sync(cli: Cli, site: Site, collection: str, code: int = 0) -> dict[str, Any]:
    done = quick(cli)(*command(site, collection))
    assert done.returncode == code, done.stderr
    report = json.loads(done.stdout)
    report.pop("jobs")
    return {
        key: [name.removeprefix(site.url) for name in value if isinstance(name, str)]
        for key, value in report.items()
        if value and key != "files"
    }


def fill(site: Site) -> list[str]:
    """Put and list all pages; return their paths."""
    paths = [f"/{number}.html" for number in range(PAGES)]
    for number, path in enumerate(paths):
        site.put(path, page(number))
    site.list(*paths)
    return paths


def change(site: Site, paths: list[str]) -> list[str]:
    """Change, rename and remove pages; return the new and changed ones. The last ``GONE`` are no longer listed."""
    changed, renamed = paths[:CHANGED], [f"/new{number}.html" for number in range(CHANGED, CHANGED + RENAMED)]
    for number, path in enumerate(changed):
        site.put(path, page(number, "new"))
    for number, path in enumerate(renamed, start=CHANGED):
        site.put(path, page(number))
    site.list(*renamed, *changed, *paths[CHANGED + RENAMED : -GONE])
    return sorted([*changed, *renamed])


@pytest.mark.usefixtures("working")
def test_pages_that_changed_are_read_and_those_gone_twice_are_deleted(
    cli: Cli, application: Application, site: Site, collection: str
) -> None:
    paths = fill(site)
    assert sync(cli, site, collection) == {"uploaded": sorted(paths)}
    assert "Menu" not in "".join(passages(application, collection).values())
    held = [f"Town number {number} lies on river {number}." for number in range(CHANGED + RENAMED)]
    teach(application, collection, *held)

    site.asked.clear()
    assert sync(cli, site, collection) == {}
    assert site.asked == ["/robots.txt", "/sitemap.xml"]  # the others are answered with 304

    new = change(site, paths)
    site.put(paths[-GONE - 1], page(PAGES - GONE - 1) + "<p>Not in the main part.</p>")
    site.asked.clear()
    assert sync(cli, site, collection) == {
        "uploaded": sorted([*new, paths[-GONE - 1]]),
        "missing": sorted(paths[-GONE:]),
    }
    assert sorted(site.asked[2:]) == sorted([*new, paths[-GONE - 1]])
    assert taught(application, collection) == sorted(held)
    assert len(passages(application, collection)) == PAGES
    back = paths[-GONE]
    listed = site.answers["/sitemap.xml"][2].decode()
    site.put("/sitemap.xml", listed.replace("</urlset>", f"<url><loc>{site.url}{back}</loc></url></urlset>"))
    assert sync(cli, site, collection) == {"changed": [back], "deleted": sorted(paths[-GONE + 1 :])}
    assert sync(cli, site, collection) == {}
    rows = state.rows(application, collection, "document")
    assert {row["folder"] for row in rows} == {f"{site.url}/sitemap.xml"}
    assert_sound(application, collection)


@pytest.mark.usefixtures("working")
def test_a_killed_run_is_completed_by_the_next(
    cli: Cli, application: Application, site: Site, collection: str, tmp_path: Path
) -> None:
    paths = fill(site)
    sync(cli, site, collection)
    change(site, paths)
    run = partial(quick(cli).begin, *command(site, collection))
    kill_runs(lambda output: run(output=output), tmp_path / "killed", seed=7)
    wait_for_jobs(application, collection)
    for _ in range(2):
        sync(cli, site, collection)
    sync(cli, site, f"{collection}-fresh")
    assert_equal(application, collection, f"{collection}-fresh")


@pytest.mark.usefixtures("working")
def test_a_page_that_fails_keeps_all_documents(
    cli: Cli, application: Application, site: Site, collection: str
) -> None:
    for number in range(4):
        site.put(f"/{number}.html", page(number))
    site.list(*(f"/{number}.html" for number in range(4)))
    sync(cli, site, collection)
    site.put("/0.html", "broken", status=500)
    site.list("/0.html", "/1.html")
    for _ in range(2):
        assert sync(cli, site, collection, code=1) == {"failed": ["/0.html"]}
    assert len(passages(application, collection)) == 4
    site.put("/sitemap.xml", "gone", status=404)
    failure = quick(cli).fails(*command(site, collection))
    assert "cannot be listed: is answered with 404" in failure


@pytest.mark.usefixtures("working")
def test_a_copy_is_no_rename_while_a_part_cannot_be_listed(
    cli: Cli, application: Application, site: Site, collection: str
) -> None:
    for number in range(2):
        site.put(f"/{number}.html", page(number))
        site.list(f"/{number}.html", at=f"/list{number}.xml")
    index = "".join(f"<sitemap><loc>{site.url}/list{number}.xml</loc></sitemap>" for number in range(2))
    site.put("/sitemap.xml", f"<sitemapindex>{index}</sitemapindex>")
    sync(cli, site, collection)
    site.put("/copy.html", page(1))
    site.list("/0.html", "/copy.html", at="/list0.xml")
    whole = site.answers["/list1.xml"]
    site.put("/list1.xml", "broken", status=500)
    assert sync(cli, site, collection, code=1) == {"uploaded": ["/copy.html"]}
    site.answers["/list1.xml"] = whole
    assert sync(cli, site, collection) == {}
    assert len(documents(application, collection)) == 3


@pytest.mark.parametrize("with_etags", [False, True])
@pytest.mark.parametrize(("seconds", "is_kept"), [(-5, False), (0, False), (2, False), (3, True)])
def test_a_page_that_just_changed_is_known_by_its_content(
    site: Site, seconds: int, is_kept: bool, with_etags: bool
) -> None:
    """A website tells its time; a page that changes within the second has its size and time still."""
    site.with_etags = with_etags
    now, then = (f"Mon, 30 Nov 2026 08:00:{second:02} GMT" for second in (30, 30 - seconds))
    site.put("/a.html", page(1), date=now, last_modified=then)
    site.list("/a.html")
    website, listed = read(site)
    version = website.find_digest(listed.sources[0])
    assert (version == hashlib.sha256(page(1).encode()).hexdigest()) is not is_kept


def test_a_private_address_is_not_asked(cli: Cli, site: Site, collection: str) -> None:
    failure = cli.fails("sync", f"{site.url}/sitemap.xml", "-c", collection)
    assert "127.0.0.1, which is no public address (--allow-private asks it)" in failure
    assert site.asked == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
        ("64:ff9b::808:808", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fd00::1", False),
        ("fe80::1%eth0", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::1", False),
    ],
)
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize("answers", [["10.0.0.1"], ["8.8.8.8", "10.0.0.1"]])
def test_a_name_with_a_private_address_is_not_connected(
    monkeypatch: pytest.MonkeyPatch, answers: list[str]
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in answers]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_how: found)
    with (
        WebClient("http://docs.example.org/", allow_private=False) as client,
        pytest.raises(OSError, match="public"),
    ):
        client.get("http://docs.example.org/a", 100)


def test_the_checked_address_is_the_one_connected(monkeypatch: pytest.MonkeyPatch, site: Site) -> None:
    """A name that leads elsewhere when it is resolved again reaches nobody else."""
    site.put("/a", "here")
    port = int(site.url.rpartition(":")[2])
    resolve, resolved = socket.getaddrinfo, []

    def resolve_once(host: str, *more: Any, **how: Any) -> Any:
        resolved.append(host)
        return resolve("127.0.0.1" if host == "docs.example.org" else host, *more, **how)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_once)
    with WebClient(f"http://docs.example.org:{port}/", allow_private=True) as client:
        assert client.get(f"http://docs.example.org:{port}/a", 100).data == b"here"
    assert resolved.count("docs.example.org") == 1


def test_redirects_stay_on_the_website(site: Site) -> None:
    other = site.url.replace("127.0.0.1", "localhost")
    site.put("/away", "", status=302, location=f"{other}/a")
    site.put("/port", "", status=302, location="http://127.0.0.1:1/a")
    site.put("/file", "", status=302, location="file:///etc/passwd")
    site.put("/loop", "", status=302, location="/loop")
    site.put("/moved", "", status=301, location="/a#part")
    site.put("/a", "here")
    with WebClient(site.url, allow_private=True) as client:
        for path in ("/away", "/port", "/file"):
            with pytest.raises(OSError, match="leads to another website"):
                client.get(f"{site.url}{path}", 100)
        with pytest.raises(OSError, match="redirects"):
            client.get(f"{site.url}/loop", 100)
        assert client.get(f"{site.url}/moved", 100).url == f"{site.url}/a"
        with pytest.raises(OSError, match="larger than"):
            client.get(f"{site.url}/a", 3)


def test_robots_are_respected(site: Site) -> None:
    site.put("/robots.txt", "User-agent: *\nDisallow: /private/\n", content_type="text/plain")
    for path in ("/a.html", "/private/b.html"):
        site.put(path, page(1))
    site.put("/c.html", "", status=302, location="/private/b.html")
    site.list("/a.html", "/private/b.html", "/c.html")
    website, listed = read(site)
    assert [file.name for file in listed.sources] == [f"{site.url}/a.html", f"{site.url}/c.html"]
    assert "robots.txt forbids it" in listed.notes[0]
    with pytest.raises(OSError, match=r"robots\.txt forbids"):
        website.find_digest(listed.sources[1])
    assert "/private/b.html" not in site.asked
    site.put("/robots.txt", "broken", status=500)
    with pytest.raises(InvalidRequestError, match=r"robots\.txt is answered with 500"):
        read(site)


def test_pages_that_are_not_read_are_named(site: Site) -> None:
    site.put("/robots.txt", "User-agent: *\nDisallow: /private/\n", content_type="text/plain")
    site.put("/a.html", page(1))
    forbidden = [f"/private/{number}.html" for number in range(101)]
    site.list("/a.html", *forbidden)
    _, listed = read(site)
    names = ", ".join(f"{site.url}{path}" for path in forbidden[:-1])
    assert listed.notes == (f"not read, as robots.txt forbids it: {names} and 1 more",)


def test_a_website_that_asks_to_wait_is_left_alone(site: Site) -> None:
    for path in ("/a.html", "/b.html"):
        site.put(path, "busy", status=429)
    site.list("/a.html", "/b.html")
    website, listed = read(site)
    for file in listed.sources:
        with pytest.raises(OSError, match=r"429|asked to wait"):
            website.find_digest(file)
    assert "/b.html" not in site.asked


def test_a_website_without_answers_is_left_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_client, "FAILURES", 2)
    site.put("/a", "here")
    with WebClient(site.url, allow_private=True) as client:
        for _ in range(3):  # an answer between them begins anew
            with pytest.raises(OSError, match="cannot be read"):
                client.get(f"{site.url}/\x00", 100)
            assert client.get(f"{site.url}/a", 100).status == 200
        for _ in range(2):
            with pytest.raises(OSError, match="cannot be read"):
                client.get(f"{site.url}/\x00", 100)
        with pytest.raises(OSError, match="2 requests had no answer"):
            client.get(f"{site.url}/a", 100)


def test_a_website_whose_headers_never_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_client, "ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(web_client, "TIMEOUT_SECONDS", 0.1)
    with (
        drip_headers() as address,
        WebClient(address, allow_private=True) as client,
        pytest.raises(OSError, match="takes longer"),
    ):
        client.get(address, most_bytes=100)


def test_lists_of_pages(site: Site) -> None:
    for path in ("/a.html", "/b.html", "/c.html"):
        site.put(path, page(1))
    site.list("/a.html", "/a.html#part", "/d.html", at="/one.xml")
    site.list("/b.html", at="/two.xml")
    site.put("/two.xml.gz", gzip.compress(site.answers["/two.xml"][2]))
    index = "".join(f"<sitemap><loc>{site.url}/{name}</loc></sitemap>" for name in ("one.xml", "two.xml.gz"))
    site.put("/sitemap.xml", f"<sitemapindex>{index}</sitemapindex>")
    site.put("/feed", f"<rss><channel><item><link>{site.url}/c.html</link></item></channel></rss>")
    atom = f'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="{site.url}/b.html"/></entry></feed>'
    site.put("/atom", atom)
    site.put("/list.txt", f"{site.url}/a.html\n{site.url}/c.html\n", content_type="text/plain")
    site.put("/robots.txt", f"Sitemap: {site.url}/two.xml\n")
    expected = {
        "/sitemap.xml": ["/a.html", "/b.html"],
        "/feed": ["/c.html"],
        "/atom": ["/b.html"],
        "/list.txt": ["/a.html", "/c.html"],
        "/": ["/b.html"],
    }
    assert {path: names(site, path) for path in expected} == expected
    with pytest.raises(InvalidRequestError, match="neither a sitemap nor a feed"):
        read(site, "/a.html")


def test_pages_that_left_a_feed_are_still_asked(site: Site) -> None:
    site.put("/feed", f"<rss><channel><item><link>{site.url}/b.html</link></item></channel></rss>")
    for path in ("/a.html", "/b.html"):
        site.put(path, page(1))
    folder = f"{site.url}/feed"
    known = [KnownDocument(f"{site.url}/{name}.html", folder, "x") for name in ("a", "gone")]
    _, listed = read(site, "/feed", *known)
    assert [file.name for file in listed.sources] == [f"{site.url}/b.html", f"{site.url}/a.html"]


@pytest.mark.parametrize(
    "break_it",
    [
        lambda site: site.answers.pop("/one.xml"),
        lambda site: site.put("/one.xml", gzip.compress(b"<urlset/>" + b" " * 2_000_000)),
        lambda site: site.put("/one.xml", b"\x1f\x8b broken"),
        lambda site: site.list("/a.html", "/b.html", at="/one.xml"),
    ],
    ids=["missing", "bomb", "damaged", "too many"],
)
def test_a_list_that_is_not_whole_is_named(
    site: Site, monkeypatch: pytest.MonkeyPatch, break_it: Callable[[Site], None]
) -> None:
    monkeypatch.setattr(page_list, "LIST_BYTES", 1_000_000)
    monkeypatch.setattr(page_list, "PAGES", 2)
    for path in ("/a.html", "/b.html", "/c.html"):
        site.put(path, page(1))
    site.list("/b.html", "/c.html", at="/two.xml")
    site.list("/a.html", at="/one.xml")
    index = "".join(f"<sitemap><loc>{site.url}/{name}.xml</loc></sitemap>" for name in ("two", "one"))
    site.put("/sitemap.xml", f"<sitemapindex>{index}</sitemapindex>")
    break_it(site)
    _, listed = read(site)
    assert listed.unreadable == (f"{site.url}/sitemap.xml",)
    assert len(listed.sources) == 2


def test_entities_of_a_sitemap_are_not_resolved(site: Site) -> None:
    site.put("/a.html", page(1))
    attack = (
        '<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
        f"<urlset><url><loc>&x;</loc></url><url><loc>{site.url}/a.html</loc></url></urlset>"
    )
    site.put("/sitemap.xml", attack)
    assert names(site) == ["/a.html"]


def test_versions_without_etags(site: Site) -> None:
    site.with_etags = False
    site.put("/a.html", page(1), last_modified="Wed, 21 Oct 2015 07:28:00 GMT")
    site.put("/b.html", page(1), last_modified="Wed, 21 Oct 2015 07:28:00 GMT")
    site.put("/c.html", page(1))
    site.put("/d.png", b"\x89PNG", content_type="image/png")
    site.list("/a.html", "/b.html", "/c.html", "/d.png")
    website, listed = read(site)
    first, second, third = (website.find_digest(file) for file in listed.sources)
    assert first.startswith("time Wed, 21 Oct 2015 07:28:00 GMT ")
    assert first != second
    assert third == hashlib.sha256(page(1).encode()).hexdigest()
    assert listed.others == (f"{site.url}/d.png",)


def test_an_unchanged_page_can_still_be_read(site: Site) -> None:
    site.put("/a.html", page(1))
    site.list("/a.html")
    website, listed = read(site)
    digest = website.find_digest(listed.sources[0])
    known = KnownDocument(f"{site.url}/a.html", website.name, digest)
    website, listed = read(site, "/sitemap.xml", known)
    assert website.find_digest(listed.sources[0]) == digest
    assert website.read(listed.sources[0], 10_000).data == page(1).encode()
