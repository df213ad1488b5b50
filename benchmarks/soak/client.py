"""A client that sends again what got no answer or a 5xx, under its key, until an answer stands."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

PATIENCE_SECONDS = 300.0
TIMEOUT_SECONDS = 60.0
PAUSE_SECONDS = 0.2
JOB_SECONDS = 0.25


class RefusedError(Exception):
    """The service refused, or said nothing in all that time."""


@dataclass
class Failures:
    """What was sent again, by any thread: when it failed, and how."""

    seen: list[tuple[float, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, how: str) -> None:
        """One more, now."""
        with self._lock:
            self.seen.append((time.time(), how))

    def count(self, counts: Callable[[float], bool]) -> Counter[str]:
        """How often each came at the times that count."""
        return Counter(how for at, how in self.seen if counts(at))


@dataclass(frozen=True)
class Answer:
    """An answer that stands, with when its last try was sent, and when it came."""

    status: int
    body: Any
    began: float
    ended: float


class Caller:
    """One connection that is kept alive; for one thread."""

    def __init__(self, url: str, failures: Failures) -> None:
        self._http = httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS, trust_env=False)
        self._failures = failures

    def send(self, method: str, path: str, *, key: str | None = None, accept: int = 399, **sent: Any) -> Answer:
        """The answer.

        Args:
            key: Idempotency-Key.
            accept: highest status that stands.

        Raises:
            RefusedError: a higher status below 500, or none in 300 s.
        """
        headers = {} if key is None else {"idempotency-key": key}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            began = time.time()
            answer = self._try(method, path, headers=headers, **sent)
            if answer is not None and answer.status_code <= accept:
                return Answer(answer.status_code, answer.json() if answer.content else None, began, time.time())
            if answer is not None and answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                raise RefusedError(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
            self._failures.note("no answer" if answer is None else str(answer.status_code))
            time.sleep(PAUSE_SECONDS)
        raise RefusedError(f"{method} {path}: nothing that stands in {PATIENCE_SECONDS:.0f} s")

    def _try(self, method: str, path: str, **sent: Any) -> httpx.Response | None:
        try:
            return self._http.request(method, path, **sent)
        except httpx.TransportError:
            return None

    def wait(self, accepted: Answer) -> Any:
        """What became of the job that an answer names.

        Raises:
            RefusedError: it did not succeed, or refused a passage.
        """
        while True:
            job = self.send("GET", accepted.body["status_url"]).body
            if job["status"] not in {"queued", "running"}:
                break
            time.sleep(JOB_SECONDS)
        if job["status"] != "succeeded" or job["rejected"]:
            raise RefusedError(f"job {job['job_id']}: {job['status']}, {job['rejected']} refused, {job['error']}")
        return job

    def close(self) -> None:
        """Close the connection."""
        self._http.close()
