"""Files of each kind, as people have them, become blocks below headings."""

import json
import re
from pathlib import Path

import pytest

from engram.wings.importing.conversion import captions, formats, markdown, notebooks, pages, prose, tables
from engram.wings.importing.conversion.documents import UnreadableError
from engram.wings.importing.conversion.import_limits import ConversionLimits

LIMITS = ConversionLimits()
FILES = Path(__file__).with_name("files")

PAGE = """<!doctype html><html><head><title>Rivers of Europe</title><script>var x = "no text";</script></head>
<body><nav><a href="/">Home</a></nav><main><h1>Rivers of Europe</h1><p>The Danube passes <b>ten</b>
countries.</p><h2>The Rhine</h2><p>It rises in Graubünden.<br>It ends at Hoek van Holland.</p>
<ul><li>Basel</li><li>Cologne <em>and</em> more</li></ul><table><tr><th>river</th><th>km</th></tr>
<tr><td>Rhine</td><td>1,230</td></tr></table><pre>a = 1
b = 2</pre>loose words<!-- a remark --></main><footer>Imprint</footer></body></html>"""

NOTES = """---
title: "Rivers"
tags: [water]
---

# Notes on rivers

The *Danube* passes [ten](https://example.org) countries.

## The Rhine

- It rises in `Graubünden`.
- It ends in the North Sea.

| river | km |
| --- | --- |
| Rhine | 1,230 |

### Sources

```python
length = 1230
```

## The Elbe

It rises in the Giant Mountains.
"""


def test_html_is_read_without_what_stands_around_it() -> None:
    document = pages.html("rivers.html", PAGE.encode(), LIMITS)
    assert document.title == "Rivers of Europe"
    said = [(block.headings, block.text) for block in document.blocks]
    assert said == [
        ((), "The Danube passes ten countries."),
        (("The Rhine",), "It rises in Graubünden. It ends at Hoek van Holland."),
        (("The Rhine",), "Basel"),
        (("The Rhine",), "Cologne and more"),
        (("The Rhine",), "river | km"),
        (("The Rhine",), "river: Rhine | km: 1,230"),
        (("The Rhine",), "a = 1"),
        (("The Rhine",), "b = 2"),
        (("The Rhine",), "loose words"),
    ]


def test_html_says_its_own_encoding() -> None:
    page = '<html><head><meta charset="iso-8859-1"></head><body><p>Zürich</p></body></html>'
    assert pages.html("z.html", page.encode("iso-8859-1"), LIMITS).blocks[0].text == "Zürich"


def test_markdown_keeps_its_outline() -> None:
    document = markdown.markdown("notes.md", NOTES.encode(), LIMITS)
    assert document.title == "Rivers"
    said = [(block.headings, block.text, block.whole) for block in document.blocks]
    rhine = ("Notes on rivers", "The Rhine")
    assert said == [
        (("Notes on rivers",), "The Danube passes ten countries.", False),
        (rhine, "It rises in Graubünden.", False),
        (rhine, "It ends in the North Sea.", False),
        (rhine, "river | km", True),
        (rhine, "river: Rhine | km: 1,230", True),
        ((*rhine, "Sources"), "length = 1230", True),
        (("Notes on rivers", "The Elbe"), "It rises in the Giant Mountains.", False),
    ]


def test_the_first_heading_is_the_title_where_nothing_else_is() -> None:
    document = markdown.markdown("notes.md", b"# Rivers\n\nThe Danube is long.\n", LIMITS)
    assert (document.title, document.blocks[0].headings) == ("Rivers", ())
    assert markdown.markdown("a/notes.md", b"The Danube is long.", LIMITS).title == "notes"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_text_of_any_common_encoding(encoding: str) -> None:
    words = "Über die Brücke führt ein schmaler Weg nach Süden.\r\n\r\nDort wächst größeres Gehölz als anderswo."
    document = prose.text("weg.txt", words.encode(encoding), LIMITS)
    assert [block.text for block in document.blocks] == words.split("\r\n\r\n")


