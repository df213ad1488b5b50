"""Pages as sites publish them: tags left out, several parts, warnings, forms, superscripts."""

import pytest

from engram.wings.importing.conversion import pages
from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.import_limits import ConversionLimits


def read(page: str) -> Document:
    return pages.html("a.html", page.encode(), ConversionLimits())


def texts(page: str) -> list[str]:
    return [block.text for block in read(page).blocks]


@pytest.mark.parametrize(
    "page",
    [
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>T</title><body><h1>H</h1><p>Runs.",
        "<!doctype html><meta charset=utf-8><title>T</title><h1>H</h1><p>Runs.</p>",
        "<html><head><title>T</title><link rel=x><h1>H</h1><p>Runs.",
        "<title>T</title></head><body><h1>H</h1><p>Runs.</body>",
        "<html><head><title>T</title><main><h1>H</h1><p>Runs.",
        "<title>T</title><article><h1>H</h1><section>Runs.</section></article>",
        "<title>T</title><custom-part>Runs.</custom-part>",
    ],
)
def test_a_head_that_is_not_closed_keeps_the_body(page: str) -> None:
    document = read(page)
    assert (document.title, document.blocks[-1].text) == ("T", "Runs.")


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("<body>" + "".join(f"<p>Value {n}." for n in range(400)), 400),
        ("<body><ul>" + "".join(f"<li>Value {n}." for n in range(400)) + "</ul>", 400),
        ("<dl>" + "".join(f"<dt>Term {n}<dd>Value {n}." for n in range(200)) + "</dl>", 400),
    ],
)
def test_elements_without_end_tags_are_beside_each_other(page: str, count: int) -> None:
    assert len(texts(page)) == count
    assert texts(page)[-1] == f"Value {count // 2 - 1 if 'dl' in page[:4] else count - 1}."


def test_a_table_without_end_tags_keeps_its_rows() -> None:
    rows = "".join(f"<tr><td>Place {n}<td>{n}" for n in range(200))
    shown = texts(f"<table><tr><th>Region<th>Units{rows}</table><p>After.")
    assert shown[:2] == ["Region | Units", "Region: Place 0 | Units: 0"]
    assert (len(shown), shown[-2:]) == (202, ["Region: Place 199 | Units: 199", "After."])


POSTS = "".join(f"<article><h2>Post {n}</h2><p>Tighten bolt {n}.</p></article>" for n in (1, 2, 3))


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (f"<body><h1>Leaks</h1>{POSTS}</body>", ["Tighten bolt 1.", "Tighten bolt 2.", "Tighten bolt 3."]),
        (
            f"<body><p>Before.</p>{POSTS}<p>After.</p></body>",
            ["Before.", "Tighten bolt 1.", "Tighten bolt 3.", "After."],
        ),
        (f"<body><main>One.</main><main>Two.{POSTS}</main></body>", ["One.", "Two.", "Tighten bolt 3."]),
        ("<div><p>Two years.</p><article><p>Read more.</p></article></div>", ["Two years.", "Read more."]),
        (
            "<header><h1>T</h1><p>Intro.</p></header><section>S.</section><article>A.</article>",
            ["Intro.", "S.", "A."],
        ),
        ("<div role=main><p>Kept.</p></div>", ["Kept."]),
        (
            "<main><p>Open it.</p><aside><p>Never above 5 bar.</p></aside></main>",
            ["Open it.", "Never above 5 bar."],
        ),
        ("<article><p>Text.</p><footer>Source: a book.</footer></article>", ["Text.", "Source: a book."]),
        ("<p>Open it.</p><aside class=note>Never above 5 bar.</aside>", ["Open it.", "Never above 5 bar."]),
        ("<form id=aspnetForm><h1>Leave</h1><p>28 days.</p><input value=x></form>", ["28 days."]),
        ("<main><form><p>Rule one.</p><select><option>a<option>b</select></form></main>", ["Rule one."]),
        ("<h2><button>How long?</button></h2><p>Two years.</p><button>More</button>", ["Two years."]),
        ("<main>M<p>Inside.</p></main>", ["M", "Inside."]),
    ],
)
def test_all_parts_of_the_content_are_read(page: str, expected: list[str]) -> None:
    shown = texts(page)
    assert [text for text in shown if text in expected] == expected


def test_a_button_may_be_a_heading() -> None:
    assert read("<h2><button>How long?</button></h2><p>Two years.</p>").blocks[0].headings == ("How long?",)


