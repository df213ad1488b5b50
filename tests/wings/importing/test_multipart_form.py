"""Multipart bodies as httpx and browsers write them, in pieces, and bodies that only look like some."""

from collections.abc import Iterable

import httpx
import pytest

from engram.context.errors import InvalidRequestError, MalformedRequestError
from engram.wings.importing.api.multipart_form import Form, read_boundary


def read(pieces: Iterable[bytes], boundary: bytes) -> tuple[Form, bytes]:
    """The form that arrives in these pieces, and its file."""
    form, body, is_at_file = Form(boundary), bytearray(), False
    for piece in pieces:
        body += piece
        is_at_file = is_at_file or form.read(body)
    if not is_at_file:
        raise MalformedRequestError("It ends before its file.")
    return form, form.cut_file(body)


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
@pytest.mark.parametrize("data", [b"--part\r\n\r\nbinary \x00\xff\r\n--other\r\n", b""])
def test_a_form_that_httpx_writes(data: bytes, size: int) -> None:
    request = httpx.Request(
        "POST",
        "http://x/",
        files={"file": ("ä b;c.txt", data, "text/plain")},
        data={"metadata": '{"a": 1}', "b": ""},
    )
    boundary = read_boundary(request.headers["content-type"])
    assert boundary is not None
    body = request.read()
    form, file = read((body[at : at + size] for at in range(0, len(body), size)), boundary)
    assert (form.name, form.filename, form.fields) == ("file", "ä b;c.txt", {"metadata": b'{"a": 1}', "b": b""})
    assert file == data


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        ('multipart/form-data; boundary="a b"', b"a b"),
        ("Multipart/Form-Data; boundary=x", b"x"),
        ("multipart/form-data", None),
        ("multipart/mixed; boundary=x", None),
        ("", None),
    ],
)
def test_the_boundary_stands_in_the_content_type(content_type: str, boundary: bytes | None) -> None:
    assert read_boundary(content_type) == boundary


FIELD = b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n"
FILE = b'--x\r\nContent-Disposition: form-data; name=f; filename="f.txt"\r\n\r\ntext\r\n'
END = b"--x--"
OTHERS = {
    "nothing": b"",
    "no part": END,
    "no file": FIELD + END,
    "no end": FIELD + FILE,
    "no end of a field": FIELD[:-2],
    "no headers": b"--x\r\nContent-Disposition: form-data; name=a\r\n" + FILE + END,
    "no name": b"--x\r\nContent-Type: text/plain\r\n\r\nb\r\n" + FILE + END,
    "no UTF-8": b'--x\r\nContent-Disposition: form-data; name="\xff"\r\n\r\nb\r\n' + FILE + END,
    "text before": b"before\r\n" + FILE + END,
    "another boundary": FILE.replace(b"--x", b"--y") + b"--y--",
    "too many parts": FIELD * 16 + FILE + END,
    "too long headers": FILE.replace(b"name=f", b"name=" + b"f" * 10_000) + END,
    "headers without an end": b"--x\r\n" + b"a" * 10_000,
}


def test_the_most_parts_are_read() -> None:
    form, file = read([b"\r\n" + FIELD * 15 + FILE + FIELD + END], b"x")
    assert (form.fields, form.filename, file) == ({"a": b"b"}, "f.txt", b"text")


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_other_bodies_are_refused(body: bytes, size: int) -> None:
    with pytest.raises((MalformedRequestError, InvalidRequestError)):
        read((body[at : at + size] for at in range(0, len(body), size)), b"x")
