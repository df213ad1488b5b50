"""What Office files hold beside plain text: numbers as shown, formulas, superscripts, charts, hidden parts."""

import datetime
import io
from typing import Any

import openpyxl
import pytest
from openpyxl.styles import Font
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from engram.wings.importing.conversion.documents import Conversion
from engram.wings.importing.conversion.formats import convert
from engram.wings.importing.conversion.number_formats import format_elapsed, format_number
from tests.wings.importing.office_files import MATH, WORD, deck, paragraph, run, word_file, word_table, workbook

RAISED = '<w:vertAlign w:val="superscript"/>'
LOWERED = '<w:vertAlign w:val="subscript"/>'


def sentences(made: Conversion) -> list[str]:
    return [sentence for passage in made.passages for sentence in passage.sentences]


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (0.155, "0.0%", "15.5%"),
        (0.07, "0%", "7%"),
        (1234567, "#,##0", "1,234,567"),
        (1234.5, '"€"#,##0.00', "€1,234.50"),
        (1234.5, "#,##0.00\\ [$€-407]", "1,234.50 €"),
        (12, '_-* #,##0.00\\ "kr"_-', "12.00 kr"),
        (-1234.5, "#,##0.00;[Red](#,##0.00)", "(1,234.50)"),
        (-3, "0.00", "-3.00"),
        (123, "00000", "00123"),
        (5, '0 "km"', "5 km"),
        (1234567, "#,##0,", "1,235"),
        (1.5, "0.##", "1.5"),
        (0, '_(* #,##0_);_(* (#,##0);_(* "-"??_)', "0"),
        (0.1 + 0.2, "General", "0.3"),
        (98765432109.87, "General", "98765432109.87"),
        (1234567890123456, "General", "1234567890123456"),
        (1.234567890123457e18, "0", "1234567890123457000"),
        (0.000012, "General", "0.000012"),
        (1e300, "General", "1e+300"),
        (12345.678, "0.00E+00", "12345.678"),
        (12345678901234, "0.000000000000000", "12345678901234.000000000000000"),
        (10**21 - 1, "0.0", "999999999999999999999.0"),
        (123456789, "000-00-0000", "123456789"),
        (5551234567, "(000) 000-0000", "5551234567"),
        (1234, "#\\ ##0", "1234"),
        (500, '[>=1000]0.0,"K";0', "500"),
        (1, '"yes";;"no"', "yes"),
        (0, '"yes";;"no"', "no"),
        (1, "☑;;☐", "1"),
        (1, '"☑";;"☐"', "☑"),
        (0, '0;-0;"-"', "0"),
        (7, ";;;", "7"),
        (3, 'General" pcs"', "3 pcs"),
        (-3, 'General" pcs"', "-3 pcs"),
        (-2.5, '"+"General;"minus "General', "minus 2.5"),
        (4, "[$€-407] general", "€ 4"),
        (0.05, "General%", "0.05"),
        (0.5, '# ?/?" cups"', "0.5 cups"),
        (12345.678, '0.00E+00" m"', "12345.678 m"),
    ],
)
def test_a_number_is_written_as_its_format_shows_it(value: float, code: str, shown: str) -> None:
    assert format_number(value, code) == shown


@pytest.mark.parametrize(
    ("code", "shown"), [("[h]:mm", "30:15"), ("[hh]:mm:ss", "30:15:00"), ("[mm]:ss", "1815:00"), ("[s]", "108900")]
)
def test_hours_go_beyond_a_day(code: str, shown: str) -> None:
    assert format_elapsed(datetime.timedelta(hours=30, minutes=15), code) == shown


def test_cells_of_a_sheet_are_as_its_reader_sees_them() -> None:
    def fill(sheet: Any) -> None:
        sheet.append(["Item", "Rate", "Hours", "Since", "Paid", "Code"])
        sheet.append(
            ["Loan", 0.155, datetime.timedelta(hours=30, minutes=15), datetime.date(2024, 3, 5), True, "007"]
        )
        sheet["B2"].number_format, sheet["C2"].number_format = "0.0%", "[h]:mm"

    assert sentences(convert("a.xlsx", workbook(fill))) == [
        "Item: Loan | Rate: 15.5% | Hours: 30:15 | Since: 2024-03-05 | Paid: TRUE | Code: 007"
    ]


