"""Ids of files and directories say what they stand for; other texts are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.context.errors import InvalidRequestError
from engram.wings.importing.services.file_tokens import FileToken, Step, read_directory, write_directory

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JOB = "01a226a1-24eb-7732-8af1-002587fb8bac"


@given(TEXTS, st.none() | TEXTS, st.sampled_from(Step), st.none() | TEXTS, st.sampled_from([None, JOB]))
def test_a_token_is_read_as_it_was_written(
    source: str, digest: str | None, step: Step, target: str | None, job: str | None
) -> None:
    token = FileToken("docs", source, digest, step, target, job)
    assert FileToken.read(token.write()) == token


@given(TEXTS)
def test_a_directory_is_read_as_it_was_written(path: str) -> None:
    assert read_directory(write_directory(path)) == path


@pytest.mark.parametrize(
    "text",
    ["", "?", "ä", "W10", write_directory("[1, 2]"), write_directory('["docs", 1, null, "delete", null, null]'),
     write_directory('["docs", "a", null, "burn", null, null]'),
     write_directory('["docs", "a", null, "delete", null, "no job"]'),
     write_directory('["docs", "a\\u0000", null, "delete", null, null]')],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        FileToken.read(text)
