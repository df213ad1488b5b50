"""Whatever the text, the work it makes grows no faster than it does."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from engram.core.ranking.coverage import content_words
from engram.core.text.question_triples import triples
from engram.core.text.temporal import find_time_expressions
from engram.providers.language import (
    Language,
    PassageText,
    key_text,
    load_language,
    normalise_entity,
    surface_words,
    terms,
    title_entities,
)
from engram.providers.language.rule_language import RuleLanguage
from engram.providers.language.sentence_splitter import split_sentences
from tests.support.growth import MOST_GROWTH, growth
from tests.support.light_spacy import spacy

pytestmark = pytest.mark.timeout(180)

PIECES = ["The ", "'s", "No. ", "1998 ", '"A" ', "1998, ", "(", "A. ", ". ", "\n ", "March   ", "1998-", "of the "]
NAMES = ["The ", "the a ", "'s", "’s ", "'s) ", "(the ", "the ('", ", .", "x (y "]
MARKS = ["\u0301\u0316", "\u0f73", "\uff9e\u093c", "a\u0301\u0316"]
"""Marks that have to change places, and two that are made of such."""
TIMES = ["1998 ", "in 1998, ", "from 1998 to 2003 ", "since at least 1998 ", "early ", "1 ", "May, 5 ", "1998-99"]
SENTENCES = [". ", "...", ".\n", "\n\n", '. "', "No. ", "J. R. ", "。", "e.g. x! ", "บ ", "(บ ", "บ  "]


@pytest.fixture(scope="module")
def rules() -> RuleLanguage:
    return RuleLanguage(spacy.blank)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": "Lund"}])
    folder: Path = tmp_path_factory.mktemp("language") / "pipeline"
    nlp.to_disk(folder)
    return load_language(str(folder))


@pytest.mark.parametrize("piece", [*NAMES, *MARKS])
def test_the_key_of_a_name(piece: str) -> None:
    assert growth(normalise_entity, piece, 40_000) < MOST_GROWTH


@pytest.mark.parametrize("piece", NAMES)
def test_the_names_of_a_title(piece: str) -> None:
    assert growth(title_entities, piece, 400_000) < MOST_GROWTH


@pytest.mark.parametrize("piece", TIMES)
def test_time_expressions(piece: str) -> None:
    assert growth(find_time_expressions, f"1998 {piece}", 10_000) < MOST_GROWTH


def test_numbers_that_are_no_years_after_a_year_and_a_gap() -> None:
    def times(gap: str) -> object:
        return find_time_expressions(f"in 1998{gap}{'1500 people ' * (len(gap) // 12)}")

    assert growth(times, " ", 8_000) < MOST_GROWTH


@pytest.mark.parametrize("piece", SENTENCES)
def test_the_ends_of_sentences(piece: str) -> None:
    for language in ("en", "de", "th", "zh"):
        assert growth(partial(split_sentences, language=language), piece, 4_000) < MOST_GROWTH


@pytest.mark.parametrize("piece", ["word ", "é", "“", *MARKS])
@pytest.mark.parametrize(
    "work", [lambda text: terms(text, "en"), lambda text: surface_words([(text, "en")])], ids=["terms", "surface"]
)
def test_terms(work: Callable[[str], object], piece: str) -> None:
    assert growth(work, piece, 40_000) < MOST_GROWTH


@pytest.mark.parametrize("building", ["title", "abstract", "keywords"])
def test_the_text_of_a_key(building: str) -> None:
    assert growth(lambda text: key_text(building, None, text, [text], "en"), "Ab cd. ", 40_000) < MOST_GROWTH


@pytest.mark.parametrize("piece", PIECES)
def test_the_rules_read_a_passage(rules: RuleLanguage, piece: str) -> None:
    assert growth(lambda text: rules.analyse_passages([PassageText(None, text)]), piece, 12_000) < MOST_GROWTH


def test_the_rules_read_quoted_titles(rules: RuleLanguage) -> None:
    assert growth(lambda text: rules.analyse_passages([PassageText(None, text)]), '"A" ', 125_000) < MOST_GROWTH


@pytest.mark.parametrize("piece", ["The ", "'s", "Mercury (planet) ", '"A" ', "No. "])
def test_the_rules_read_a_question(rules: RuleLanguage, piece: str) -> None:
    assert growth(rules.analyse_question, f"x{piece}", 12_000) < MOST_GROWTH


@pytest.mark.parametrize("piece", ["The ", "'s", "(", "No. ", "Lund. ", "Lund is "])
def test_a_pipeline_reads_a_passage(trained: Language, piece: str) -> None:
    assert growth(lambda text: trained.analyse_passages([PassageText(None, text)]), piece, 12_000) < MOST_GROWTH


@pytest.mark.parametrize("piece", ["'s", "(", "Lund. "])
def test_a_pipeline_loses_nothing_of_what_it_does_not_read(trained: Language, piece: str) -> None:
    (sentences,) = trained.analyse_passages([PassageText(None, f"Lund grew. {piece * 300} It stands.")])

    assert "".join("".join(sentence.text for sentence in sentences).split()) == "".join(
        f"Lund grew. {piece * 300} It stands.".split()
    )


QUESTIONS = ["the mother of ", "a-", "the x who y in the ", "the city where a ", "x's ", "Xy or ", "a b c d "]


@pytest.mark.parametrize("piece", QUESTIONS)
def test_the_triples_of_a_question(piece: str) -> None:
    assert growth(lambda text: triples(f"Xy {text} Xy", ["Xy"]), piece, 2_500) < MOST_GROWTH


@pytest.mark.parametrize("piece", ["words ", "s", "a-", *MARKS])
def test_the_words_of_a_question(piece: str) -> None:
    assert growth(content_words.__wrapped__, piece, 40_000) < MOST_GROWTH
