"""Dates of languages other than English, and numeric ones."""

import unicodedata
from datetime import date

import pytest

from engram.core.text.month_names import MONTHS, SHORT_MONTHS
from engram.core.text.temporal import find_time_expressions, time_constraint
from tests.support import month_names


@pytest.mark.parametrize(
    ("language", "text", "phrase", "start", "end"),
    [
        ("de", "Am 12. Juni 2024 regnete es.", "12. Juni 2024", "2024-06-12", "2024-06-13"),
        ("de", "Im März 1998 schloss sie.", "März 1998", "1998-03-01", "1998-04-01"),
        ("de", "Der Vertrag vom 3. Okt. 1990", "3. Okt. 1990", "1990-10-03", "1990-10-04"),
        ("de", "eröffnet am 12.6.2024 in Bonn", "12.6.2024", "2024-06-12", "2024-06-13"),
        ("es", "el 12 de junio de 2024", "12 de junio de 2024", "2024-06-12", "2024-06-13"),
        ("fr", "le 1er août 1944 à Paris", "1er août 1944", "1944-08-01", "1944-08-02"),
        ("pt", "em março de 1974 caiu", "março de 1974", "1974-03-01", "1974-04-01"),
        ("ru", "12 июня 2024 г. он умер", "12 июня 2024 г.", "2024-06-12", "2024-06-13"),
        ("ru", "Родился в 1648 году.", "1648", "1648-01-01", "1649-01-01"),
        ("pl", "15 sierpnia 1920 roku", "15 sierpnia 1920", "1920-08-15", "1920-08-16"),
        ("tr", "29 Ekim 1923 tarihinde", "29 Ekim 1923", "1923-10-29", "1923-10-30"),
        ("hi", "15 अगस्त 1947 को", "15 अगस्त 1947", "1947-08-15", "1947-08-16"),
        ("ar", "في 12 يونيو 2024 افتتح", "12 يونيو 2024", "2024-06-12", "2024-06-13"),
        ("ar", "١٢ يونيو ٢٠٢٤", "١٢ يونيو ٢٠٢٤", "2024-06-12", "2024-06-13"),
        ("th", "เมื่อ 12 มิถุนายน พ.ศ. 2567", "12 มิถุนายน พ.ศ. 2567", "2024-06-12", "2024-06-13"),
        ("zh", "他于1998年6月12日去世", "1998年6月12日", "1998-06-12", "1998-06-13"),
        ("zh", "二〇二四年十二月三十一日", "二〇二四年十二月三十一日", "2024-12-31", "2025-01-01"),
        ("zh", "民國113年成立", "民國113年", "2024-01-01", "2025-01-01"),
        ("ja", "令和6年6月12日に開館", "令和6年6月12日", "2024-06-12", "2024-06-13"),
        ("ja", "平成八年四月に就航", "平成八年四月", "1996-04-01", "1996-05-01"),
        ("ja", "昭和三十年から", "昭和三十年", "1955-01-01", "1956-01-01"),
        ("ja", "平成元年に", "平成元年", "1989-01-01", "1990-01-01"),
        ("ko", "2024년 6월 12일에", "2024년 6월 12일", "2024-06-12", "2024-06-13"),
        ("en", "on 25/12/2003 it snowed", "25/12/2003", "2003-12-25", "2003-12-26"),
        ("en", "on 3/4/2024 it rained", "3/4/2024 [2024-03-04]", "2024-03-04", "2024-03-05"),
        ("fr", "le 3/4/2024 il pleuvait", "3/4/2024 [2024-04-03]", "2024-04-03", "2024-04-04"),
        ("ja", "2024/6/12 開館", "2024/6/12", "2024-06-12", "2024-06-13"),
    ],
)
def test_a_date_is_read_in_its_language(language: str, text: str, phrase: str, start: str, end: str) -> None:
    (found,) = find_time_expressions(text, language)
    assert (found.text, found.start, found.end) == (phrase, date.fromisoformat(start), date.fromisoformat(end))
    # As it is stored, and read again where no language is at hand.
    (again,) = find_time_expressions(found.text)
    assert (again.start, again.end) == (found.start, found.end)


@pytest.mark.parametrize(
    "text",
    [
        "version 12.6.2024.1",
        "1.2.3",
        "45/45/2024",
        "1000年間",
        "平成十十年",
        "at 10.30",
        "the server on port 1994",
        "error 1998",
    ],
)
def test_other_numbers_are_no_dates(text: str) -> None:
    assert find_time_expressions(text) == ()


def test_months_of_other_languages_are_not_looked_for_in_english() -> None:
    (found,) = find_time_expressions("In K Mart 2001 was calm.", "en")
    assert (found.text, found.end) == ("2001", date(2002, 1, 1))


def test_a_range_tells_both_of_its_days() -> None:
    found = time_constraint("from 3/4/2024 to 5/6/2024", "en")
    assert found is not None
    assert found.text == "from 3/4/2024 [2024-03-04] to 5/6/2024 [2024-05-06]"
    again = time_constraint(found.text)
    assert again is not None
    assert (again.start, again.end) == (found.start, found.end) == (date(2024, 3, 4), date(2024, 5, 7))


def test_names_of_months_are_those_of_cldr() -> None:
    """Otherwise: `python -m tests.support.month_names`."""
    assert month_names.TARGET.read_text(encoding="utf-8") == month_names.render()
    assert not MONTHS.keys() & SHORT_MONTHS.keys()
    assert set(MONTHS.values()) == set(range(1, 13))


def test_composed_and_decomposed_letters_are_read_alike() -> None:
    text = unicodedata.normalize("NFD", "Am 12. März 2024")
    (found,) = find_time_expressions(text, "de")
    assert (found.start, found.end) == (date(2024, 3, 12), date(2024, 3, 13))
