"""The client of an OpenAI-compatible chat-completions endpoint, with one method per use of the model."""

import copy
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Any, Protocol, Self, TypeVar

import httpx
import structlog
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from engram.context import deadline
from engram.context.errors import ConfigurationError, LlmError, LlmRefusalError
from engram.providers.bounded_client import BoundedClient, TooLongError
from engram.providers.llm import prompts, replies, token_meter
from engram.providers.llm.replies import DraftAnswer, Judgement, Reply, UnusableReplyError, Usage
from engram.providers.llm.reply_json import collect_texts, drop_thoughts
from engram.providers.llm.response_format import EndpointOptions
from engram.telemetry import metrics, stages

MAX_RESPONSE_BYTES = 2**20
"""Longest response body that is read, in bytes; the replies asked for are some hundred bytes long."""

CALL_SHARE = 0.8
"""Share of the remaining time that one call may take. The rest is for what is done without the model."""

_REFUSING = frozenset({400, 413, 422, 451})
"""Statuses by which an endpoint refuses these messages and not every request."""

_log = structlog.get_logger(__name__)
_ReadT = TypeVar("_ReadT")


class _TransientError(Exception):
    """One try failed in a way that another try may not."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class CallMeter(Protocol):
    """Counts what calls cost, and may refuse them."""

    def check(self) -> None:
        """Raise :class:`LlmError` if no further call is to be made."""
        ...

    def add(self, usage: Usage) -> None:
        """Count what a call took."""
        ...

    def measure_remaining_seconds(self) -> float:
        """Return the time that is left for calls and all else, in seconds; infinite if nothing bounds it."""
        ...


class _UsageCount:
    """Usage of a client and its metered copies together."""

    def __init__(self) -> None:
        self.total = Usage()
        self._lock = threading.Lock()

    def add(self, usage: Usage) -> None:
        """Count one completion."""
        with self._lock:
            self.total += usage


class Llm:
    """A language model behind ``POST {base_url}/chat/completions``; safe to share between threads.

    Every method raises :class:`LlmError` if the endpoint cannot be reached, refuses, or twice in a row replies
    with something other than the JSON asked for. A method that is given no sentences (or no text) returns without
    a call.

    ``timeout_seconds`` bounds one try from start to end, also where the endpoint keeps the connection alive
    by sending blanks. Tries that may succeed later (no connection, a timeout, 429, 5xx) are repeated up to
    ``max_attempts`` in all, after a random wait of at most ``backoff_seconds``, doubled each time, or as long
    as ``Retry-After`` says. No wait exceeds ``max_wait_seconds``: told to wait longer, the client gives up at
    once, since trying sooner would only fail again. A request's deadline and a meter's time bound a call with all
    its tries and waits: it takes at most ``CALL_SHARE`` of what is left.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str | None,
        model: str,
        timeout_seconds: float = 30.0,
        max_attempts: int = 3,
        backoff_seconds: float = 0.5,
        max_wait_seconds: float = 20.0,
    ) -> None:
        """Open nothing yet; raises :class:`ConfigurationError` if the address or the key cannot be used."""
        self._base_url = _check_base_url(base_url)
        self._api_key = _check_api_key(api_key)
        self._model = model
        self._timeout_seconds = timeout_seconds
        self._max_attempts = max_attempts
        self._max_wait_seconds = max_wait_seconds
        self._backoff = wait_random_exponential(multiplier=backoff_seconds, max=max_wait_seconds)
        self._client = BoundedClient(self._api_key)
        self._usage = _UsageCount()
        self._options = EndpointOptions()
        self.meter: CallMeter | None = None
        """Counts the calls too, and may refuse them."""

    def __repr__(self) -> str:
        return f"Llm(base_url={self._base_url!r}, model={self._model!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the pooled connections."""
        self._client.close()

    def attach_meter(self, meter: CallMeter) -> "Llm":
        """Return a client whose calls ``meter`` also counts and may refuse; closing it closes both."""
        metered = copy.copy(self)
        metered.meter = meter
        return metered

    @property
    def model(self) -> str:
        """Name of the model, as the endpoint knows it."""
        return self._model

    @property
    def usage(self) -> Usage:
        """Snapshot of this client's usage, metered calls included."""
        return self._usage.total

    @property
    def calls(self) -> int:
        """Completions received so far, asking again included; tries that failed are not completions."""
        return self.usage.calls

    def extract_time_constraint(self, text: str) -> str | None:
        """Name the time that ``text`` is limited to, as a short phrase, or None if it is not."""
        if not text.strip():
            return None
        return self.ask(
            "time",
            prompts.time_constraint(text),
            lambda reply: replies.read_time_constraint(reply, text),
            replies.TimeReply,
        )

    def is_sufficient(self, question: str, sentences: Sequence[str]) -> bool:
        """Tell whether the sentences alone answer the question."""
        if not sentences:
            return False
        evidence = prompts.number_sentences(enumerate(sentences))
        return self.ask(
            "sufficiency",
            prompts.sufficiency(question, evidence),
            replies.read_sufficiency,
            replies.SufficiencyReply,
        )

    def judge_support(self, question: str, sentences: Mapping[int, str] | Sequence[tuple[int, str]]) -> Judgement:
        """Tell which sentences, given by id, carry the answer."""
        pairs = sentences.items() if isinstance(sentences, Mapping) else sentences
        if not pairs:
            return Judgement(supporting=(), confidence=None, judged=())
        evidence = prompts.number_sentences(pairs)
        return self.ask(
            "judge",
            prompts.support(question, evidence),
            lambda reply: replies.read_judgement(reply, evidence.ids),
            replies.SupportReply,
        )

    def answer(self, question: str, sentences: Sequence[tuple[int, str]]) -> DraftAnswer:
        """Answer the question from the sentences, given by id, and from nothing else."""
        if not sentences:
            return DraftAnswer(text="", cited=(), sufficient=False)
        evidence = prompts.number_sentences(sentences)
        return self.ask(
            "answer",
            prompts.draft_answer(question, evidence),
            lambda reply: replies.read_draft_answer(reply, evidence.ids),
            replies.AnswerReply,
        )

    def ask(
        self,
        use: str,
        messages: list[prompts.Message],
        read: Callable[[str], _ReadT],
        schema: type[Reply] | None = None,
        form: str = prompts.JSON_FORM,
    ) -> _ReadT:
        """Return what ``read`` makes of the reply, asking once more, with the reason, if it rejects the first.

        Args:
            use: what the model is used for; names metrics and the schema.
            messages: the conversation.
            read: raises :class:`UnusableReplyError` for what it rejects.
            schema: of the reply, demanded from endpoints that can; None where the reply is not JSON.
            form: what the messages ask for, in words.

        Raises:
            LlmRefusalError: the endpoint refused these messages, or the model twice replied with something else.
            LlmError: the endpoint failed.
        """
        with stages.measure_llm_call(use):
            reply = self._complete(use, messages, schema)
            try:
                return _read(read, reply, messages, schema)
            except UnusableReplyError as error:
                again = prompts.ask_again(messages, reply, str(error), form)
            try:
                return _read(read, self._complete(use, again, schema), messages, schema)
            except UnusableReplyError as error:
                raise LlmRefusalError(f"The LLM twice replied with something unusable ({error}).") from error

    def _complete(self, use: str, messages: list[prompts.Message], schema: type[Reply] | None) -> str:
        """Return the model's text, leaving out options that the endpoint refuses, then and from then on."""
        token_meter.check()
        if self.meter is not None:
            self.meter.check()
        ends = time.monotonic() + self._measure_remaining_seconds() * CALL_SHARE
        while True:
            sent = self._options.options(use, schema)
            status, body = self._send({"model": self._model, "messages": messages, **sent}, ends)
            refused = replies.find_refused_options(sent, status, body)
            if not refused:
                break
            _log.info("llm_options_refused", model=self._model, options=sorted(refused))
            self._options.refuse(sent, refused)
        if not 200 <= status < 300:
            failure = LlmRefusalError if status in _REFUSING else LlmError
            raise failure(f"{replies.describe_failure(status, body, self._api_key)}.")
        try:
            text, usage = replies.read_completion(body)
        except UnusableReplyError as error:
            raise LlmError(f"The LLM endpoint's response is not a chat completion ({error}).") from error
        self._usage.add(usage)
        metrics.tokens(usage.prompt_tokens, usage.completion_tokens)
        if self.meter is not None:
            self.meter.add(usage)
        token_meter.add(usage.prompt_tokens + usage.completion_tokens)
        return text

    def _measure_remaining_seconds(self) -> float:
        """Return the time that the request and the meter leave, in seconds, at least 0."""
        ends = deadline.end()
        remaining = inf if ends is None else ends - time.monotonic()
        return max(0.0, remaining if self.meter is None else min(remaining, self.meter.measure_remaining_seconds()))

    def _send(self, request: Mapping[str, Any], ends: float) -> tuple[int, bytes]:
        """Try until there is a response that another try would not better, or ``ends`` (monotonic seconds)."""
        attempts = stop_after_attempt(self._max_attempts)
        retrying = Retrying(
            stop=lambda state: attempts(state) or time.monotonic() + state.upcoming_sleep >= ends,
            wait=self._wait_seconds,
            retry=retry_if_exception(self._may_retry),
            before_sleep=self._log_retry,
            reraise=True,
        )
        try:
            return retrying(self._try_once, json.dumps(request).encode("ascii"), ends)
        except _TransientError as error:
            tries = retrying.statistics["attempt_number"]
            raise LlmError(f"{error} ({tries} {'try' if tries == 1 else 'tries'}).") from error

    def _try_once(self, content: bytes, ends: float) -> tuple[int, bytes]:
        seconds = min(self._timeout_seconds, ends - time.monotonic())
        if seconds <= 0.0:
            raise LlmError("There is no time left for a call of the LLM endpoint.")
        try:
            received, body = self._client.post(
                f"{self._base_url}/chat/completions", content, seconds=seconds, most_bytes=MAX_RESPONSE_BYTES
            )
        except TimeoutError as error:
            raise _TransientError(f"The LLM endpoint did not answer within {seconds:.3g} s") from error
        except TooLongError as error:
            raise LlmError(f"The LLM endpoint's response exceeds {MAX_RESPONSE_BYTES} bytes.") from error
        except httpx.TransportError as error:
            raise _TransientError(f"The LLM endpoint could not be reached: {type(error).__name__}") from error
        except httpx.HTTPError as error:
            raise LlmError(f"The LLM endpoint's response cannot be read: {type(error).__name__}.") from error
        status = received.status_code
        if status == 429 or status >= 500:
            wait = replies.retry_after_seconds(received.headers)
            wait_note = "" if wait is None else f", to be tried again in {wait:.0f} s"
            raise _TransientError(replies.describe_failure(status, body, self._api_key) + wait_note, wait)
        return status, body

    def _may_retry(self, error: BaseException) -> bool:
        return isinstance(error, _TransientError) and (error.retry_after_seconds or 0) <= self._max_wait_seconds

    def _wait_seconds(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, _TransientError) and error.retry_after_seconds is not None:
            return error.retry_after_seconds
        return self._backoff(state)

    def _log_retry(self, state: RetryCallState) -> None:
        reason = str(state.outcome.exception()) if state.outcome else ""
        _log.warning("llm_retry", model=self._model, attempt=state.attempt_number, reason=reason)


