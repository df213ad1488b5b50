"""PDFs: pages, what pages repeat, words cut at line ends, raised figures and tables."""

from pathlib import Path

import pytest

from engram.wings.importing.conversion import portable
from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.import_limits import ConversionLimits
from tests.support.pdf_files import pdf_drawn, pdf_of, show_at, show_lines, show_turned

LIMITS = ConversionLimits()
HANDBOOK = Path(__file__).parents[3] / "evaluation_sets" / "languages" / "documents" / "shouce.pdf"
TOWNS = ("Alfa", "Bravo", "Carlo", "Delta", "Echo")


def read(pages: list[list[str]]) -> Document:
    return portable.pdf("a.pdf", pdf_of(pages), LIMITS)


def texts(document: Document) -> list[str]:
    return [block.text for block in document.blocks]


def lines(document: Document) -> str:
    return "\n".join(texts(document))


def test_pdf_running_heads_are_removed_and_hyphens_joined() -> None:
    shown = [
        ["The Journal of Rivers", f"River {n} is called num-", f"ber {n} by its people.", f"{n}"]
        for n in range(1, 5)
    ]
    document = portable.pdf("rivers.pdf", pdf_of(shown, title="Of rivers"), LIMITS)
    assert document.title == "Of rivers"
    assert [(block.page, block.text) for block in document.blocks] == [
        (n, f"River {n} is called number {n} by its people.") for n in range(1, 5)
    ]


def test_a_pdf_without_text_or_that_is_none() -> None:
    with pytest.raises(UnreadableError, match="scan"):
        portable.pdf("scan.pdf", pdf_of([[]]), LIMITS)
    with pytest.raises(UnreadableError, match=r"broken\.pdf"):
        portable.pdf("broken.pdf", b"not a PDF at all", LIMITS)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("Invoice {0}", "Total due: {1} EUR"),
        ("Certificate no. {2}", "Valid for {2} years"),
        ("Pay slip of {name}", "Net pay {1}.50"),
        ("Data sheet {2}", "Answer number {2} is yes."),
        ("Status: {status}", "{name}: {1}"),
    ],
)
def test_lines_that_differ_in_a_figure_or_a_value_are_text(first: str, last: str) -> None:
    values = [{"name": name, "status": "open" if name == "Delta" else "paid"} for name in TOWNS]
    pages = [
        [form.format(1000 + n, 100 + 37 * n, n, **value) for form in (first, "{name} bought a pump.", last)]
        for n, value in enumerate(values, 1)
    ]
    shown = " ".join(texts(read(pages)))
    for page in pages:
        for line in page:
            assert line in shown


def test_only_a_page_number_goes_from_below_a_column_of_figures() -> None:
    pages = [
        [f"Station {name}", f"The gauge {name} works.", f"2021 1{n}", f"2022 1{n + 2}", f"{n}"]
        for n, name in enumerate(TOWNS, 1)
    ]
    document = read(pages)
    assert document.notes == ("a.pdf: left out what pages repeat: page numbers",)
    assert [block.text for block in document.blocks if block.page == 2][-2:] == ["2021 12", "2022 14"]


@pytest.mark.parametrize("form", ["{0}", "- {0} -", "Page {0} of 5", "{0} / 5", "Page {0}"])
def test_page_numbers_and_repeated_lines_go_with_a_note(form: str) -> None:
    pages = [["Annual report", f"{name} is a town of its own.", form.format(n)] for n, name in enumerate(TOWNS, 1)]
    document = read(pages)
    assert texts(document) == [f"{name} is a town of its own." for name in TOWNS]
    assert document.notes == ('a.pdf: left out what pages repeat: page numbers, "Annual report"',)


def test_a_line_with_the_pages_number_and_their_count_is_a_running_head() -> None:
    pages = [[f"{name} is a town.", f"Acme {n} of 5 - confidential"] for n, name in enumerate(TOWNS, 1)]
    assert texts(read(pages)) == [f"{name} is a town." for name in TOWNS]
    lots = [[f"{name} is a town.", f"Lot {n} of 7 sold"] for n, name in enumerate(TOWNS, 1)]
    assert lines(read(lots)).count(" of 7 sold") == 5


def test_a_sentence_that_pages_end_with_is_no_running_head() -> None:
    document = read([[f"{name} paid.", "Thank you for your order."] for name in TOWNS])
    assert lines(document).count("Thank you for your order.") == 5


