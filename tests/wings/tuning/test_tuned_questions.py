"""Serving: which questions are read by a generation, and that nothing else is."""

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from engram.composition.container import Application
from engram.providers.embedder.question_tuning import QuestionTuning
from engram.services.auth.scope import Scope
from engram.services.encoders.encoder import Encoder
from engram.services.question.query import Query
from engram.services.question.search import RetrievalResult
from engram.storage.corpus.collections import Collection
from engram.storage.database import Reader, observe_sql
from engram.telemetry.stages import Stage, stage
from engram.wings.tuning.core.learn_adapter import DEFAULT_OPTIONS
from engram.wings.tuning.parts import tuning_of
from engram.wings.tuning.services.tuned_questions import TunedQuestions
from engram.wings.tuning.storage import tuning_generations
from engram.wings.tuning.storage.tuning_generations import StoredAdapter
from tests.support.encoder import SOME_ENCODER
from tests.support.tuned import judge_questions
from tests.wings.tuning.conftest import Tune

QUESTION = "Who found element 84?"
STRONG = replace(DEFAULT_OPTIONS, epochs=20)


@pytest.fixture
def scope(application: Application, curie: str) -> Scope:
    return application.auth.access.scope(curie)


def ask(application: Application, scope: Scope, **more: str) -> RetrievalResult:
    retrieve = application.retrieval.retrieve
    asked = {"strategy": "hybrid"} | more
    return retrieve.find(retrieve.plan(Query(text=QUESTION, scope=scope, **asked)))  # type: ignore[arg-type]