def test_what_is_left_out_is_noted() -> None:
    page = (
        "<body><nav>Home</nav><div>We use cookies.</div><main><p>Text.</p><p hidden>Secret.</p>"
        "<p style='display: none'>Hidden.</p></main><aside>Advert.</aside><footer>Imprint</footer></body>"
    )
    assert texts(page) == ["Text."]
    assert read(page).notes == (
        "a.html: left out hidden text, navigation, a footer, an aside, text outside of its main part, "
        '"We use cookies."',
    )
    assert read("<body><main><p>Text.</p></main><script>x</script></body>").notes == ()
    assert texts("<body style='visibility:hidden'><p hidden=until-found>Text.</p></body>") == ["Text."]


def test_the_heading_above_the_main_part_is_kept() -> None:
    (block,) = read("<title>Site</title><header><h1>Pumps</h1></header><main><p>Text.</p></main>").blocks
    assert block.headings == ("Pumps",)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("CO<sub>2</sub> is a gas", "CO2 is a gas"),
        ("un<b>believ</b>able <i>Lim</i>it", "unbelievable Limit"),
        ("super<wbr>cali", "supercali"),
        ("see <a href=x>l1</a><a href=y>l2</a>", "see l1 l2"),
        ("Mon<br>Tue", "Mon Tue"),
        ("<span>a</span> <span>b</span>", "a b"),
        ("10<sup>6</sup> cells", "10^6 cells"),
        ("10<sup>-3</sup> mol", "10^-3 mol"),
        ("10 <sup>6</sup> cells", "10 ^6 cells"),
        ("5 m<sup>2</sup>", "5 m^2"),
        ("2<sup>n + 1</sup>", "2^(n + 1)"),
        ("12<sup>1</sup> million", "12^1 million"),
        ("12<sup><a href='#1'>1</a></sup> million", "12 [1] million"),
        ("12<a href='#1'><sup>1</sup></a> million", "12 [1] million"),
        ("true<sup>[1]</sup>.", "true[1]."),
        ("the 5<sup>th</sup> of May", "the 5th of May"),
        ("Acme<sup>®</sup> pumps", "Acme® pumps"),
        ("It is true.<sup>1</sup>", "It is true.1"),
        ("it&#146;s &#128; 5", "it’s € 5"),
        ("a <img src=x alt='red valve'> here", "a red valve here"),
        (
            "<math><msup><mi>x</mi><mn>2</mn></msup><mo>=</mo><mfrac><mn>1</mn><mn>2</mn></mfrac></math>",
            "x^2=(1)/(2)",
        ),
        ("<math><mi>E</mi><annotation encoding='application/x-tex'>E=mc^2</annotation></math>", "E=mc^2"),
    ],
)
@pytest.mark.parametrize("around", ["<p>{}</p>", "<h2>{}</h2>", "<table><tr><td>{}</td><td>x</td></tr></table>"])
def test_markup_inside_words_parts_them_nowhere(around: str, markup: str, text: str) -> None:
    (shown,) = texts(around.format(markup))
    assert shown == (f"{text} | x" if "table" in around else text)


def test_the_number_of_a_footnote_at_its_beginning_is_no_power() -> None:
    assert texts("<p>Total 5</p><p><sup>1</sup> Without tax.</p>") == ["Total 5", "1 Without tax."]


@pytest.mark.parametrize(
    ("rows", "above"),
    [
        ("Note stray<tr><td>a<td>b<tr><td>c<td>d", ["Note stray"]),
        ("<caption>Of letters</caption><tr><td>a<td>b<tr><td>c<td>d", ["Of letters"]),
        ("<tr><td>a<td>b</tr><p>Between.</p><tr><td>c<td>d", ["Between."]),
        ("<tr><td>a<td>b</tr><form><tr><td>c<td>d</tr>Beside</form>", ["Beside"]),
        ("<tr><form><td>a</td><td>b</td></form></tr><tr><td>c<td>d", []),
    ],
)
def test_all_text_of_a_table_is_read_wherever_it_stands(rows: str, above: list[str]) -> None:
    assert texts(f"<p>Before.<table>{rows}</table>After.") == ["Before.", *above, "a | b", "c | d", "After."]


@pytest.mark.parametrize("name", ["menu", "dialog", "dir", "hgroup", "search"])
def test_a_block_inside_a_heading_is_no_part_of_a_word(name: str) -> None:
    assert texts(f"<h1>All<{name}>rivers</{name}></h1><p>Text.")[0] == "Text."
    assert read(f"<h1>All<{name}>rivers</{name}></h1><p>Text.").title == "All rivers"


