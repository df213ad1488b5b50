"""Marks of questions: figures, names, negation and the present, in several languages."""

import pytest

from engram.core.ranking.question_contrasts import compare_marks, name_contrasts
from engram.providers.language import load_language, read_marks

RULES = load_language("")

PAIRS = [
    ("Who chaired it in 2003?", "Who chaired it in 2005?", "en", {"figures"}),
    ("Who chaired it in 2003?", "Who chaired it?", "en", {"figure"}),
    ("the 1920s, in 5 parts", "5 parts of the 1920s", "en", set()),
    ("What does the A320 weigh?", "What does the A321 weigh?", "en", {"figures"}),
    ("Take 5 mg of it?", "Take 5mg of it?", "en", set()),
    ("Take 5 mg of it?", "Take 5 g of it?", "en", {"figures"}),
    ("What is the allowance in Japan?", "What is the allowance in Norway?", "en", {"names"}),
    ("What is the allowance in Japan?", "What is the allowance?", "en", {"name"}),
    ("Who married Marie Curie?", "Whom did Curie marry?", "en", {"name"}),
    ("Who married Curie?", "Whom did Curie marry?", "en", set()),
    ("Can I cancel the transfer?", "Can't I cancel the transfer?", "en", {"negation"}),
    ("Darf ich rauchen?", "Darf ich nicht rauchen?", "de", {"negation"}),
    ("Est-ce permis ?", "Est-ce que ce n'est pas permis ?", "fr", {"negation"}),
    ("可以退款吗?", "不可以退款吗?", "zh", {"negation"}),
    ("What is the allowance now?", "What was the allowance in 2023?", "en", {"time", "figure"}),
    ("Wie hoch ist das Tagegeld aktuell?", "Wie hoch war das Tagegeld 2023?", "de", {"time", "figure"}),
    ("What is the latest rule?", "What is the rule now?", "en", set()),
]


@pytest.mark.parametrize(("one", "other", "language", "contrasts"), PAIRS)
def test_contrasts_of_pairs(one: str, other: str, language: str, contrasts: set[str]) -> None:
    marks = [read_marks(text, RULES.analyse_question(text, language)) for text in (one, other)]

    assert set(name_contrasts(compare_marks(marks[0], marks[1]))) == contrasts
    assert set(name_contrasts(compare_marks(marks[1], marks[0]))) == contrasts