@pytest.mark.parametrize(
    ("cut", "joined", "rest"),
    [
        (["The state-of-the-", "art pump runs."], "state-of-the-art pump", ""),
        (["It is called num-", "ber one."], "called number one", ""),
        (["It is well-", "known here."], "well-known here", "A well-known pump."),
        (["It is well-", "known here."], "well-known here", ""),
        (["Spas sell well-", "ness here."], "sell wellness here", ""),
        (["See the infor-", "mation panel."], "the information panel", "Read the information."),
        (["Ask Jean-", "Paul first."], "Ask Jean-Paul first", ""),
        (["Read pages 10-", "12 first."], "pages 10-12 first", ""),
        (["A short-", "term plan."], "short-term plan", "The term is short."),
        (["Die Ein-", "und Ausgaben."], "Die Ein- und Ausgaben", ""),
        (["It is out-", "of-date."], "out-of-date", ""),
    ],
)
def test_a_word_cut_at_a_line_end_is_spelt_as_elsewhere(cut: list[str], joined: str, rest: str) -> None:
    assert joined in " ".join(texts(read([[*cut, *([rest] if rest else [])]])))


def test_a_raised_figure_is_a_power() -> None:
    commands = (
        "BT /F1 12 Tf 72 700 Td (It held 10) Tj 4 Ts /F1 7 Tf (6) Tj 0 Ts /F1 12 Tf ( cells in 5 m) Tj "
        "4 Ts /F1 7 Tf (2) Tj 0 Ts /F1 12 Tf ( of CO) Tj -2 Ts /F1 7 Tf (2) Tj 0 Ts /F1 12 Tf ( gas.) Tj ET"
    )
    document = portable.pdf("a.pdf", pdf_drawn([commands]), LIMITS)
    assert texts(document) == ["It held 10^6 cells in 5 m^2 of CO2 gas."]


def test_an_empty_cell_of_a_table_keeps_its_column() -> None:
    table = show_at(
        (72, 700, "Item"), (150, 700, "2023"), (210, 700, "2024"),
        (72, 680, "Power"), (150, 680, "51"), (210, 680, "70"),
        (72, 660, "Water"), (210, 660, "14"),
        (72, 620, "All figures are in thousands."),
    )  # fmt: skip
    document = portable.pdf("a.pdf", pdf_drawn([table]), LIMITS)
    assert texts(document) == [
        "Item | 2023 | 2024",
        "Item: Power | 2023: 51 | 2024: 70",
        "Item: Water | 2024: 14",
        "All figures are in thousands.",
    ]


def test_a_page_without_text_is_named() -> None:
    document = read([["First page."], [], ["Third page."]])
    assert [(block.page, block.text) for block in document.blocks] == [(1, "First page."), (3, "Third page.")]
    assert document.notes == ("a.pdf: no text on page 2",)


def test_equal_rows_of_a_table_are_all_read() -> None:
    assert texts(read([["Widget 5 10", "Widget 5 10", "Nut 1 2"]])) == ["Widget 5 10", "Widget 5 10", "Nut 1 2"]


def test_a_sentence_that_ends_on_the_next_page_leaves_the_table_below_it_whole() -> None:
    document = read([["The pump holds"], ["five bar of pressure", "Valve no. 2023 2024", "Pump no. 3 14"]])
    assert [(block.page, block.text) for block in document.blocks] == [
        (1, "The pump holds five bar of pressure"),
        (2, "Valve no. 2023 2024"),
        (2, "Pump no. 3 14"),
    ]


def test_rows_of_words_that_run_from_right_to_left_are_read() -> None:
    rows = "BT 20 TL 72 700 Td " + " ".join(
        f"/F1 12 Tf ({figures} ) Tj /F2 12 Tf ({word}) Tj T*"
        for figures, word in (("5 10", "abcd"), ("7 12", "efgh"))
    )
    document = portable.pdf("a.pdf", pdf_drawn([f"{rows} ET"]), LIMITS)
    assert [text.split() for text in texts(document)] == [["דגבא", "10", "5"], ["חזוה", "12", "7"]]


def test_chinese_lines_are_joined_without_spaces_and_short_ones_are_headings() -> None:
    document = portable.pdf("shouce.pdf", HANDBOOK.read_bytes(), LIMITS)
    whole = [block.text for block in document.blocks if block.whole]
    assert whole[:5] == ["青石县图书馆读者手册", "关于本手册", "开放时间", "办理读者证", "借书数量和期限"]
    assert any("本版于2025年1月6日生效。" in text for text in texts(document))
    assert all(text.endswith("。") for text in texts(document) if text not in whole)


