"""Which sentences of a passage are headings."""

import pytest

from engram.core.text.headings import find_headings


@pytest.mark.parametrize(
    ("title", "sentences", "headings"),
    [
        ("Jury service | Superior Court", ["Superior Court: jury service", "Come at nine."], [True, False]),
        (None, ["What is Kubernetes?", "It runs containers.", "Learn more"], [True, False, False]),
        (None, ["Virtualization\nGetting started", "Machines run beside containers."], [True, False]),
        ("Prices", ["Bolt | 0.10 EUR", "Size: M8", "All prices are net."], [False, False, False]),
        ("Rates", ["He said “no.”", "概要", "利率は三％です。"], [False, True, False]),
        ("ข้าว", ["ประเทศไทยส่งออกข้าว", "ราคาข้าวสูงขึ้น"], [False, False]),
        ("Rome", ["x" * 81, "It is old."], [False, False]),
        ("Rome", [], []),
        (
            "Form",
            ["Name of the employee:", "Start: ____", "Start: 1 June", "It is signed."],
            [True, True, False, False],
        ),
    ],
)
def test_headings_are_told_from_what_is_said(title: str | None, sentences: list[str], headings: list[bool]) -> None:
    assert find_headings(title, sentences) == headings
