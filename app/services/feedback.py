"""Accepting verdicts: resolve what they name, store them once, wake a worker."""

import hashlib
import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import structlog

from app.errors import ConflictError, IdempotencyConflictError, InvalidRequestError, NotFoundError
from app.services.learn import LearnService
from app.storage import collections, episodes, feedback, key_history, passages
from app.storage.database import Database, Reader
from app.storage.feedback import StoredEvent
from app.storage.key_history import KeyEffect
from app.storage.memories import AuditRow
from app.storage.stream import WakeStream

log = structlog.get_logger(__name__)

WAIT_SECONDS = 10.0
WORD = re.compile(r"\w+")
MIN_OVERLAP = 20  # characters that a part of a sentence needs to name it
CREDITS = 200  # that are shown of one event
WAKES = 1_000  # that a retry of many sends; the sweep finds the rest


@dataclass(frozen=True, slots=True)
class Named:
    """A sentence named by id, or by its passage and its text."""

    sentence_id: int | None = None
    passage_id: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Expansion:
    """A query expansion that came with the verdict, kept for key evolution."""

    method: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a judge says of one episode.

    Attributes:
        supporting: sentences that helped, retrieved or not.
        rejected: sentences that did not.
        missed: evidence that retrieval did not return.
        partial: leave activated sentences that are not named alone, instead of counting them as rejected.
        retrieval_success, generation_success: whether the evidence was found, whether the answer was right.
        generation_score: how good the answer was, in [0, 1], where the judge leaves the decision to Engram.
        supporting_passages: passages that helped as a whole, by external id; their keys learn from
            it, and their sentences that are not named are left alone.
        expansions: query expansions, for key evolution.
        judge: who judged.
        confidence: in [0.01, 1]; divides the observation noise.
    """

    query_id: UUID
    collection: str
    supporting: Sequence[Named] = ()
    rejected: Sequence[Named] = ()
    missed: Sequence[Named] = ()
    partial: bool = False
    retrieval_success: bool | None = None
    generation_success: bool | None = None
    generation_score: float | None = None
    supporting_passages: Sequence[str] = ()
    expansions: Sequence[Expansion] = ()
    judge: str = "anonymous"
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Receipt:
    """An accepted event; if it was waited for, what it changed and what its expansions came to, if it has any."""

    event: StoredEvent
    changes: list[AuditRow] | None
    keys: KeyEffect | None = None


class FeedbackService:
    """Accepts verdicts and reports on them."""

    def __init__(self, database: Database, stream: WakeStream, learn: LearnService) -> None:
        self._database = database
        self._stream = stream
        self._learn = learn

    def accept(self, verdict: Verdict, key: str, *, wait: bool = False) -> Receipt:
        """Store the verdict under its Idempotency-Key and have it applied, here if ``wait``.

        The same verdict again gets the first receipt.

        Raises:
            NotFoundError: the query or the collection does not exist.
            InvalidRequestError: a named sentence does not exist, or is both supported and rejected.
            IdempotencyConflictError: the key was used with another verdict.
        """
        body_hash = hashlib.sha256(json.dumps(asdict(verdict), sort_keys=True, default=str).encode()).digest()
        with self._database.read() as reader:
            met = feedback.arrival(reader, verdict.collection, key, verdict.query_id)
            if met is None:
                raise collections.missing(verdict.collection)
            target, first = met.collection_id, met.first
            if first is None:
                if not met.has_episode:
                    raise episodes.missing(verdict.query_id)
                resolved = _resolve(reader, target, verdict)
        if first is None:
            with self._database.write() as writer:
                first = feedback.accept(
                    writer,
                    target,
                    episode=verdict.query_id,
                    key=key,
                    body_hash=body_hash,
                    judge=verdict.judge,
                    verdict=resolved,
                )
            if first is not None:
                log.info("feedback accepted", event_id=first.id, query_id=str(first.query_id), judge=first.judge)
                if not wait:
                    self._stream.wake(target, first.id)
            else:  # the same key, at the same time
                with self._database.read() as reader:
                    first = feedback.by_key(reader, target, key)
                if first is None:
                    raise NotFoundError(f"Collection {verdict.collection!r} was deleted meanwhile.")
        if first.body_hash != body_hash:
            raise IdempotencyConflictError(f"Idempotency-Key {key!r} was used before with another verdict.")
        return self._wait(target, first) if wait else Receipt(first, None)

    def event(self, collection: str, event_id: int) -> Receipt:
        """An event and what it changed so far.

        Raises:
            NotFoundError: there is no such event or collection.
        """
        with self._database.read() as reader:
            target = collections.find(reader, collection)
            event = feedback.find(reader, target.id, event_id)
            if event is None:
                raise NotFoundError(f"There is no feedback {event_id} in collection {collection!r}.")
            return _receipt(reader, target.id, event)

    def page(self, collection: str, *, status: str | None, after: int, limit: int) -> list[StoredEvent]:
        """Events in order of acceptance."""
        with self._database.read() as reader:
            target = collections.find(reader, collection)
            return feedback.page(reader, target.id, status=status, after=after, limit=limit)

    def retry(self, collection: str, event_id: int) -> Receipt:
        """Let a parked event wait again, with all its tries; its error can be read until it is applied.

        Raises:
            NotFoundError: there is no such event or collection.
            ConflictError: it is not parked.
        """
        with self._database.read() as reader:
            target = collections.find(reader, collection)
        retried = self._unpark(target.id, event=event_id)
        with self._database.read() as reader:
            event = feedback.find(reader, target.id, event_id)
        if event is None:
            raise NotFoundError(f"There is no feedback {event_id} in collection {collection!r}.")
        if not retried:
            raise ConflictError(f"Feedback {event_id} is {event.status}; only what is parked can be retried.")
        return Receipt(event, None)

    def retry_all(self, collection: str, judge: str | None = None) -> int:
        """Let all parked events wait again, or all of one judge; how many there were.

        Raises:
            NotFoundError: there is no such collection.
        """
        with self._database.read() as reader:
            target = collections.find(reader, collection)
        return len(self._unpark(target.id, judge=judge))

    def _unpark(self, collection_id: int, *, event: int | None = None, judge: str | None = None) -> list[int]:
        with self._database.write() as writer:
            collections.keep(writer, collection_id)
            events = feedback.unpark(writer, collection_id, event=event, judge=judge)
        for waiting in events[:WAKES]:
            if not self._stream.wake(collection_id, waiting):
                break
        if events:
            log.info("feedback retried", collection_id=collection_id, events=len(events))
        return events

    def _wait(self, collection_id: int, event: StoredEvent) -> Receipt:
        """Apply the event here, or wait for the worker that holds it."""
        deadline = time.monotonic() + WAIT_SECONDS
        while event.status == "pending" and time.monotonic() < deadline:
            if not self._learn.apply(collection_id, [event.id]):
                time.sleep(0.02)
            with self._database.read() as reader:
                event = feedback.find(reader, collection_id, event.id) or event
        with self._database.read() as reader:
            return _receipt(reader, collection_id, event)


def _receipt(reader: Reader, collection_id: int, event: StoredEvent) -> Receipt:
    """The event with everything it changed so far."""
    changes = feedback.audit(reader, collection_id, event.id)
    return Receipt(event, changes, key_history.effect(reader, collection_id, event.id, CREDITS))


def _resolve(reader: Reader, collection_id: int, verdict: Verdict) -> dict[str, Any]:
    """The verdict with every named sentence as an id, as the log keeps it."""
    named = [*verdict.supporting, *verdict.rejected, *verdict.missed]
    by_id = passages.sentences_by_id(reader, collection_id, {n.sentence_id for n in named if n.sentence_id})
    external = {n.passage_id for n in named if n.passage_id is not None} | set(verdict.supporting_passages)
    versions = passages.versions(reader, collection_id, external)
    in_passage: dict[int, list[tuple[int, str]]] = {}
    for sentence in passages.sentences_of(reader, collection_id, [found[0] for found in versions.values()]):
        in_passage.setdefault(sentence.passage_id, []).append((sentence.id, _plain(sentence.text)))

    def ids(names: Sequence[Named]) -> list[int]:
        found: set[int] = set()
        for name in names:
            if name.sentence_id is not None:
                if name.sentence_id not in by_id:
                    raise InvalidRequestError(f"There is no sentence {name.sentence_id} in this collection.")
                found.add(name.sentence_id)
                continue
            if name.passage_id not in versions:
                raise InvalidRequestError(f"There is no passage {name.passage_id!r} in this collection.")
            passage_id = versions[name.passage_id][0]
            matching = _matching(name.text or "", in_passage.get(passage_id, []))
            if not matching:
                raise InvalidRequestError(f"Passage {name.passage_id!r} has no sentence {name.text!r}.")
            found.update(matching)
        return sorted(found)

    unknown = sorted(set(verdict.supporting_passages) - versions.keys())
    if unknown:
        raise InvalidRequestError(f"There is no passage {unknown[0]!r} in this collection.")
    helpful = sorted(versions[name][0] for name in set(verdict.supporting_passages))
    missed = ids(verdict.missed)
    supports = sorted({*ids(verdict.supporting), *missed})
    rejects = ids(verdict.rejected)
    both = sorted(set(supports) & set(rejects))
    if both:
        raise InvalidRequestError(f"Sentences {both} are both supported and rejected.")
    return {
        "supports": supports,
        "rejects": rejects,
        "missed": missed,
        "partial": verdict.partial,
        "retrieval_success": verdict.retrieval_success,
        "generation_success": verdict.generation_success,
        "generation_score": verdict.generation_score,
        "passages": helpful,
        "spared": sorted(sentence for passage in helpful for sentence, _ in in_passage.get(passage, [])),
        "expansions": [asdict(expansion) for expansion in verdict.expansions],
        "confidence": verdict.confidence,
    }


def _matching(text: str, sentences: Sequence[tuple[int, str]]) -> list[int]:
    """Sentences, given in plain text, that are ``text``; else, for a judge that splits differently, those that
    hold it or that it holds whole, if what is held is long enough to tell.
    """
    wanted = _plain(text)
    exact = [sentence for sentence, plain in sentences if plain == wanted]
    if exact or not wanted:
        return exact
    return [
        sentence
        for sentence, plain in sentences
        if (len(wanted) >= MIN_OVERLAP and f" {wanted} " in f" {plain} ")
        or (len(plain) >= MIN_OVERLAP and f" {plain} " in f" {wanted} ")
    ]


def _plain(text: str) -> str:
    """The words of a text; a missing full stop makes no other sentence."""
    return " ".join(WORD.findall(text.casefold()))
