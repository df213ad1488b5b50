"""Quotations: the best sentences of the first passages that have any."""

from typing import Any

import pytest

from engram.services.answers.worded_answer import Citation
from engram.services.retrieval.answer import PassageAnswer, SentenceAnswer
from engram.wings.frontends.services.quotations import quotations


def sentence(number: int, score: float | None) -> SentenceAnswer:
    return SentenceAnswer(number, number, f"Sentence {number}.", score, [1])


class QuotableAnswer:
    """The part of an answer that is quoted."""

    def __init__(self, *passages: PassageAnswer) -> None:
        self.passages = list(passages)


def passage(name: str, *sentences: SentenceAnswer) -> PassageAnswer:
    return PassageAnswer(name, None, "text", "en", {}, 1.0, list(sentences))


def test_the_best_sentences_in_reading_order() -> None:
    answer: Any = QuotableAnswer(passage("a", sentence(1, 0.1), sentence(2, None), sentence(3, 0.9)))
    assert quotations(answer) == [Citation(1, "a", "Sentence 1."), Citation(3, "a", "Sentence 3.")]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_the_first_passages_that_have_any(count: int) -> None:
    passages = [passage("none"), *(passage(f"p{n}", sentence(n, 0.5)) for n in range(count))]
    answer: Any = QuotableAnswer(*passages)
    assert [citation.passage_id for citation in quotations(answer)] == [f"p{n}" for n in range(min(count, 3))]
