"""Names: what is too long or too much to be any, and what is kept of them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.text.sizes import SENTENCES
from engram.providers.language import PassageText, normalise_entity
from engram.providers.language.characters import MARKS, normalise_characters
from engram.providers.language.entity_names import MAX_NAME_CHARACTERS, select_distinct_entities
from engram.providers.language.language_protocol import (
    NAMES_PER_PASSAGE,
    NAMES_PER_QUESTION,
    NAMES_PER_SENTENCE,
)
from engram.providers.language.rule_language import RuleLanguage
from engram.providers.language.sentence_splitter import split_sentences
from tests.support.light_spacy import spacy


@pytest.fixture(scope="module")
def rules() -> RuleLanguage:
    return RuleLanguage(spacy.blank)


def many(count: int) -> list[str]:
    """Names, all different."""
    return [f"Lund{number}" for number in range(count)]


@pytest.mark.parametrize(
    ("surfaces", "kept"),
    [
        (["Lund", "the  Lund", "Oslo"], ("Lund", "Oslo")),
        (["x" * MAX_NAME_CHARACTERS], ("x" * MAX_NAME_CHARACTERS,)),
        (["x" * (MAX_NAME_CHARACTERS + 1)], ()),
        (["x" * 150 + " " * 100 + "y"], ("x" * 150 + " y",)),
        (["ﷺ" * 12], ()),  # as a key each is 18 characters: 12 * 18 = 216
        (["!!!", " "], ("!!!",)),
    ],
)
def test_distinct_entities_keeps_names(surfaces: list[str], kept: tuple[str, ...]) -> None:
    assert select_distinct_entities(surfaces, 10) == kept


def test_long_names_are_not_cached() -> None:
    """A key that is cached is the same object each time."""
    name, long_name = "The End of Lund", "The " * 5_000 + "End of Lund"

    assert normalise_entity(name) == normalise_entity(long_name) == "end of lund"
    assert normalise_entity(name) is normalise_entity(name)
    assert normalise_entity(long_name) is not normalise_entity(long_name)


def test_a_sentence_has_so_many_names(rules: RuleLanguage) -> None:
    names = many(NAMES_PER_SENTENCE + 5)
    ((sentence,),) = rules.analyse_passages([PassageText("Oslo", "", (" saw ".join(names),))])

    assert sentence.entities == ("Oslo", *names[: NAMES_PER_SENTENCE - 1])


def test_a_passage_has_so_many_names(rules: RuleLanguage) -> None:
    names = many(NAMES_PER_PASSAGE + 1_000)
    sentences = tuple(" saw ".join(names[start : start + 400]) for start in range(0, len(names), 400))
    (first, *_, last) = rules.analyse_passages([PassageText("Oslo", "", (*sentences, f"Oslo saw {names[0]}"))])[0]
    (found,) = rules.analyse_passages([PassageText("Oslo", "", sentences)])

    assert len(first.entities) == 401
    assert last.entities == ("Oslo", "Lund0")
    # 1 + 25 * 400 = 10,001 are the first not below the bound; after them only names that are known count.
    assert len({name for sentence in found for name in sentence.entities}) == 10_001
    assert found[25].entities == ("Oslo",)


def test_a_question_has_so_many_names(rules: RuleLanguage) -> None:
    names = many(NAMES_PER_QUESTION + 5)

    assert rules.analyse_question(f"who saw {' or '.join(names)}?").entities == tuple(names[:NAMES_PER_QUESTION])


def test_a_passage_has_so_many_sentences() -> None:
    sentences = split_sentences("Ab. " * (SENTENCES + 7), "en")

    assert len(sentences) == SENTENCES
    assert sentences[-2:] == ["Ab.", "Ab. " * 7 + "Ab."]


def test_marks_pile_up_so_high() -> None:
    pile = "\u0316" * MARKS

    assert normalise_characters("NFC", f"x{pile}") == f"x{pile}"
    assert normalise_characters("NFC", f"x{pile}\u0301") == f"x{pile}"
    assert normalise_characters("NFC", f"x{pile}e\u0301") == f"x{pile}é"
    assert normalise_characters("NFC", "─" * 100) == "─" * 100


@given(st.text(st.sampled_from("ae\u0301\u0316\u0f73\uff9e\u1e9bﬃ ─"), max_size=MARKS))
def test_ordinary_text_is_normalised_as_ever(text: str) -> None:
    for form in ("NFC", "NFKC", "NFKD"):
        assert normalise_characters(form, text) == unicodedata.normalize(form, text)  # type: ignore[arg-type]
