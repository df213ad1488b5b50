"""Ids of files and directories that clients of knowledge bases pass back; each says what it stands for."""

import base64
import binascii
import json
import re
from dataclasses import astuple, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from engram.context.errors import InvalidRequestError
from engram.core.text.document_manifest import HeldDocument
from engram.core.text.name_pattern import COLLECTION
from engram.wings.importing.conversion.folder import NAME_CHARACTERS, escape_name

FOLDER = "oikb"
"""Folder of all documents that a sync tool brings, and what their sources begin with."""


class Step(StrEnum):
    """A cleanup's step for a file."""

    DELETE = "delete"
    KEEP = "keep"
    MOVE = "move"


@dataclass(frozen=True, slots=True)
class FileToken:
    """A file of a knowledge base at one moment.

    Attributes:
        collection: name of the collection.
        source: of the document.
        digest: hash of the file that the document was made of; None: it is not known to the caller.
        step: what a cleanup does: delete the document, keep it as its new version follows, or move it.
        target: new source of a moved document, see ``name_source``.
        job: the job that writes the document, as text.
        imported_at: when the document last came; None: it is being written.
    """

    collection: str
    source: str
    digest: str | None
    step: Step = Step.DELETE
    target: str | None = None
    job: str | None = None
    imported_at: datetime | None = None

    @classmethod
    def of(
        cls, collection: str, document: HeldDocument, step: Step = Step.DELETE, target: str | None = None
    ) -> Self:
        """Make the token of a document as it is."""
        return cls(collection, document.source, document.digest, step, target, imported_at=document.imported_at)

    def is_of(self, document: HeldDocument) -> bool:
        """Whether the document is proven to be the one that the token was made of, by its file or its time."""
        if self.digest != document.digest:
            return False
        return self.digest is not None or (
            self.imported_at is not None and self.imported_at == document.imported_at
        )

    def write(self) -> str:
        """Write the token as text for a path or a body."""
        return _encode(json.dumps(astuple(self), ensure_ascii=False, separators=(",", ":"), default=_write_time))

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a token. Anyone can write one, so it holds nothing that the database or a name cannot.

        Raises:
            InvalidRequestError: the text is none.
        """
        try:
            collection, source, digest, step, target, job, imported_at = json.loads(_decode(text))
            if job is not None:
                UUID(job)
            moment = None if imported_at is None else datetime.fromisoformat(imported_at)
            token = cls(collection, source, digest, Step(step), target, job, moment)
            is_sound = token._is_sound()
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidRequestError(f"{text[:100]!r} is no id of a file that this service gave.") from error
        if not is_sound:
            raise InvalidRequestError(f"{text[:100]!r} is no id of a file that this service gave.")
        return token

    def _is_sound(self) -> bool:
        """Whether the names are names, and the texts can stand in the database."""
        texts = self.source + ("" if self.digest is None else self.digest)
        texts.encode()
        return (
            re.fullmatch(COLLECTION, self.collection) is not None
            and (self.target is None or is_name(self.target))
            and "\x00" not in texts
        )


def name_source(path: str, filename: str) -> str:
    """Name the document of a file. A quotation mark becomes ``%22``, as multipart bodies carry it."""
    place = f"{path}/{filename}" if path else filename
    return escape_name(f"{FOLDER}/{place}").replace('"', "%22")


def is_name(source: str) -> bool:
    """Whether a document may have this source by ``name_source``."""
    place = source.removeprefix(f"{FOLDER}/")
    return bool(place) and len(source) <= NAME_CHARACTERS and name_source("", place) == source


def _write_time(moment: datetime) -> str:
    return moment.isoformat()


def write_directory(path: str) -> str:
    """Write the id of a directory."""
    return _encode(path)


def read_directory(text: str) -> str:
    """Read the path of a directory.

    Raises:
        InvalidRequestError: the text is no id of one.
    """
    try:
        return _decode(text)
    except ValueError as error:
        raise InvalidRequestError(f"{text[:100]!r} is no id of a directory that this service gave.") from error


def _encode(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "replace")).decode().rstrip("=")


def _decode(text: str) -> str:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode()
    except binascii.Error as error:
        raise ValueError(str(error)) from error
