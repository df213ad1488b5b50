"""What BM25 counts: the terms of a text."""

import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.providers.language import question_terms, read_question, surface_words, terms
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
        ("Henry V's aunt", ["henri", "v", "aunt"]),
        ("vitamin K or vitamin A", ["A", "vitamin", "k", "vitamin"]),
        ("vitamin a?", ["A", "vitamin"]),
        ("a vitamin", ["vitamin"]),
        ("a vitamin of type 2", ["vitamin", "type", "2"]),
        ("version 3.3, section 4.2.1.", ["3.3", "4.2.1", "version", "section"]),
        (
            "p < 0.05 (e.g. in step 7.10) by the U.S. and group 5",
            ["0.05", "7.10", "p", "05", "step", "10", "group", "5"],
        ),
        ("C++, C# and C", ["c++", "c#", "c"]),
        ("Notepad++ adds 1+1", ["notepad++", "notepad", "add", "1", "1"]),
        ("pass\N{ZERO WIDTH SPACE}word trans\N{SOFT HYPHEN}former", ["password", "transform"]),
        ("٣٢١٠ ４５", ["3210", "45"]),
        ("ﬁnal œuvre", ["final", "oeuvr"]),
        ("", []),
        ("!!! \N{SNOWMAN} \x00", []),
        ("東京 한국", ["東", "京", "東京", "한국"]),
    ],
)
def test_case_diacritics_endings_and_function_words_do_not_count(text: str, expected: list[str]) -> None:
    assert terms(text, "en") == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("de", "Die Häuser der Städte", ["die", "haus", "der", "stadt"]),
        ("fr", "les bibliothèques nationales", ["le", "bibliothequ", "national"]),
        ("ru", "мой первый чай", ["мо", "перв", "ча"]),
        ("hi", "किताबें", ["किताब"]),
        (
            "zh",
            "他用Windows 10写了GX-4411号报告",
            [*"他用", "他用", "windows", "10", *"写了", "写了", "gx", "4411", *"号报告", "号报", "报告"],
        ),
        ("ja", "ガ行のカメラ", ["行", "ガ行", "行の", "のカ", "カメ", "メラ"]),
        ("th", "น้ำมัน", ["น้ํา", "ามั", "มัน"]),
        ("ko", "서울은 큰 도시", ["서울", "울은", "큰", "도시"]),
        ("he", "נָכוֹן נכון", ["נכון", "נכון"]),
        ("he", "וכשהמורה בבית", ["וכשהמורה", "בבית", "כשהמורה", "שהמורה", "המורה", "מורה", "בית"]),
        ("en", "getUserName HTTPServerError", "getusernam httpservererror get user http server error".split()),
        ("en", "YouTube McDonald iPhone mRNA tests", ["youtub", "mcdonald", "iphon", "mrna", "test"]),
        ("ar", "الكِتاب", ["كتاب"]),
        ("vi", "Việt Nam", ["viet", "nam"]),
        ("fr", "l'école aujourd’hui", ["ecol", "aujourd", "hui"]),
        ("fa", "كتاب‌خانه", ["کتابخ", "کتاب", "خانه"]),
        ("hi", "क़िला", ["किल"]),
        ("pl", "Łódź", ["lodz"]),
        ("tr", "ISPARTA", ["ispar"]),
        ("xx", "Houses", ["houses"]),
        ("", "Houses", ["houses"]),
    ],
)
def test_each_language_has_terms_of_its_own(language: str, text: str, expected: list[str]) -> None:
    assert terms(text, language) == expected


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Grüße aus Köln"),
        ("ko", "서울은 큰 도시"),
        ("hi", "क़लम और किताबें"),
        ("ja", "ガギグ"),
        ("vi", "Tiếng Việt"),
        ("ru", "ёлка й"),
    ],
)
def test_composed_and_decomposed_characters_give_the_same_terms(language: str, text: str) -> None:
    composed, decomposed = (terms(unicodedata.normalize(form, text), language) for form in ("NFC", "NFD"))
    assert composed == decomposed


