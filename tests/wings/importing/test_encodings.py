"""Text in encodings that people have, long and short, damaged and with false labels."""

import pytest

from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.formats import convert

OFFER = "The customer’s “final offer” is € 500 – don’t accept less."
GERMAN = "Grüße aus Köln über die große Straße nach Süden."


@pytest.mark.parametrize(
    ("text", "codec", "named"),
    [
        ("Café Zürich", "latin-1", "Windows-1252"),
        ("Ü", "latin-1", "Windows-1252"),
        ("20 m², 5°C und ½ Liter", "latin-1", "Windows-1252"),
        ("“Straße” – 5 €", "cp1252", "Windows-1252"),
        ("¿Qué pasó? ¡Olé!", "cp1252", "Windows-1252"),
        ("Déjà vu à l'hôtel", "cp1252", "Windows-1252"),
        ("Привет, это короткая записка о насосе. Давление пять бар.", "koi8-r", "koi8_r"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "iso8859-2", "iso8859_2"),
        ("Łódź jest duża i leży na równinie", "cp1250", "Windows-1250"),
        ("Café Zürich", "utf-16", "UTF-16"),
        ("x", "utf-16", "UTF-16"),
        ("Café Zürich", "utf-16-le", "UTF-16"),
        ("Café", "utf-8-sig", "UTF-8"),
        ("日本", "utf-8", "UTF-8"),
        ("Москва — столица России и крупнейший город страны.", "cp1251", "cp1251"),
    ],
)
def test_text_is_read_in_its_encoding(text: str, codec: str, named: str) -> None:
    decoded = decode_text("a.txt", text.encode(codec))
    assert (decoded.text, decoded.encoding) == (text, named)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.csv", "a.json"])
def test_an_encoding_that_was_assumed_is_noted(name: str) -> None:
    data = {"a.csv": "text\nCafé Zürich", "a.json": '["Café Zürich"]'}.get(name, "Café Zürich")
    made = convert(name, data.encode("latin-1"))
    assert "Café Zürich" in made.passages[0].text
    assert made.notes == (f"{name}: read as Windows-1252, because it is not UTF-8",)
    assert convert(name, data.encode()).notes == ()


@pytest.mark.parametrize("text", [OFFER, GERMAN, "Москва — столица.", "東京は日本の首都です。"])
@pytest.mark.parametrize(
    ("tail", "read", "damage"),
    [
        (b"\nLog: \xff end", "\nLog: ÿ end", " but for bytes of Windows-1252 in line 2"),
        ("\nCafé über".encode("latin-1"), "\nCafé über", " but for bytes of Windows-1252 in line 2"),
        ("\n\n“done”".encode("cp1252"), "\n\n“done”", " but for bytes of Windows-1252 in line 3"),
        (b"\ncaf\xc3", "\ncaf\ufffd", ", cut inside its last character"),
        (b"\n\xe2\x82", "\n\ufffd", ", cut inside its last character"),
    ],
)
def test_damaged_bytes_spoil_no_other_character(text: str, tail: bytes, read: str, damage: str) -> None:
    decoded = decode_text("a.txt", text.encode() + tail)
    assert (decoded.text, decoded.encoding) == (text + read, "UTF-8")
    assert decoded.notes == (f"a.txt: read as UTF-8{damage}",)


def test_a_byte_order_mark_bears_damage_too() -> None:
    assert decode_text("a.csv", b"\xef\xbb\xbfCaf\xe9 Z\xc3\xbcrich").text == "Café Zürich"
    cut = OFFER.encode("utf-16")[:-1]
    assert decode_text("a.txt", cut).text == OFFER[:-1] + "\ufffd"
    assert decode_text("a.txt", cut).notes == (
        "a.txt: read as UTF-16, cut inside its last character, because it is not UTF-8",
    )


