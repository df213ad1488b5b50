"""The console as it is shipped: its files, what the page may load, and that they are of these sources."""

import hashlib
import json
import re
import tomllib
from pathlib import Path

import pytest

from engram.api import console_files
from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from tests.support.strict_client import TestClient

ROOT = Path(__file__).resolve().parents[2]
OWN_FILES = ("index.html", "search.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.js")
OF_THE_CLIENT = ("events.ts", "index.ts", "retries.ts")
"""All of it that is in the bundle; its types leave no trace there."""
MOST_BYTES = 1_000_000
MOST_BYTES_OF_SEARCH = 65_000
"""All that a browser fetches before the first question, uncompressed."""


def sources() -> str:
    """One fingerprint of all that the built files are made of, as console/stamp.mjs computes it."""
    folder = ROOT / "console"
    paths = [path for path in (folder / "src").rglob("*") if path.is_file()]
    paths += [folder / name for name in OWN_FILES]
    paths += [ROOT / "clients/typescript/src" / name for name in OF_THE_CLIENT]
    whole = hashlib.sha256()
    for name, path in sorted((path.relative_to(ROOT).as_posix(), path) for path in paths):
        whole.update(f"{name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def test_built_console_matches_its_sources() -> None:
    built = (ROOT / "app/engram/console/SOURCES").read_text(encoding="ascii").strip()
    assert built == sources(), "the console is stale: cd console && npm ci && npm run build"


@pytest.mark.parametrize("path", console_files.PAGES)
def test_the_page_and_all_its_parts_are_there(path: str, http: TestClient) -> None:
    page = http.get(path)
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    parts = set(re.findall(r'(?:src|href)="([^"]+)"', page.text))
    assert any(part.endswith(".js") for part in parts) == (path == "/"), "the search page works after one request"
    assert any(part.endswith(".css") for part in parts) == (path == "/")
    for part in parts:
        assert part.startswith("console/"), "everything comes from this service"
        answer = http.get(f"/{part}")
        assert answer.status_code == 200, part
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"].split(";")[0] in {"text/javascript", "text/css", "image/svg+xml"}


def test_every_part_is_named_and_nothing_is_fetched_from_elsewhere() -> None:
    """What a script or a style names of another host would be refused by the policy; none does so."""
    for part in console_files.folder().iterdir():
        if part.name.endswith((".js", ".css", ".html")):
            text = part.read_bytes().decode()
            assert not re.search(r"(?:url\(|import\(|fetch\(|src=)\s*[\"'`]?(?:https?:)?//", text), part.name
            assert "new Function" not in text
            assert not re.search(r"\beval\(", text)


@pytest.mark.parametrize("path", console_files.PAGES)
def test_the_policy_allows_this_service_alone(path: str, http: TestClient) -> None:
    policy = http.get(path).headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for kind in ("script-src", "style-src"):
        service, *own = rules.pop(kind).split()
        assert service == "'self'"
        assert [one[:8] for one in own] == ["'sha256-"] * (path == "/search")
    assert set(rules.values()) == {"'none'", "'self'"}
    assert rules["connect-src"] == "'self'"


@pytest.mark.parametrize("path", [*console_files.PAGES, "/console/x.js"])
def test_console_sets_security_headers(path: str, http: TestClient) -> None:
    headers = http.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers


@pytest.mark.parametrize("path", console_files.PAGES)
def test_no_script_stands_in_a_page_but_that_of_the_search_page(path: str, http: TestClient) -> None:
    text = http.get(path).text
    own = len(re.findall(r"<script(?![^>]*\bsrc=)", text))
    assert own == text.count("<style>") == (path == "/search"), "whose policy knows it by its hash"
    assert not re.search(r'\son\w+="', text)


def test_parts_are_compressed_for_whom_takes_it(http: TestClient) -> None:
    (name,) = (part.name for part in console_files.folder().iterdir() if re.fullmatch(r"index-.*\.js", part.name))
    small = http.get(f"/console/{name}", headers={"accept-encoding": "gzip"})
    plain = http.get(f"/console/{name}", headers={"accept-encoding": "identity"})
    assert small.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert int(small.headers["content-length"]) < len(plain.content) / 2
    assert small.content == plain.content


@pytest.mark.parametrize(
    "name", ["nothing.js", "SOURCES", "..%2Fsettings.py", "%2e%2e/settings.py", "index.html/x"]
)
def test_no_other_file_is_served(name: str, http: TestClient) -> None:
    answer = http.get(f"/console/{name}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_mistyped_route_is_a_problem_and_no_page(http: TestClient) -> None:
    answer = http.get("/colections")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_page_needs_no_key_and_what_it_asks_does(
    application: Application, addresses: Servers, settings: Settings
) -> None:
    guarded = Application(settings.model_copy(update={"access": "keys"}), addresses)
    guarded.models.embedder, guarded.models.language = application.models.embedder, application.models.language
    locked = TestClient(create_app(guarded))
    assert locked.get("/").status_code == 200
    assert locked.get("/access/me").status_code == 401
    guarded.close()


def test_the_search_page_is_small(http: TestClient) -> None:
    page = http.get("/search")
    parts = set(re.findall(r'(?:src|href)="([^"]+)"', page.text))
    assert len(page.content) + sum(len(http.get(f"/{part}").content) for part in parts) < MOST_BYTES_OF_SEARCH


def test_the_files_are_in_the_package_and_small() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "console/*" in project["tool"]["setuptools"]["package-data"]["engram"]
    parts = list((ROOT / "app/engram/console").iterdir())
    assert all(part.is_file() for part in parts), "package data names files of the folder itself"
    assert sum(part.stat().st_size for part in parts) < MOST_BYTES


def test_sample_questions_are_those_of_the_sample_collection() -> None:
    source = (ROOT / "console/src/parts/sample_questions.tsx").read_text(encoding="utf-8")
    (block,) = re.findall(r"const QUESTIONS: readonly string\[\] = \[(.*?)\];", source, re.DOTALL)
    offered = re.findall(r'"([^"]+)"', block)
    lines = (ROOT / "app/engram/wings/local/sample/questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(offered) >= 3
    assert set(offered) <= {json.loads(line)["text"] for line in lines}
