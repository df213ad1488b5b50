"""Quotations: the sentences that answer best with their neighbours, and whether they answer."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from engram.core.text.passage_source import PassageSource
from engram.core.text.temporal import time_constraint
from engram.services.question.answer import PassageAnswer, SentenceAnswer
from engram.wings.frontends.services.quotations import QUOTE_CHARACTERS, Quotations, cut_table, quote

SOURCE = PassageSource("manual.md", (), None, None, "en")
CODES = [
    "Exit codes",
    "Exit code | Meaning",
    "Exit code: 9 | Meaning: The lock is held.",
    "Exit code: 17 | Meaning: The passphrase is wrong.",
]
PUMP = [
    "The controller asks for an address.",
    "If nobody answers, it takes 192.168.40.10.",
    "The page listens on port 8443.",
    "The user is called service.",
    "The password is on the label.",
]


class QuotableAnswer:
    """The part of an answer that is quoted."""

    def __init__(self, *passages: PassageAnswer, sufficiency: float | None = 0.9) -> None:
        self.passages = list(passages)
        self.steering = sufficiency


def passage(first: int, texts: list[str], recall: float = 0.0, **metadata: Any) -> PassageAnswer:
    sentences = [SentenceAnswer(first + at, at, text, None, [], recall) for at, text in enumerate(texts)]
    return PassageAnswer(first, f"p{first}", None, " ".join(texts), "en", metadata, 1.0, SOURCE, sentences)


def ask(answer: Any, terms: set[str], similarities: dict[int, float]) -> Quotations:
    return quote(answer, {"en": terms}, similarities)


def test_the_row_that_has_the_code_is_quoted_and_not_one_that_only_resembles_the_question() -> None:
    answer = QuotableAnswer(passage(1, CODES, heading=["Exit codes"]))
    quotations = ask(answer, {"exit", "code", "17"}, {1: 0.8, 2: 0.7, 3: 0.52, 4: 0.5})
    assert [one.text for one in quotations.quotes] == [CODES[3], CODES[2]], "neither heading nor header is quoted"
    assert quotations.probability is not None
    assert quotations.probability > 0.5


def test_the_year_of_a_document_stands_for_the_year_that_a_question_names() -> None:
    text = passage(1, ["A place costs 40 pounds a month."])
    dated = replace(text, source=replace(SOURCE, valid_from=date(2022, 2, 1)))
    of_year, of_none = (
        ask(QuotableAnswer(one), {"place", "cost", "2022"}, {1: 0.5}).probability for one in (dated, text)
    )
    assert of_year is not None
    assert of_none is not None
    assert of_year > of_none + 0.2


def test_a_code_that_no_sentence_has_makes_an_answer_improbable() -> None:
    answer = QuotableAnswer(passage(1, CODES))
    named = ask(answer, {"exit", "code", "17"}, {3: 0.5, 4: 0.5}).probability
    other = ask(answer, {"exit", "code", "42"}, {3: 0.5, 4: 0.5}).probability
    assert named is not None
    assert other is not None
    assert other < 0.5 < named


def test_a_date_in_another_calendar_is_no_missing_code() -> None:
    said = ["島は静かです。", "平成八年四月に船が就航しました。"]
    asked = time_constraint("1996年4月に何がありましたか。")
    answer = QuotableAnswer(replace(passage(1, said), language="ja"))
    named = quote(answer, {"ja": {"1996", "4", "月"}}, {2: 0.5}, asked).probability
    other = quote(answer, {"ja": {"1997", "4", "月"}}, {2: 0.5}, time_constraint("1997年4月")).probability
    assert named is not None
    assert other is not None
    assert other < named


def test_neighbours_are_quoted_with_the_best_sentence_in_reading_order_and_once() -> None:
    quotations = ask(QuotableAnswer(passage(1, PUMP)), {"address"}, {2: 0.9, 1: 0.2, 5: 0.3})
    assert [one.text for one in quotations.quotes] == [" ".join(PUMP[:4]), PUMP[4]]
    assert [one.sentence.sentence_id for one in quotations.quotes] == [2, 5]


def test_chinese_sentences_are_quoted_without_spaces_between_them() -> None:
    (quotation,) = ask(
        QuotableAnswer(passage(1, ["图书馆周一闭馆。", "1987年搬到人民路。"])), {"周一"}, {1: 0.9}
    ).quotes
    assert quotation.text == "图书馆周一闭馆。1987年搬到人民路。"


def test_a_sentence_that_verdicts_vouch_for_comes_first_and_is_certain() -> None:
    answer = QuotableAnswer(passage(1, PUMP[2:4]), passage(9, ["See chapter four."], recall=0.9), sufficiency=0.1)
    quotations = ask(answer, {"port"}, {1: 0.6, 9: 0.1})
    assert quotations.quotes[0].text == "See chapter four."
    assert quotations.probability == 1.0


@pytest.mark.parametrize(("sufficiency", "probability"), [(None, None), (0.9, 0.0)])
def test_nothing_to_quote(sufficiency: float | None, probability: float | None) -> None:
    assert ask(QuotableAnswer(sufficiency=sufficiency), {"port"}, {}) == Quotations([], probability)


def test_a_long_table_is_cut_to_its_header_and_the_best_rows() -> None:
    rows = [f"| E{number:03} | Meaning of number {number} |" for number in range(100)]
    cut = cut_table("\n".join(["| Code | Meaning |", *rows]), {"e042": 2.0, "meaning": 0.1}, "en").splitlines()
    assert cut[0] == "| Code | Meaning |"
    assert rows[42] in cut
    assert len("".join(cut)) <= QUOTE_CHARACTERS


def test_a_pasted_log_is_quoted_whatever_share_of_its_words_a_sentence_has() -> None:
    log = {f"word{number}" for number in range(30)} | {"17"}
    quotations = ask(QuotableAnswer(passage(1, CODES)), log, {4: 0.5})
    assert quotations.probability is None
    assert quotations.quotes[0].text == CODES[3]
