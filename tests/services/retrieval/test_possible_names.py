"""Names of a question that only its collection can tell."""

import pytest

from engram.composition.container import Application
from engram.services.retrieval.possible_names import RARE_PASSAGES, select_longest
from engram.services.retrieval.query import Query
from tests.conftest import Ingest


@pytest.mark.parametrize(
    ("question", "names", "possible", "chosen"),
    [
        ("東大寺の仏像は?", [], ["東大寺", "東大寺の仏像", "仏像"], {"東大寺の仏像"}),
        ("Wo liegt Burg Lund?", ["Burg Lund"], ["Lund", "Burg"], set()),
        ("陳朝と陳", [], ["陳朝", "陳"], {"陳朝", "陳"}),
    ],
)
def test_the_longest_names_are_chosen(
    question: str, names: list[str], possible: list[str], chosen: set[str]
) -> None:
    assert select_longest(question, names, possible) == chosen


def test_a_title_in_a_question_without_capitals_is_a_name(
    application: Application, ingest: Ingest, collection: str
) -> None:
    common = [
        {"id": f"c{n}", "title": "都", "text": f"これは{n}番目の都の話です。"} for n in range(RARE_PASSAGES + 1)
    ]
    ingest(*common, {"id": "tran", "title": "陳朝", "text": "昇龍を都としたベトナムの王朝である。"})
    scope = application.auth.access.scope(collection)

    answer = application.answers.question.answer(
        Query(text="陳朝の都は、どこだったか?", scope=scope, include=frozenset({"trace"}))
    )

    assert answer.trace is not None
    assert [entity.mention for entity in answer.trace.entities] == ["陳朝"]
    assert answer.passages[0].passage_id == "tran"
