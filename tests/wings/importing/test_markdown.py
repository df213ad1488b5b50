"""Markdown with tables, formulas, tags and embedded files."""

import pytest

from engram.wings.importing.conversion.documents import UnreadableError
from engram.wings.importing.conversion.formats import convert


def sentences(text: str) -> list[str]:
    return [sentence for passage in convert("a.md", text.encode()).passages for sentence in passage.sentences]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Phone: 555-0101<br>Fax: 555-0102", ["Phone: 555-0101 Fax: 555-0102"]),
        ("| Day | Hours |\n|---|---|\n| Mon<br/>Tue | 9<br>17 |", ["Day | Hours", "Day: Mon Tue | Hours: 9 17"]),
        ("a</p><p>b and 10<sup>6</sup> cells", ["a", "b and 10^6 cells"]),
        ("Set $$\\{1, 2\\}$$ and $\\int f(x)\\,dx$.", ["Set $$\\{1, 2\\}$$ and $\\int f(x)\\,dx$."]),
        ("$$\n\\frac{a}{b} \\\\ c\n$$\n\nEnd.", ["$$\\frac{a}{b} \\\\ c$$", "End."]),
        ("\\begin{align}\na \\\\ b_1\n\\end{align}\n\nEnd.", ["\\begin{align} a \\\\ b_1 \\end{align}", "End."]),
        ("It costs $5 or $10, and file_name_here *a*.", ["It costs $5 or $10, and file_name_here a."]),
        ("Type <your name> or `<b>` and x < 4 & y.", ["Type <your name> or <b> and x < 4 & y."]),
        ("<details><summary>More</summary>\n\n- one\n- two\n\n</details>", ["More", "one", "two"]),
        ("<table>\n<tr><th>a<th>b</tr>\n\n<tr><td>1<td>2</tr>\n</table>", ["a | b", "a: 1 | b: 2"]),
        ("~~old~~ new", ["old new"]),
        ("```\na  b\n\n  c\u2028d\n```", ["a  b", "  c\u2028d"]),
    ],
)  # fmt: skip
def test_marks_are_read_and_nothing_is_lost(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. Open it.\n   Wait.\n1. Close it.\n", "1. Open it. Wait.\n2. Close it."),
        ("7. Open it.\n   - Wait.\n\n8. Close it.\n", "7. Open it.\nWait.\n8. Close it."),
        ("<ol><li value=3>c<li>d</ol><ol type=a><li>e</ol><ol reversed><li>f</ol>", "3. c\n4. d\ne\nf"),
        ("Run:\n\n```\nmake run\n  make test\n```\nEnd.", "Run:\n    make run\n      make test\nEnd."),
    ],
)
def test_a_passage_shows_the_numbers_of_lists_and_code_and_its_sentences_have_neither(
    text: str, expected: str
) -> None:
    (passage,) = convert("a.md", text.encode()).passages
    assert passage.text == expected
    plain = [line.strip().lstrip("0123456789. ") for line in expected.split("\n")]
    assert " ".join(one.strip() for one in passage.sentences) == " ".join(plain)


ENCLOSING = """aside button datalist footer iframe main nav noembed noframes noscript plaintext script select style
    svg template textarea title xmp""".split()


@pytest.mark.parametrize("name", [*ENCLOSING, "SCRIPT"])
def test_a_tag_that_is_only_mentioned_is_text(name: str) -> None:
    tag = f"<{name}>"
    assert sentences(f"The {tag} tag.\n\nSecond.") == [f"The {tag} tag.", "Second."]
    assert sentences(f"Before <div>the {tag} tag</div>.\n\nSecond.")[-1] == "Second."
    assert sentences(f"<div>The {tag} tag</div>\n\nSecond.") == [f"The {tag} tag", "Second."]
    assert f"{tag} is bad." in " ".join(sentences(f"{tag} is bad.\n\nSecond."))
    assert "Second." in " ".join(sentences(f"{tag} is bad.\n\nSecond."))
    twice = sentences(f"The {tag} tag.\n\nHere <{name}>a</{name}> ends.\n\nThird.")
    assert (twice[0], twice[-1]) == (f"The {tag} tag.", "Third.")


def test_what_a_closed_element_holds_is_left_out_as_in_a_page() -> None:
    assert sentences("One.\n\n<script>\n\nleave();\n</script>\n\nTwo.") == ["One.", "Two."]
    assert sentences("<nav>\n\n- [Home](a.md)\n\n</nav>\n\nTwo.") == ["Two."]
    assert sentences("Press <button>OK</button> now.") == ["Press now."]
    assert sentences("Write `<script>` and `</script>`.") == ["Write <script> and </script>."]


@pytest.mark.parametrize("kind", ["image/svg+xml", "image/bmp", "image/png", "application/pdf"])
def test_embedded_files_are_no_text(kind: str) -> None:
    address = f"data:{kind};base64,{'PHN2ZyB4bWxucz0i' * 60}"
    assert sentences(f"Three loops.\n\n![loop]({address})\n\nEnd.") == ["Three loops.", "loop", "End."]
    assert sentences(f"See [plan] here.\n\n[plan]: {address}\n") == ["See plan here."]
    assert sentences(f"See [plan]({address}) and <img src='{address}' alt='a valve'>.") == [
        "See plan and a valve ."
    ]


def test_front_matter_is_metadata() -> None:
    made = convert("a.md", b"---\ntitle: T\nowner: Ann\ntags: [x]\n---\n\nText.\n").passages
    assert (made[0].title, made[0].sentences) == ("T", ("Text.",))
    assert (made[0].metadata["owner"], made[0].metadata["tags"]) == ("Ann", ["x"])


def test_plain_values_of_front_matter_keep_their_types() -> None:
    plain = "title: 2024\nyear: 2024\nprice: 12.5\ndraft: false\nsizes: [1, x]\nrooms:\n- 7\n"
    front = f"{plain}zip: 01234\nland: NO\ntext: '5'\n"
    (made,) = convert("a.md", f"---\n{front}---\n\nText.\n".encode()).passages
    assert (made.title, made.metadata["sizes"], made.metadata["rooms"]) == ("2024", [1, "x"], [7])
    kept = {name: made.metadata[name] for name in ("year", "price", "draft", "zip", "land", "text")}
    assert kept == {"year": 2024, "price": 12.5, "draft": False, "zip": "01234", "land": "NO", "text": "5"}


def test_nothing_of_front_matter_is_lost() -> None:
    texts = "summary: |\n  Two lines\n  of text.\nfolded: >-\n  One\n  line.\n"
    front = f"{texts}owner:\n  name: Ann\n  team: HR\nnote: a\n  b\nempty:"
    (made,) = convert("a.md", f"---\n{front}\n---\n\nText.\n".encode()).passages
    kept = {name: made.metadata.get(name) for name in ("summary", "folded", "owner", "note", "empty")}
    assert kept == {
        "summary": "Two lines\nof text.",
        "folded": "One line.",
        "owner": ["name: Ann", "team: HR"],
        "note": "a b",
        "empty": None,
    }


def test_text_between_two_lines_is_no_front_matter() -> None:
    assert "The house is closed." in sentences("---\nThe house is closed.\n\n---\nAsk Ana.\n")


def test_deep_nesting_loses_nothing() -> None:
    assert sentences("- " * 40 + "Far inside.\n\nAfter it.\n")[-2:] == ["Far inside.", "After it."]
    with pytest.raises(UnreadableError, match="nest"):
        convert("a.md", b"- " * 3_000 + b"Far inside.\n")
