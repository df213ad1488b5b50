"""One table in every format: empty and merged cells keep their columns, and each row names them."""

from collections.abc import Callable
from typing import Any

import pytest

from engram.wings.importing.conversion import chunks
from engram.wings.importing.conversion.documents import Document
from engram.wings.importing.conversion.formats import convert
from engram.wings.importing.conversion.outline import Outline
from engram.wings.importing.conversion.table_model import Cell, lay_out, write_table
from tests.wings.importing.office_files import add_slide_table, deck, word_file, word_table, workbook

NAMES = ["Region", "Product", "Units", "Price"]
ROWS = [["North", "Cable", "", "3"], ["North", "Hub", "", "7"], ["South", "", "4", ""], ["", "", "5", "9"]]
WRITTEN = [
    "Region | Product | Units | Price",
    "Region: North | Product: Cable | Price: 3",
    "Region: North | Product: Hub | Price: 7",
    "Region: South | Units: 4",
    "Units: 5 | Price: 9",
]


def as_markdown() -> bytes:
    lines = ["| Region | Product | Units | Price |", "|---|---|---|---|", "| North | Cable | | 3 |"]
    return "\n".join([*lines, "| North | Hub || 7 |", "| South | | 4 |", "||| 5 | 9 |"]).encode()


def as_html() -> bytes:
    rows = [
        "<tr><th>Region<th>Product<th>Units<th>Price</tr>",
        "<tr><td rowspan=2>North<td>Cable<td rowspan=2><td>3</tr>",
        "<tr><td>Hub<td>7</tr><tr><td>South<td><td>4<td></tr>",
        "<tr><td colspan=2><td>5<td>9</tr>",
    ]
    return f"<table>{''.join(rows)}</table>".encode()


def as_word() -> bytes:
    begin, goes_on = '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    return word_file(
        word_table(
            [
                [(name, "") for name in NAMES],
                [("North", begin), ("Cable", ""), ("", ""), ("3", "")],
                [("", goes_on), ("Hub", ""), ("", ""), ("7", "")],
                [("South", ""), ("", ""), ("4", ""), ("", "")],
                [("", '<w:gridSpan w:val="2"/>'), ("5", ""), ("9", "")],
            ]
        )
    )


def as_slide() -> bytes:
    def fill(made: Any) -> None:
        slide = made.slides.add_slide(made.slide_layouts[5])
        table = add_slide_table(slide, [NAMES, ROWS[0], ["", *ROWS[1][1:]], *ROWS[2:]])
        table.cell(1, 0).merge(table.cell(2, 0))
        table.cell(4, 0).merge(table.cell(4, 1))

    return deck(fill)


def as_sheet(title: str = "") -> bytes:
    def fill(sheet: Any) -> None:
        for row in ([title], NAMES, *ROWS) if title else (NAMES, *ROWS):
            sheet.append([int(value) if value.isdigit() else value or None for value in row])
        first = 3 if title else 2
        sheet.merge_cells(start_row=first, end_row=first + 1, start_column=1, end_column=1)
        if title:
            sheet.merge_cells(start_row=1, end_row=1, start_column=1, end_column=4)

    return workbook(fill)


def as_csv() -> bytes:
    return "\n".join(";".join(row) for row in [NAMES, *ROWS]).encode()


def sentences(name: str, data: bytes) -> list[str]:
    return [sentence for passage in convert(name, data).passages for sentence in passage.sentences]


@pytest.mark.parametrize(
    ("name", "make"), [("a.md", as_markdown), ("a.html", as_html), ("a.docx", as_word), ("a.pptx", as_slide)]
)
def test_a_table_of_a_document_names_the_columns_of_each_row(name: str, make: Callable[[], bytes]) -> None:
    assert sentences(name, make())[-5:] == WRITTEN


@pytest.mark.parametrize(("name", "make"), [("a.xlsx", as_sheet), ("a.csv", as_csv), ("a.tsv", as_csv)])
def test_a_row_of_a_sheet_names_its_columns_in_one_sentence(name: str, make: Callable[[], bytes]) -> None:
    data = make().replace(b";", b"\t") if name == "a.tsv" else make()
    assert sentences(name, data) == WRITTEN[1:]
    assert convert(name, data).passages[1].metadata["Region"] == "North"


def test_a_title_above_the_names_of_columns_is_a_title() -> None:
    assert sentences("a.xlsx", as_sheet("Stock list 2024")) == ["Sheet", "Stock list 2024", *WRITTEN]
    page = b"<table><tr><td colspan=2>Stock</td></tr><tr><th>a<th>b</tr><tr><td>1<td>2</tr></table>"
    assert sentences("a.html", page) == ["Stock", "a | b", "a: 1 | b: 2"]


