"""Turns of an agent: what is one, what is none and why, and what a play is worth."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.wings.agent.core.agent_turns import ACTS, AgentTurn, FormatError, format_turn, read_turn

PLAIN_WORDS = st.text(st.characters(codec="ascii", exclude_characters="<>[]"), min_size=1).map(
    lambda text: " ".join(text.split())
)


def test_a_turn_is_a_thought_and_one_action() -> None:
    said = " <think>Where is\n it?</think>\n<memory_search> Green\nspouse </memory_search> "
    assert read_turn(said) == AgentTurn("search", "Green spouse", "Where is it?")


def test_an_answer_may_cite() -> None:
    assert read_turn("<think>So.</think><answer>Miquette Giraudy [1, 3]</answer>") == AgentTurn(
        "answer", "Miquette Giraudy", "So.", (1, 3)
    )
    assert read_turn("<think>So.</think><answer>[1984]</answer>").content == "[1984]"


@pytest.mark.parametrize("nothing", ["None", "none.", " NONE "])
def test_none_lets_a_document_go_by(nothing: str) -> None:
    assert read_turn(f"<think>No.</think><memory_insert>{nothing}</memory_insert>").skips
    assert not read_turn("<think>No.</think><memory_insert>None was there.</memory_insert>").skips


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "no action"),
        ("The answer is Lund.", "no action"),
        ("<answer>Lund</answer>", "begins with one thought"),
        ("<answer>Lund</answer><think>So.</think>", "begins with one thought"),
        ("<think>a</think><think>b</think><answer>Lund</answer>", "begins with one thought"),
        ("<think>a</think><answer>Lund</answer><memory_search>Lund</memory_search>", "2 actions"),
        ("<think>a<answer>b</answer></think><answer>Lund</answer>", "2 actions"),
        ("<think>a</think><answer>Lund", "opened and closed"),
        ("<think>a</think>So: <answer>Lund</answer>", "nothing may stand beside"),
        ("<think>a</think><answer> </answer>", "empty"),
        ("<think>a</think><memory_insert></memory_insert>", "empty"),
        ("<think>a</think><memory_delete>x</memory_delete>", "no action"),
    ],
)
def test_malformed_turn_raises_the_reason(said: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        read_turn(said)


def test_action_that_is_not_offered_is_refused() -> None:
    with pytest.raises(FormatError, match="one of <memory_insert>, <answer> can"):
        read_turn("<think>a</think><memory_search>Lund</memory_search>", ("insert", "answer"))


@given(st.sampled_from(ACTS), PLAIN_WORDS.filter(bool), PLAIN_WORDS)
def test_written_turn_reads_back_equal(act: str, content: str, thought: str) -> None:
    turn = AgentTurn(act, content, thought)  # type: ignore[arg-type]
    assert read_turn(format_turn(turn)) == turn


@given(st.text())
def test_any_text_is_a_turn_or_refused(text: str) -> None:
    with suppress(FormatError):
        assert read_turn(text).content
