"""Jobs that are opened once, however often the same request comes."""

import hashlib
from collections.abc import Callable
from uuid import UUID, uuid4

from app.services.access.scope import Scope
from app.storage.corpus import collections
from app.storage.database import Database, Writer
from app.storage.jobs import idempotency


def open_job(
    database: Database, scope: Scope, key: str | None, request: str, start: Callable[[Writer, int, UUID], None]
) -> tuple[UUID, bool]:
    """Have ``start`` open a job, with the collection's id and the job's; the job, and whether this opened it.

    Args:
        key: the Idempotency-Key; one that comes again is answered with the first job. None: a job every time.
        request: what is asked for; a repeated key must ask for the same.

    Raises:
        NotFoundError: the collection was deleted meanwhile.
        IdempotencyConflictError: the key was used before with another request.
    """
    job_id, body_hash = uuid4(), hashlib.sha256(request.encode()).digest()
    target, gone = scope.collection.id, collections.gone(scope.collection.name)
    with database.write() as writer:
        if not collections.keep(writer, target):
            raise gone
        answer = {"job_id": str(job_id)}
        if key is None or idempotency.remember(writer, target, key, body_hash, answer):
            start(writer, target, job_id)
            return job_id, True
    with database.read() as reader:
        first = idempotency.first_answer(reader, target, key, body_hash)
    if first is None:
        raise gone
    return UUID(first["job_id"]), False
