"""The command line's HTTP client: one line for every failure, files streamed, jobs followed."""

import codecs
import gzip
import json
import shlex
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from engram.context.errors import EngramError

if TYPE_CHECKING:
    from types import ModuleType

    import httpx

POLL_SECONDS = 0.3
LONGEST_PAUSE_SECONDS = 5.0
AWAY_PATIENCE_SECONDS = 120.0  # a restart with a migration takes less
CHUNK_BYTES = 256 * 1024
ROWS_PER_PAGE = 1_000
"""Rows of a list that are asked for at a time."""
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class ClientError(EngramError):
    """The service refused the request or could not be reached."""


class AwayError(ClientError):
    """The service is out of reach for now, or says that it cannot serve for now."""


def _httpx() -> "ModuleType":
    """httpx, imported when first needed, and without its own command line, which takes longer than the rest."""
    if "httpx" not in sys.modules:
        sys.modules["httpx._main"] = None  # type: ignore[assignment] # so that an import of it fails
        try:
            import httpx
        finally:
            del sys.modules["httpx._main"]
    import httpx

    return httpx


def drop_unset(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


class Patience:
    """Time left to wait for a service that went away; it starts anew whenever the service was back."""

    def __init__(self, seconds: float = AWAY_PATIENCE_SECONDS) -> None:
        self._seconds = seconds
        self._since: float | None = None
        self._pause = POLL_SECONDS

    def has_time(self) -> bool:
        """Whether to wait on; counts from the first time that it is asked."""
        if self._since is None:
            self._since = time.monotonic()
        return time.monotonic() - self._since < self._seconds

    def wait(self) -> None:
        """A pause, longer each time up to a bound."""
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    def restore(self) -> None:
        """Start anew, since the service is back."""
        self._since, self._pause = None, POLL_SECONDS


class Client:
    """Talks to a running service, with an access key if there is one."""

    def __init__(self, base_url: str, key: str | None = None, *, timeout_seconds: float = 120.0) -> None:
        httpx = _httpx()
        self._base_url = base_url
        try:
            # A proxy of the environment leads away from this machine, not to it.
            url = httpx.URL(base_url)
            trust_env = url.host not in LOOPBACK
            headers = {} if key is None else {"authorization": f"Bearer {key}"}
            # To read the certificates of this machine takes longer than most requests; plain HTTP asks for none.
            verify = trust_env or url.scheme == "https"
            self._http = httpx.Client(
                base_url=base_url, timeout=timeout_seconds, trust_env=trust_env, headers=headers, verify=verify
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise ClientError(f"{base_url!r} is not a URL: {error}") from error

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    @property
    def base_url(self) -> str:
        """Address of the service."""
        return self._base_url

    def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        key: str | None = None,
        content_type: str | None = None,
        **body: Any,
    ) -> Any:
        """One request; its JSON answer, None where there is nothing to say.

        Args:
            params: of the query; those that are None are not sent.
            key: the Idempotency-Key.
            content_type: of a body in ``content``.
            body: ``json`` or ``content``, as httpx takes them; none by default.

        Raises:
            AwayError: the service is out of reach or cannot serve for now.
            ClientError: it answered with another problem.
        """
        httpx = _httpx()
        try:
            response = self._http.request(
                method,
                path,
                params=drop_unset(params or {}) or None,
                headers=drop_unset({"idempotency-key": key, "content-type": content_type}),
                **body,
            )
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise AwayError(
                f"{self._base_url} is out of reach ({reason}). Is `engram up` running? "
                "--url or ENGRAM_PORT say where it answers."
            ) from error
        except UnicodeEncodeError as error:
            raise ClientError(f"This cannot be sent as text: {error.object[error.start : error.end]!r}.") from error
        if response.is_error:
            raise (AwayError if response.status_code == HTTPStatus.SERVICE_UNAVAILABLE else ClientError)(
                _problem(response), status_code=response.status_code
            )
        if response.status_code == HTTPStatus.NO_CONTENT:
            return None
        try:
            return response.json()
        except ValueError as error:
            raise ClientError(f"{self._base_url} answers, but it is not Engram.") from error

    def list_rows(self, path: str, field: str, where: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Ask for all pages of a list, each as its rows are wanted; ``field`` of a page has its rows."""
        after: str | None = None
        while True:
            page = self.send("GET", path, params={**where, "after": after, "limit": ROWS_PER_PAGE})
            yield from page[field]
            after = page["next_after"]
            if after is None:
                return

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """Server-sent events as they come: of each its kind and its JSON.

        Raises:
            ClientError: the service is out of reach, answered with a problem, or ended before the stream did.
        """
        httpx = _httpx()
        try:
            with self._http.stream("GET", path) as response:
                if response.is_error:
                    response.read()
                    raise ClientError(_problem(response))
                kind = "message"
                for line in response.iter_lines():
                    name, _, value = line.partition(": ")
                    if name == "event":
                        kind = value
                    elif name == "data":
                        yield kind, json.loads(value)
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise ClientError(f"{self._base_url} broke off ({reason}).") from error
        if kind != "end":
            raise ClientError(f"{self._base_url} ended the stream before the session did.")

    def ingest(
        self,
        stream: BufferedIOBase,
        collection: str,
        sent: Callable[[int], None] = lambda _: None,
        *,
        key: str | None = None,
        encoder: str | None = None,
    ) -> dict[str, Any]:
        """Stream NDJSON into a job; ``sent`` is told how many bytes of the stream have gone.

        With the same ``key`` and the same stream again the answer is the same job.
        """
        accepted: dict[str, Any] = self.send(
            "POST",
            "/passages",
            params={"collection": collection, "encoder": encoder},
            key=key,
            content_type="application/x-ndjson",
            content=_chunks(stream, sent),
        )
        return accepted

    def follow(
        self, job_id: str, collection: str, away: Callable[[ClientError], None] = lambda _: None
    ) -> Iterator[dict[str, Any]]:
        """The job's states until it is finished; ``away`` is told once whenever the service goes away.

        Raises:
            AwayError: it stayed away. The job may go on all the same.
        """
        patience = Patience()
        missing = False
        while True:
            try:
                job = self.send("GET", f"/jobs/{job_id}", params={"collection": collection, "errors_limit": 10})
            except AwayError as error:
                if not patience.has_time():
                    raise
                if not missing:
                    away(error)
                missing = True
                patience.wait()
                continue
            if missing:
                missing = False
                patience.restore()
            yield job
            if job["status"] in {"succeeded", "failed", "cancelled"}:
                return
            time.sleep(POLL_SECONDS)


def build_path(*parts: str) -> str:
    """A path of these parts, whatever they hold; full stops too, or an id ``..`` would lead elsewhere."""
    return "".join(f"/{quote(part, safe='', errors='surrogateescape')}" for part in parts).replace(".", "%2E")


def open_corpus(path: Path) -> BufferedIOBase:
    """Open a JSONL file, plain or .gz.

    Raises:
        ClientError: the file cannot be read, or is not text.
    """
    stream = _open_file(path)
    try:
        start = stream.peek(CHUNK_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        stream.close()
        raise ClientError(f"{path}: {error}") from error
    if not _is_text(start):
        stream.close()
        raise ClientError(f"{path} is not JSONL. `engram import {shlex.quote(str(path))}` reads documents.")
    return stream


def _open_file(path: Path) -> gzip.GzipFile | BufferedReader:
    try:
        return gzip.open(path) if path.suffix == ".gz" else path.open("rb")
    except OSError as error:
        raise ClientError(f"{path}: {error.strerror}") from error


def _is_text(start: bytes) -> bool:
    """Whether a file that begins with these bytes can be UTF-8 text; a cut character at the end is allowed."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return b"\0" not in start


def _chunks(stream: BufferedIOBase, sent: Callable[[int], None]) -> Iterator[bytes]:
    try:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk
            sent(len(chunk))
    except (OSError, EOFError, zlib.error) as error:
        raise ClientError(f"{getattr(stream, 'name', 'input')}: {error}") from error


def _problem(response: "httpx.Response") -> str:
    try:
        problem = response.json()
        return f"{problem['title']}: {problem['detail']}"
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status_code} from {response.request.url}"
