"""Jobs that are opened once, however often the same request comes."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import structlog

from engram.context.errors import ConflictError
from engram.services.auth.scope import Scope
from engram.services.jobs.work import JobKind
from engram.storage.corpus import collections
from engram.storage.database import Database, Writer
from engram.storage.jobs import idempotency, jobs
from engram.storage.jobs.jobs import Job

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JobStart:
    """Work done by the request itself: additions to the payload, and counts of rows to do and done."""

    payload: Mapping[str, Any]
    received: int = 0
    updated: int = 0


def open_job(
    database: Database,
    scope: Scope,
    kind: JobKind,
    payload: Mapping[str, Any],
    key: str | None,
    begin: Callable[[Writer, int], JobStart] = lambda *_: JobStart({}),
) -> UUID:
    """Queue a job; the first one of a repeated key.

    Args:
        payload: what is asked for; a repeated key must ask for the same.
        key: the Idempotency-Key; None: a job every time.
        begin: what is done at once, in the transaction that queues the job, given the collection's id.

    Raises:
        NotFoundError: the collection was deleted meanwhile.
        ConflictError: a job of this kind is open, and the kind is single; ``job_id`` names it.
        IdempotencyConflictError: the key was used before with another request.
    """
    target, job_id = scope.collection, uuid4()

    def start(writer: Writer) -> None:
        begun = begin(writer, target.id)
        if not jobs.add(
            writer,
            target.id,
            job_id,
            kind=kind.name,
            lane=kind.lane,
            single=kind.single,
            payload={**payload, **begun.payload},
            received=begun.received,
            updated=begun.updated,
        ):
            raise _build_conflict_error(target.name, kind, jobs.open_of_kind(writer, target.id, kind.name))

    request = f"{kind.name} {json.dumps(payload, sort_keys=True)}"
    body_hash = hashlib.sha256(request.encode()).digest()
    found, opened = begin_once(
        database, target.id, target.name, scope.principal.name, key, body_hash, job_id, start
    )
    if opened:
        log.info("job accepted", job_id=str(found), kind=kind.name, collection=target.name, **payload)
    return found


def begin_once(
    database: Database,
    collection_id: int,
    name: str,
    principal: str,
    key: str | None,
    body_hash: bytes,
    job_id: UUID,
    start: Callable[[Writer], None],
) -> tuple[UUID, bool]:
    """Have ``start`` begin the job, unless the principal's key was answered with another; it, and whether it began.

    Raises:
        NotFoundError: the collection was deleted meanwhile.
        IdempotencyConflictError: the key was used before with another body.
    """
    with database.write() as writer:
        if not collections.lock_against_deletion(writer, collection_id):
            raise collections.build_gone_error(name)
        answer = {"job_id": str(job_id)}
        if key is None or idempotency.remember(writer, collection_id, principal, key, body_hash, answer):
            start(writer)
            return job_id, True
    with database.read() as reader:
        first = idempotency.find_first_answer(reader, collection_id, principal, key, body_hash)
    if first is None:
        raise collections.build_gone_error(name)
    return UUID(first["job_id"]), False


def _build_conflict_error(name: str, kind: JobKind, job: Job | None) -> ConflictError:
    if job is None:  # it has ended since
        return ConflictError(f"Collection {name!r} had another {kind.name} job under way.")
    payload = ", ".join(str(value) for value in job.payload.values())
    return ConflictError(
        f"Collection {name!r} has a {kind.name} job under way ({payload}): {job.id}.", job_id=str(job.id)
    )
