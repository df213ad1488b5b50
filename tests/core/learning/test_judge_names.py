"""One judge, one name."""

import pytest

from engram.core.learning.judge_names import normalise_name


@pytest.mark.parametrize("name", ["editor", "Editor", "EDITOR", " editor ", "editor   "])
def test_case_and_spaces_make_no_other_judge(name: str) -> None:
    assert normalise_name(name) == "editor"
    assert normalise_name(f"{name} 2") == "editor 2"


@pytest.mark.parametrize(
    "name",
    ["еditor", "ｅditor", "ed\u200bitor", "edıtor", "editor\n", "edit\u00a0or", "", " ", "-editor", "İ", "\u212a"],
)
def test_confusable_judge_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a name is made of"):
        normalise_name(name)


def test_a_name_is_bounded() -> None:
    assert len(normalise_name("a" * 200)) == 200
    with pytest.raises(ValueError, match="at most 200"):
        normalise_name("a" * 201)
