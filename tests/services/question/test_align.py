"""Names of a question, and what the first hop of a walk starts from."""

from itertools import permutations

import pytest

from engram.composition.container import Application
from engram.services.question.align import RARE_PASSAGES, build_first_frontier, select_longest
from engram.services.question.query import Query
from engram.services.question.trace import EntityAnswer
from engram.storage.question import entity_lookup
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


def test_a_name_is_not_compared_with_more_names_than_a_statement_can_without_an_index(
    application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = application.auth.access.scope(curie)
    asked = Query(text="Where was Marya Curie born?", scope=scope, include=frozenset({"trace"}))

    found = []
    for most in (entity_lookup.COMPARED_ENTITIES, 1):
        monkeypatch.setattr(entity_lookup, "COMPARED_ENTITIES", most)
        answer = application.answers.question.answer(asked)
        assert answer.trace is not None
        assert answer.passages
        found.append([entity.name for entity in answer.trace.entities])

    assert found == [["Marie Curie"], []]


def test_of_several_mentions_of_an_entity_the_best_counts() -> None:
    aligned = [
        EntityAnswer("Marie Curie", 7, "Marie Curie", 1.0),
        EntityAnswer("Mme Curie", 7, "Marie Curie", 0.8),
        EntityAnswer("Warschau", 9, "Warsaw", 0.6),
    ]

    for order in permutations(aligned):
        started = build_first_frontier(order)
        assert started.activation == {7: 1.0, 9: 0.6}
        assert started.names == {7: "Marie Curie", 9: "Warsaw"}
