"""Files that were sent, converted into passages and handed to a job."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from anyio import move_on_after
from fastapi import Request, Response
from pydantic import Field, ValidationError
from starlette.concurrency import run_in_threadpool

from engram.api.body_reading import ArrivingBody
from engram.api.client_presence import CLIENT_LEFT
from engram.api.corpus.passage_bodies import Lines, Mistakes, pieces, reason
from engram.api.corpus.schemas import DocumentIn, PassageIn
from engram.api.jobs.routes import build_accepted
from engram.api.jobs.schemas import AcceptedJob
from engram.api.request_principal import holder
from engram.api.work_threads import WorkSlots, WorkThreads
from engram.context.errors import MalformedRequestError
from engram.services.corpus.passage_intake import PassageReception
from engram.wings.importing.conversion.documents import Conversion
from engram.wings.importing.services.document_conversion import DocumentConversion

MOST_CONVERSIONS = 2
CONVERSION_THREADS = WorkThreads("engram-documents", MOST_CONVERSIONS)
"""Documents that a process converts at once; each takes a processor and up to ``ConversionLimits.memory_bytes``."""
SMALL_BYTES = 64 * 1024
MOST_LARGE_FILES = 8
ARRIVAL_SECONDS = 300.0
"""A sender may keep a place for large files so long, which is 1 Mbit/s for the largest."""
LARGE_FILES = WorkSlots("engram-large-files", MOST_LARGE_FILES)
"""Files of more than ``SMALL_BYTES`` that a process has in memory, from their arrival to their conversion."""


@asynccontextmanager
async def receive_file(request: Request, body: ArrivingBody) -> AsyncIterator[None]:
    """Receive the rest of a body with a file. A large one holds a place as long as the block has it.

    No place is taken once the body is whole: the request holds another one from then on, see ``Throttle``.

    Raises:
        MalformedRequestError: it did not arrive whole, or not within ``ARRIVAL_SECONDS``.
        PayloadTooLargeError: it is too long.
    """
    while body.has_more and len(body.data) <= SMALL_BYTES:
        await body.receive_more()
    if not body.has_more:
        yield
        return
    async with LARGE_FILES.hold(holder(request.scope)):
        with move_on_after(ARRIVAL_SECONDS):
            while body.has_more:
                await body.receive_more()
        if body.has_more:
            raise MalformedRequestError(f"The body did not arrive within {ARRIVAL_SECONDS:g} seconds.")
        yield


class AcceptedDocument(AcceptedJob):
    """A document that was converted, and the job that ingests its passages."""

    source: str = Field(
        description="The document's name, which its passages cite as `metadata.source`; their ids begin with it."
    )
    passages: int = Field(description="Passages made of it.")
    notes: list[str] = Field(
        description="How it was read and what was left out, with its place: an encoding, hidden sheets."
    )


@dataclass(frozen=True)
class ReceivedFile:
    """A file that was sent.

    Attributes:
        kind: the ending that says how it is read.
        size, overlap: how it is cut.
        folder: that it is imported from.
        digest: by which its importer knows it again; None: the hash of ``data``.
        closed: whether nobody but admins may read it.
    """

    source: str
    kind: str
    data: bytes
    size: int
    overlap: int
    folder: str | None = None
    digest: str | None = None
    closed: bool = False


async def ingest_file(
    request: Request,
    response: Response,
    documents: DocumentConversion,
    reception: PassageReception,
    file: ReceivedFile,
) -> AcceptedDocument:
    """Convert a file and release the job that ingests it; nothing is kept of a file that cannot be read."""
    try:
        conversion = await CONVERSION_THREADS.do(
            holder(request.scope), _stage_passages, documents, reception, file, request.scope[CLIENT_LEFT]
        )
    except BaseException:
        await run_in_threadpool(reception.abort)
        raise
    job = build_accepted(await run_in_threadpool(reception.finish), reception.collection, response)
    return AcceptedDocument(
        **job.model_dump(), source=file.source, passages=len(conversion.passages), notes=list(conversion.notes)
    )


def _stage_passages(
    documents: DocumentConversion, reception: PassageReception, file: ReceivedFile, client_left: Callable[[], bool]
) -> Conversion:
    """Convert a document, then stage its passages; given up once the client leaves while it is converted."""
    conversion = documents.convert(
        file.source,
        file.data,
        kind=file.kind,
        size=file.size,
        overlap=file.overlap,
        client_left=client_left,
    )
    description = conversion.describe(file.source, file.data, file.folder)
    if file.digest is not None:
        description["digest"] = file.digest
    described = [DocumentIn.model_validate(description).body()]
    reception.digest(json.dumps([file.source, file.kind, file.size, file.overlap]).encode())
    reception.digest(file.data)
    lines, errors = _check_passages(file, conversion)
    if errors:
        reception.note_incomplete(file.source)
    for piece in pieces(lines):
        reception.add(piece, errors, described, whole=True)
        errors, described = [], []
    return conversion


def _check_passages(file: ReceivedFile, conversion: Conversion) -> tuple[Lines, Mistakes]:
    """The passages by their numbers, and what is wrong with those that cannot be ingested."""
    lines: Lines = []
    errors: Mistakes = []
    readers: dict[str, object] = {"readers": []} if file.closed else {}
    for number, passage in enumerate(conversion.passages, 1):
        try:
            body = PassageIn.model_validate(passage.as_json(file.source) | readers).body()
            lines.append((number, body))
        except ValidationError as error:
            errors.append((number, reason(error, "passage")))
    return lines, errors