def test_lines_of_two_encodings_are_each_read_right() -> None:
    log = b"\n".join([GERMAN.encode(), GERMAN.encode("latin-1"), GERMAN.encode()])
    assert decode_text("a.log", log).text == "\n".join([GERMAN] * 3)


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("iso-8859-1", "cp1252", OFFER),
        ("us-ascii", "utf-8", OFFER),
        ("us-ascii", "cp1252", OFFER),
        ("iso-8859-1", "utf-8", OFFER),
        ("utf-16", "utf-8", OFFER),
        ("utf-8", "cp1252", GERMAN),
        ("gb2312", "gbk", "朱镕基在北京。"),
        ("gb2312", "gb18030", "䶮姓很少见，朱镕基。"),
        ("shift_jis", "cp932", "①東京は日本の首都です。"),
        ("euc-kr", "cp949", "똠방각하와 펲시콜라"),
        ("iso-2022-jp", "iso-2022-jp", "東京は日本の首都です。"),
        ("iso-8859-9", "cp1254", "İstanbul’da 5 € – ucuz"),
        ("koi8-r", "koi8-r", "Москва, столица России."),
        ("windows-1251", "cp1251", "Москва — столица России."),
        ("windows-874", "cp874", "ราคาสินค้า"),
        ("windows-874", "cp874", "สวัสดีครับ ราคาสินค้า"),
        ("x-unknown", "utf-8", GERMAN),
        ("base64", "utf-8", GERMAN),
        ("undefined", "utf-8", GERMAN),
        ("punycode", "utf-8", GERMAN),
        ("unicode_escape", "utf-8", "Press \\x41 and \\u0041."),
    ],
)
def test_a_label_is_read_as_browsers_do_and_utf_8_goes_before_it(label: str, codec: str, text: str) -> None:
    page = f"<html><head><meta charset={label}></head><body><p>{text}</p></body></html>"
    assert convert("a.html", page.encode(codec)).passages[0].sentences[0] in (
        text,
        text.split(" – ", maxsplit=1)[0],
    )
    head = f"From: a@example.org\nSubject: S\nContent-Type: text/plain; charset={label}\n\n".encode()
    assert text in convert("a.eml", head + text.encode(codec)).passages[0].text


def test_a_false_label_is_noted() -> None:
    page = f"<meta charset=iso-8859-1><p>{OFFER}</p>"
    assert convert("a.html", page.encode()).notes == ("a.html: read as UTF-8, though it says iso-8859-1",)
    assert convert("a.html", page.encode("cp1252")).notes == ()
    damaged = f"<meta charset=utf-8><p>{OFFER}</p>".encode() + b"<p>\xe9t\xe9</p>"
    assert convert("a.html", damaged).notes == ("a.html: read as UTF-8 but for bytes of Windows-1252 in line 1",)
    assert convert("a.html", damaged).passages[0].sentences[-1] == "été"


@pytest.mark.parametrize("label", ["base64", "undefined", "punycode", "idna", "unicode_escape", "a\0b", "ü", ""])
def test_a_label_that_names_no_encoding_of_text_counts_as_none(label: str) -> None:
    assert decode_text("a.txt", GERMAN.encode("cp1252"), label).text == GERMAN
    assert decode_text("a.txt", rb"Press \x41.", label).text == r"Press \x41."


@pytest.mark.parametrize("label", ["utf-16", "UTF-16LE", "utf-32", "utf-16be"])
def test_ascii_letters_are_read_whatever_wide_encoding_they_claim(label: str) -> None:
    assert decode_text("a.txt", b"Four and more.  ", label).text == "Four and more.  "
    page = f"<meta charset={label}><p>Four.</p>" + " " * 4
    assert convert("a.html", page.encode()).passages[0].text == "Four."
    assert convert("a.html", page.encode()).notes == ()


@pytest.mark.parametrize("label", ["iso-8859-1", "windows-1251", "iso-8859-2"])
@pytest.mark.parametrize("text", [GERMAN, "Москва — столица.", "สวัสดีครับ"])
def test_damaged_utf_8_goes_before_a_label_that_fits_its_bytes(label: str, text: str) -> None:
    data = f"{text}\n".encode() + GERMAN.encode("latin-1")
    assert decode_text("a.txt", data, label).text == f"{text}\n{GERMAN}"


def test_many_damaged_bytes_are_each_read_and_the_first_lines_are_named() -> None:
    lines = 30_000
    decoded = decode_text(
        "a.txt", "déjà ".encode() * 3 + b"\xe9t\xe9\n" + "déjà \xe9\n".encode() * lines + b"\xe9\n" * lines
    )
    assert decoded.text == "déjà déjà déjà été\n" + "déjà é\n" * lines + "é\n" * lines
    assert decoded.notes == (
        "a.txt: read as UTF-8 but for bytes of Windows-1252 in line 1, 30002, 30003, 30004, 30005 and 29996 more",
    )
