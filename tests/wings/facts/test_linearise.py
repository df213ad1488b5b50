"""Facts as text: short, cited, within a budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.wings.facts.core.linearise import ReadableFact, count_tokens, linearise

BERG = [
    ReadableFact("Ada Berg", "born in", "Lund", 7),
    ReadableFact("Ada Berg", "born in", "Lund", 9),
    ReadableFact("Ada Berg", "lived in", "Oslo", 9, "1950 to 1960"),
    ReadableFact("Ada Berg", "lived in", "Bergen", 7),
    ReadableFact("Lund", "country", "Sweden", 4),
]
NAMES = st.sampled_from(["Ada Berg", "Lund", "Oslo (band)", "3 May"])
STATEMENTS = st.lists(
    st.builds(ReadableFact, NAMES, NAMES, NAMES, st.integers(1, 4), st.sampled_from(["", "1950"]))
)


def test_a_line_per_subject_with_numbers_that_cite() -> None:
    told = linearise(BERG)

    assert told.text == (
        "Ada Berg | born in: Lund [1,2]; lived in: Oslo (1950 to 1960) [2], Bergen [1]\nLund | country: Sweden [3]"
    )
    assert told.sources == (7, 9, 4)
    assert told.statement_count == 5
    assert told.tokens == count_tokens(told.text)


def test_no_facts_give_an_empty_text() -> None:
    assert linearise([]).text == ""
    assert linearise(BERG, 0).statement_count == 0


def test_tokens_are_words_in_pieces_and_marks() -> None:
    assert count_tokens("Ada, director [1]") == 1 + 1 + 2 + 3


@given(STATEMENTS, st.integers(0, 120))
def test_the_text_keeps_to_its_budget(statements: list[ReadableFact], budget: int) -> None:
    told = linearise(statements, budget)

    assert told.tokens <= budget
    assert linearise(statements[: told.statement_count]).text == told.text


@given(STATEMENTS)
def test_every_statement_can_be_found_in_the_text(statements: list[ReadableFact]) -> None:
    told = linearise(statements)

    for statement in statements:
        line = next(line for line in told.text.splitlines() if line.startswith(f"{statement.subject} | "))
        assert f"{statement.predicate}: " in line
        assert statement.object in line
        assert statement.source in told.sources


def test_a_budget_is_not_below_none() -> None:
    with pytest.raises(ValueError, match="budget"):
        linearise(BERG, -1)


def test_known_source_keeps_its_citation_number() -> None:
    said = ReadableFact("Ada", "born in", "Lund", "b")
    told = linearise([said], known=["a", "b"])

    assert told.text == "Ada | born in: Lund [2]"
    assert told.sources == ("a", "b")
