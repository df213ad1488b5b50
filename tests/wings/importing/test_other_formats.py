"""Files of formats beside those of Office and the web, as other programs write them, read as their twins."""

import shutil
from base64 import b64encode
from pathlib import Path

import pytest

from engram.wings.importing.conversion import old_office, portable, scans
from engram.wings.importing.conversion.converter import Converter
from engram.wings.importing.conversion.documents import UnreadableError
from engram.wings.importing.conversion.folder import list_files
from engram.wings.importing.conversion.formats import convert
from engram.wings.importing.conversion.import_limits import ConversionLimits
from tests.support.pdf_files import pdf_drawn, pdf_of, show_at
from tests.wings.importing.test_hostile import OLE, build_zip

FILES = Path(__file__).with_name("files")
LIMITS = ConversionLimits()
PNG = b"\x89PNG\r\n\x1a\n"


def read(name: str) -> list[tuple[object, object, str]]:
    """Heading, page and text of each passage; none of these files differs from its plain text."""
    made = convert(name, (FILES / name).read_bytes())
    assert made.differences == ()
    return [(one.metadata.get("heading"), one.metadata.get("page"), one.text) for one in made.passages]


# LibreOffice wrote the files of OpenDocument and RTF, pandoc the others.
@pytest.mark.parametrize("name", ["handbook.odt", "handbook.rtf", "handbook.org", "handbook.rst"])
def test_a_text_is_read_as_the_same_text_of_word(name: str) -> None:
    assert read(name) == read("handbook.docx")


def test_a_text_with_markup_in_xml_is_read_below_its_headings() -> None:
    assert read("handbook.xml")[1:] == read("handbook.docx")  # the first passage is its header


def test_slides_of_an_open_presentation_have_headings_pages_tables_and_notes() -> None:
    assert read("deck.odp") == read("deck.pptx")


def test_rows_of_an_open_spreadsheet_keep_their_types() -> None:
    rows, others = (convert(name, (FILES / name).read_bytes()).passages for name in ("offices.ods", "offices.xlsx"))
    assert [row.text for row in rows] == [row.text for row in others]
    assert [row.metadata["staff"] for row in rows] == [31, 12]


def test_a_message_of_outlook_has_headers_files_and_messages() -> None:
    text, ferry, desks = convert("keys.msg", (FILES / "keys.msg").read_bytes()).passages
    assert text.title == "Keys of the new office"
    assert (text.metadata["from"], text.metadata["to"]) == (
        "Ana Lima <ana@example.org>",
        ["Bo Berg <bo@example.org>"],
    )
    assert text.metadata["date"] == "2026-03-15T10:30:00+00:00"
    assert "The keys lie with Zoë until 17:00." in text.text
    assert (ferry.metadata["heading"], ferry.metadata["from"]) == (
        ["Ferry times"],
        "Harbour office <harbour@example.org>",
    )
    assert (desks.metadata["attachment"], desks.text) == ("desks.csv", "room: North | desks: 12")


# ruff: noqa: E501 - files as they are
OPEN_TEXT = """<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"
 xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" xmlns:form="urn:oasis:names:tc:opendocument:xmlns:form:1.0"
 xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"><office:automatic-styles>
 <style:style style:name="up"><style:text-properties style:text-position="super 58%"/></style:style>
 <style:style style:name="no"><style:text-properties text:display="none"/></style:style>
 <style:style style:name="wing"><style:text-properties style:font-name="Wingdings"/></style:style>
 <style:style style:name="T1" style:parent-style-name="Title"/></office:automatic-styles><office:body><office:{0}>{1}</office:{0}>
 </office:body></office:document-content>"""
SHEET = """<table:table table:name="S"><table:table-column/><table:table-column table:visibility="collapse"/>
<table:table-row><table:table-cell office:value-type="string"><text:p>Item</text:p></table:table-cell>
<table:table-cell office:value-type="string"><text:p>Secret</text:p></table:table-cell>
<table:table-cell office:value-type="string"><text:p>Price</text:p></table:table-cell></table:table-row>
<table:table-row table:number-rows-repeated="2"><table:table-cell office:value-type="string"><text:p>Hub</text:p></table:table-cell>
<table:table-cell office:value-type="string"><text:p>x</text:p></table:table-cell>
<table:table-cell office:value-type="currency" office:value="7.5"><text:p>7.50 €</text:p></table:table-cell></table:table-row>
<table:table-row table:number-rows-repeated="1048570"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>
</table:table>"""


