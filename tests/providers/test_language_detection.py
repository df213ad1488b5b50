"""In which language a text is written."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from engram.providers.language import choose_languages, detect_language

ENGLISH = "The committee published its report about the river in the spring of 1987."
GERMAN = "Der Ausschuss veröffentlichte im Frühjahr 1987 seinen Bericht über den Fluss."


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (GERMAN, "de"),
        ("Où se trouve la bibliothèque nationale de France ?", "fr"),
        ("Какой город является столицей России?", "ru"),
        ("法国的首都是哪里？", "zh"),
        ("日本の首都はどこですか", "ja"),
        ("한국의 수도는 어디입니까", "ko"),
        ("เมืองหลวงของประเทศไทยคืออะไร", "th"),
        ("भारत की राजधानी कहाँ है और वहाँ कौन रहता है?", "hi"),
        ("ما هي عاصمة مصر؟", "ar"),
        ("GX-4411", None),
        ("Müller 2020", None),
        ("", None),
    ],
)
def test_a_language_is_told_or_not(text: str, language: str | None) -> None:
    assert detect_language(text) == language


def test_a_text_too_short_to_tell_takes_the_language_of_its_batch() -> None:
    assert choose_languages([GERMAN, "GX-4411", GERMAN, ENGLISH]) == ["de", "de", "de", "en"]


def test_without_others_it_takes_the_first_language_of_its_collection() -> None:
    assert choose_languages(["GX-4411"], ["fr", "en"]) == ["fr"]
    assert choose_languages([ENGLISH], ["fr"]) == ["en"]


def test_without_a_collection_it_takes_its_likeliest_language() -> None:
    (language,) = choose_languages(["Müller 2020"])
    assert len(language) == 2


def test_threads_come_to_the_same_language() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(detect_language, [GERMAN] * 40)) == {"de"}
