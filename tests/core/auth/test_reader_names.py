"""Names of readers."""

import pytest

from engram.core.auth.reader_names import MOST_CHARACTERS, is_reader_name, normalise_readers


def test_readers_are_in_order_and_each_once() -> None:
    assert normalise_readers(["user:bo", "group:Human Resources", "user:bo"]) == (
        "group:Human Resources",
        "user:bo",
    )
    assert normalise_readers([]) == ()
    assert normalise_readers(["user:jo\u0308rg", "user:j\u00f6rg"]) == ("user:j\u00f6rg",)


@pytest.mark.parametrize(
    "name", ["ana", "user:", "user: ana", "user:ana ", "role:hr", "user:a\nb", "user:" + "a" * 196]
)
def test_what_is_no_name_is_refused(name: str) -> None:
    assert not is_reader_name(name)
    with pytest.raises(ValueError, match="a reader is user:NAME or group:NAME"):
        normalise_readers([name])


def test_a_name_has_two_hundred_characters_at_most() -> None:
    assert is_reader_name("user:" + "a" * (MOST_CHARACTERS - 5))


def test_there_are_at_most_a_thousand() -> None:
    names = [f"user:{number}" for number in range(1_001)]
    assert len(normalise_readers(names[:1_000])) == 1_000
    with pytest.raises(ValueError, match="at most 1000 readers"):
        normalise_readers(names)
