"""Multipart bodies as httpx and browsers write them, and bodies that only look like some."""

import httpx
import pytest

from engram.context.errors import MalformedRequestError
from engram.wings.importing.api.multipart_form import FormPart, parse_form, read_boundary


def test_a_form_that_httpx_writes() -> None:
    data = b"--part\r\n\r\nbinary \x00\xff\r\n--other\r\n"
    request = httpx.Request(
        "POST", "http://x/", files={"file": ("ä b;c.txt", data, "text/plain")}, data={"metadata": '{"a": 1}'}
    )
    boundary = read_boundary(request.headers["content-type"])
    assert boundary is not None
    assert parse_form(request.read(), boundary) == {
        "metadata": FormPart("metadata", None, b'{"a": 1}'),
        "file": FormPart("file", "ä b;c.txt", data),
    }


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
OTHERS = {
    "nothing": b"",
    "no part": b"--x--",
    "no end": FIELD,
    "no headers": b'--x\r\nContent-Disposition: form-data; name="a"\r\n--x--',
    "no name": b"--x\r\nContent-Type: text/plain\r\n\r\nb\r\n--x--",
    "no UTF-8": b'--x\r\nContent-Disposition: form-data; name="\xff"\r\n\r\nb\r\n--x--',
    "text before": b"before\r\n" + FIELD + b"--x--",
    "too many parts": FIELD * 17 + b"--x--",
    "too long headers": FIELD.replace(b"name=a", b"name=" + b"a" * 10_000) + b"--x--",
}


def test_the_most_parts_are_read() -> None:
    assert parse_form(FIELD * 16 + b"--x--", b"x") == {"a": FormPart("a", None, b"b")}


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_other_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(MalformedRequestError):
        parse_form(body, b"x")