def test_what_a_workbook_hides_is_left_out_with_a_note() -> None:
    book, file = openpyxl.Workbook(), io.BytesIO()
    sheet = book.active
    for row in (["Name", "Role", "Salary"], ["Ann", "Chair", 5000], ["Bob", "Clerk", 3000], ["Cy", "Clerk", 2000]):
        sheet.append(row)
    sheet.row_dimensions[3].hidden = True
    sheet.column_dimensions["C"].hidden = True
    for name, state in (("Pay", "hidden"), ("Deep", "veryHidden")):
        other = book.create_sheet(name)
        other.append(["a", "b"])
        other.append(["secret", "word"])
        other.sheet_state = state
    book.save(file)
    made = convert("a.xlsx", file.getvalue())
    assert sentences(made) == ["Name: Ann | Role: Chair", "Name: Cy | Role: Clerk"]
    assert made.notes == (
        "a.xlsx: left out hidden rows of sheet Sheet: 3",
        "a.xlsx: left out hidden columns of sheet Sheet: C",
        "a.xlsx: left out the hidden sheet Pay",
        "a.xlsx: left out the hidden sheet Deep",
    )


def test_a_formula_without_a_saved_value_is_noted() -> None:
    made = convert(
        "a.xlsx", workbook(lambda sheet: [sheet.append(row) for row in (["a", "b"], [1, "=A2*2"], [2, 5])])
    )
    assert sentences(made) == ["a: 1", "a: 2 | b: 5"]
    assert made.notes == ("a.xlsx: left out formulas without a saved value of sheet Sheet: B2",)


def test_merged_cells_of_any_size_are_bounded() -> None:
    def fill(sheet: Any) -> None:
        sheet.append(["x"])
        sheet.append([1, 2])
        sheet.merged_cells.add("A1:XFD1048576")  # without a cell for each place

    assert sentences(convert("a.xlsx", workbook(fill))) == ["Sheet", "x", "x"]


def test_powers_footnotes_and_parts_of_words_in_a_word_file() -> None:
    body = (
        paragraph(run("It held 10") + run("6", RAISED) + run(" cells of CO") + run("2", LOWERED) + run(" gas."))
        + paragraph(
            run("Raised 2")
            + run("5", '<w:position w:val="6"/>')
            + run(" and 3")
            + run("4", "<w:position w:val='-6'/>")
        )
        + paragraph(run("The 5") + run("th", RAISED) + run(" un") + run("believ", "<w:b/>") + run("able pump."))
        + word_table([[("", ""), ("x", "")]]).replace(
            "<w:p></w:p>", paragraph(run("H") + run("2", LOWERED) + run("O"))
        )
    )
    made = convert("a.docx", word_file(body))
    assert sentences(made) == [
        "It held 10^6 cells of CO2 gas.",
        "Raised 2^5 and 34",
        "The 5th unbelievable pump.",
        "H2O | x",
    ]


def math(content: str) -> str:
    return f"<m:oMath>{content}</m:oMath>"


def text(content: str) -> str:
    return f"<m:r><m:t>{content}</m:t></m:r>"


def part(name: str, content: str) -> str:
    return f"<m:{name}>{content}</m:{name}>"


SQUARE = part("sSup", part("e", text("v")) + part("sup", text("2")))
SUM = '<m:naryPr><m:chr m:val="∑"/></m:naryPr>' + part("sub", text("i")) + part("sup", text("n"))
HALF = part("f", part("num", text("1")) + part("den", text("2")))