def test_pages_and_drawn_lines_separate_paragraphs() -> None:
    words = "The truck arrives\non Friday.\n-- \nAnn Lee\fThe next page."
    document = prose.text("mail.txt", words.encode(), LIMITS)
    assert [block.text for block in document.blocks] == [
        "The truck arrives on Friday.",
        "Ann Lee",
        "The next page.",
    ]


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UnreadableError, match=r"noise\.txt"):
        prose.text("noise.txt", bytes(range(128, 256)) * 8 + b"\x00\x81\x8d" * 50, LIMITS)


def test_a_row_with_a_text_and_no_title_has_none() -> None:
    (row,) = tables.table("towns.csv", b"id,text,river\n7,Basel lies on the Rhine.,Rhine\n", LIMITS).passages
    assert (row.id, row.title, row.metadata["river"]) == ("towns.csv#7", "", "Rhine")
    (row,) = tables.table("towns.csv", b"town,river\nBasel,Rhine\n", LIMITS).passages
    assert (row.title, row.text) == ("Basel", "town: Basel | river: Rhine")


CAPTIONS = """WEBVTT - Meeting

NOTE
Made by a machine.

1
00:00:01.000 --> 00:00:04.000 align:start
<v Ana>The budget is &lt;b&gt; 4,200 crowns</v>

2
00:00:04.000 --> 00:00:06.500
<v Ana>for <i>the</i> year.</v>

00:00:06.500 --> 00:00:08.000
<v Bo>Agreed.</v>
"""


def test_captions_are_running_text_by_voices() -> None:
    read = captions.captions("meeting.vtt", CAPTIONS.encode(), LIMITS)
    assert [block.text for block in read.blocks] == [
        "Ana: The budget is <b> 4,200 crowns for the year.",
        "Bo: Agreed.",
    ]


def test_captions_of_subrip_lose_times_numbers_and_repetitions() -> None:
    given = (
        "1\r\n00:00:01,000 --> 00:00:02,000\r\n{\\an8}Warm up\r\nthe oven.\r\n\r\n"
        "2\r\n00:00:02,000 --> 00:00:03,000\r\nthe oven.\r\nBake 20 minutes.\r\n"
    )
    read = captions.captions("cake.srt", given.encode("utf-8-sig"), LIMITS)
    assert [block.text for block in read.blocks] == ["Warm up the oven. Bake 20 minutes."]


def test_a_notebook_has_texts_code_and_printed_output() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Rivers\n", "\n", "The Rhine is **long**."]},
        {
            "cell_type": "code",
            "source": "print(length)",
            "outputs": [
                {"output_type": "stream", "text": ["1230\n"]},
                {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "NameError", "evalue": "no width"},
            ],
        },
    ]
    read = notebooks.notebook("rivers.ipynb", json.dumps({"nbformat": 4, "cells": cells}).encode(), LIMITS)
    assert (read.title, read.format) == ("Rivers", "notebook")
    assert [block.text for block in read.blocks] == [
        "The Rhine is long.", "print(length)", "1230", "<Figure>", "NameError: no width",
    ]  # fmt: skip
    assert read.notes == ("rivers.ipynb: left out pictures of outputs: 1",)
    with pytest.raises(UnreadableError, match="no notebook"):
        notebooks.notebook("old.ipynb", b'{"worksheets": []}', LIMITS)


@pytest.mark.parametrize(
    ("name", "kind"), [("handbook.docx", ".docm"), ("deck.pptx", ".pptm"), ("offices.xlsx", ".xlsm")]
)
def test_office_files_with_macros_are_read_like_those_without(name: str, kind: str) -> None:
    data = (FILES / name).read_bytes()
    plain, with_macros = (formats.convert(name, data, kind=one) for one in (None, kind))
    assert [passage.text for passage in with_macros.passages] == [passage.text for passage in plain.passages]
    assert with_macros.differences == plain.differences == ()


@pytest.mark.parametrize("kind", formats.KINDS)
def test_each_kind_is_named_where_kinds_are_listed(kind: str) -> None:
    root = FILES.parents[3]
    assert f"`{kind}`" in (root / "docs" / "import.md").read_text(encoding="utf-8")
    kinds, passages = re.findall(
        r'^const (?:KINDS|PASSAGES) = "(.*)"',
        (root / "console/src/parts/ingest.tsx").read_text("utf-8"),
        re.MULTILINE,
    )
    assert kind in f"{kinds},{passages}".split(",")