def test_a_long_table_repeats_its_header_in_every_passage() -> None:
    rows = "".join(f"| Bolt type {n} | {3 * n} | {n}.5 |\n" for n in range(80))
    table = f"# Prices\n\nAll of 2024.\n\n| Part | Price | Weight |\n|---|---|---|\n{rows}\nThe end."
    passages = convert("a.md", table.encode()).passages
    assert len(passages) > 2
    for passage in passages[:-1]:
        assert passage.sentences.count("Part | Price | Weight") == 1
        assert len(passage.text) <= chunks.SIZE
    (with_bolt,) = [one for one in passages if "Part: Bolt type 70 | Price: 210 | Weight: 70.5" in one.sentences]
    assert with_bolt.sentences[0] == "Part | Price | Weight"
    assert passages[-1].sentences[-1] == "The end."


def write(rows: list[list[Any]]) -> list[str]:
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    return [line.text for line in write_table(lay_out("a", cells))]


@pytest.mark.parametrize(
    ("rows", "written"),
    [
        # Nothing says what the first row is: figures below a name, or three names without figures.
        (
            [["Model", "Price"], ["Small", "900"], ["Large", "1,400"]],
            ["Model | Price", "Model: Small | Price: 900"],
        ),
        ([["", "2022", "2023"], ["Power", "", "7"]], ["2022 | 2023", "Power | 2023: 7"]),
        (
            [["Name", "Role", "Office"], ["Ann", "Chair", "Oslo"]],
            ["Name | Role | Office", "Name: Ann | Role: Chair | Office: Oslo"],
        ),
        ([["Name", "Ann"], ["Age", "30"], ["City", "Rome"]], ["Name | Ann", "Age | 30", "City | Rome"]),
        ([["Revenue", "100"], ["Cost", ""], ["Profit", "50"]], ["Revenue | 100", "Cost", "Profit | 50"]),
        (
            [
                ["Sales"],
                ["Printed in May"],
                ["Region", "Q1", "Q1", "Note"],
                ["North", "5", "7", "ok"],
                ["South", "", "3"],
            ],
            ["Sales", "Printed in May", "Region | Q1 | Q1 | Note", "Region: North | Q1: 5 | Q1: 7 | Note: ok"],
        ),
        ([["yes", "yes", "no"], ["no", "yes", "yes"]], ["yes | yes | no", "no | yes | yes"]),
        ([["North", "Cable", "", "3"], ["", "Hub", "", "7"]], ["North | Cable | 3", "| Hub | 7"]),
        ([["only"]], ["only"]),
    ],
)
def test_names_of_columns_are_told_from_values(rows: list[list[str]], written: list[str]) -> None:
    assert write(rows)[: len(written)] == written


def test_header_rows_above_each_other_are_one_name() -> None:
    rows = [
        [Cell("Region", rows=2, heading=True), Cell("2023", columns=2, heading=True)],
        [Cell("Q1", heading=True), Cell("Q2", heading=True)],
        [Cell("North"), Cell("1"), Cell("2")],
        [Cell("Total", columns=2), Cell("3")],
        [Cell("Overseas", columns=3)],
        [Cell("Region"), Cell("2023"), Cell("2023")],
    ]
    assert write(rows)[:4] == [
        "Region | 2023 Q1 | 2023 Q2",
        "Region: North | 2023 Q1: 1 | 2023 Q2: 2",
        "Region: Total | 2023 Q1: Total | 2023 Q2: 3",
        "Overseas",
    ]


def test_a_row_that_begins_with_its_name_has_no_header() -> None:
    rows = [[Cell("Units", heading=True), Cell("12")], [Cell("Price", heading=True), Cell("3")]]
    assert write(rows) == ["Units | 12", "Price | 3"]


def test_a_long_row_stays_below_the_size_and_keeps_its_words() -> None:
    outline = Outline()
    outline.table(
        write_table([[Cell("a"), Cell("b")], [Cell("word " * 100), Cell("7")], [Cell("x"), Cell("8")]], 1)
    )
    document: Document = outline.document("a.md", "markdown")
    made = list(chunks.passages(document, size=120, overlap=30))
    assert all(len(passage.text) <= 120 for passage in made)
    assert " ".join(sentence for passage in made for sentence in passage.sentences).count("word") >= 100


def as_rows(*rows: list[Any], merged: tuple[str, ...] = ()) -> bytes:
    def fill(sheet: Any) -> None:
        for row in rows:
            sheet.append(row)
        for place in merged:
            sheet.merge_cells(place)

    return workbook(fill)


