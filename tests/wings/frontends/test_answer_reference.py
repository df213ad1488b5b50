"""References that name a query and a passage in one text."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.wings.frontends.services.answer_reference import AnswerReference


@given(passage_id=st.text(min_size=1, max_size=50))
def test_written_reference_parses_back_equal(passage_id: str) -> None:
    reference = AnswerReference(uuid4(), passage_id)
    assert AnswerReference.parse(str(reference)) == reference


def test_a_passage_id_may_hold_colons() -> None:
    text = f"{UUID(int=5)}:docs:a/b"
    assert AnswerReference.parse(text) == AnswerReference(UUID(int=5), "docs:a/b")


@pytest.mark.parametrize("text", ["", "x", f"{UUID(int=5)}", f"{UUID(int=5)}:", "x:y", ":y"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of UUID in its own words
        AnswerReference.parse(text)