def test_a_table_that_arranges_the_page_is_read_as_text() -> None:
    inner = "<table><tr><th>a<th>b<tr><td>1<td>2</table>"
    page = f"<table><tr><td><h2>Menu</h2><p>One.</p></td><td>{inner}</td></tr></table>"
    assert texts(page) == ["One.", "a | b", "a: 1 | b: 2"]
    assert texts("<table><tr><td>First line.</td></tr><tr><td>Second line.</td></tr></table>") == [
        "First line.",
        "Second line.",
    ]


def test_spans_of_any_size_are_bounded() -> None:
    assert (
        texts("<table><tr><th colspan=99999999>x<th>y<tr><td rowspan=0>1<td>2<tr><td>3</table>")[-1]
        == "x: 1 | y: 3"
    )
    rows = "<tr>" + "<td colspan=1000 rowspan=60000>x" * 50 + "</tr>"
    with pytest.raises(UnreadableError, match="table of more than"):
        read(f"<table>{rows * 200}</table>")


def test_boxes_chosen_options_and_values_are_text() -> None:
    assert texts(
        "<ul><li><input type=checkbox checked> keys returned<li><input type=checkbox> meters read</ul>"
        "<p>Smoking: <input type=radio name=s checked> no <input type=radio name=s> yes</p>"
        "<p>Floor: <select><option>first<option selected>second</select>, name: <input value='Otto Berg'>.</p>"
        "<p>Remarks: <textarea>scratch near the door</textarea></p>"
        "<p>Volume: <input type=range value=7>, of kind <input type=dial value=loud></p>"
        "<p>Tank: <meter value=0.6></meter>, charged: <progress value=70 max=100>70 %</progress></p>"
        "<p><label for=k>Gas</label><input id=k type=checkbox checked></p>"
        "<div role=checkbox aria-checked=true>Water</div><div role=switch aria-checked=false>Power</div>"
        "<div><input type=checkbox id=menu><input type=hidden value=a>"
        "<input type=password value=swordfish></div>"
    ) == [
        "☒ keys returned",
        "☐ meters read",
        "Smoking: ☒ no ☐ yes",
        "Floor: second, name: Otto Berg.",
        "Remarks: scratch near the door",
        "Volume: 7, of kind loud",
        "Tank: 0.6, charged: 70 %",
        "Gas ☒",
        "☒ Water",
        "☐ Power",
    ]


def test_what_a_tab_or_a_button_can_show_is_text() -> None:
    assert texts(
        "<ul><li role=tab>Linux<li role=tab>Windows</ul>"
        "<div role=tabpanel>Use apt.</div><div role=tabpanel hidden>Start setup.exe.</div>"
        "<button aria-controls=p1>Warranty</button><div id=p1 style='display:none'>It is 24 months.</div>"
        "<button aria-controls=m>Menu</button><div id=m role=menu hidden>Home</div>"
        "<a href='#b' data-bs-toggle=tab>Fees</a><div id=b style='display:none'>It is 30.</div>"
        "<p hidden>Gone.</p><div style='visibility:hidden'>Gone too.</div>"
    ) == [
        "Linux",
        "Windows",
        "Use apt.",
        "Start setup.exe.",
        "Warranty",
        "It is 24 months.",
        "Fees",
        "It is 30.",
    ]


def test_a_table_whose_first_row_names_its_columns_keeps_its_rows_whatever_its_cells_hold() -> None:
    inner = "<table><tr><th>Bed<th>Count<tr><td>double<td>1</table>"
    assert texts(
        f"<table><tr><th>Room<th>Price<th>Has<tr><td>Blue<td>90<td><ul><li>wifi<li>fridge</ul>"
        f"<tr><td>Green<td>70<td><h4>Beds</h4>{inner}</table>"
    ) == [
        "Room | Price | Has",
        "Room: Blue | Price: 90 | Has: wifi fridge",
        "Room: Green | Price: 70 | Has: Beds Bed Count double 1",
    ]


def test_the_reading_of_a_word_stands_behind_it() -> None:
    assert texts("<p><ruby>東京<rp>(</rp><rt>とうきょう</rt><rp>)</rp></ruby>は首都です。</p>") == [
        "東京(とうきょう)は首都です。"
    ]