@pytest.mark.parametrize(
    ("language", "passage", "question"),
    [
        ("zh", "軟體開發", "软体开发"),
        ("pl", "Łódź", "Lodz"),
        ("tr", "ISPARTA", "isparta"),
        ("fr", "œuvre", "oeuvre"),
        ("hi", "क़िला", "किला"),
    ],
)
def test_a_question_finds_words_that_are_written_otherwise(language: str, passage: str, question: str) -> None:
    assert Counter(terms(passage, language)) == question_terms(question, {language: 9})


def test_a_question_is_read_in_every_language_of_the_passages() -> None:
    english = "Which houses did the committees describe?"
    assert question_terms(english, {"en": 9}) == Counter(["hous", "committe"])
    read = read_question(english, {"en": 9, "ru": 3})
    assert read.counts == Counter(["hous", "houses", "committe", "committees"])
    assert read.size == 2


def test_a_language_of_few_passages_counts_for_questions_in_it_only() -> None:
    few = {"en": 1_000, "ru": 9}
    assert question_terms("Which houses did the committees describe?", few) == Counter(["hous", "committe"])
    assert question_terms("Какие города описаны в этом документе и почему?", few)["город"] == 1
    assert question_terms("Какие города описаны в этом документе и почему?", {"en": 1_000})["город"] == 0


def test_a_word_counts_once_however_many_languages_read_it_alike() -> None:
    assert question_terms("Titan Titan Huygens", {"de": 1, "sv": 1, "zh": 1})["titan"] == 2


def test_function_words_of_an_unknown_language_are_those_of_all_languages() -> None:
    assert question_terms("the GX-4411", {"de": 1, "en": 1}) == {"gx": 1, "4411": 1}


def test_without_passages_words_stay_as_they_are() -> None:
    assert question_terms("Houses", {}) == {"houses": 1}


def test_endless_words_are_cut_alike_everywhere() -> None:
    (term,) = terms("q" * 100_000, "en")
    assert term == "q" * MAX_TERM_CHARACTERS
    assert terms("q" * 50_000, "en") == [term]


@given(st.text(), st.sampled_from(["en", "de", "ar", "zh", ""]))
def test_any_text_has_terms_that_fit_an_index_page(text: str, language: str) -> None:
    for term in terms(text, language):
        assert 0 < len(term.encode()) <= 4 * MAX_TERM_CHARACTERS * 2
        assert "\x00" not in term


def test_threads_get_the_same_terms() -> None:
    text = "Discoveries of discoverers who were discovering the discovered. " * 50
    expected = terms(text, "en")
    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(terms, [text] * 40, ["en"] * 40))


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
    assert surface_words([(text, "en") for text in texts]) == expected


@given(st.lists(st.text(), max_size=3))
def test_a_term_comes_from_the_word_that_stands_for_it(texts: list[str]) -> None:
    for term, word in surface_words([(text, "en") for text in texts]).items():
        assert terms(word, "en") == [term]
        assert len(word) <= MAX_TERM_CHARACTERS


@pytest.mark.parametrize(("capital", "small"), [("İNSANLAR", "insanlar"), ("IRMAK", "ırmak")])
def test_turkish_has_an_i_with_a_dot_and_one_without(capital: str, small: str) -> None:
    assert terms(capital, "tr") == terms(small, "tr")
    assert terms(unicodedata.normalize("NFD", capital), "tr") == terms(small, "tr")
    assert read_question(capital, {"tr": 9, "en": 1}).counts.keys() >= set(terms(small, "tr"))


def test_a_question_has_the_language_of_its_words_or_the_only_one_of_its_collection() -> None:
    assert read_question("Wo fließt der längste Fluss des Landes?", {"de": 5, "en": 10}).language == "de"
    assert read_question("X 12", {"fr": 3}).language == "fr"
    assert read_question("X 12", {"fr": 3, "en": 3}).language is None
