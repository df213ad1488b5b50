"""The level of withholding, measured by questions made from a collection's own passages."""

from collections.abc import Callable, Mapping
from typing import Any

from engram.composition.container import Application
from engram.services.question.level_measurement import LEAST_QUESTIONS, derive_questions
from engram.services.question.query import Query
from tests.support import state

Ingest = Callable[..., Mapping[str, Any]]
PLACES = ("Leeds", "Lyon", "Turin", "Porto", "Gdansk", "Bergen", "Cork", "Graz", "Brno", "Riga", "Vigo", "Basel")
THINGS = ("sensors", "ladders", "helmets", "cables", "lamps", "pumps", "filters", "valves", "ropes", "buoys")


def build_passages(count: int) -> list[dict[str, str]]:
    return [
        {
            "id": f"store-{number}",
            "title": f"Store {number}",
            "text": f"The {PLACES[number % 12]} workshop repairs broken {THINGS[number % 10]} on floor {number}. "
            "Ask at the desk.",
        }
        for number in range(count)
    ]


def find_level(application: Application, name: str) -> tuple[float, str]:
    scope = application.auth.access.scope(name)
    query = Query(text="Who repairs lamps?", scope=scope, min_sufficiency="auto")
    level = application.answers.question.answer(query).sufficiency_level
    assert level is not None
    return level.value, level.source


def test_questions_without_their_passages_give_the_level(
    application: Application, ingest: Ingest, collection: str
) -> None:
    ingest(*build_passages(LEAST_QUESTIONS))
    before = find_level(application, collection)
    assert before == (state.prior_of(application, collection).sufficiency_level, "prior")
    episodes = len(state.rows(application, collection, "episode"))

    assert application.retrieval.levels.run() == 1

    value, source = find_level(application, collection)
    assert source == "passages"
    assert 0.0 < value < 1.0
    assert len(state.rows(application, collection, "episode")) == episodes + 1


def test_a_level_is_measured_again_once_the_collection_has_grown(
    application: Application, ingest: Ingest, collection: str
) -> None:
    ingest(*build_passages(LEAST_QUESTIONS))
    application.retrieval.levels.run()
    first = find_level(application, collection)
    ingest(*build_passages(LEAST_QUESTIONS + 1))
    assert application.retrieval.levels.run() == 0
    ingest(*build_passages(2 * LEAST_QUESTIONS))
    assert application.retrieval.levels.run() == 1
    assert find_level(application, collection) != first


def test_passages_that_give_no_question_leave_the_level_of_the_prior(
    application: Application, ingest: Ingest, collection: str
) -> None:
    ingest(*({"id": f"n{number}", "text": f"Number {number}."} for number in range(LEAST_QUESTIONS)))
    assert application.retrieval.levels.run() == 1
    assert find_level(application, collection)[1] == "prior"
    assert application.retrieval.levels.run() == 0


def test_a_query_leaves_out_the_passages_that_it_names(application: Application, curie: str) -> None:
    titan, scope = state.passages(application, curie)["curie"], application.auth.access.scope(curie)
    retrieve = application.retrieval.retrieve
    for without, found in ((), True), ((titan,), False):
        query = Query(text="Where was Marie Curie born?", scope=scope, memory="off", without=without)
        assert (titan in retrieve.find(retrieve.plan(query)).ranking.candidates) == found


def test_a_question_has_every_other_word_of_a_long_statement() -> None:
    sentences = [
        "Repairs",
        "Ask there.",
        "Broken pumps from Leeds go to the store on Monday.",
        "The workshop in Leeds repairs broken sensors within nine working days.",
    ]
    longest = "workshop repairs sensors working"
    assert derive_questions("Repairs", sentences, "en", 1) == [longest]
    assert derive_questions("Repairs", sentences, "en", 3) == [longest, "Broken Leeds store"]
