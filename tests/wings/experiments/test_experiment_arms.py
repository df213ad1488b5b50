"""Collections that serve by arms."""

from typing import Any
from uuid import UUID

from engram.composition.container import Application
from engram.services.question.query import Query
from engram.wings.experiments.core.assignment import assign
from tests.support import state

QUESTION = "Where was Marie Curie born?"
ARMS = {
    "arms": [
        {"name": "without", "percent": 40.0, "memory": "off"},
        {"name": "words", "percent": 30, "strategy": "lexical", "profile": "paper"},
    ]
}
UNITS = [f"user-{number}" for number in range(30)]


def free(application: Application, collection: str, unit: str | None = None, **more: Any) -> Query:
    """A question that says no arm."""
    return Query(
        text=QUESTION, scope=application.auth.access.scope(collection), caller_chose_arm=False, unit=unit, **more
    )


def find_recorded_arm(application: Application, collection: str, query_id: UUID) -> str | None:
    found = {row["id"]: row["arm"] for row in state.rows(application, collection, "episode")}
    arm: str | None = found[str(query_id)]
    return arm


def test_units_are_served_by_the_arm_that_their_hash_gives(application: Application, curie: str) -> None:
    application.corpus.collection_settings.configure(application.auth.access.scope(curie), {"experiment": ARMS})
    identity = state.collection_id(application, curie)
    seen = set()
    for unit in UNITS:
        at = assign(identity, ["without", "words"], [40, 30], unit)
        answer = application.answers.question.serve(free(application, curie, unit))
        expected = {None: (None, "read", "default", "graph"), 0: ("without", "off", "default", "graph")}
        expected[1] = ("words", "read", "paper", "lexical")
        assert (answer.arm, answer.memory, answer.profile, answer.strategy) == expected[at]
        assert find_recorded_arm(application, curie, answer.query_id) == answer.arm
        assert application.answers.question.serve(free(application, curie, unit)).arm == answer.arm
        seen.add(at)
    assert seen == {None, 0, 1}


def test_without_a_unit_the_query_id_decides(application: Application, curie: str) -> None:
    application.corpus.collection_settings.configure(application.auth.access.scope(curie), {"experiment": ARMS})
    identity = state.collection_id(application, curie)
    for _ in range(10):
        answer = application.answers.question.serve(free(application, curie))
        at = assign(identity, ["without", "words"], [40, 30], str(answer.query_id))
        assert answer.arm == (None if at is None else ARMS["arms"][at]["name"])


def test_a_query_that_says_an_arm_keeps_it(application: Application, curie: str) -> None:
    application.corpus.collection_settings.configure(
        application.auth.access.scope(curie), {"experiment": {"arms": [ARMS["arms"][0] | {"percent": 100}]}}
    )
    asked = Query(
        text=QUESTION, scope=application.auth.access.scope(curie), memory="read", strategy="hybrid", unit="user"
    )
    answer = application.answers.question.serve(asked)
    assert (answer.arm, answer.memory, answer.strategy) == (None, "read", "hybrid")
    assert application.answers.question.serve(free(application, curie, "user")).arm == "without"


def test_a_query_that_bounds_hops_goes_to_no_arm_if_one_makes_none(application: Application, curie: str) -> None:
    whole = [ARMS["arms"][0] | {"percent": 50}, ARMS["arms"][1] | {"percent": 50}]
    application.corpus.collection_settings.configure(
        application.auth.access.scope(curie), {"experiment": {"arms": whole}}
    )
    for unit in UNITS[:10]:
        answer = application.answers.question.serve(free(application, curie, unit, max_hops=1))
        assert (answer.arm, answer.strategy, answer.hops) == (None, "graph", 1)
    application.corpus.collection_settings.configure(
        application.auth.access.scope(curie), {"experiment": {"arms": [whole[0] | {"percent": 100}]}}
    )
    assert application.answers.question.serve(free(application, curie, max_hops=1)).arm == "without"


def test_in_shadow_a_query_goes_to_no_arm(application: Application, curie: str) -> None:
    application.corpus.collection_settings.configure(
        application.auth.access.scope(curie), {"serving": "shadow", "experiment": ARMS}
    )
    for query in (free(application, curie, "user-1"), free(application, curie)):
        answer = application.answers.question.serve(query)
        assert (answer.memory, answer.shadow, answer.arm) == ("off", True, None)
