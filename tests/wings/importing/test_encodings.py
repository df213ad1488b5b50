"""Text in encodings that people have, long and short."""

import pytest

from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.formats import convert


@pytest.mark.parametrize(
    ("text", "codec", "named"),
    [
        ("Café Zürich", "latin-1", "Windows-1252"),
        ("Ü", "latin-1", "Windows-1252"),
        ("20 m², 5°C und ½ Liter", "latin-1", "Windows-1252"),
        ("“Straße” – 5 €", "cp1252", "Windows-1252"),
        ("¿Qué pasó? ¡Olé!", "cp1252", "Windows-1252"),
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
    assert decode_text("a.txt", text.encode(codec)) == (text, named)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.csv", "a.json"])
def test_an_encoding_that_was_assumed_is_noted(name: str) -> None:
    data = {"a.csv": "text\nCafé Zürich", "a.json": '["Café Zürich"]'}.get(name, "Café Zürich")
    made = convert(name, data.encode("latin-1"))
    assert "Café Zürich" in made.passages[0].text
    assert made.notes == (f"{name}: read as Windows-1252, because it is not UTF-8",)
    assert convert(name, data.encode()).notes == ()