@pytest.mark.parametrize(
    ("formula", "written"),
    [
        (text("E=") + HALF + text("m") + SQUARE, "E=(1/2)mv^2"),
        (part("f", part("num", text("a+b")) + part("den", text("c"))), "((a+b)/c)"),
        (part("sSub", part("e", text("x")) + part("sub", text("i+1"))), "x_(i+1)"),
        (part("rad", part("deg", "") + part("e", text("x"))), "√(x)"),
        (part("d", part("e", text("a, b"))), "(a, b)"),
        (part("nary", SUM + part("e", text("x"))), "∑_i^n x"),
        (part("func", part("fName", text("sin")) + part("e", text("x"))), "sinx"),
        (part("m", part("mr", part("e", text("1")) + part("e", text("2")))), "[1, 2]"),
    ],
)  # fmt: skip
def test_formulas_of_word_are_text(formula: str, written: str) -> None:
    body = paragraph(run("The energy is ") + math(formula) + run(" in joule.")) + paragraph(
        f"<m:oMathPara>{math(formula)}</m:oMathPara>"
    )
    assert sentences(convert("a.docx", word_file(body))) == [f"The energy is {written} in joule.", written]


def test_what_word_hides_or_no_reader_reads_is_noted() -> None:
    body = paragraph(run("Shown.") + run("Secret.", "<w:vanish/>") + run(" Also.", '<w:vanish w:val="0"/>'))
    made = convert("a.docx", word_file(body, header1=b"<w:hdr><w:t>Draft</w:t></w:hdr>", media__p=b"x"))
    assert sentences(made) == ["Shown.", "Also."]
    assert made.notes == ("a.docx: left out hidden text", "a.docx: not read: pictures (1), page headers or footers")


def test_slides_keep_charts_powers_and_formulas_and_leave_hidden_ones_out() -> None:
    def fill(made: Any) -> None:
        slide = made.slides.add_slide(made.slide_layouts[5])
        slide.shapes.title.text = "Sales"
        figures = CategoryChartData()
        figures.categories = ["2022", "2023"]
        figures.add_series("Pumps", (31, 47))
        figures.add_series("Valves", (None, 2.5))
        place = (Inches(1), Inches(2), Inches(4), Inches(3))
        slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, figures)
        frame = slide.shapes.add_textbox(*place).text_frame
        box = slide.shapes[-1].element
        for content, baseline in (("It held 10", None), ("6", "30000"), (" cells of CO", None), ("2", "-25000")):
            added = frame.paragraphs[0].add_run()
            added.text = content
            if baseline:
                box.txBody.p_lst[0].r_lst[-1].get_or_add_rPr().set("baseline", baseline)
        hidden = made.slides.add_slide(made.slide_layouts[5])
        hidden.shapes.title.text = "Secret"
        hidden.element.set("show", "0")
        last = made.slides.add_slide(made.slide_layouts[5])
        last.shapes.title.text = "End"

    made = convert("a.pptx", deck(fill))
    figures = ["2022 | Pumps: 31", "2023 | Pumps: 47 | Valves: 2.5"]
    assert [(one.metadata["page"], list(one.sentences)) for one in made.passages] == [
        (1, ["Sales", "Pumps | Valves", *figures, "It held 10^6 cells of CO2"]),
        (3, ["End"]),
    ]
    assert made.notes == ("a.pptx: left out hidden slides: 2",)


def test_a_shape_with_a_formula_is_read() -> None:
    def fill(made: Any) -> None:
        slide = made.slides.add_slide(made.slide_layouts[5])
        box = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(3), Inches(1))
        box.text_frame.text = "Energy: "
        from lxml import etree

        compatibility = "http://schemas.openxmlformats.org/markup-compatibility/2006"
        drawing = "http://schemas.microsoft.com/office/drawing/2010/main"
        formula = etree.fromstring(
            f'<a14:m xmlns:a14="{drawing}" xmlns:m="{MATH}"><m:oMath><m:r><m:t>E=mc</m:t></m:r></m:oMath></a14:m>'
        )
        box.element.txBody.p_lst[0].append(formula)
        alternatives = etree.SubElement(box.element.getparent(), f"{{{compatibility}}}AlternateContent")
        etree.SubElement(alternatives, f"{{{compatibility}}}Choice", Requires="a14").append(box.element)

    assert sentences(convert("a.pptx", deck(fill))) == ["Slide 1", "Energy: E=mc"]


