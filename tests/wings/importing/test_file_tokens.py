"""Ids of files and directories say what they stand for; other texts are refused."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engram.context.errors import InvalidRequestError
from engram.core.text.document_manifest import HeldDocument
from engram.wings.importing.services.file_tokens import (
    FileToken,
    Step,
    is_name,
    name_source,
    read_directory,
    write_directory,
)

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JOB = "01a226a1-24eb-7732-8af1-002587fb8bac"


MOMENT = datetime(2026, 5, 4, 3, 2, 1, 12345, UTC)


@given(
    TEXTS,
    st.none() | TEXTS,
    st.sampled_from(Step),
    st.none() | st.text(min_size=1),
    st.sampled_from([None, JOB]),
    st.sampled_from([None, MOMENT]),
)
def test_a_token_is_read_as_it_was_written(
    source: str, digest: str | None, step: Step, filename: str | None, job: str | None, moment: datetime | None
) -> None:
    target = None if filename is None else name_source("", filename)
    assume(target is None or is_name(target))  # it may be too long
    token = FileToken("docs", source, digest, step, target, job, moment)
    assert FileToken.read(token.write()) == token


@given(st.text(max_size=50), st.text(min_size=1, max_size=50))
def test_what_a_file_is_called_is_a_name(path: str, filename: str) -> None:
    assert is_name(name_source(path, filename))


@pytest.mark.parametrize(
    "source",
    [
        "",
        "oikb/",
        "other/a.md",
        "oikb/a\n.md",
        'oikb/"a".md',
        "oikb/\ud800",
        "oikb/u\u0308.md",
        "oikb/" + "a" * 396,
    ],
)
def test_other_texts_are_no_names(source: str) -> None:
    assert not is_name(source)


def test_a_document_is_proven_unchanged_by_its_file_or_its_time() -> None:
    seen, later = (HeldDocument("oikb/a", "oikb", "1", imported_at=one) for one in (MOMENT, MOMENT.replace(day=5)))
    assert FileToken.of("docs", seen).is_of(later)  # the same file again
    hidden, changed = (HeldDocument("oikb/a", "oikb", None, imported_at=one.imported_at) for one in (seen, later))
    token = FileToken.read(FileToken.of("docs", hidden).write())
    assert token.is_of(hidden)
    assert not token.is_of(changed)
    assert not token.is_of(seen)
    assert not FileToken("docs", "oikb/a", None).is_of(hidden)
    assert not FileToken("docs", "oikb/a", "1").is_of(hidden)


@given(TEXTS)
def test_a_directory_is_read_as_it_was_written(path: str) -> None:
    assert read_directory(write_directory(path)) == path


@pytest.mark.parametrize(
    "text",
    ["", "?", "ä", "W10", write_directory("[1, 2]"), write_directory("[" * 10_000)],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        FileToken.read(text)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, "no name"), (0, "docs\n"), (0, 1),
        (1, 1), (1, None), (1, ["a"]), (1, "a\0"), (1, "\ud800"),
        (2, 1), (2, []), (2, "a\0"), (2, "\ud800"),
        (3, "burn"), (3, None),
        (4, "food.txt"), (4, "oikb/\x1b[2J"), (4, "oikb/\ud800"), (4, "oikb/" + "a" * 400), (4, 1),
        (5, "no job"), (5, 1),
        (6, "today"), (6, 1),
    ],
)  # fmt: skip
def test_a_forged_token_is_refused(place: int, value: object) -> None:
    values: list[object] = ["docs", "oikb/a.md", None, "move", "oikb/b.md", None, None]
    assert FileToken.read(write_directory(json.dumps(values)))
    values[place] = value
    with pytest.raises(InvalidRequestError):
        FileToken.read(write_directory(json.dumps(values)))
