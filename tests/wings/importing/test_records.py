"""Rows of CSV and objects of JSON become passages, whatever their dialect."""

import pytest

from engram.wings.importing.conversion import tables
from engram.wings.importing.conversion.documents import Conversion, ImportedPassage, UnreadableError
from engram.wings.importing.conversion.formats import convert
from engram.wings.importing.conversion.import_limits import ConversionLimits


def rows(text: str, name: str = "f.csv") -> tuple[ImportedPassage, ...]:
    return convert(name, text.encode()).passages


def texts(text: str, name: str = "f.csv") -> list[str]:
    return [passage.text for passage in rows(text, name)]


def test_a_row_with_a_text_column() -> None:
    made = rows("ID;Title;Text;Year\nd;Danube;It is long. It is blue.;1999\n;;;\n")
    assert [passage.as_json("f.csv") for passage in made] == [
        {
            "id": "f.csv#d",
            "document": "f.csv",
            "title": "Danube",
            "text": "It is long. It is blue.\nID: d | Year: 1999",
            "sentences": ["It is long.", "It is blue.", "ID: d | Year: 1999"],
            "metadata": {"source": "f.csv", "format": "csv", "row": 1, "Year": 1999},
        }
    ]


def metadata(text: str, name: str) -> list[dict[str, object]]:
    """What records hold beside their places."""
    held = ("source", "format", "row", "sheet")
    return [{key: value for key, value in one.metadata.items() if key not in held} for one in rows(text, name)]


def test_columns_of_plain_numbers_are_numbers() -> None:
    table = "text,price,zip,size,mixed,long\na,3,01234,1.50,5,1234567890123456789\nb,-10,20095,,n/a,2\n"
    assert metadata(table, "f.csv") == [
        {"price": 3, "zip": "01234", "size": 1.5, "mixed": "5", "long": "1234567890123456789"},
        {"price": -10, "zip": "20095", "mixed": "n/a", "long": "2"},
    ]


def test_values_of_json_keep_their_types() -> None:
    line = '{"text": "a", "n": 3, "f": 0.5, "ok": false, "tags": ["x", 2, null], "none": null, "in": {"x": 1}}'
    assert metadata(line + "\n" + '{"text": "b", "n": "3", "big": 99999999999999999999}', "f.jsonl") == [
        {"n": 3, "f": 0.5, "ok": False, "tags": ["x", 2], "in.x": 1},
        {"n": "3", "big": "99999999999999999999"},
    ]


def test_figures_are_written_as_in_the_file() -> None:
    line = '[{"text": "a", "price": 12.50, "long": 0.1234567890123456789, "e": 1E5}]'
    assert texts(line, "f.json") == ["a\nprice: 12.50 | long: 0.1234567890123456789 | e: 1E5"]
    plain = "year: 2024\n  price: 12.50\n  off: -7\n  flag: true"
    others = (
        "zip: 01234\n  at: 10:30\n  land: NO\n  ok: yes\n  phone: +4930\n  hex: 0x1F\n  big: 1_000\n  quoted: '5'"
    )
    (made,) = rows(f"- text: a\n  {plain}\n  {others}\n", "f.yaml")
    assert made.text == "a\n" + f"{plain}\n  {others}".replace("\n  ", " | ").replace("'", "")
    (held,) = metadata(f"- text: a\n  {plain}\n  {others}\n", "f.yaml")
    assert [held[name] for name in ("year", "price", "off", "flag")] == [2024, 12.5, -7, True]
    assert {type(held[name]) for name in ("zip", "at", "land", "ok", "phone", "hex", "big", "quoted")} == {str}


def test_metadata_of_an_object_go_by_their_own_names() -> None:
    assert metadata('[{"text": "a", "metadata": {"price": 10, "tag": ["x"]}}]', "f.json") == [
        {"price": 10, "tag": ["x"]}
    ]


def test_a_row_without_one_names_its_columns_in_one_sentence() -> None:
    (made,) = rows("river\tlength\nRhine\t1230 km\n", "f.tsv")
    assert (made.id, made.title) == ("f.tsv#1", "Rhine")
    assert made.sentences == ("river: Rhine | length: 1230 km",)


def test_a_long_value_has_sentences_of_its_own() -> None:
    remark = "It leaks at the seal. " * 20
    (made,) = rows(f"id,town,remark\n7,Basel,{remark}\n")
    assert made.sentences[:3] == ("id: 7 | town: Basel", "remark: It leaks at the seal.", "It leaks at the seal.")


