"""Errors, one class per failure; the class carries its HTTP status and problem type.

``app/engram/api/problems.py`` turns these into RFC 9457 documents, the command line into one line and exit code 1.
"""

from typing import Any, ClassVar


class EngramError(Exception):
    """Base of all failures that Engram explains to its caller.

    Attributes:
        detail: for logs and the command line.
        public_detail: for callers of the API, without a server's own words, which name addresses and users.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"

    def __init__(self, detail: str, *, public_detail: str | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.public_detail = detail if public_detail is None else public_detail
        self.extra = extra


class InvalidRequestError(EngramError):
    """The request is well-formed JSON but cannot be carried out as it stands."""

    status = 422
    type = "invalid-request"
    title = "Invalid request"


class MalformedRequestError(EngramError):
    """The request could not be read at all: not JSON, an unreadable body, a missing header."""

    status = 400
    type = "malformed-request"
    title = "Malformed request"


class NotFoundError(EngramError):
    """The named resource does not exist.

    Attributes:
        elsewhere: addresses of the APIs of other databases, which may know it.
    """

    status = 404
    type = "not-found"
    title = "Not found"
    elsewhere: tuple[str, ...] = ()


class GoneError(NotFoundError):
    """The collection was there when the request came in, and was deleted meanwhile."""


class ConflictError(EngramError):
    """The request contradicts what is under way; it may be carried out once that is over."""

    status = 409
    type = "conflict"
    title = "Conflict"


class NameTakenError(ConflictError):
    """A new thing has the name of one that exists; trying again changes nothing."""


class EmbeddingSpaceMismatchError(EngramError):
    """The collection's vectors were made with another encoder than the one that this process runs."""

    status = 409
    type = "embedding-space-mismatch"
    title = "The collection is of another encoder"


class PayloadTooLargeError(EngramError):
    """The body is larger than this route accepts."""

    status = 413
    type = "payload-too-large"
    title = "Payload too large"


class UnsupportedMediaTypeError(EngramError):
    """The body is of a content type that this route does not read."""

    status = 415
    type = "unsupported-media-type"
    title = "Unsupported media type"


class UnreadableError(EngramError):
    """A document is not what its name says, is locked, is too large, or has no text."""

    status = 422
    type = "unreadable-document"
    title = "Unreadable document"


class NotInstalledError(EngramError):
    """The libraries that read documents are not installed."""

    status = 501
    type = "not-installed"
    title = "Not installed"


class WingOffError(EngramError):
    """The route belongs to a wing that this service has switched off."""

    status = 404
    type = "wing-off"
    title = "Switched off"


class UnauthorizedError(EngramError):
    """The request has no access key, or one that does not count."""

    status = 401
    type = "unauthorized"
    title = "Unauthorized"


class ForbiddenError(EngramError):
    """The access key does not allow this."""

    status = 403
    type = "forbidden"
    title = "Forbidden"


class ForeignOriginError(EngramError):
    """A page of another origin, which is not allowed to, has a browser write."""

    status = 403
    type = "foreign-origin"
    title = "Foreign origin"


class MisdirectedRequestError(EngramError):
    """The request calls the service by a name that is not its own."""

    status = 421
    type = "misdirected-request"
    title = "Misdirected request"


class TooManyRequestsError(EngramError):
    """Whoever asks this asks more, or more often, than they may; no ``retry_after_seconds``: no wait helps."""

    status = 429
    type = "too-many-requests"
    title = "Too many requests"

    def __init__(self, detail: str, retry_after_seconds: float | None, **extra: Any) -> None:
        super().__init__(detail, **extra)
        self.retry_after_seconds = retry_after_seconds


class QuotaExceededError(TooManyRequestsError):
    """The tenant has had what it may."""

    type = "quota-exceeded"
    title = "Quota exceeded"


class IdempotencyConflictError(EngramError):
    """The Idempotency-Key was used before, with another body."""

    status = 422
    type = "idempotency-conflict"
    title = "Idempotency-Key reused with another body"


class LlmNotConfiguredError(EngramError):
    """The request needs an LLM and no endpoint is configured."""

    status = 503
    type = "llm-not-configured"
    title = "No LLM endpoint is configured"


class LlmError(EngramError):
    """The LLM endpoint failed, timed out or answered with something unusable."""

    status = 502
    type = "llm-failed"
    title = "The LLM endpoint failed"


class LlmRefusalError(LlmError):
    """The LLM endpoint answers, but not this request: it refused the text, or the reply is unusable twice."""


class UnfitModelError(LlmError):
    """The model failed the control questions, so nothing is learned from it."""

    type = "llm-unfit"
    title = "The model is not good enough"


class BudgetSpentError(LlmError):
    """A request goes beyond a session's budget; ``extra["reason"]`` names the limit."""

    type = "budget-spent"
    title = "A budget is spent"


class EmbeddingError(EngramError):
    """The embedding server refused the texts, or answered with something unusable."""

    status = 503
    type = "embedding-failed"
    title = "The embedding server failed"


class UnavailableError(EngramError):
    """A server that Engram needs is out of reach; trying again later may work."""

    status = 503
    type = "unavailable"
    title = "Temporarily unavailable"


class EmbeddingUnavailableError(UnavailableError):
    """The embedding server of a collection is away, overloaded or too slow; other collections may be served."""


class CollectionMovingError(UnavailableError):
    """The collection is being moved to another database, or from one."""

    type = "collection-moving"


class CollectionMovedError(EngramError):
    """The collection lives in another database; ``extra["moved_to"]`` is the address of the API that serves it."""

    status = 421
    type = "collection-moved"
    title = "The collection moved"


class MissingPartitionError(EngramError):
    """There is no partition that a row belongs into."""


class StatementGivenUpError(UnavailableError):
    """Postgres is there, but gave up on this statement: it took too long, or stood in another's way for good.

    The same work may fail like that again, so whoever repeats it counts its tries.
    """


class DeadlineError(UnavailableError):
    """The request took longer than requests may, and was given up."""

    type = "deadline"
    title = "Deadline exceeded"


class AbandonedError(EngramError):
    """The client closed its connection before it was answered; the work for it was given up."""

    status = 499
    type = "client-closed-request"
    title = "Client closed request"


class ConfigurationError(EngramError):
    """Engram cannot start as configured."""

    type = "configuration"
    title = "Configuration error"


def is_out_of_reach(error: Exception) -> bool:
    """Whether a server is away, so that the work itself is not to blame and trying again counts as no try."""
    return isinstance(error, UnavailableError) and not isinstance(error, StatementGivenUpError)


_DRIVERS = ("psycopg", "sqlalchemy", "redis", "httpx")
"""Packages whose errors have the words of a server, or addresses and users."""


def describe_publicly(error: Exception) -> str:
    """Describe a failure for callers of the API, without the words of a server or driver; the log has these."""
    if isinstance(error, EngramError):
        return f"{type(error).__name__}: {error.public_detail}"
    is_of_server = type(error).__module__.partition(".")[0] in _DRIVERS
    return f"{type(error).__name__}: " + ("the log says more." if is_of_server else str(error))