def test_cells_of_a_table_keep_their_types_in_metadata() -> None:
    def fill(sheet: Any) -> None:
        sheet.append(["Machine", "Share", "Passed", "Code", "Zip", "Price"])
        sheet.append(["A", 0.125, True, "00123", 1234, 0.1 + 0.2])
        sheet["B2"].number_format, sheet["E2"].number_format = "0.0%", "00000"

    (made,) = convert("a.xlsx", workbook(fill)).passages
    assert made.text == "Machine: A | Share: 12.5% | Passed: TRUE | Code: 00123 | Zip: 01234 | Price: 0.3"
    assert {name: made.metadata[name] for name in ("Share", "Passed", "Code", "Zip", "Price")} == {
        "Share": 0.125,
        "Passed": True,
        "Code": "00123",
        "Zip": "01234",
        "Price": 0.3,
    }


def test_elements_that_are_rare_in_word_keep_their_text() -> None:
    field = '<w:fldChar w:fldCharType="begin"><w:ffData><w:name w:val="d"/>{0}</w:ffData></w:fldChar>'
    end = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    begin, separate = (f'<w:fldChar w:fldCharType="{kind}"/>' for kind in ("begin", "separate"))
    choices = '<w:ddList><w:result w:val="1"/><w:listEntry w:val="red"/><w:listEntry w:val="blue"/></w:ddList>'
    box = '<w:checkBox><w:default w:val="1"/></w:checkBox>'
    made = convert(
        "a.docx",
        word_file(
            f'<w:p>{run("See ")}<w:fldSimple w:instr=" REF a ">{run("chapter 12")}</w:fldSimple>{run(".")}</w:p>'
            "<w:p><w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>とうきょう</w:t></w:r></w:rt>"
            "<w:rubyBase><w:r><w:t>東京</w:t></w:r></w:rubyBase></w:ruby></w:r></w:p>"
            f'<w:p><w:bdo w:val="rtl">{run("bdo text ")}</w:bdo><w:dir w:val="rtl">{run("dir text")}</w:dir></w:p>'
            "<w:p><w:r><w:t>line two</w:t><w:cr/><w:t>line three</w:t></w:r></w:p>"
            f"<w:p>{run('Colour: ')}<w:r>{field.format(choices)}</w:r>"
            f"<w:r><w:instrText> FORMDROPDOWN </w:instrText></w:r>{end}</w:p>"
            f"<w:p><w:r>{field.format(box)}</w:r><w:r><w:instrText> FORMCHECKBOX </w:instrText></w:r>{end}"
            f"{run(' pets allowed')}</w:p>"
            '<w:p><w:r><w:t>Rent</w:t><w:br w:type="page"/><w:t>due</w:t><w:ptab/><w:t>soon</w:t></w:r></w:p>'
            f"<w:p><w:r>{begin}<w:instrText> IF </w:instrText>{begin}<w:instrText> REF a </w:instrText>"
            f"{separate}<w:t>inner</w:t></w:r>{end}<w:r><w:instrText> = 1 </w:instrText>"
            f"{separate}<w:t>annex 3</w:t></w:r>{end}"
            "<w:r><w:t> of 77</w:t><w:noBreakHyphen/><w:t>12 and 東京</w:t></w:r></w:p>"
        ),
    )
    assert made.passages[0].text.split("\n") == [
        "See chapter 12.",
        "東京(とうきょう)",
        "bdo text dir text",
        "line two line three",
        "Colour: blue",
        "☒ pets allowed",
        "Rent due soon",
        "annex 3 of 77\u201112 and 東京",
    ]
    assert made.differences == ()
    assert made.notes == ()


def test_a_note_of_tracked_changes_has_what_stands_now_and_no_link_back() -> None:
    gone, new = "<w:del><w:r><w:delText>{0}</w:delText></w:r></w:del>", "<w:ins>{0}</w:ins>"
    note = f"{run('Since 2024 it is ')}{gone.format('50')}{new.format(run('45'))}{run(' francs.')}"
    notes = f'<w:footnotes xmlns:w="{WORD}"><w:footnote w:id="2"><w:p>{note}</w:p></w:footnote></w:footnotes>'
    body = f"{run('It costs ')}{gone.format('thirty')}{new.format(run('40'))}{run(' francs.')}"
    mark = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    made = convert("a.docx", word_file(f"<w:p>{body}{mark}</w:p>", footnotes=notes.encode()))
    assert made.passages[0].text == "It costs 40 francs.[1]\nSince 2024 it is 45 francs."
    assert made.notes == ()