TABLE = [("Region", "2023", "2024"), ("North", "1250", "1310"), ("South", "48213", "51008"), ("East", "117", "119")]
WRITTEN_TABLE = [
    "Region | 2023 | 2024",
    "Region: North | 2023: 1250 | 2024: 1310",
    "Region: South | 2023: 48213 | 2024: 51008",
    "Region: East | 2023: 117 | 2024: 119",
]


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_a_table_is_read_however_its_page_is_turned(degrees: int) -> None:
    places = {
        0: lambda along, down: (100 + along, 600 - down),
        90: lambda along, down: (100 + down, 100 + along),
        180: lambda along, down: (500 - along, 100 + down),
        270: lambda along, down: (500 - down, 600 - along),
    }
    words = [
        (*places[degrees](100 * column, 20 * row), text)
        for row, line in enumerate(TABLE)
        for column, text in enumerate(line)
    ]
    document = portable.pdf("a.pdf", pdf_drawn([show_turned(*words, degrees=degrees)], rotate=degrees), LIMITS)
    assert texts(document) == WRITTEN_TABLE


@pytest.mark.parametrize("degrees", [30, 6, 90, 354])
def test_figures_of_turned_labels_are_no_superscripts(degrees: float) -> None:
    labels = ["48213 units", "in 2023 and 2024", "10% of CO2"]
    turned = show_turned(*((100 + 150 * n, 200, label) for n, label in enumerate(labels)), degrees=degrees)
    shown = " ".join(texts(portable.pdf("a.pdf", pdf_drawn([turned]), LIMITS)))
    assert shown.split() == [word for label in labels for word in label.split()]


@pytest.mark.parametrize(
    ("rows", "written"),
    [
        (
            [
                ("Product", "2023", "2024", "Change"),
                ("Cable", "1,250", "1,310", "4.8%"),
                ("Hub", "", "17", ""),
                ("Total", "1,250", "1,327", "n/a"),
            ],
            [
                "Product | 2023 | 2024 | Change",
                "Product: Cable | 2023: 1,250 | 2024: 1,310 | Change: 4.8%",
                "Product: Hub | 2024: 17",
                "Product: Total | 2023: 1,250 | 2024: 1,327 | Change: n/a",
            ],
        ),
        (
            [("Region", "Q1", "Q2", "Q3"), ("North", "1.5", "n/a", "2.5"), ("South", "-", "3", "4")],
            [
                "Region | Q1 | Q2 | Q3",
                "Region: North | Q1: 1.5 | Q2: n/a | Q3: 2.5",
                "Region: South | Q1: - | Q2: 3 | Q3: 4",
            ],
        ),
    ],
    ids=["words", "single letters"],
)
def test_a_table_keeps_its_columns_whatever_its_rows_end_with(
    rows: list[tuple[str, ...]], written: list[str]
) -> None:
    words = [
        (72 + 90 * column, 700 - 18 * row, text)
        for row, line in enumerate(rows)
        for column, text in enumerate(line)
        if text
    ]
    assert texts(portable.pdf("a.pdf", pdf_drawn([show_at(*words)]), LIMITS)) == written