def _read(
    read: Callable[[str], _ReadT], reply: str, messages: list[prompts.Message], schema: type[Reply] | None
) -> _ReadT:
    """Read a reply, and refuse one that copies what the prompt has for an example, as small models do."""
    result = read(reply)
    if schema is not None and not schema.grounded:
        copied = collect_texts(drop_thoughts(reply)) & _example_texts(messages[0]["content"])
        if copied:
            raise UnusableReplyError(f"it copies the form's own words, {min(copied)!r}")
    return result


@lru_cache(maxsize=64)
def _example_texts(system: str) -> frozenset[str]:
    return collect_texts(system)


def _check_base_url(base_url: str) -> str:
    """Refuse what would fail at the first call, and credentials in the address, which logs would show."""
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL as error:
        raise ConfigurationError("The LLM base URL is not a URL.") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise ConfigurationError("The LLM base URL must begin with http:// or https:// and name a host.")
    if url.userinfo or url.query or url.fragment:
        raise ConfigurationError("The LLM base URL must hold no credentials, query or fragment.")
    return str(url).rstrip("/")


def _check_api_key(api_key: str | None) -> str | None:
    """Refuse a key that no header can carry; the HTTP library's own message would quote it."""
    key = (api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError("The LLM API key must consist of printable ASCII characters.")
    return key or None
