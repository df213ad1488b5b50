"""Engram's client: ask, judge, and ask again.

    with Engram(collection="notes") as engram:
        engram.wait(engram.ingest([{"id": "titan", "text": "Titan has lakes of liquid methane."}]))
        found = engram.query("Which moon has lakes?")
        engram.thumb(found, up=True, cited=[found.passages[0]])

``AsyncEngram`` is the same with ``await``. Answers are the structs of ``models``, and what is sent the typed
dictionaries of ``requests``, both made of the service's OpenAPI document.
"""

from engram_client import models, requests
from engram_client._async import AsyncEngram
from engram_client._core import (
    BusyError,
    DeniedError,
    EngramError,
    InvalidRequestError,
    JobFailedError,
    NotFoundError,
    ProblemError,
    RejectedLinesError,
    UnreachableError,
)
from engram_client._sync import Engram

__all__ = [
    "AsyncEngram",
    "BusyError",
    "DeniedError",
    "Engram",
    "EngramError",
    "InvalidRequestError",
    "JobFailedError",
    "NotFoundError",
    "ProblemError",
    "RejectedLinesError",
    "UnreachableError",
    "models",
    "requests",
]
