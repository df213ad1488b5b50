"""The level of withholding, measured by questions made from a collection's own passages."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import EmbeddingUnavailableError
from engram.core.ranking.weight_beliefs import sigmoid
from engram.core.ranking.withholding_level import calibrate
from engram.services.maintenance import level_measurement
from engram.services.maintenance.level_measurement import (
    LEAST_QUESTIONS,
    MOST_WORDS,
    RETRY_SECONDS,
    LevelMeasurement,
    derive_questions,
)
from engram.services.question.answer import Answer
from engram.services.question.query import Query
from engram.services.question.search import RetrievalService
from engram.services.question.sufficiency import find_midpoint
from tests.support import state
from tests.support.databases import application_on
from tests.support.model_server import ModelServer

Ingest = Callable[..., Mapping[str, Any]]
PLACES = ("Leeds", "Lyon", "Turin", "Porto", "Gdansk", "Bergen", "Cork", "Graz", "Brno", "Riga", "Vigo", "Basel")
THINGS = ("sensors", "ladders", "helmets", "cables", "lamps", "pumps", "filters", "valves", "ropes", "buoys")


@pytest.fixture(scope="module")
def application(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """An application on a database of its own: a run measures everybody's collections."""
    with application_on(own, settings, application) as services:
        yield services


class Clock:
    """A clock that moves when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def build_measurement(
    application: Application, clock: Clock, retrieve: Callable[[], RetrievalService]
) -> LevelMeasurement:
    models = application.models
    return LevelMeasurement(application.database, retrieve, lambda: models.priors, lambda: models.encoder, clock)


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


def test_a_measured_collection_states_calibrated_sufficiency_and_ranks_as_before(
    application: Application, ingest: Ingest, collection: str
) -> None:
    def ask(text: str) -> Answer:
        query = Query(text=text, scope=application.auth.access.scope(collection), include=frozenset({"trace"}))
        return application.answers.question.answer(query)

    questions = ("Who paints the bridge of Oslo?", "Which workshop repairs broken lamps on floor 4?")
    ingest(*build_passages(LEAST_QUESTIONS))
    before = [ask(text) for text in questions]
    application.retrieval.levels.run()
    after = [ask(text) for text in questions]

    level = application.auth.access.scope(collection).collection.level
    assert level is not None
    assert level.midpoint is not None
    assert level.midpoint > 0.0
    assert [one.sufficiency for one in before] == [one.steering for one in before]
    general = application.models.priors.general
    encyclopedic = replace(application.auth.access.scope(collection).collection, fixed_kind="encyclopedic")
    assert find_midpoint(encyclopedic, general) == 0.0
    stated = [calibrate(one.steering or 0.0, level.midpoint) for one in before]
    assert [one.sufficiency for one in after] == pytest.approx(stated)
    assert [one.steering for one in after] == [one.steering for one in before]
    assert [one.passages for one in after] == [one.passages for one in before]
    for one in after:
        assert one.trace is not None
        assert one.trace.sufficiency is not None
        odds = sum(feature.value * feature.weight for feature in one.trace.sufficiency.features.values())
        assert one.trace.sufficiency.model == pytest.approx(float(sigmoid(odds)))


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


def test_statements_that_give_too_long_questions_are_left_out(
    own: Servers, settings: Settings, application: Application, ingest: Ingest, collection: str
) -> None:
    tables = [" ".join(f"{thing}{number}" for number in range(60)) for thing in THINGS]
    ingest(
        *build_passages(LEAST_QUESTIONS),
        *({"id": f"table-{number}", "text": f"{text}."} for number, text in enumerate(tables)),
    )
    with application_on(own, settings.model_copy(update={"question_tokens": 16}), application) as services:
        assert services.retrieval.levels.run() == 1
        assert find_level(services, collection)[1] == "passages"


@pytest.mark.parametrize("failure", [EmbeddingUnavailableError("It is away."), ValueError("a fault of ours")])
def test_a_collection_that_cannot_be_measured_waits_while_others_go_on(
    application: Application, ingest: Ingest, collection: str, failure: Exception
) -> None:
    other, clock, failing, asked = f"{collection}-other", Clock(), [failure], list[int]()
    for name in (collection, other):
        ingest(*build_passages(LEAST_QUESTIONS), into=name)

    def retrieve() -> RetrievalService:
        asked.append(1)
        if failing:
            raise failing.pop()
        return application.retrieval.retrieve_unreranked

    levels = build_measurement(application, clock, retrieve)
    if isinstance(failure, ValueError):
        with pytest.raises(ValueError, match="a fault of ours"):
            levels.run()
    assert levels.run() == 1
    assert find_level(application, collection)[1] == "prior"
    assert find_level(application, other)[1] == "passages"

    asked.clear()
    clock.now = RETRY_SECONDS - 1
    assert levels.run() == 0
    assert not asked
    clock.now = RETRY_SECONDS
    assert levels.run() == 1
    assert find_level(application, collection)[1] == "passages"


def test_a_run_measures_some_collections_and_each_as_it_is_by_then(
    application: Application, ingest: Ingest, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{collection}-{number}" for number in range(3)]
    for name in names:
        ingest(*build_passages(LEAST_QUESTIONS), into=name)
    growing = [names[1]]

    def retrieve() -> RetrievalService:
        for name in growing:
            growing.remove(name)
            ingest(*build_passages(2 * LEAST_QUESTIONS), into=name)
        return application.retrieval.retrieve_unreranked

    monkeypatch.setattr(level_measurement, "COLLECTIONS", 2)
    levels = build_measurement(application, Clock(), retrieve)
    assert levels.run() == 2
    grown = application.auth.access.scope(names[1]).collection.level
    assert grown is not None
    assert grown.passages == 2 * LEAST_QUESTIONS
    assert levels.run() == 1
    assert levels.run() == 0


def test_measuring_asks_no_reranker(
    own: Servers, settings: Settings, application: Application, ingest: Ingest, collection: str
) -> None:
    ingest(*build_passages(LEAST_QUESTIONS))
    with (
        ModelServer(scores=lambda question, texts: [0.5] * len(texts)) as server,
        application_on(own, settings.model_copy(update={"reranker_url": server.root}), application) as services,
    ):
        assert services.retrieval.levels.run() == 1
        assert not server.requests
        find_level(services, collection)
        assert server.requests


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


def test_a_question_has_a_bounded_number_of_words() -> None:
    sentence = " ".join(f"pump{number}" for number in range(10 * MOST_WORDS))
    (question,) = derive_questions(None, [sentence], "en", 1)
    assert question.split() == sentence.split()[: 2 * MOST_WORDS : 2]