@pytest.mark.parametrize("quoted", ['"He said ""stop, now"" and left."', '"He said ""stop"" and left."'])
def test_a_quote_that_is_doubled_late_is_one_quote(quoted: str) -> None:
    plain = "".join(f'{n},"Ticket {n}, out of toner.",ann\n' for n in range(500))
    made = texts(f"id,text,owner\n{plain}500,{quoted},bob\n501,last,cy\n")
    assert len(made) == 502
    assert made[500].split("\n")[0] == quoted.strip('"').replace('""', '"')


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            "text,label\n\"I can't, won't, 'maybe', ok\",neg\n\"Fine, thanks\",pos\n",
            ["I can't, won't, 'maybe', ok\nlabel: neg", "Fine, thanks\nlabel: pos"],
        ),
        ('id;text\n1;"a ""quoted"" word; and"\n2;plain\n', ['a "quoted" word; and\nid: 1', "plain\nid: 2"]),
        ("sep=;\nid;text\n1;hello\n", ["hello\nid: 1"]),
        ('"sep=|"\nid|text\n1|a, b; c\n', ["a, b; c\nid: 1"]),
        ("id,text\n1,hello there,\n2,good day,,,\n", ["hello there\nid: 1", "good day\nid: 2"]),
        ("id,text,,\n1,hello there,,\n", ["hello there\nid: 1"]),
        ("id|text\n1|a, b and c\n2|d; e\n", ["a, b and c\nid: 1", "d; e\nid: 2"]),
        ("Name, first;Age\nAnn;30\nBob, jr.;4\n", ["Name, first: Ann | Age: 30", "Name, first: Bob, jr. | Age: 4"]),
        ('id, text\n1, "a, b"\n', ["a, b\nid: 1"]),
        ('id,text\n1,"He said \\"hi, you\\" twice"\n', ['He said "hi, you" twice\nid: 1']),
        ('path,size\n"C:\\temp\\",3\n', ["path: C:\\temp\\ | size: 3"]),
        ('id,text\n1,"two\nlines"\n2,b\n', ["two\nlines\nid: 1", "b\nid: 2"]),
        ('id,text\n1,"open here\n2,second\n', ['"open here\nid: 1', "second\nid: 2"]),
        ("text\nOne, two.\nThree.\n", ["One, two.", "Three."]),
        ("price;note\n1,5;ok\n2,25;\n", ["price: 1,5 | note: ok", "price: 2,25"]),
    ],
)  # fmt: skip
def test_dialects_are_told_by_how_evenly_they_cut(table: str, expected: list[str]) -> None:
    assert texts(table) == expected


def test_a_long_cell_is_read() -> None:
    long = "word " * 40_000
    made = texts(f'id,text\n1,"{long}"\n2,short\n')
    assert len(made[0]) > 150_000
    assert made[1] == "short\nid: 2"


def test_a_row_that_is_too_wide_costs_its_names_and_a_note() -> None:
    made = convert("f.csv", b"id,text\n1,fine\n2,one, two\n3,fine too\n")
    assert [passage.text for passage in made.passages] == ["fine\nid: 1", "2 | one | two", "fine too\nid: 3"]
    assert made.notes == ("f.csv: line 3 has more values than there are columns: written without their names",)


def test_names_of_columns_may_repeat() -> None:
    assert rows("a,A,b\nx,y,2\n")[0].sentences == ("a | A | b", "a: x | A: y | b: 2")


def test_a_table_without_names_of_columns_is_text() -> None:
    assert rows("1,2\n3,4\n")[0].sentences == ("1 | 2", "3 | 4")
    assert rows("Region,Units\nr1,North,12\nr2,South,9\n")[0].sentences == (
        "Region | Units",
        "r1 | Region: North | Units: 12",
        "r2 | Region: South | Units: 9",
    )
    assert rows("Account statement\n\nDate;Sum\n2024-01-02;12\n2024-01-03;9\n")[0].sentences[:3] == (
        "Account statement",
        "Date | Sum",
        "Date: 2024-01-02 | Sum: 12",
    )


def test_an_id_that_repeats_is_told_apart_by_its_row() -> None:
    made = convert("f.csv", b"id,text\n7,First.\n8,Other.\n7,Second.\n")
    assert [passage.id for passage in made.passages] == ["f.csv#7", "f.csv#8", "f.csv#7:3"]
    assert made.notes == ("f.csv: row 3 repeats an id, so its passage is named by its row too",)


