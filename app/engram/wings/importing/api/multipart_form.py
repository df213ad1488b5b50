"""Parts of a multipart body (RFC 7578), read as it arrives up to the contents of its file."""

from email.message import Message
from email.parser import HeaderParser

from engram.context.errors import InvalidRequestError, MalformedRequestError

MOST_PARTS = 16
MOST_HEADER_BYTES = 8 * 1024
_HEADERS_END = b"\r\n\r\n"


class Form:
    """A form whose fields stand before its file, so that they can be judged before the file is received.

    Attributes:
        fields: name -> contents of the fields before the file.
        name: of the field that is the file.
        filename: None: the form was not read up to the file yet.
        start: offset of the file's contents in the body.
    """

    def __init__(self, boundary: bytes) -> None:
        """``boundary`` stands between the parts."""
        self._delimiter = b"\r\n--" + boundary
        self._place = 0  # behind the last delimiter
        self._parts = 0
        self.fields: dict[str, bytes] = {}
        self.name = ""
        self.filename: str | None = None
        self.start = 0

    def read(self, body: bytearray) -> bool:
        """Go on reading a body of which more arrived; return whether the contents of the file begin.

        Raises:
            MalformedRequestError: the body is no form with this boundary.
            InvalidRequestError: the form ends without a file.
        """
        if self._place == 0 and not self._find_first(body):
            return False
        while True:
            if body.startswith(b"--", self._place):
                raise InvalidRequestError("The form has no file.")
            head_end = body.find(_HEADERS_END, self._place, self._place + MOST_HEADER_BYTES + len(_HEADERS_END))
            head = bytes(body[self._place : head_end]) if head_end >= 0 else b""
            if self._delimiter in head or (head_end < 0 and len(body) - self._place > MOST_HEADER_BYTES):
                raise MalformedRequestError("A part of the form has no headers, or too long ones.")
            if head_end < 0:
                return False
            name, filename = _parse_headers(head)
            start = head_end + len(_HEADERS_END)
            if filename is not None:
                self.name, self.filename, self.start = name, filename, start
                return True
            end = body.find(self._delimiter, start)
            if end < 0:
                return False
            self._parts += 1
            if self._parts == MOST_PARTS:  # the file is one too
                raise MalformedRequestError(f"The body is no multipart form of 1 to {MOST_PARTS} parts.")
            self.fields[name] = bytes(body[start:end])
            self._place = end + len(self._delimiter)

    def cut_file(self, body: bytearray) -> bytes:
        """Return the contents of the file, of the whole body.

        Raises:
            MalformedRequestError: the form has no end.
        """
        end = body.find(self._delimiter, self.start)
        if end < 0 or body.find(self._delimiter + b"--", end) < 0:
            raise MalformedRequestError("The form has no end.")
        with memoryview(body) as view, view[self.start : end] as file:
            return bytes(file)

    def _find_first(self, body: bytearray) -> bool:
        first = body.find(self._delimiter[2:])
        before = bytes(body[: MOST_HEADER_BYTES if first < 0 else first])
        if before.strip() and not (first < 0 and self._delimiter[2:].startswith(before.lstrip())):
            raise MalformedRequestError("The body is no multipart form with this boundary.")
        if first < 0:
            return False
        self._place = first + len(self._delimiter) - 2
        return True


def read_boundary(content_type: str) -> bytes | None:
    """Return what stands between the parts of a body of this type; None: the type is no form."""
    message = Message()
    message["content-type"] = content_type
    if message.get_content_type() != "multipart/form-data":
        return None
    boundary = message.get_param("boundary")
    return boundary.encode() if isinstance(boundary, str) and boundary else None


def _parse_headers(head: bytes) -> tuple[str, str | None]:
    """Name of a field, and of its file if it is one."""
    try:
        headers = HeaderParser().parsestr(head.decode().lstrip("\r\n"))
    except UnicodeDecodeError as error:
        raise MalformedRequestError("The headers of a part of the form are not UTF-8.") from error
    name = headers.get_param("name", header="content-disposition")
    filename = headers.get_param("filename", header="content-disposition")
    if not isinstance(name, str):
        raise MalformedRequestError("A part of the form has no name.")
    return name, filename if isinstance(filename, str) else None
