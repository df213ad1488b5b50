"""Shared parts of both clients that need no network: requests, retries, answers, errors."""

import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx
import msgspec

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8000"
TRANSIENT = frozenset({429, 502, 503, 504})
"""Statuses that may be gone at the next try."""
FINISHED = frozenset({"succeeded", "failed", "cancelled"})
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 20.0
REASONS_SHOWN = 3
"""Refused lines of a job that an error names."""


def service_url(url: str | None) -> str:
    """The service's address: the given one, else ``ENGRAM_URL``, else this machine. ``http://`` may be left out."""
    address = (url or os.environ.get("ENGRAM_URL", "").strip() or DEFAULT_URL).rstrip("/")
    return address if "://" in address else f"http://{address}"


def access_key(key: str | None) -> str | None:
    """The access key: the given one, else ``ENGRAM_ACCESS_KEY``; None for none, as an empty one says too."""
    return (os.environ.get("ENGRAM_ACCESS_KEY", "").strip() if key is None else key) or None


class EngramError(Exception):
    """Base of this client's errors."""


class UnreachableError(EngramError):
    """The service could not be reached, or answers as something else."""


class JobFailedError(EngramError):
    """A job did not succeed; ``job`` says how far it came."""

    def __init__(self, job: Any) -> None:
        super().__init__(f"job {job.job_id} {job.status}: {job.error or 'no reason was given'}")
        self.job = job


class RejectedLinesError(EngramError):
    """An ingest job refused lines; ``job`` names them with the reasons, and the other lines are kept."""

    def __init__(self, job: Any) -> None:
        reasons = "; ".join(f"line {one.line}: {one.reason}" for one in job.errors[:REASONS_SHOWN])
        more = "" if job.rejected <= REASONS_SHOWN else "; ..."
        super().__init__(f"{job.rejected} of {job.received} lines were refused: {reasons}{more}")
        self.job = job


class ProblemError(EngramError):
    """The service refused the request, by an RFC 9457 problem document.

    Attributes:
        status: of HTTP.
        type: stable identifier of the kind of problem, such as ``urn:engram:problem:not-found``.
        title: the kind in words.
        detail: what is wrong with this request.
        errors: for an invalid request, where each value is and what is wrong with it.
    """

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        self.status = status
        self.type = str(document.get("type", "about:blank"))
        self.title = str(document.get("title", f"HTTP {status}"))
        self.detail = str(document.get("detail", ""))
        self.errors: list[dict[str, Any]] = document.get("errors") or []
        super().__init__(f"{self.title}: {self.detail}" if self.detail else self.title)


class NotFoundError(ProblemError):
    """Error for a resource that does not exist, or not for you."""


class InvalidRequestError(ProblemError):
    """The request says something that it cannot mean."""


class DeniedError(ProblemError):
    """No key, a key that is not known, or one that may not do this."""


class BusyError(ProblemError):
    """Too much is asked for at once, or something is away; every try was used up."""


_BY_STATUS: dict[int, type[ProblemError]] = {
    401: DeniedError,
    403: DeniedError,
    404: NotFoundError,
    422: InvalidRequestError,
    429: BusyError,
    503: BusyError,
}


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and what its answer is read as."""

    returns: type[T]
    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def request(self, client: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """Build the request for httpx."""
        params = {name: value for name, value in self.params.items() if value is not None}
        return client.build_request(
            self.method,
            self.path,
            params=params,
            headers=dict(self.headers),
            content=self.content,
            json=self.json,
        )


class AnswerLike(Protocol):
    """An answer of the service, which can be judged."""

    @property
    def query_id(self) -> UUID | str: ...


class PassageLike(Protocol):
    """A passage of an answer."""

    @property
    def passage_id(self) -> str: ...


class SentenceLike(Protocol):
    """A sentence of an answer."""

    @property
    def sentence_id(self) -> int: ...


Judged: TypeAlias = AnswerLike | UUID | str
"""An answer that can be rated, or the id of its query."""
Cited: TypeAlias = PassageLike | SentenceLike | str | int
"""A passage or a sentence of an answer, or the id of one."""


def build_rating(
    answer: Judged,
    up: bool | None,
    cited: Iterable[Cited],
    reason: str | None,
    judge: str | None,
    on_behalf_of: Sequence[str] | None,
    wait: bool,
) -> dict[str, Any]:
    """The body of a rating."""
    query = answer if isinstance(answer, UUID | str) else answer.query_id
    value = None if up is None else "up" if up else "down"
    body: dict[str, Any] = {"query_id": str(query), "rating": value, "wait": wait}
    named = [_citation(one) for one in cited]
    options = {
        "cited": named or None,
        "reason": reason,
        "judge": judge,
        "as": None if on_behalf_of is None else list(on_behalf_of),
    }
    return body | {name: value for name, value in options.items() if value is not None}


def _citation(cited: Any) -> str | int:
    if isinstance(cited, str | int):
        return cited
    sentence: int | None = getattr(cited, "sentence_id", None)
    passage: str | None = getattr(cited, "passage_id", None)
    named = passage if sentence is None else sentence
    if named is None:
        raise TypeError(f"{cited!r} is neither a passage nor a sentence")
    return named


def build_idempotency_header(key: str | None) -> dict[str, str]:
    """Headers of a request that must not happen twice, under the caller's key or one of its own."""
    return {"idempotency-key": key or str(uuid4())}


def build_path(*parts: object) -> str:
    """A path of these parts, whatever they hold; full stops too, or an id ``..`` would lead elsewhere."""
    return "".join(f"/{quote(str(part), safe='')}" for part in parts).replace(".", "%2E")


def lines(passages: Any) -> bytes:
    """Passages as NDJSON."""
    encode = msgspec.json.Encoder().encode
    return b"".join(encode(passage) + b"\n" for passage in passages)


def read(call: Call[T], response: httpx.Response) -> T:
    """The answer, typed.

    Raises:
        ProblemError: the service refused.
        UnreachableError: what answers is not Engram, or one with an API that this client does not know.
    """
    if response.is_error:
        raise problem(response)
    if call.returns is type(None):
        return None
    try:
        return msgspec.json.decode(response.content, type=call.returns)
    except msgspec.MsgspecError as error:
        raise UnreachableError(f"{response.url} does not answer as Engram does: {error}") from error


def decode_part(kind: type[T], text: str) -> T:
    """A part of a stream, typed.

    Raises:
        UnreachableError: it is not what Engram sends.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise UnreachableError(f"A stream is not Engram's: {error}") from error


def problem(response: httpx.Response) -> ProblemError:
    """The error that a refusal is."""
    try:
        document = msgspec.json.decode(response.content, type=dict[str, Any])
    except msgspec.MsgspecError:
        document = {"detail": f"from {response.url}"}
    return _BY_STATUS.get(response.status_code, ProblemError)(response.status_code, document)


def wait_seconds(tried: int, response: httpx.Response | None) -> float | None:
    """Return how long to wait before another try; None if another would end like this one.

    The service's own Retry-After, else a random part of a wait that doubles (full jitter), so that clients which
    failed together do not come back together.
    """
    if response is not None and response.status_code not in TRANSIENT:
        return None
    named = response.headers.get("retry-after", "") if response is not None else ""
    if named.isdigit():
        return min(float(named), LONGEST_WAIT_SECONDS)
    return random.uniform(0, min(FIRST_WAIT_SECONDS * 2**tried, LONGEST_WAIT_SECONDS))  # noqa: S311
