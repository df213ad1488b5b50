"""Erasing what is stored of a person: one query, a judge, a principal, or a span of time.

Answered queries go first, then verdicts, a hundred at a time, each batch as a revocation takes them back. The last
transaction removes whatever else names the person, and stores a receipt. An erasure that was interrupted goes on.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args
from uuid import UUID, uuid4

import structlog

from engram.context.errors import ConflictError, InvalidRequestError
from engram.services.auth.scope import Scope
from engram.services.jobs.idempotent_jobs import JobStart, open_job
from engram.services.jobs.job_kinds import ERASURE
from engram.services.jobs.work import Work
from engram.services.question.query import create_query_id
from engram.services.revocation.derived_state import DerivedState
from engram.services.revocation.revocation_service import RevocationService
from engram.storage.database import Database, Writer
from engram.storage.erasure import erased_log, person_traces
from engram.storage.erasure.erased_log import ErasedKind, Selection
from engram.storage.erasure.person_traces import ErasureReceipt
from engram.storage.jobs.jobs import Job

__all__ = ["ErasureReceipt", "ErasureRequest", "ErasureService", "read_receipts"]
log = structlog.get_logger(__name__)

BATCH = 100
"""Verdicts that one transaction takes back; learning in their collection waits for it."""
EPISODES = 1_000
SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """A person or text to erase, and whether what its verdicts taught is kept under a random judge."""

    selection: Selection
    anonymise: bool = False

    def __post_init__(self) -> None:
        chosen = self.selection
        if chosen.kind not in get_args(ErasedKind):
            raise InvalidRequestError(f"There is no erasure of kind {chosen.kind!r}.")
        if chosen.kind == "span" and chosen.since is None and chosen.before is None:
            raise InvalidRequestError("Say the span: 'from', 'to' or both.")
        if chosen.since is not None and chosen.before is not None and chosen.since >= chosen.before:
            raise InvalidRequestError("'from' must come before 'to'.")

    @classmethod
    def build(
        cls,
        kind: ErasedKind,
        *,
        name: str | None = None,
        queries: Sequence[UUID] = (),
        since: datetime | None = None,
        before: datetime | None = None,
        anonymise: bool = False,
    ) -> "ErasureRequest":
        """Build a request, see ``Selection``.

        Raises:
            InvalidRequestError: the span has no bounds, or is empty.
        """
        return cls(Selection(kind, name, tuple(queries), since, before), anonymise)

    def as_json(self) -> dict[str, Any]:
        """The request as its job keeps it until it ends."""
        chosen = self.selection
        return {
            "kind": chosen.kind,
            "name": chosen.name,
            "queries": [str(query) for query in chosen.queries],
            "since": None if chosen.since is None else chosen.since.isoformat(),
            "before": None if chosen.before is None else chosen.before.isoformat(),
            "anonymise": self.anonymise,
        }


def _read(payload: Any) -> ErasureRequest:
    times = _read_moment(payload["since"]), _read_moment(payload["before"])
    queries = tuple(UUID(query) for query in payload["queries"])
    return ErasureRequest(Selection(payload["kind"], payload["name"], queries, *times), payload["anonymise"])


class ErasureService:
    """Erases by jobs that a worker runs."""

    def __init__(
        self, database: Database, revocation: RevocationService, derived_states: Sequence[DerivedState]
    ) -> None:
        self._database = database
        self._revocation = revocation
        self._derived = derived_states

    def request(self, scope: Scope, request: ErasureRequest, key: str | None = None) -> UUID:
        """Queue a job that erases; the first one of a repeated key.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            ConflictError: the principal has an access key that still counts.
            IdempotencyConflictError: the key was used before with another request.
        """
        chosen = request.selection
        if chosen.kind == "principal" and chosen.name is not None:
            with self._database.read() as reader:
                if person_traces.has_live_key(reader, scope.principal.tenant, chosen.name):
                    raise ConflictError("An access key of this principal still counts; revoke it first.")
        complete = self._complete(scope.collection.id, request)
        salt = os.urandom(SALT_BYTES).hex()

        def begin(_writer: Writer, _collection_id: int) -> JobStart:
            return JobStart(complete.as_json() | {"salt": salt})

        # The job alone knows the name: what is asked for is logged.
        digest = hashlib.sha256(repr(complete.as_json()).encode()).hexdigest()
        return open_job(self._database, scope, ERASURE, {"erases": chosen.kind, "request": digest}, key, begin)

    def list_receipts(self, scope: Scope) -> list[ErasureReceipt]:
        """The receipts of the collection, oldest first."""
        with self._database.read() as reader:
            return person_traces.list_receipts(reader, scope.collection.id)

    def list_all_receipts(self) -> dict[tuple[str, str], list[ErasureReceipt]]:
        """(Tenant, collection) -> its receipts, of all collections of all tenants."""
        with self._database.read() as reader:
            return person_traces.list_all_receipts(reader)

    def repeat(self, scope: Scope, receipts: Sequence[ErasureReceipt]) -> list[UUID]:
        """Erase again, in a collection of an old backup, what these receipts say was erased; the jobs.

        Names are found by their digests among those that the collection has.
        """
        collection_id, opened = scope.collection.id, []
        for receipt in receipts:
            names: list[str | None] = [None]
            if receipt.digest is not None and receipt.kind in {"judge", "principal"}:
                kind: ErasedKind = "judge" if receipt.kind == "judge" else "principal"
                with self._database.read() as reader:
                    known = erased_log.find_name_rows(reader, collection_id, kind)
                names = [name for name in known if _digest(receipt.salt or b"", name) == receipt.digest]
            for name in names:
                selection = Selection(
                    receipt.kind,  # type: ignore[arg-type]
                    name,
                    tuple(receipt.queries),
                    receipt.since,
                    receipt.before,
                )
                opened.append(self.request(scope, ErasureRequest(selection, receipt.anonymised)))
        return opened

    def run(self, work: Work) -> None:
        """Erase batch after batch; a batch leaves what is learned as the remaining verdicts give it."""
        while not (work.finished or work.should_stop()):
            with self._database.write() as writer:
                self._run_batch(writer, work)

    def let_go(self, writer: Writer, job: Job) -> None:
        """Take the name out of a job that ends without having erased everything."""
        person_traces.forget_payload(writer, job.collection_id, job.id)

    def _complete(self, collection_id: int, request: ErasureRequest) -> ErasureRequest:
        """Add the other queries of the sessions that a query belongs to: they ask parts of the same question."""
        chosen = request.selection
        if chosen.kind != "query":
            return request
        related = set(chosen.queries)
        with self._database.read() as reader:
            for state in self._derived:
                related |= set(state.find_related_queries(reader, collection_id, chosen.queries))
        return ErasureRequest(Selection("query", queries=tuple(sorted(related))), request.anonymise)

    def _run_batch(self, writer: Writer, work: Work) -> None:
        collection_id = work.job.collection_id
        current = work.lock(writer)
        request = _read(current.payload)
        chosen = request.selection
        # Episodes first: without them no further verdict can come.
        if episodes := erased_log.delete_episodes(writer, collection_id, chosen, EPISODES):
            work.advance(writer, created=episodes)
            return
        events = erased_log.list_events(writer, collection_id, chosen, current.position, BATCH)
        if events:
            self._erase_events(writer, collection_id, name_randomly(work.job.id), request, events)
            work.advance(writer, updated=len(events), position=events[-1])
        else:
            self._finish(writer, work, current, request)

    def anonymise_aged(self, before: datetime) -> int:
        """Anonymise verdicts from before a moment, a batch of one collection at a time; return how many there were.

        A verdict that supports no sentence which still exists is erased. Without receipts: nobody asked for it.
        """
        request = ErasureRequest.build("span", before=before, anonymise=True)
        with self._database.read() as reader:
            aged = erased_log.find_aged_events(reader, before, BATCH)
        if aged is None:
            return 0
        collection_id, events = aged
        with self._database.write() as writer:
            self._erase_events(writer, collection_id, name_randomly(uuid4()), request, events)
        return len(events)

    def _erase_events(
        self, writer: Writer, collection_id: int, judge: str, request: ErasureRequest, events: Sequence[int]
    ) -> None:
        counted = self._revocation.take_back(writer, collection_id, events)
        deleted = list(events)
        if request.anonymise:
            remaining = {
                event
                for event in counted
                if erased_log.forget_words(
                    writer, collection_id, event, create_query_id(), judge, request.selection
                )
            }
            deleted = [event for event in events if event not in remaining]
        erased_log.delete_events(writer, collection_id, deleted)

    def _finish(self, writer: Writer, work: Work, current: Job, request: ErasureRequest) -> None:
        collection_id, chosen, job = work.job.collection_id, request.selection, work.job
        random_name = name_randomly(job.id)
        removed = {"episode": current.created, "feedback_event": current.updated}
        removed["judged_query"] = erased_log.delete_unjudged_queries(writer, collection_id, chosen)
        if chosen.name is not None:
            removed["judge"] = erased_log.rename_judge(
                writer, collection_id, chosen.name, random_name if request.anonymise else None
            )
        for state in self._derived:
            removed |= state.erase(writer, collection_id, chosen, random_name)
        removed |= person_traces.delete_traces(writer, collection_id, job.tenant, chosen)
        salt = bytes.fromhex(current.payload["salt"])
        person_traces.add_receipt(
            writer,
            collection_id,
            job.id,
            chosen,
            salt=None if chosen.name is None else salt,
            digest=None if chosen.name is None else _digest(salt, chosen.name),
            anonymised=request.anonymise,
            removed=erased_log.count_rows(removed),
        )
        work.finish(writer, {"removed": erased_log.count_rows(removed)})
        log.info("erased", job_id=str(job.id), kind=chosen.kind, collection=job.collection)


def read_receipts(documents: Sequence[Mapping[str, Any]]) -> list[ErasureReceipt]:
    """Read receipts as ``GET /collections/{name}/erasures`` shows them.

    Raises:
        KeyError, TypeError, ValueError: they are none.
    """
    return [
        ErasureReceipt(
            id=UUID(one["id"]),
            kind=one["kind"],
            salt=None if one["salt"] is None else bytes.fromhex(one["salt"]),
            digest=None if one["digest"] is None else bytes.fromhex(one["digest"]),
            queries=[UUID(query) for query in one["queries"]],
            since=_read_moment(one["since"]),
            before=_read_moment(one["before"]),
            anonymised=one["anonymised"],
            removed=one["removed"],
            backups=one["backups"],
            erased_at=datetime.fromisoformat(one["erased_at"]),
        )
        for one in documents
    ]


def _read_moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def name_randomly(job: UUID) -> str:
    """The random judge of an erasure."""
    return f"erased-{job.hex[:12]}"


def _digest(salt: bytes, name: str) -> bytes:
    return hashlib.sha256(salt + name.encode()).digest()
