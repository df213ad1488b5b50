"""What BM25 counts: the terms of a text."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.providers.language import surface_words, terms
from engram.providers.language.lexical_terms import MAX_TERM_CHARACTERS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Titan was discovered by Christiaan Huygens in 1655.",
            ["titan", "discov", "christiaan", "huygen", "1655"],
        ),
        ("The discoverer's discoveries", ["discover", "discoveri"]),
        ("Cafés, a café; CAFE!", ["cafe", "cafe", "cafe"]),
        ("Straße STRASSE", ["strass", "strass"]),
        ("ＮＡＳＡ and naïve", ["nasa", "naiv"]),
        ("Who was it?", []),
        ("Henry V", ["henri"]),
        ("", []),
        ("!!! \N{SNOWMAN} \x00", []),
        ("東京 한국", ["東京", "한국"]),
    ],
)
def test_case_diacritics_endings_and_function_words_do_not_count(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_endless_words_are_cut_alike_everywhere() -> None:
    (term,) = terms("q" * 100_000)
    assert term == "q" * MAX_TERM_CHARACTERS
    assert terms("q" * 50_000) == [term]


@given(st.text())
def test_any_text_has_terms_that_fit_an_index_page(text: str) -> None:
    for term in terms(text):
        assert 0 < len(term.encode()) <= 4 * MAX_TERM_CHARACTERS * 2
        assert "\x00" not in term


def test_threads_get_the_same_terms() -> None:
    text = "Discoveries of discoverers who were discovering the discovered. " * 50
    expected = terms(text)
    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(terms, [text] * 40))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Discoveries. A discovery, discoveries!"], {"discoveri": "Discoveries"}),
        (["a discovery", "one discovery; Discoveries"], {"discoveri": "discovery"}),
        (["Cafe\N{COMBINING ACUTE ACCENT}s"], {"cafe": "Cafés"}),
        (["Who was it?", "", "\x00"], {}),
        (["x" * (MAX_TERM_CHARACTERS + 1)], {}),
    ],
)
def test_a_term_is_written_as_most_often(texts: list[str], expected: dict[str, str]) -> None:
    assert surface_words(texts) == expected


@given(st.lists(st.text(), max_size=3))
def test_a_term_comes_from_the_word_that_stands_for_it(texts: list[str]) -> None:
    for term, word in surface_words(texts).items():
        assert terms(word) == [term]
        assert len(word) <= MAX_TERM_CHARACTERS