def test_the_serving_generation_reads_questions_for_passages_alone(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    before = ask(application, scope).plan
    assert (before.question_generation, before.focus.key_vector) == (0, None)
    tune(scope, options=STRONG)
    plan = ask(application, scope).plan
    assert plan.question_generation == 1
    assert plan.focus.key_vector is not None
    assert plan.focus.key_vector @ plan.focus.key_vector == pytest.approx(1.0, abs=1e-5)
    assert not np.allclose(plan.focus.key_vector, plan.focus.vector, atol=1e-2)
    np.testing.assert_allclose(plan.focus.vector, before.focus.vector, atol=1e-6)


@pytest.mark.parametrize(
    ("asked", "reads"),
    [
        ({"strategy": "dense"}, True),
        ({"strategy": "hybrid"}, True),
        ({"strategy": "dense", "profile": "paper"}, True),
        ({"strategy": "graph"}, False),
        ({"strategy": "graph", "profile": "paper"}, False),
        ({"memory": "off"}, False),
    ],
)
def test_strategies_that_read_it(
    application: Application, scope: Scope, judged: list[int], tune: Tune, asked: dict[str, str], reads: bool
) -> None:
    tune(scope, options=STRONG)
    plan = ask(application, scope, **asked).plan
    assert plan.question_generation == (1 if reads else None)
    assert (plan.focus.key_vector is not None) == reads


def test_dense_scores_are_cosines_with_the_tuned_vector(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    tune(scope, options=STRONG)
    result = ask(application, scope, strategy="dense")
    stored = {passage: result.passages[passage] for passage, _ in result.shown.best}
    texts = [f"{one.title}. {one.text}" for one in stored.values()]
    assert result.plan.focus.key_vector is not None
    cosines = application.models.embedder.embed(texts) @ result.plan.focus.key_vector
    np.testing.assert_allclose([score for _, score in result.shown.best], cosines, atol=1e-3)


def test_a_withdrawn_generation_serves_no_further_query(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    tune(scope, options=STRONG)
    plan = ask(application, scope).plan
    application.learning.revocation.revoke(scope, judged[0])
    found = application.retrieval.retrieve.find(plan)
    assert found.plan.question_generation == 0
    assert found.plan.focus.key_vector is None


def test_a_generation_after_a_reset_is_not_taken_for_an_earlier_one(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    tune(scope, options=STRONG)
    first = ask(application, scope).plan
    application.revocation.learning_reset.reset(scope)
    judge_questions(application, scope.collection.name, [(QUESTION, "tokyo"), ("Where is a bay?", "tokyo")])
    tune(scope, options=STRONG)
    again = ask(application, scope).plan
    assert (first.question_generation, again.question_generation) == (1, 2)
    learned = TunedQuestions(application.database, lambda: application.models.encoder)
    expected = learned.embed(scope.collection, 2, [QUESTION])
    assert expected is not None
    assert again.focus.key_vector is not None
    np.testing.assert_allclose(again.focus.key_vector, expected[0], atol=1e-6)
    assert not np.allclose(again.focus.key_vector, first.focus.key_vector, atol=1e-2)


def test_a_query_sends_no_further_statement(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    def count_statements() -> int:
        ask(application, scope)  # a process loads an adapter once
        statements: list[str] = []
        with observe_sql(lambda statement, *_: statements.append(statement)):
            ask(application, scope)
        return len(statements)

    before = count_statements()
    tune(scope, options=STRONG)
    assert count_statements() == before


def test_questions_are_embedded_twice_only_while_a_generation_serves(
    application: Application, scope: Scope, judged: list[int], tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[Stage] = []

    def note(name: Stage) -> stage:
        stages.append(name)
        return stage(name)

    def count_embedded() -> int:
        ask(application, scope)  # a process notes what serves
        stages.clear()
        ask(application, scope)
        return stages.count("embed")

    monkeypatch.setattr("engram.services.question.plan.stage", note)
    assert count_embedded() == 1
    tune(scope, options=STRONG)
    assert count_embedded() == 2


def test_a_process_keeps_few_adapters(
    application: Application, scope: Scope, judged: list[int], tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        tune(scope)
    loads: list[int] = []
    load = tuning_generations.load_adapter

    def count_loads(reader: Reader, collection: int, number: int) -> StoredAdapter | None:
        loads.append(number)
        return load(reader, collection, number)

    monkeypatch.setattr(tuning_generations, "load_adapter", count_loads)
    questions = TunedQuestions(application.database, lambda: application.models.encoder, most_adapters=1)
    assert questions.find_generation(scope.collection.id) == 0
    for number in (1, 1, 2, 1):
        assert questions.embed(scope.collection, number, [QUESTION]) is not None
    assert loads == [1, 2, 1]
    assert questions.find_generation(scope.collection.id) == 1
    other = replace(scope.collection, id=scope.collection.id + 1_000_000)
    assert questions.embed(other, 1, [QUESTION]) is None
    assert questions.find_generation(scope.collection.id) == 0
    assert questions.embed(scope.collection, 0, [QUESTION]) is None
    assert questions.embed(scope.collection, 3, [QUESTION]) is None


def test_a_kept_adapter_is_not_used_for_another_encoder(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    class SameForAll:
        def find_question_tuning(self, _: Collection) -> QuestionTuning | None:
            return application.models.encoder.find_question_tuning(scope.collection)

    tune(scope)
    questions = TunedQuestions(application.database, lambda: cast(Encoder, SameForAll()))
    assert questions.embed(scope.collection, 1, [QUESTION]) is not None
    changed = replace(scope.collection, encoder_fingerprint=SOME_ENCODER.fingerprint)
    assert questions.embed(changed, 1, [QUESTION]) is None


def test_going_back_and_switching_off(
    application: Application, scope: Scope, judged: list[int], tune: Tune
) -> None:
    for _ in range(2):
        tune(scope)
    service = tuning_of(application).tuning
    for change, serving in (
        ({"serving": 1}, 1),
        ({"serving": 0}, 0),
        ({"is_on": True}, 2),
        ({"is_on": False}, 0),
    ):
        service.change(scope, **change)  # type: ignore[arg-type]
        assert service.load_standing(scope).serving == serving
        assert ask(application, scope).plan.question_generation == serving