def test_an_id_that_is_too_long_is_replaced_by_its_row() -> None:
    made = convert("f.csv", f"id,text\n{'7' * 506},First.\n{'8' * 507},Other.\n".encode())
    assert [passage.id for passage in made.passages] == [f"f.csv#{'7' * 506}", "f.csv#2"]
    assert "8" * 507 in made.passages[1].text
    assert made.notes == ("f.csv: row 2 has too long an id, so its passage is named by its row",)


def test_a_title_of_any_length_costs_no_row() -> None:
    (made,) = rows(f"title,text\n{'t' * 3_000},Text.\n")
    assert (len(made.title), made.sentences[0]) == (500, "Text.")


def test_a_title_that_is_cut_stands_whole_in_the_text() -> None:
    title = "word " * 120 + "end"
    (made,) = rows(f"title,text\n{title},Text.\n")
    assert made.text == f"Text.\ntitle: {title}"


def test_an_id_that_looks_like_the_place_of_another_costs_no_row() -> None:
    made = rows("id,text\n7,First.\n7:3,Other.\n7,Second.\n")
    assert [passage.id for passage in made] == ["f.csv#7", "f.csv#7:3", "f.csv#7:3:3"]


def test_values_of_one_dotted_name_are_joined() -> None:
    assert texts('[{"a.b": "first", "a": {"b": "second"}, "c": 1}]', "f.json") == ["a.b: first, second | c: 1"]
    nested = convert("f.json", b'{"all": [{"a.b": "first", "a": {"b": "second"}, "c": 1}]}')
    assert "a.b: first, second | c: 1" in nested.passages[0].sentences


def test_a_table_without_rows_has_no_text() -> None:
    with pytest.raises(UnreadableError, match="no text"):
        tables.table("f.csv", b"id,text\n", ConversionLimits())


def lines(data: str) -> Conversion:
    return convert("a.jsonl", data.encode())


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
def test_a_line_of_json_ends_at_a_line_end_only(separator: str) -> None:
    made = lines(f'{{"id":"1","text":"First{separator}second."}}\n{{"id":"2","text":"Other."}}\n')
    assert [passage.id for passage in made.passages] == ["a.jsonl#1", "a.jsonl#2"]
    assert made.passages[0].sentences[0] == f"First{separator}second."


def test_a_broken_line_costs_itself_only() -> None:
    made = lines('{"id":"1","text":"Good."}\n{"id":"2","text":\n\n{"id":"3","text":"Other good."}\n')
    assert [passage.id for passage in made.passages] == ["a.jsonl#1", "a.jsonl#3"]
    assert made.notes == ("a.jsonl: left out line 2, which is no JSON",)
    with pytest.raises(UnreadableError, match="neither JSON"):
        lines('{\n"a": 1,\n"b": [\n')


def test_fields_and_ids_of_objects_are_in_the_text() -> None:
    (made,) = convert(
        "a.json", b'[{"id": "T-7", "text": "It leaks.", "by": {"name": "Ana"}, "tags": ["a", "b"]}]'
    ).passages
    assert made.sentences == ("It leaks.", "id: T-7 | by.name: Ana | tags: a, b")
    assert made.metadata["by.name"] == "Ana"
    nested = convert("a.json", b'{"orders": [{"id": 9, "name": "Pump", "size": {"bar": 3.5}, "open": true}]}')
    assert nested.passages[0].sentences == ("Pump", "id: 9 | size.bar: 3.5 | open: true")


def test_files_inside_strings_are_left_out_with_a_note() -> None:
    picture = "iVBORw0KGgoAAAANSUhEUgAA" * 400
    for value in (picture, f"data:image/bmp;base64,{picture}", "\n".join([picture[:76]] * 40)):
        made = convert("a.json", f'[{{"id": 1, "text": "Seen.", "scan": {value!r}}}]'.replace("'", '"').encode())
        assert made.passages[0].text == "Seen.\nid: 1"
        assert "characters of encoded files" in made.notes[0]
    genes = "ACGT" * 500
    assert genes in convert("a.json", f'["{genes}"]'.encode(), size=20_000, overlap=0).passages[0].text


def test_what_stands_beside_a_list_of_passages_is_named() -> None:
    made = convert("a.json", b'{"title": "Dump", "passages": [{"text": "One."}]}')
    assert made.notes == ("a.json: left out what stands beside passages: title",)


def test_columns_without_values_are_named() -> None:
    made = convert("f.csv", b"name,seats,remark\nBasel,12,\nBern,8,\n")
    assert made.notes == ("f.csv: columns without values were left out: remark",)
    assert convert("f.csv", b"name,remark\nBasel,\nBern,near\n").notes == ()