def open_document(kind: str, body: str) -> bytes:
    return build_zip(("content.xml", OPEN_TEXT.format(kind, body).encode()))


@pytest.mark.parametrize(
    ("name", "data", "texts"),
    [
        (
            "a.odt",
            open_document(
                "text",
                '<text:p text:style-name="T1">Rivers</text:p><text:p>10<text:span text:style-name="up">6</text:span>'
                "<text:s/>km<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>By Ana.</text:p>"
                '</text:note-body></text:note></text:p><text:p>Seen.<text:span text:style-name="no"> Not.</text:span></text:p>'
                "<text:p>Before<draw:frame><draw:text-box><text:p>In a box.</text:p></draw:text-box></draw:frame> after</text:p>",
            ),
            ["10^6 km [1]\nSeen.\nBefore after\nIn a box.\n[1] By Ana."],
        ),
        (
            "a.odt",
            open_document(
                "text",
                '<office:forms><form:form><form:checkbox form:id="a" form:label="Smoking" form:current-state="checked"/>'
                '<form:checkbox form:id="b" form:label="Pets"/><form:text form:id="c" form:value="0" form:current-value="900"/>'
                '<form:listbox form:id="d"><form:option form:label="1st"/><form:option form:label="2nd" form:selected="true"/>'
                '</form:listbox><form:password form:id="e" form:value="swordfish"/></form:form></office:forms>'
                '<text:p>Lease <draw:control draw:control="a"/></text:p><draw:control draw:control="b"/>'
                '<text:p>Rent: <draw:control draw:control="c"/></text:p><text:p>Floor: <draw:control draw:control="d"/></text:p>'
                '<text:p>Key: <draw:control draw:control="e"/></text:p>',
            ),
            ["Lease ☒ Smoking\n☐ Pets\nRent: 900\nFloor: 2nd\nKey:"],
        ),
        (
            "a.odt",
            open_document(
                "text",
                '<text:p><text:span text:style-name="wing">þ</text:span> keys</text:p>'
                '<text:p><text:span text:style-name="wing">o</text:span> meters</text:p>',
            ),
            ["☑ keys\n☐ meters"],
        ),
        (
            "a.txt",
            b"A pro-active firm, and its depart-\nment was pro-\nactive in pre-\nand post-war plans, up-\nto-date.\n",
            ["A pro-active firm, and its department was pro-active in pre- and post-war plans, up-to-date."],
        ),
        (
            "a.eml",
            b"From: a@b.c\nContent-Type: text/plain\n\nThe depart-\nment pays.\n",
            ["From: a@b.c\nThe department pays."],
        ),
        (
            "a.ods",
            open_document("spreadsheet", SHEET),
            ["Item: Hub | Price: 7.50 €", "Item: Hub | Price: 7.50 €"],
        ),
        (
            "a.rtf",
            rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset204 A;}}{\*\generator x;}\pard Caf\'e9 \u8364?5 10{\super 6}{\v no}\par"
            rb"\pard\f0\'cf\'ee\plain\par\pard\intbl A\cell B\cell\row\pard\intbl 1\cell 2\cell\row\pard End{\footnote By Ana.}.\par}",
            ["Café €5 10^6\nПо\nA | B\n1 | 2\nEnd [1].\n[1] By Ana."],
        ),
        (
            "a.rtf",
            rb"{\rtf1 {\field{\*\fldinst FORMCHECKBOX {\*\formfield{\fftype1\ffres25\ffdefres1}}}{\fldrslt }} keys\par "
            rb"{\field{\*\fldinst FORMCHECKBOX {\*\formfield{\fftype1\ffres0\ffdefres1}}}{\fldrslt }} meters\par "
            rb"{\field{\*\fldinst FORMTEXT {\*\formfield{\fftype0\ffres1}}}{\fldrslt Otto}}}",
            ["☒ keys\n☐ meters\nOtto"],
        ),
        (
            "a.rtf",
            rb"{\rtf1\ansi{\fonttbl{\f0\fswiss Arial;}{\f1\fnil\fcharset2 Wingdings;}}\f0 {\f1\'fe} keys\par {\f1 o} meters\par "
            rb"{\f1\u254?} pets\par}",
            ["☑ keys\n☐ meters\n☑ pets"],
        ),
        (
            "a.rst",
            b"Use :ref:`keys <k>` and |x|.\n\n.. |x| replace:: locks\n\n.. versionadded:: 2.1\n   With :opt:`--all`.\n\n"
            b".. code-block:: sh\n   :caption: No\n\n   make run\n\n.. figure:: a.png\n   :odd: 1\n\n   Shown.\n",
            [
                "Use keys and locks.\nversionadded 2.1 With --all.\n    make run\n    .. figure:: a.png\n       :odd: 1\n       Shown."
            ],
        ),
        (
            "a.org",
            b"#+TITLE: Rivers\n* TODO Rhine :water:\n:PROPERTIES:\n:x: 1\n:END:\nIt is *long*, see [[https://a.org][here]].\n"
            b"- Basel\n| km | town |\n|----+----|\n| 12 | Bern |\n#+begin_src sh\nmake run\n#+end_src\n",
            ["TODO Rhine\nIt is long, see here.\nBasel\nkm | town\nkm: 12 | town: Bern\nmake run"],
        ),
        (
            "a.yaml",
            b"- title: Basel\n  text: It lies on the Rhine.\n  seen: 2024-05-01\n  seats: 12\n  key: !Ref x\n- title: Bern\n  text: Aare.\n",
            ["It lies on the Rhine.\nseen: 2024-05-01 | seats: 12 | key: x", "Aare."],
        ),
        (
            "a.xml",
            b'<towns><town id="b"><title>Basel</title><text>It lies on the Rhine.</text></town>'
            b"<town id='c'><title>Bern</title><text>Aare.</text></town></towns>",
            ["It lies on the Rhine.\nid: b", "Aare.\nid: c"],
        ),
        (
            "a.rtf",
            rb"{\rtf1\ansi\ansicpg1250{\fonttbl{\f0 A;}{\f1\fcharset204 B;}{\f2\fcharset128 C;}}"
            rb"{\f1 \'cf\'f0\'e8\'e2\'e5\'f2 \'ec\'e8\'f0}, {\f2 \'93\'fa\'8b\'9e} \u268\'3f\u237\'3fslo x\-y a\rquote b}",
            ["Привет мир, 日京 Číslo xy a’b"],
        ),
        (
            "a.rtf",
            rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0\fcharset204 A;}{\f1\fcharset0 B;}}\f0 \'cf\'ee {\f1 Stra\'dfe}}",
            ["По Straße"],
        ),
        (
            "a.rtf",  # by a writer that gives this charset to all fonts
            rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset0 B;}}\f0 \'cf\'ee\f1 \'cf\'ee}",
            ["ПоПо"],
        ),
        (
            "a.org",
            b"* TODO Buy\n  DEADLINE: <2024-05-09 Thu>\nNails.\n: 7\nCLOCK: [2024-05-03 Fri 10:00]--[2024-05-03 Fri 11:30] =>  1:30\n",
            ["DEADLINE: <2024-05-09 Thu>\nNails.\n7"],
        ),
        (
            "a.xml",
            b'<article><p>10<sup>6</sup> cells in 2003<xref ref-type="bibr" rid="b">12</xref>, 5 m<sup>2</sup>, see '
            b'<xref ref-type="fig" rid="g">Fig. 2</xref>; 1990<fn id="f"><p>No ice.</p></fn>.</p></article>',
            ["10^6 cells in 2003 [12], 5 m^2, see Fig. 2; 1990 [No ice.]."],
        ),
        (
            "a.xml",
            b'<article><p>Sizes.</p><table><thead><tr><th rowspan="2">Town</th><th colspan="2">Year</th></tr><tr><th>2001</th>'
            b"<th>2002</th></tr></thead><tbody><tr><td>Bern</td><td>5</td><td>7</td></tr></tbody></table>"
            b'<table><tgroup><colspec colname="a"/><colspec colname="b"/><colspec colname="c"/><thead><row><entry>Part</entry>'
            b'<entry namest="b" nameend="c">Millimetres</entry></row></thead><tbody><row><entry morerows="1">Axle</entry>'
            b"<entry>old</entry><entry>12</entry></row><row><entry>new</entry><entry>14</entry></row></tbody></tgroup></table></article>",
            [
                "Sizes.\nTown | Year 2001 | Year 2002\nTown: Bern | Year 2001: 5 | Year 2002: 7\nPart | Millimetres | Millimetres\n"
                "Part: Axle | Millimetres: old | Millimetres: 12\nPart: Axle | Millimetres: new | Millimetres: 14"
            ],
        ),
        (
            "a.html",
            b"<p>It was <del>12 000</del><ins>13 500</ins> in 1956<a href='#n'>1</a>, <s>8</s>9 in 1957<a epub:type='noteref'"
            b" href='n.html#2'>2</a>, a wall<sup><a href='#n3'>3</a></sup>, <del>a</del>b.",
            ["It was 12 000 13 500 in 1956 [1], 8 9 in 1957 [2], a wall [3], ab."],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_these_formats_can_hold(name: str, data: bytes, texts: list[str]) -> None:
    made = convert(name, data)
    assert [passage.text for passage in made.passages] == texts
    assert made.differences == ()


_PARTS = "<thead><tr><th>Town</th><th>km</th></tr></thead><tbody>{}<tr><td>Bern</td><td>12</td></tr></tbody>"


@pytest.mark.parametrize(
    "table",
    [
        f"<caption>Distances</caption><colgroup><col/></colgroup>{_PARTS.format('')}<p>Measured in May.</p>",
        f"{_PARTS.format('<p>Measured in May.</p>')}<caption><p>Distances</p></caption>",
        "<head>Distances</head><row><cell>Town</cell><cell>km</cell></row><row><cell>Bern</cell><cell>12</cell></row>"
        "<note>Measured in May.</note>",
    ],
    ids=["caption", "caption below", "head"],
)
def test_what_stands_beside_the_rows_of_a_table_in_xml_is_read(table: str) -> None:
    made = convert("a.xml", f"<article><p>Before.</p><table>{table}</table><p>After.</p></article>".encode())
    before, inside, after = made.passages
    assert (before.text, after.text, inside.metadata["heading"]) == ("Before.", "After.", ["Distances"])
    first, *_, last = inside.text.split("\n")
    assert (first, last, "12" in inside.text) == ("Distances", "Measured in May.", True)
    assert made.differences == ()


def test_a_title_below_paragraphs_in_xml_is_read() -> None:
    made = convert("a.xml", b"<article><p>One.</p><p>Two.</p><title>Three</title></article>")
    assert [passage.text for passage in made.passages] == ["One.\nTwo.\nThree"]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.odt", build_zip(("content.xml", b""), ("META-INF/manifest.xml", b"<encryption-data/>")), "password"),
        ("a.rtf", b"{\\rtf1" + b"{" * 2_000, "nests more than"),
        ("a.rtf", b"no RTF", "does not begin"),
        ("a.rtf", rb"{\rtf1{}\bin-20 ", "no text"),
        ("a.rtf", rb"{\rtf1\bin99999999999999999999 text}", "no text"),
        ("a.msg", b"no message", "Outlook did not"),
        ("a.doc", b"plain text", "Office did not save it"),
        ("a.xml", b"<a>" * 400 + b"x" + b"</a>" * 400, "Excessive depth"),
        ("a.yaml", b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
            b"%c: &%c [%s]\n" % (98 + at, 98 + at, b", ".join([b"*%c" % (97 + at)] * 9)) for at in range(9)
        ), "values"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_hostile_files_of_these_formats_are_one_line(name: str, data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        convert(name, data)


def test_an_entity_of_xml_is_not_resolved() -> None:
    data = b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a><p>Is &x; here.</p></a>'
    assert [passage.text for passage in convert("a.xml", data).passages] == ["Is &x; here."]


def test_old_office_files_are_read_by_libreoffice_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with (
        Converter(LIMITS) as converter,
        pytest.raises(UnreadableError, match="LibreOffice, which is not installed"),
    ):
        converter.convert("a.doc", OLE)
    present = (FILES / "offices.xlsx").read_bytes()
    assert old_office.modernise("a.xls", present, ".xls", LIMITS) == (".xlsx", present)


def test_libreoffice_runs_in_a_folder_of_its_own_with_bounds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "soffice"
    program.write_text(
        '#!/bin/sh\nfor last; do :; done\ncase "$0$*$HOME" in *headless*engram-office-*) mkdir -p made;; esac\n'
        f'cp "{FILES / "handbook.docx"}" made/file.docx\n[ "$(head -c 3 "$last" | wc -c)" = 3 ] && env > made/environment\n'
        "for name in DisableMacrosExecution DisableActiveContent Writer/Content/Update Calc/Content/Update; do\n"
        "grep -q $name profile/user/registrymodifications.xcu || rm made/file.docx; done\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(old_office, "find_program", lambda: str(program))
    monkeypatch.setenv("ENGRAM_SECRET", "x")
    assert [one.text for one in convert("a.doc", OLE).passages] == [text for *_, text in read("handbook.docx")]
    program.write_text("#!/bin/sh\nsleep 30\n")
    with pytest.raises(UnreadableError, match=r"took longer than 0\.3 seconds"):
        old_office.modernise("a.doc", OLE, ".doc", ConversionLimits(seconds=0.3))
    program.write_text("#!/bin/sh\nfor name in a b c; do head -c 1000 /dev/zero > $name; done; sleep 30\n")
    with pytest.raises(UnreadableError, match="write too much"):
        old_office.modernise("a.doc", OLE, ".doc", ConversionLimits(file_bytes=1_000, unpacked_bytes=1_024))
    program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(UnreadableError, match="damaged or need a password"):
        old_office.modernise("a.doc", OLE, ".doc", LIMITS)


WORDS = [
    # page, block, paragraph, line, word, confidence, text
    (1, 1, 1, 1, 1, 96, "Room"),
    (1, 1, 1, 1, 2, 96, "12"),
    (1, 1, 1, 2, 1, 96, "opens."),
    (1, 2, 1, 1, 1, 96, "Ask."),
    (2, 1, 1, 1, 1, 40, "B1rd"),
]
TABLE = "\n".join(
    ["\t".join(["level", *["x"] * 9, "conf", "text"])]
    + [
        f"5\t{page}\t{block}\t{part}\t{line}\t{word}\t0\t0\t9\t9\t{sure}\t{text}"
        for page, block, part, line, word, sure, text in WORDS
    ]
)


@pytest.fixture
def tesseract(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A program in the place of Tesseract: it knows two languages, and recognises ``WORDS`` in every picture."""
    (tmp_path / "words.tsv").write_text(TABLE)
    program = tmp_path / "tesseract"
    program.write_text(
        f"#!/bin/sh\n[ \"$1\" = --list-langs ] && printf 'List\\ndeu\\neng\\nosd\\n' && exit\n"
        f'[ "$6" = eng+deu ] && cat > {tmp_path}/picture && cat {tmp_path}/words.tsv\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(scans, "find_program", lambda: str(program))
    monkeypatch.setattr(portable, "find_program", lambda: str(program))
    return program


def test_pages_of_a_scan_are_recognised_with_their_confidence(tesseract: Path) -> None:
    made = convert("a.tif", b"II*\0")
    assert [(one.metadata["page"], one.text) for one in made.passages] == [(1, "Room 12 opens.\nAsk."), (2, "B1rd")]
    assert made.notes == (
        "a.tif: read by OCR: page 1 (confidence 0.96), 2 (confidence 0.40)",
        "a.tif: OCR is unsure of page 2",
    )
    box = "0 0 10 10 re f"
    made = convert("a.pdf", pdf_drawn([show_at((72, 700, "The first page has text.")), box, ""]))
    assert [(one.metadata["page"], one.text) for one in made.passages] == [
        (1, "The first page has text."),
        (2, "Room 12 opens.\nAsk."),
    ]
    assert made.notes == ("a.pdf: no text on page 3", "a.pdf: read by OCR: page 2 (confidence 0.96)")
    assert (tesseract.parent / "picture").read_bytes()[:3] == b"P5 "


def attach(picture: bytes) -> bytes:
    return (
        b"Subject: Scan\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nSee the file.\n--b\n"
        b"Content-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=a.png\n\n"
        + b64encode(picture) + b"\n--b--\n"
    )  # fmt: skip


MIXED = pdf_drawn(["0 0 10 10 re f", "0 0 10 10 re f", show_at((72, 700, "The last page has text.")), ""])


def test_what_was_read_is_kept_where_ocr_fails_or_takes_too_long(
    tesseract: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tesseract.write_text(tesseract.read_text() + f"mv {tesseract.parent}/words.tsv {tesseract.parent}/gone\n")
    made = convert("a.pdf", MIXED)
    assert [one.metadata["page"] for one in made.passages] == [1, 3]
    assert made.notes == (
        "a.pdf: no text on page 4",
        "a.pdf: OCR failed or took too long for page 2",
        "a.pdf: read by OCR: page 1 (confidence 0.96)",
    )
    tesseract.write_text("#!/bin/sh\nexec sleep 30\n")
    short = ConversionLimits(seconds=0.2)
    made = convert("a.pdf", MIXED, limits=short)
    assert ([one.metadata["page"] for one in made.passages], made.notes) == (
        [3],
        ("a.pdf: OCR failed or took too long for page 1, 2, 4",),
    )
    assert [one.text for one in convert("a.eml", attach(PNG), limits=short).passages] == ["See the file."]
    with pytest.raises(UnreadableError, match="OCR failed or took too long"):
        convert("a.pdf", pdf_drawn(["0 0 10 10 re f"]), limits=short)
    cut = TABLE + "\n5\t3\t1\t1\t1\t1\t0\t0\t9\t9\t96\tcut"
    (tesseract.parent / "words.tsv").write_text(cut)
    tesseract.write_text(
        f'#!/bin/sh\n[ "$1" = --list-langs ] && exit\ncat {tesseract.parent}/words.tsv\nexec sleep 30\n'
    )
    made = convert("a.tif", b"II*\0", limits=ConversionLimits(seconds=1))
    assert [(one.metadata["page"], one.text) for one in made.passages] == [(1, "Room 12 opens.\nAsk."), (2, "B1rd")]
    assert made.notes[0] == "a.tif: OCR took too long for page 3 and those after it"
    for module in (scans, portable):
        monkeypatch.setattr(module, "find_program", lambda: "/bin/false")  # it lists no languages either
    assert [one.metadata["page"] for one in convert("a.pdf", MIXED).passages] == [3]


def test_what_cannot_be_recognised_is_one_line(tesseract: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tesseract.parent / "words.tsv").write_text("")
    with pytest.raises(UnreadableError, match="has no text"):
        convert("a.png", PNG)
    tesseract.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(UnreadableError, match="no picture that Tesseract can read"):
        convert("a.png", PNG)
    tesseract.write_text("#!/bin/sh\nexec sleep 30\n")
    with pytest.raises(UnreadableError, match="more time for OCR"):
        convert("a.png", PNG, limits=ConversionLimits(seconds=0.2))
    for module in (scans, portable):
        monkeypatch.setattr(module, "find_program", lambda: None)
    for name, data in (("a.png", PNG), ("a.pdf", pdf_of([[]]))):
        with pytest.raises(UnreadableError, match="apt install tesseract-ocr"):
            convert(name, data)


@pytest.mark.parametrize("data", [b"/etc/scan.png\n", b"PNG", b"\n/etc/scan.png", b"II+\0/etc/scan.png"])
def test_what_begins_as_no_picture_never_reaches_tesseract(tesseract: Path, data: bytes) -> None:
    with pytest.raises(UnreadableError, match="begins as no picture"):
        convert("a.png", data)
    assert convert("a.eml", attach(data)).notes == ("a.eml: attachments were not read: a.png",)
    assert not (tesseract.parent / "picture").exists()


def test_pictures_in_a_folder_are_read_where_something_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.png").write_bytes(b"PNG")
    for program in (None, "/usr/bin/tesseract"):
        monkeypatch.setattr(scans, "find_program", lambda program=program: program)
        assert list_files([tmp_path]).others == (() if program else ("a.png",))
