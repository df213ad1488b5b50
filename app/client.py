"""The command line's HTTP client: one line for every failure, files streamed, jobs followed."""

import gzip
import io
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import httpx

from app.errors import EngramError

POLL_SECONDS = 0.3
CHUNK_BYTES = 256 * 1024


class ClientError(EngramError):
    """The service refused the request or could not be reached."""


class Client:
    """Talks to a running service."""

    def __init__(self, base_url: str, *, timeout_seconds: float = 120.0) -> None:
        self._base_url = base_url
        self._http = httpx.Client(base_url=base_url, timeout=timeout_seconds)

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
            raise ClientError(f"{self._base_url} is out of reach ({error}). Is `engram up` running?") from error
        if response.is_error:
            raise ClientError(_problem(response))
        return response.json() if response.content else None

    def ingest(
        self, stream: IO[bytes], collection: str, sent: Callable[[int], None] = lambda _: None
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
            if job["status"] in {"succeeded", "failed"}:
                return
            time.sleep(POLL_SECONDS)


def open_corpus(path: Path) -> IO[bytes]:
    """A JSONL file, plain or .gz.

    Raises:
        ClientError: it cannot be read.
    """
    try:
        opened = path.open("rb")
        if path.suffix == ".gz":
            return io.BufferedReader(gzip.GzipFile(fileobj=opened))
    except OSError as error:
        raise ClientError(f"{path}: {error.strerror}") from error
    return opened


def _chunks(stream: IO[bytes], sent: Callable[[int], None]) -> Iterator[bytes]:
    try:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk
            sent(len(chunk))
    except (OSError, EOFError) as error:
        raise ClientError(f"{getattr(stream, 'name', 'input')}: {error}") from error


def _problem(response: httpx.Response) -> str:
    try:
        problem = response.json()
        return f"{problem['title']}: {problem['detail']}"
    except (json.JSONDecodeError, KeyError, TypeError):
        return f"HTTP {response.status_code} from {response.request.url}"
