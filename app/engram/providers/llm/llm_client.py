"""The client of an OpenAI-compatible chat-completions endpoint, with one method per use of the model."""

import copy
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

import httpx
import structlog
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from engram.context.errors import ConfigurationError, LlmError
from engram.core.passage_keys.expansion import WordedMethod
from engram.providers.llm import fact_replies, prompts, replies, token_meter
from engram.providers.llm.fact_replies import Maintenance, Relation
from engram.providers.llm.replies import DraftAnswer, Grade, Judgement, UnusableReplyError, Usage
from engram.telemetry import metrics, stages

MAX_RESPONSE_BYTES = 2**20
"""Longest response body that is read, in bytes; the replies asked for are some hundred bytes long."""

_OPTIONS: Mapping[str, Any] = {"temperature": 0, "response_format": {"type": "json_object"}}

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


class Llm:
    """A language model behind ``POST {base_url}/chat/completions``; safe to share between threads.

    Every method raises :class:`LlmError` if the endpoint cannot be reached, refuses, or twice in a row replies
    with something other than the JSON asked for. No method asks the model about nothing: without sentences (or
    text) the answer is known.

    ``timeout_seconds`` bounds one try from start to end, also where the endpoint keeps the connection alive
    by sending blanks. Tries that may succeed later (no connection, a timeout, 429, 5xx) are repeated up to
    ``max_attempts`` in all, after a random wait of at most ``backoff_seconds``, doubled each time, or as long
    as ``Retry-After`` says. No wait exceeds ``max_wait_seconds``: told to wait longer, the client gives up at
    once, since trying sooner would only fail again.
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
        prices: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """Open nothing yet; raises :class:`ConfigurationError` if the address or the key cannot be used.

        ``prices`` are those of a million tokens, of prompts and of completions: what metrics tell of costs.
        """
        self._prices = prices
        self._base_url = _checked_base_url(base_url)
        self._api_key = _checked_api_key(api_key)
        self._model = model
        self._timeout_seconds = timeout_seconds
        self._max_attempts = max_attempts
        self._max_wait_seconds = max_wait_seconds
        self._backoff = wait_random_exponential(multiplier=backoff_seconds, max=max_wait_seconds)
        self._client = httpx.Client(
            timeout=timeout_seconds,
            headers={
                "Content-Type": "application/json",
                **({"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}),
            },
        )
        self._lock = threading.Lock()
        self._usage = Usage()
        self._refused: frozenset[str] = frozenset()
        self._meter: CallMeter | None = None
        self._whole = self

    def __repr__(self) -> str:
        return f"Llm(base_url={self._base_url!r}, model={self._model!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the pooled connections."""
        self._client.close()

    def metered(self, meter: CallMeter) -> "Llm":
        """Return a client whose calls ``meter`` also counts and may refuse; closing it closes both."""
        metered = copy.copy(self)
        metered._meter = meter
        return metered

    @property
    def usage(self) -> Usage:
        """Snapshot of this client's usage, metered calls included."""
        return self._whole._usage

    @property
    def calls(self) -> int:
        """Completions received so far, asking again included; tries that failed are not completions."""
        return self.usage.calls

    def extract_time_constraint(self, text: str) -> str | None:
        """Name the time that ``text`` is limited to, as a short phrase, or None if it is not."""
        if not text.strip():
            return None
        return self.ask("time", prompts.time_constraint(text), replies.read_time_constraint)

    def is_sufficient(self, question: str, sentences: Sequence[str]) -> bool:
        """Tell whether the sentences alone answer the question."""
        if not sentences:
            return False
        evidence = prompts.number_sentences(enumerate(sentences))
        return self.ask("sufficiency", prompts.sufficiency(question, evidence), replies.read_sufficiency)

    def judge_support(
        self,
        question: str,
        sentences: Mapping[int, str] | Sequence[tuple[int, str]],
        answer: str | None = None,
    ) -> Judgement:
        """Tell which sentences, given by id, carry the answer; ``answer`` is the one proposed, if any."""
        pairs = sentences.items() if isinstance(sentences, Mapping) else sentences
        if not pairs:
            return Judgement(supporting=(), confidence=None, judged=())
        evidence = prompts.number_sentences(pairs)
        return self.ask(
            "judge",
            prompts.support(question, evidence, answer),
            lambda reply: replies.read_judgement(reply, evidence.ids),
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
        )

    def restate_question(self, question: str, earlier: Sequence[tuple[str, str]]) -> str:
        """The question so that it can be understood without what was said before it, as (role, text)."""
        return self.ask("restate", prompts.restatement(question, earlier), replies.read_question)

    def grade(self, question: str, accepted: Sequence[str], answer: str) -> Grade:
        """Tell whether an answer is right, by those that are accepted; an empty one is wrong."""
        if not accepted:
            raise ValueError("there is no accepted answer")
        if not answer.strip():
            return Grade(strict=False, lenient=False)
        return self.ask("grade", prompts.grade(question, accepted, answer), replies.read_grade)

    def expand(self, method: WordedMethod, question: str) -> list[str]:
        """Texts that widen the question, one or several by the method."""
        return self.ask(
            "expand", prompts.expansion(method, question), lambda reply: replies.read_expansion(method, reply)
        )

    def refine_question(self, question: str, draft: str, passages: Sequence[str]) -> str:
        """A better question than ``draft``, which found the passages, to the same end as ``question``."""
        if not passages:
            return draft
        # Long passages are cut, so that each has its place; the rest of a line is its number.
        room = prompts.MAX_EVIDENCE_CHARACTERS // len(passages) - len(f"[{len(passages)}] \n")
        evidence = prompts.number_sentences(enumerate(passage[:room] for passage in passages))
        return self.ask("refine", prompts.refinement(question, draft, evidence), replies.read_question)

    def extract_entities(self, title: str | None, sentences: Sequence[str]) -> list[str]:
        """The names that a text says something of, its title first if it has one; each once."""
        if not sentences:
            return []
        evidence = prompts.number_sentences(enumerate(sentences))
        found = self.ask("entities", prompts.entities(title, evidence), fact_replies.read_entities)
        return replies.distinct([*([title.strip()] if title else []), *found])

    def extract_relations(
        self, title: str | None, sentences: Sequence[tuple[int, str]], entities: Sequence[str]
    ) -> list[Relation]:
        """Extract the relations between the entities from sentences with ids."""
        if not sentences or len(entities) < 2:
            return []
        evidence = prompts.number_sentences(sentences)
        return self.ask(
            "relations",
            prompts.relations(title, evidence, entities),
            lambda reply: fact_replies.read_relations(reply, entities, evidence.ids),
        )

    def maintain_facts(self, facts: Sequence[tuple[str, str, str]], correction: str) -> Maintenance:
        """Read the changes that a correction in words makes to facts."""
        if not correction.strip():
            return Maintenance((), ())
        lines = [(place, " | ".join(fact)) for place, fact in enumerate(facts)]
        evidence = prompts.number_sentences(lines)
        return self.ask(
            "maintenance",
            prompts.maintenance(evidence, correction),
            lambda reply: fact_replies.read_maintenance(reply, len(evidence.ids)),
        )

    def ask(
        self,
        use: str,
        messages: list[prompts.Message],
        read: Callable[[str], _ReadT],
        form: str = prompts.JSON_FORM,
    ) -> _ReadT:
        """Return what ``read`` makes of the reply, asking once more, with the reason, if it rejects the first.

        ``form`` names what the messages ask for; of an endpoint that can, JSON is demanded where it is that.
        """
        with stages.asking(use):
            return self._read(messages, read, form)

    def _read(self, messages: list[prompts.Message], read: Callable[[str], _ReadT], form: str) -> _ReadT:
        free = frozenset() if form == prompts.JSON_FORM else frozenset({"response_format"})
        reply = self._complete(messages, free)
        try:
            return read(reply)
        except UnusableReplyError as error:
            again = prompts.ask_again(messages, reply, str(error), form)
        try:
            return read(self._complete(again, free))
        except UnusableReplyError as error:
            raise LlmError(f"The LLM twice replied with something unusable ({error}).") from error

    def _complete(self, messages: list[prompts.Message], without: frozenset[str] = frozenset()) -> str:
        """Return the model's text, leaving out options that the endpoint refuses, then and from then on."""
        token_meter.check()
        if self._meter is not None:
            self._meter.check()
        while True:
            sent = {name: value for name, value in _OPTIONS.items() if name not in self._refused | without}
            status, body = self._send({"model": self._model, "messages": messages, **sent})
            refused = replies.refused_options(sent, status, body)
            if not refused:
                break
            _log.info("llm_options_refused", model=self._model, options=sorted(refused))
            with self._lock:
                self._refused |= refused
        if not 200 <= status < 300:
            raise LlmError(f"{replies.describe_failure(status, body, self._api_key)}.")
        try:
            text, usage = replies.read_completion(body)
        except UnusableReplyError as error:
            raise LlmError(f"The LLM endpoint's response is not a chat completion ({error}).") from error
        with self._lock:
            self._whole._usage += usage
        metrics.tokens(usage.prompt_tokens, usage.completion_tokens, self._prices)
        if self._meter is not None:
            self._meter.add(usage)
        token_meter.add(usage.prompt_tokens + usage.completion_tokens)
        return text

    def _send(self, request: Mapping[str, Any]) -> tuple[int, bytes]:
        retrying = Retrying(
            stop=stop_after_attempt(self._max_attempts),
            wait=self._wait_seconds,
            retry=retry_if_exception(self._may_retry),
            before_sleep=self._log_retry,
            reraise=True,
        )
        try:
            return retrying(self._try_once, json.dumps(request).encode("ascii"))
        except _TransientError as error:
            attempts = retrying.statistics["attempt_number"]
            raise LlmError(f"{error} ({attempts} {'try' if attempts == 1 else 'tries'}).") from error

    def _try_once(self, content: bytes) -> tuple[int, bytes]:
        # httpx bounds the wait for each piece; an endpoint that sends blanks while it thinks never hits that.
        deadline = time.monotonic() + self._timeout_seconds
        body = bytearray()
        try:
            with self._client.stream("POST", f"{self._base_url}/chat/completions", content=content) as received:
                for piece in received.iter_bytes():
                    body += piece
                    if len(body) > MAX_RESPONSE_BYTES:
                        raise LlmError(f"The LLM endpoint's response exceeds {MAX_RESPONSE_BYTES} bytes.")
                    if time.monotonic() > deadline:
                        raise httpx.ReadTimeout("no complete response in time", request=received.request)
        except httpx.TimeoutException as error:
            raise _TransientError(f"The LLM endpoint did not answer within {self._timeout_seconds:g} s") from error
        except httpx.TransportError as error:
            raise _TransientError(f"The LLM endpoint could not be reached: {type(error).__name__}") from error
        except httpx.HTTPError as error:
            raise LlmError(f"The LLM endpoint's response cannot be read: {type(error).__name__}.") from error
        status = received.status_code
        if status == 429 or status >= 500:
            wait = replies.retry_after_seconds(received.headers)
            told = "" if wait is None else f", to be tried again in {wait:.0f} s"
            raise _TransientError(replies.describe_failure(status, bytes(body), self._api_key) + told, wait)
        return status, bytes(body)

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


def _checked_base_url(base_url: str) -> str:
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


def _checked_api_key(api_key: str | None) -> str | None:
    """Refuse a key that no header can carry; the HTTP library's own message would quote it."""
    key = (api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError("The LLM API key must consist of printable ASCII characters.")
    return key or None
