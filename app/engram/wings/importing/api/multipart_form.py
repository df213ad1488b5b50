"""Parts of a multipart body (RFC 7578) that arrived whole, read by the standard library."""

from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser

from engram.context.errors import MalformedRequestError

MOST_PARTS = 16
MOST_HEADER_BYTES = 8 * 1024


@dataclass(frozen=True, slots=True)
class FormPart:
    """A field of a form.

    Attributes:
        filename: None: the field is no file.
    """

    name: str
    filename: str | None
    data: bytes


def read_boundary(content_type: str) -> bytes | None:
    """Return what stands between the parts of a body of this type; None: the type is no form."""
    message = Message()
    message["content-type"] = content_type
    if message.get_content_type() != "multipart/form-data":
        return None
    boundary = message.get_param("boundary")
    return boundary.encode() if isinstance(boundary, str) and boundary else None


def parse_form(body: bytes, boundary: bytes) -> dict[str, FormPart]:
    """Split a body into its fields, by their names.

    Raises:
        MalformedRequestError: the body is no form with this boundary.
    """
    first, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary, MOST_PARTS + 1)
    if first.strip() or len(parts) < 2 or not parts[-1].startswith(b"--"):
        raise MalformedRequestError(f"The body is no multipart form of 1 to {MOST_PARTS} parts.")
    fields = [_parse_part(part) for part in parts[:-1]]
    return {field.name: field for field in fields}


def _parse_part(part: bytes) -> FormPart:
    head, end, data = part.partition(b"\r\n\r\n")
    if not end or len(head) > MOST_HEADER_BYTES:
        raise MalformedRequestError("A part of the form has no headers, or too long ones.")
    try:
        headers = HeaderParser().parsestr(head.decode().lstrip("\r\n"))
    except UnicodeDecodeError as error:
        raise MalformedRequestError("The headers of a part of the form are not UTF-8.") from error
    name = headers.get_param("name", header="content-disposition")
    filename = headers.get_param("filename", header="content-disposition")
    if not isinstance(name, str):
        raise MalformedRequestError("A part of the form has no name.")
    return FormPart(name, filename if isinstance(filename, str) else None, data)
