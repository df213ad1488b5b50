"""Long questions: their beginning and end are read, and a warning says so."""

from dataclasses import replace

import pytest

from engram.composition.container import Application
from engram.services.question.query import Query
from engram.wings.frontends.parts import FrontendServices
from engram.wings.frontends.services.long_questions import keep_ends


def test_a_text_that_fits_stays_as_it_is() -> None:
    assert keep_ends("x " * 50, 100) == "x " * 50


@pytest.mark.parametrize("blank", [" ", "\n"])
def test_the_ends_of_a_log_are_whole_words(blank: str) -> None:
    lines = ["Why?", *(f"line-{number}" for number in range(500)), "code-17"]
    text = keep_ends(blank.join(lines), 200)
    assert text.startswith(f"Why?{blank}line-0{blank}line-1{blank}")
    assert text.endswith(f"line-499{blank}code-17")
    assert 150 < len(text) <= 200
    assert set(text.split()) <= set(lines)


def test_a_text_without_blanks_is_cut_anywhere() -> None:
    assert keep_ends("a" * 100 + "b" * 100, 20) == "a" * 9 + "\n" + "b" * 10


@pytest.mark.parametrize("line", ["reset by peer at 10.0.0.17:4711 ", "0x7ffdeadbeef", "Überspannung "])
def test_a_question_is_shortened_until_the_encoder_may_read_it(
    application: Application, curie: str, line: str
) -> None:
    questions = application.wing(FrontendServices).long_questions
    query = Query(
        text=f"Where was Marie Curie born? {line * 5_000} Says Warsaw.", scope=application.auth.access.scope(curie)
    )
    fitting, (warning,) = questions.fit(query)
    assert fitting.text.startswith("Where was Marie Curie born?")
    assert fitting.text.endswith("Says Warsaw.")
    assert application.models.encoder.count_excess(fitting.text) == 0
    assert len(fitting.text) > 300, "no more is left out than needed"
    assert warning.type == "question-shortened"
    short = replace(query, text="Where was Marie Curie born?")
    assert questions.fit(short) == (short, ())
