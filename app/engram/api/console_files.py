"""``/``: the console, and ``/search``: the page to search on. Their files are built of ``console/`` beforehand."""

import base64
import gzip
import hashlib
import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from engram.context.errors import NotFoundError

PAGES = {"/": "index.html", "/search": "search.html"}
"""Path -> the page that is there."""
FILES = "/console"
"""Path of the pages' files, apart from the API's routes: a mistyped route still answers a problem document."""
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
"""Ending -> media type. Files with other endings, such as SOURCES, are not served."""
COMPRESSED_SUFFIXES = frozenset({".html", ".js", ".css", ".svg", ".txt"})
POLICY = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self'{styles}; font-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""What a page loads and whom it asks: this service alone. What is written into it counts by its hash."""
IMMUTABLE_HEADERS = {"cache-control": "public, max-age=31536000, immutable"}
"""For files whose name changes with their content."""
REVALIDATION_HEADERS = {"cache-control": "no-cache"}

router = APIRouter(include_in_schema=False)


def is_console(path: str) -> bool:
    """Whether the path is a page's or one of their files."""
    return path in PAGES or path.startswith(f"{FILES}/")


def folder() -> Traversable:
    """Return the folder of the built files."""
    return files("engram").joinpath("console")


@cache
def build_policy(path: str) -> str:
    """Build the content policy of the page at a path."""
    page = _parts()[PAGES[path]].read_bytes()
    return POLICY.format(scripts=_hash_parts(page, b"script"), styles=_hash_parts(page, b"style"))


def _hash_parts(page: bytes, tag: bytes) -> str:
    """List the hashes of the scripts, or styles, that are written into a page, as a policy has them."""
    parts = re.findall(rb"<%b(?: type=\"module\")?>(.*?)</%b>" % (tag, tag), page, re.DOTALL)
    return "".join(f" 'sha256-{base64.b64encode(hashlib.sha256(part).digest()).decode()}'" for part in parts)


@router.get("/")
@router.get("/search")
async def get_page(request: Request) -> Response:
    """A page."""
    return await _answer(request, PAGES[request.scope["path"]], REVALIDATION_HEADERS)


@router.get(f"{FILES}/{{name}}")
async def get_part(name: str, request: Request) -> Response:
    """A script, a style, a picture or the font."""
    return await _answer(request, name, IMMUTABLE_HEADERS)


async def _answer(request: Request, name: str, headers: dict[str, str]) -> Response:
    if name not in _parts():
        raise NotFoundError("There is no such file.")
    services = request.app.state.services
    has_login = services is not None and services.auth.login is not None
    plain, small = await run_in_threadpool(_read, name, has_login)
    media_type, headers = MEDIA_TYPES[_find_ending(name)], headers | {"vary": "accept-encoding"}
    if small is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(small, media_type=media_type, headers=headers | {"content-encoding": "gzip"})
    return Response(plain, media_type=media_type, headers=headers)


@cache
def _parts() -> dict[str, Traversable]:
    """The files that are served, by name; no other path is ever opened."""
    return {part.name: part for part in folder().iterdir() if _find_ending(part.name) in MEDIA_TYPES}


@cache
def _read(name: str, has_login: bool) -> tuple[bytes, bytes | None]:
    """A part's content, and the same compressed where that is worth it. A page says whether people can log in."""
    content = _parts()[name].read_bytes()
    if has_login and name.endswith(".html"):
        content = content.replace(b"<html", b"<html data-login", 1)
    return content, gzip.compress(content, mtime=0) if _find_ending(name) in COMPRESSED_SUFFIXES else None


def _find_ending(name: str) -> str:
    return name[name.rfind(".") :] if "." in name else ""