def test_shapes_are_read_by_their_places() -> None:
    places = [
        ("Source: figures of 2024.", 0.5, 5.5, 2.5),
        ("Right: drawbacks.", 5.5, 2, 2.5),
        ("Right: it is heavy.", 5.5, 3, 2.5),
        ("Left: advantages.", 0.5, 2, 2.5),
        ("Left: it is cheap.", 0.5, 3, 2.5),
        ("The new pump", 0.5, 0.3, 8),
    ]

    def fill(made: Any) -> None:
        shapes = made.slides.add_slide(made.slide_layouts[6]).shapes
        for text, left, top, width in places:
            box = shapes.add_textbox(Inches(left), Inches(top), Inches(width), Inches(0.6))
            box.text_frame.text = text

    (made,) = convert("a.pptx", deck(fill)).passages
    assert made.text.split("\n")[1:] == [
        "The new pump",
        "Left: advantages.",
        "Left: it is cheap.",
        "Right: drawbacks.",
        "Right: it is heavy.",
        "Source: figures of 2024.",
    ]


def _in_font(letter: str, font: str) -> str:
    return paragraph(run(letter, f'<w:rFonts w:ascii="{font}" w:hAnsi="{font}"/>') + run(" keys"))


def _write_slide(text: str, font: str) -> bytes:
    def fill(made: Any) -> None:
        slide = made.slides.add_slide(made.slide_layouts[1])
        written = slide.placeholders[1].text_frame.paragraphs[0].add_run()
        written.text, written.font.name = text, font

    return deck(fill)


def _write_cell(text: str, font: str) -> bytes:
    def fill(sheet: Any) -> None:
        sheet.append([text])
        sheet["A1"].font = Font(name=font)

    return workbook(fill)


@pytest.mark.parametrize(
    ("name", "data", "shown"),
    [
        ("a.docx", word_file(_in_font("þ", "Wingdings")), "☑ keys"),
        ("a.docx", word_file(_in_font("o", "Wingdings")), "☐ keys"),
        ("a.docx", word_file(_in_font("\uf0fe", "Wingdings")), "☑ keys"),
        ("a.docx", word_file(_in_font("S", "Wingdings 2")), "☒ keys"),
        ("a.docx", word_file(_in_font("\uf0fd", "Arial")), "☒ keys"),
        ("a.docx", word_file(_in_font("þ", "Arial")), "þ keys"),
        ("a.docx", word_file('<w:p><w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r></w:p>'), "☑"),
        ("a.pptx", _write_slide("þ", "Wingdings"), "☑"),
        ("a.xlsx", _write_cell("þ", "Wingdings"), "☑"),
        ("a.xlsx", _write_cell("P", "Wingdings 2"), "✓"),
        ("a.html", "<p><font face=Wingdings>þ</font> keys".encode(), "☑ keys"),
        ("a.html", b"<p><span style=\"color:red;font-family: 'Wingdings 2'\">R</span> keys", "☑ keys"),
        ("a.html", b"<p style='font-family:Arial, Wingdings'>Ring the bell", "Ring the bell"),
        ("a.txt", "\uf0a8 keys".encode(), "☐ keys"),
    ],
)  # fmt: skip
def test_letters_of_fonts_of_signs_are_what_they_show(name: str, data: bytes, shown: str) -> None:
    made = convert(name, data)
    assert made.passages[0].text.split("\n")[-1] == shown
    assert made.differences == ()


def test_a_form_full_of_ticks_is_whole() -> None:
    made = convert("a.docx", word_file(9 * (_in_font("þ", "Wingdings") + _in_font("o", "Wingdings"))))
    assert (made.passages[0].text.count("☑ keys"), made.differences) == (9, ())