def test_tables_below_each_other_in_a_sheet_have_their_own_names() -> None:
    stock = (["Stock 2024"], [], ["Region", "2023", None, "2024"], [None, "Q1", "Q2", "Q1"], ["North", 1, 2, 3])
    towns = (["Source: registry"], [], ["Town", "Office", "Staff"], ["Oslo", "A", 5])
    made = convert("a.xlsx", as_rows(*stock, [], *towns, merged=("A1:D1", "B3:C3", "A3:A4")))
    assert [sentence for passage in made.passages for sentence in passage.sentences] == [
        "Town: Oslo | Office: A | Staff: 5",
        "Sheet",
        "Stock 2024",
        "Region | 2023 Q1 | 2023 Q2 | 2024 Q1",
        "Region: North | 2023 Q1: 1 | 2023 Q2: 2 | 2024 Q1: 3",
        "Source: registry",
    ]


def test_an_empty_row_inside_a_table_ends_it_not() -> None:
    data = as_rows(["Region", "Product", "Price"], ["North", "Cable", 3], [], ["South", "Hub", 7])
    assert sentences("a.xlsx", data)[-1] == "Region: South | Product: Hub | Price: 7"


WIDE = (["Region", "Product", "Price"], ["North", "Cable", 3], ["South", "Hub", 7])
NARROW = (["Region", "Price"], ["North", 3], ["South", 7])


@pytest.mark.parametrize(
    ("table", "below", "written"),
    [
        (WIDE, (["Contact", "Ann"], ["Office", "Rome"]), ["Contact | Ann", "Office | Rome"]),
        (WIDE, (["Contact", "Ann"], ["Seats", 3], ["Floor", 2]), ["Contact | Ann", "Seats | 3", "Floor | 2"]),
        (NARROW, (["Contact:", "Ann"], ["Seats:", 3]), ["Contact: | Ann", "Seats: | 3"]),
        (NARROW, (["Net", 10], ["Total", 12]), ["Region: Net | Price: 10", "Region: Total | Price: 12"]),
        (
            (["Item", "Units", "Price"], ["Cable", 1, 3], ["Hub", 2, 7]),
            (["Net", 3], ["Lost", 1]),
            ["Item: Net | Units: 3", "Item: Lost | Units: 1"],
        ),
        (WIDE, (["East", "Hub"],), ["Region: East | Product: Hub"]),
    ],
)
def test_a_form_below_an_empty_row_takes_no_names_of_the_table_above(
    table: tuple[list[Any], ...], below: tuple[list[Any], ...], written: list[str]
) -> None:
    assert sentences("a.xlsx", as_rows(*table, [], *below))[-len(written) :] == written


def test_a_form_is_no_table() -> None:
    form = as_rows(["Owner", "Ann"], ["Age", 30], ["City", "Rome"])
    assert sentences("a.xlsx", form) == ["Sheet", "Owner | Ann", "Age | 30", "City | Rome"]


def test_ids_are_told_apart_over_all_tables_of_a_workbook() -> None:
    towns = (["id", "town", "staff"], [1, "Oslo", 5], [6, "Rome", 6])
    rivers = (["river", "length", "basin"], ["Rhine", 1230, 185], ["Rhone", 813, 98])
    lakes = (["id", "lake", "depth"], [1, "Como", 425], [2, "Garda", 346])
    made = convert("a.xlsx", as_rows(*towns, [], *rivers, [], *lakes))
    assert [(passage.id, passage.title) for passage in made.passages] == [
        ("a.xlsx#Sheet!1", "1"),
        ("a.xlsx#Sheet!6", "6"),
        ("a.xlsx#Sheet!6:6", "Rhine"),
        ("a.xlsx#Sheet!7", "Rhone"),
        ("a.xlsx#Sheet!1:10", "1"),
        ("a.xlsx#Sheet!2", "2"),
    ]


def test_a_header_without_names_takes_no_row_of_values() -> None:
    grid = lay_out("a", [[Cell(""), Cell("")], [Cell("A"), Cell("1")], [Cell("B"), Cell("2")]])
    assert [line.text for line in write_table(grid, 1)] == ["A | 1", "B | 2"]


def test_a_matrix_has_names_of_columns_beside_an_empty_corner() -> None:
    rows = [["", "Mon", "Tue", "Wed"], ["Ana", "early", "late", "off"], ["Bo", "off", "early", "late"]]
    grid = lay_out("a", [[Cell(text) for text in row] for row in rows])
    assert [line.text for line in write_table(grid)] == [
        "Mon | Tue | Wed",
        "Ana | Mon: early | Tue: late | Wed: off",
        "Bo | Mon: off | Tue: early | Wed: late",
    ]