@pytest.mark.parametrize(
    ("first", "last", "is_table"),
    [
        ("F3", ("Order desks", "Cy", "", "open"), True),
        ("F3", ("It goes on for a while.",), True),
        ("F1", ("Order desks", "Cy", "", "open"), False),
        ("F1", ("Order desks", "Cy", "today", "open"), True),
    ],
    ids=["bold names", "text below", "an empty cell below names like it", "names like the rows"],
)
def test_a_table_of_words_is_told_by_its_names(first: str, last: tuple[str, ...], is_table: bool) -> None:
    rows = [
        ("Task", "Owner", "Deadline", "State"),
        ("Write report", "Ana Lee", "next Monday", "open"),
        ("Call client", "Bo", "tomorrow", "done"),
        last,
    ]
    commands = " ".join(
        f"BT /{'F1' if row else first} 12 Tf {72 + 120 * column} {700 - 18 * row} Td ({text}) Tj ET"
        for row, line in enumerate(rows)
        for column, text in enumerate(line)
        if text
    )
    read_texts = texts(portable.pdf("a.pdf", pdf_drawn([commands]), LIMITS))
    assert ("Task: Write report | Owner: Ana Lee | Deadline: next Monday | State: open" in read_texts) is is_table


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (
            [
                ("F3", 72, 700, "Task"),
                ("F3", 192, 700, "What"),
                ("F3", 312, 700, "Owner"),
                ("F1", 72, 682, "Receive"),
                ("F1", 192, 682, "Goods are"),
                ("F1", 192, 668, "booked."),
                ("F1", 312, 682, "Ana"),
                ("F1", 72, 650, "Check"),
                ("F1", 192, 650, "They are"),
                ("F1", 312, 650, "Bo"),
                ("F1", 192, 636, "counted."),
                ("F3", 72, 600, "Notes"),
            ],
            [
                "Task | What | Owner",
                "Task: Receive | What: Goods are booked. | Owner: Ana",
                "Task: Check | What: They are counted. | Owner: Bo",
                "Notes",
            ],
        ),
        (
            [
                ("F3", 72, 700, "Town"),
                ("F3", 192, 700, "Head"),
                ("F1", 72, 682, "Bern"),
                ("F1", 192, 682, "Ana Lee"),
                ("F1", 72, 664, "Basel"),
                ("F1", 192, 664, "Bo"),
                ("F1", 72, 620, "It goes on."),
            ],
            ["Town | Head", "Town: Bern | Head: Ana Lee", "Town: Basel | Head: Bo", "It goes on."],
        ),
        (
            [
                ("F1", x, 700 - 18 * y, text)
                for y, row in enumerate(
                    ["Site Depth Result Remark", "A1 12.5 3.4 clear", "B2 9.0 n/a turbid", "C3 7.25 5.1 clear"]
                )
                for x, text in zip((72, 192, 252, 312), row.split(), strict=True)
            ],
            [
                "Site | Depth | Result | Remark",
                "Site: A1 | Depth: 12.5 | Result: 3.4 | Remark: clear",
                "Site: B2 | Depth: 9.0 | Result: n/a | Remark: turbid",
                "Site: C3 | Depth: 7.25 | Result: 5.1 | Remark: clear",
            ],
        ),
        (
            [
                ("F3", 72, 700, "About us"),
                ("F3", 322, 700, "Our aims"),
                ("F1", 72, 682, "We began in the year of the flood and we"),
                ("F1", 322, 682, "People come first in all that we do, and"),
                ("F1", 72, 664, "have grown since"),
                ("F1", 322, 664, "that is all."),
            ],
            [
                "About us Our aims",
                "We began in the year of the flood and we People come first in all that we do, and have grown "
                "since that is all.",
            ],
        ),
    ],
    ids=["cells of two lines", "two columns", "rows that end with words", "two columns of text"],
)
def test_words_below_names_of_columns_are_rows(words: list[tuple[str, int, int, str]], written: list[str]) -> None:
    commands = " ".join(f"BT /{font} 12 Tf {x} {y} Td ({text}) Tj ET" for font, x, y, text in words)
    document = portable.pdf("a.pdf", pdf_drawn([commands]), LIMITS)
    assert texts(document) == written


def test_filled_fields_of_a_form_are_read() -> None:
    fields = [
        "/FT /Tx /T (form[0].page[0].Name[0]) /V (Otto Berg)",
        "/FT /Tx /T (f1) /TU (Rent in euros) /V (900)",
        "/FT /Tx /T (empty)",
        "/FT /Tx /T (secret) /Ff 8192 /V (swordfish)",
        "/FT /Ch /T (Floor) /Opt [(first) (second)] /Ff 131072 /V (second)",
        "/FT /Ch /T (Heating) /Opt [[(1) (gas)] [(2) (oil)]] /V (2)",
        "/FT /Ch /T (Pets) /Opt [(cat) (dog) (bird)] /Ff 2097152 /V [(cat) (bird)]",
        "/FT /Ch /T (Trade) /Opt [(baker)] /Ff 393216 /V (tailor)",
        "/FT /Btn /T (Smoking allowed) /V /Off /AS /Off",
        "/FT /Btn /T (Keys returned) /V /Yes /AS /Yes /AP << /N << /Yes null /Off null >> >>",
    ]
    document = portable.pdf("a.pdf", pdf_drawn([show_lines(["Contract"])], fields=fields), LIMITS)
    assert texts(document) == [
        "Contract",
        "Name: Otto Berg",
        "Rent in euros: 900",
        "Floor: second",
        "Heating: oil",
        "Pets: cat, bird",
        "Trade: tailor",
        "☐ Smoking allowed",
        "☒ Keys returned",
    ]


@pytest.mark.parametrize(
    ("elsewhere", "cut"),
    [
        ("A pro-active plan, less proactive.", "pro-active"),
        ("They act pro-actively.", "pro-active"),
        ("A proactive plan.", "proactive"),
        ("Nothing else.", "proactive"),
    ],
)
def test_a_hyphen_at_a_line_end_stays_where_the_text_has_the_word_with_it(elsewhere: str, cut: str) -> None:
    document = read([[elsewhere, "It has a goal and a pro-", "active leader."]])
    assert f"It has a goal and a {cut} leader." in lines(document)
