"""Ids of files and directories that clients of knowledge bases pass back; each says what it stands for."""

import base64
import binascii
import json
from dataclasses import astuple, dataclass
from enum import StrEnum
from uuid import UUID

from engram.context.errors import InvalidRequestError


class Step(StrEnum):
    """What a cleanup does with a file."""

    DELETE = "delete"
    KEEP = "keep"
    MOVE = "move"


@dataclass(frozen=True, slots=True)
class FileToken:
    """A file of a knowledge base at one moment.

    Attributes:
        collection: name of the collection.
        source: of the document.
        digest: hash of the file that the document was made of; None: the document is being written.
        step: what a cleanup does: delete the document, keep it as its new version follows, or move it.
        target: new source of a moved document.
        job: the job that writes the document, as text.
    """

    collection: str
    source: str
    digest: str | None
    step: Step = Step.DELETE
    target: str | None = None
    job: str | None = None

    def write(self) -> str:
        """Write the token as text for a path or a body."""
        return _encode(json.dumps(astuple(self), ensure_ascii=False, separators=(",", ":")))

    @classmethod
    def read(cls, text: str) -> "FileToken":
        """Read a token.

        Raises:
            InvalidRequestError: the text is none.
        """
        try:
            collection, source, digest, step, target, job = json.loads(_decode(text))
            token = cls(collection, source, digest, Step(step), target, job)
            if job is not None:
                UUID(job)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidRequestError(f"{text[:100]!r} is no id of a file that this service gave.") from error
        texts = (token.collection, token.source, "" if digest is None else digest, "" if target is None else target)
        if not all(isinstance(one, str) and "\x00" not in one for one in texts):
            raise InvalidRequestError(f"{text[:100]!r} is no id of a file that this service gave.")
        return token


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
