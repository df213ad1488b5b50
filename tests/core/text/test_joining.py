"""Lines are joined with a space where their language has one."""

import pytest

from engram.core.text.joining import join_texts


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        (["The Rhine", "is long."], "The Rhine is long."),
        (["本", "版于2025年生效。"], "本版于2025年生效。"),
        (["ありがとう。", "Engram です"], "ありがとう。Engram です"),
        (["서울은", "크다."], "서울은 크다."),
        (["使用", "Word"], "使用 Word"),
        ([], ""),
    ],
)
def test_lines_become_one(lines: list[str], joined: str) -> None:
    assert join_texts(lines) == joined
