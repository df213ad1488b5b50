"""PDF files for tests, written by hand."""

import math
import zlib
from collections.abc import Sequence


def pdf_of(pages: list[list[str]], *, title: str | None = None) -> bytes:
    """A PDF whose pages show these lines."""
    return pdf_drawn([show_lines(lines) for lines in pages], title=title)


def show_lines(lines: list[str]) -> str:
    """The commands that show lines below each other."""
    shown = " T* ".join(f"({line}) Tj" for line in lines)
    return f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET"


def show_at(*texts: tuple[int, int, str]) -> str:
    """The commands that show each text at its place (x, y), in points from the lower left corner."""
    return " ".join(f"BT /F1 12 Tf {x} {y} Td ({text}) Tj ET" for x, y, text in texts)


def show_turned(*texts: tuple[int, int, str], degrees: float) -> str:
    """The commands that show each text at its place, turned anticlockwise."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = f"{cosine:.6f} {sine:.6f} {-sine:.6f} {cosine:.6f}"
    return " ".join(f"BT /F1 12 Tf {turn} {x} {y} Tm ({text}) Tj ET" for x, y, text in texts)


def pdf_drawn(pages: list[str], *, title: str | None = None, rotate: int = 0, fields: Sequence[str] = ()) -> bytes:
    """A PDF whose pages are drawn by these commands.

    In the font ``F2`` the letters a to z are Hebrew ones; ``F3`` is bold.

    Args:
        rotate: degrees by which pages are turned clockwise when they are shown.
        fields: entries of the fields of a form, which lie on the last page.
    """
    objects: list[bytes] = []

    def add(body: bytes) -> int:
        objects.append(body)
        return len(objects)

    font = add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    bold = add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>")
    hebrew = add(
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /FirstChar 97 /LastChar 122 /Widths [%s] "
        b"/Encoding << /Type /Encoding /Differences [97 %s] >> >>"
        % (b"500 " * 26, b" ".join(b"/afii%d" % (57664 + letter) for letter in range(26)))
    )
    named = b" ".join(
        b"%d 0 R" % add(b"<< /Type /Annot /Subtype /Widget /Rect [0 0 9 9] %s >>" % field.encode())
        for field in fields
    )
    parent = len(objects) + len(pages) * 2 + 1
    kids = []
    for number, commands in enumerate(pages, 1):
        widgets = named if number == len(pages) else b""
        stream = zlib.compress(commands.encode())
        content = add(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(stream), stream))
        kids.append(
            add(
                b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 612 792] /Rotate %d /Contents %d 0 R "
                b"/Resources << /Font << /F1 %d 0 R /F2 %d 0 R /F3 %d 0 R >> >> /Annots [%s] >>"
                % (parent, rotate, content, font, hebrew, bold, widgets)
            )
        )
    listed = b" ".join(b"%d 0 R" % kid for kid in kids)
    assert add(b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), listed)) == parent
    form = b"/AcroForm << /Fields [%s] >>" % named if fields else b""
    catalog = add(b"<< /Type /Catalog /Pages %d 0 R %s >>" % (parent, form))
    info = add(b"<< /Title (%s) >>" % (title or "").encode())
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root %d 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        catalog,
        info,
        start,
    )
    return bytes(out)
