"""Whether passages are titled after the things they describe."""

import pytest

from engram.core.ranking.corpus_kind import (
    ENCYCLOPEDIC_SHARE,
    LEAST_QUESTIONS,
    NAMING_SHARE,
    NOT_NAMING_SHARE,
    CorpusKindMeasure,
    is_name,
    question_share,
    title_share,
    uses_name,
)


@pytest.mark.parametrize(
    "title",
    [
        "William Herschel",
        "The Ring of the Nibelung",
        "2001: A Space Odyssey",
        "CRISPR",
        "Ludwig van Beethoven",
    ],
)
def test_names_are_recognised(title: str) -> None:
    assert is_name(title)


@pytest.mark.parametrize(
    "title",
    [
        "",
        "---",
        "Installing on Windows without administrator rights",
        "What is a virus?",
        "Re: office move",
        "board minutes",
        "東京",  # may be either
        "A Title That Goes On And On Until Nobody Takes It For A Name At All",
    ],
)
def test_what_may_be_a_heading_is_no_name(title: str) -> None:
    assert not is_name(title)


def test_a_title_counts_only_if_the_text_uses_its_last_name() -> None:
    assert uses_name("Enceladus", "Enceladus is a moon of Saturn.")
    assert uses_name("William Herschel", "In 1781 Herschel saw a new planet.")
    assert not uses_name("Company Handbook", "Clara Voss was born in Graz.")
    assert not uses_name("Remote Work", "Remote work is agreed with the team.")
    assert not uses_name("Work", "Workers meet on Monday.")


def test_the_share_counts_untitled_passages_as_well() -> None:
    passages = [
        ("Enceladus", "Enceladus is a moon."),
        (None, "A moon."),
        ("How to pay", "How to pay"),
        ("Bath", "A town on the Avon."),
    ]
    assert title_share(passages) == 1 / 4
    assert title_share([]) is None


def test_a_page_counts_with_all_its_paragraphs_if_one_uses_the_name() -> None:
    page = [
        ("William Herschel", text)
        for text in ("Herschel was an organist.", "He moved to Bath.", "He died in 1822.")
    ]
    assert title_share([*page, ("Getting Started", "To begin, install it.")]) == 3 / 4


def test_half_of_the_passages_make_an_encyclopedia() -> None:
    assert CorpusKindMeasure(ENCYCLOPEDIC_SHARE).kind == "encyclopedic"
    assert CorpusKindMeasure(ENCYCLOPEDIC_SHARE - 0.01).kind == "general"
    assert CorpusKindMeasure(None).kind == "general"


def test_few_questions_have_no_share() -> None:
    assert question_share([True] * (LEAST_QUESTIONS - 1)) is None
    assert question_share([True] * 10 + [False] * (LEAST_QUESTIONS - 10)) == 10 / LEAST_QUESTIONS


def test_questions_decide_before_titles() -> None:
    assert CorpusKindMeasure(1.0, NOT_NAMING_SHARE).kind == "general"
    assert CorpusKindMeasure(0.0, NAMING_SHARE).kind == "encyclopedic"
    assert CorpusKindMeasure(1.0, 0.0).source == "questions"
    assert CorpusKindMeasure(1.0).source == "titles"


def test_titles_decide_while_questions_are_not_clear() -> None:
    for share in (NOT_NAMING_SHARE + 0.01, NAMING_SHARE - 0.01):
        assert CorpusKindMeasure(1.0, share).kind == "encyclopedic"
        assert CorpusKindMeasure(0.0, share).kind == "general"
        assert CorpusKindMeasure(1.0, share).source == "titles"
    assert CorpusKindMeasure(None).source == "default"
