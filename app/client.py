"""The command line's HTTP client: one line for every failure, files streamed, jobs followed."""

import gzip
import json
import time
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from app.errors import EngramError

POLL_SECONDS = 0.3
CHUNK_BYTES = 256 * 1024
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class ClientError(EngramError):
    """The service refused the request or could not be reached."""


class Client:
    """Talks to a running service, with an access key if there is one."""

    def __init__(self, base_url: str, key: str | None = None, *, timeout_seconds: float = 120.0) -> None:
        self._base_url = base_url
        try:
            # A proxy of the environment leads away from this machine, not to it.
            trust_env = httpx.URL(base_url).host not in LOOPBACK
            headers = {} if key is None else {"authorization": f"Bearer {key}"}
            self._http = httpx.Client(
                base_url=base_url, timeout=timeout_seconds, trust_env=trust_env, headers=headers
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise ClientError(f"{base_url!r} is not a URL: {error}") from error

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def send(self, method: str, path: str, **arguments: Any) -> Any:
        """One request; its JSON answer.

        Raises:
            ClientError: the service is out of reach or answered with a problem.
        """
        try:
            response = self._http.request(method, path, **arguments)
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise ClientError(f"{self._base_url} is out of reach ({reason}). Is `engram up` running?") from error
        except UnicodeEncodeError as error:
            raise ClientError(f"This cannot be sent as text: {error.object[error.start : error.end]!r}.") from error
        if response.is_error:
            raise ClientError(_problem(response))
        try:
            return response.json()
        except ValueError as error:
            raise ClientError(f"{self._base_url} answers, but it is not Engram.") from error

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """Server-sent events as they come: of each its kind and its JSON.

        Raises:
            ClientError: the service is out of reach, answered with a problem, or ended before the stream did.
        """
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
        self, stream: BufferedIOBase, collection: str, sent: Callable[[int], None] = lambda _: None
    ) -> dict[str, Any]:
        """Stream NDJSON into a job; ``sent`` is told how many bytes of the stream have gone."""
        accepted: dict[str, Any] = self.send(
            "POST",
            "/passages",
            params={"collection": collection},
            headers={"content-type": "application/x-ndjson"},
            content=_chunks(stream, sent),
        )
        return accepted

    def follow(self, job_id: str, collection: str) -> Iterator[dict[str, Any]]:
        """The job's states until it is finished."""
        while True:
            job = self.send("GET", f"/jobs/{job_id}", params={"collection": collection, "errors_limit": 10})
            yield job
            if job["status"] in {"succeeded", "failed", "cancelled"}:
                return
            time.sleep(POLL_SECONDS)


def path_of(*parts: str) -> str:
    """A path of these parts, whatever they hold; full stops too, or an id ``..`` would lead elsewhere."""
    return "".join(f"/{quote(part, safe='', errors='surrogateescape')}" for part in parts).replace(".", "%2E")


def open_corpus(path: Path) -> BufferedIOBase:
    """A JSONL file, plain or .gz.

    Raises:
        ClientError: it cannot be read.
    """
    try:
        return gzip.open(path) if path.suffix == ".gz" else path.open("rb")
    except OSError as error:
        raise ClientError(f"{path}: {error.strerror}") from error


def _chunks(stream: BufferedIOBase, sent: Callable[[int], None]) -> Iterator[bytes]:
    try:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk
            sent(len(chunk))
    except (OSError, EOFError, zlib.error) as error:
        raise ClientError(f"{getattr(stream, 'name', 'input')}: {error}") from error


def _problem(response: httpx.Response) -> str:
    try:
        problem = response.json()
        return f"{problem['title']}: {problem['detail']}"
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status_code} from {response.request.url}"
