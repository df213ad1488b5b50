"""What a question word asks for, and whether a text has it."""

import pytest

from engram.wings.sessions.core.answer_kinds import has_answer_kind


@pytest.mark.parametrize(
    ("question", "text", "has"),
    [
        ("When was it sold?", "It was sold in 1990.", True),
        ("Until when does it count?", "It counts for 90 days.", True),
        ("In which year did it open?", "It opened in May.", True),
        ("When was it sold?", "It was sold quickly.", False),
        ("How many bits has it?", "It has 256 random bits.", True),
        ("How many bits has it?", "It has twelve.", True),
        ("How tall was Edmund Hillary?", "Edmund Hillary kept bees.", False),
        ("Who founded it?", "It was founded by Percival Lowell.", True),
        ("By whom was Lowell Observatory founded?", "Lowell Observatory was founded with a gift.", False),
        ("For whom did she work?", "She worked for the Countess of Lovelace.", True),
        ("Who wrote the command?", "The command writes a line.", False),
        ("How does it work?", "It works.", True),
        ("Which colour has it?", "It is red.", True),
    ],
)
def test_a_text_has_what_the_question_word_asks_for(question: str, text: str, has: bool) -> None:
    assert has_answer_kind(question, text) is has
