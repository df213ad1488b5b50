"""Collections that serve by arms or in shadow, and settings that change by merge patches."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.core.experiments.assignment import assign
from engram.services.experiments.experiment_arms import merge_patch
from engram.services.learning.incoming_verdict import NamedSentence, Verdict
from engram.services.retrieval.query import Query
from tests.support import state
from tests.support.threads import ThreadPoolExecutor

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
        text=QUESTION, scope=application.access.scope(collection), caller_chose_arm=False, unit=unit, **more
    )


def find_recorded_arm(application: Application, collection: str, query_id: UUID) -> str | None:
    found = {row["id"]: row["arm"] for row in state.rows(application, collection, "episode")}
    arm: str | None = found[str(query_id)]
    return arm


def teach(application: Application, collection: str, query_id: UUID) -> None:
    """A verdict in favour of everything that speaks of Warsaw."""
    sentence = state.sentences(application, collection, "warsaw")["Warsaw is the capital of Poland."]
    verdict = Verdict(
        query_id=query_id,
        scope=application.access.scope(collection),
        supporting=[NamedSentence(sentence)],
        judge="judge",
    )
    receipt = application.feedback.accept(verdict, str(uuid4()), wait=True)
    assert receipt.event.status == "applied"


def test_units_are_served_by_the_arm_that_their_hash_gives(application: Application, curie: str) -> None:
    application.serving.configure(application.access.scope(curie), {"experiment": ARMS})
    identity = state.collection_id(application, curie)
    seen = set()
    for unit in UNITS:
        at = assign(identity, ["without", "words"], [40, 30], unit)
        answer = application.serving.query(free(application, curie, unit))
        expected = {None: (None, "read", "default", "graph"), 0: ("without", "off", "default", "graph")}
        expected[1] = ("words", "read", "paper", "lexical")
        assert (answer.arm, answer.memory, answer.profile, answer.strategy) == expected[at]
        assert find_recorded_arm(application, curie, answer.query_id) == answer.arm
        assert application.serving.query(free(application, curie, unit)).arm == answer.arm
        seen.add(at)
    assert seen == {None, 0, 1}


def test_without_a_unit_the_query_id_decides(application: Application, curie: str) -> None:
    application.serving.configure(application.access.scope(curie), {"experiment": ARMS})
    identity = state.collection_id(application, curie)
    for _ in range(10):
        answer = application.serving.query(free(application, curie))
        at = assign(identity, ["without", "words"], [40, 30], str(answer.query_id))
        assert answer.arm == (None if at is None else ARMS["arms"][at]["name"])


def test_a_query_that_says_an_arm_keeps_it(application: Application, curie: str) -> None:
    application.serving.configure(
        application.access.scope(curie), {"experiment": {"arms": [ARMS["arms"][0] | {"percent": 100}]}}
    )
    asked = Query(
        text=QUESTION, scope=application.access.scope(curie), memory="read", strategy="hybrid", unit="user"
    )
    answer = application.serving.query(asked)
    assert (answer.arm, answer.memory, answer.strategy) == (None, "read", "hybrid")
    assert application.serving.query(free(application, curie, "user")).arm == "without"


def test_a_query_that_bounds_hops_goes_to_no_arm_if_one_makes_none(application: Application, curie: str) -> None:
    whole = [ARMS["arms"][0] | {"percent": 50}, ARMS["arms"][1] | {"percent": 50}]
    application.serving.configure(application.access.scope(curie), {"experiment": {"arms": whole}})
    for unit in UNITS[:10]:
        answer = application.serving.query(free(application, curie, unit, max_hops=1))
        assert (answer.arm, answer.strategy, answer.hops) == (None, "graph", 1)
    application.serving.configure(
        application.access.scope(curie), {"experiment": {"arms": [whole[0] | {"percent": 100}]}}
    )
    assert application.serving.query(free(application, curie, max_hops=1)).arm == "without"


def test_in_shadow_memory_is_learned_and_not_served(application: Application, curie: str) -> None:
    first = application.serving.query(Query(text=QUESTION, scope=application.access.scope(curie)))
    application.serving.configure(application.access.scope(curie), {"serving": "shadow", "experiment": ARMS})
    teach(application, curie, first.query_id)
    assert state.rows(application, curie, "sentence_memory")
    for query in (
        Query(text=QUESTION, scope=application.access.scope(curie), memory="read"),
        free(application, curie, "user-1"),
        free(application, curie),
    ):
        answer = application.serving.query(query)
        assert (answer.memory, answer.shadow, answer.arm) == ("off", True, None)
    stored = application.ask.episode(application.access.scope(curie), answer.query_id)
    assert stored.answer["memory"] == "off"
    assert stored.answer["shadow"] is True
    ours = application.ask.query(
        Query(text=QUESTION, scope=application.access.scope(curie), include=frozenset({"trace"}))
    )
    assert (ours.memory, ours.shadow) == ("read", False)
    assert ours.trace is not None
    assert ours.trace.recalled, "the service below sees what was learned"
    application.serving.configure(application.access.scope(curie), {"serving": "live"})
    lives = application.serving.query(Query(text=QUESTION, scope=application.access.scope(curie)))
    assert (lives.memory, lives.shadow) == ("read", False)


def test_shadow_answers_as_if_nothing_had_been_learned(application: Application, curie: str) -> None:
    before = application.serving.query(Query(text=QUESTION, scope=application.access.scope(curie), memory="off"))
    teach(application, curie, before.query_id)
    application.serving.configure(application.access.scope(curie), {"serving": "shadow"})
    after = application.serving.query(Query(text=QUESTION, scope=application.access.scope(curie), memory="read"))
    assert [hit.passage_id for hit in after.passages] == [hit.passage_id for hit in before.passages]
    assert [hit.score for hit in after.passages] == [hit.score for hit in before.passages]


def test_patches_change_what_they_name(application: Application, curie: str) -> None:
    scope, configure = application.access.scope(curie), application.serving.configure
    fresh = scope.collection
    assert (fresh.serving, fresh.experiment, fresh.exploration) == ("live", None, None)
    assert configure(scope, {}) == fresh
    made = configure(scope, {"serving": "shadow", "exploration": {"share": 0.5, "slots": 3, "seed": 4}})
    assert (made.serving, made.exploration) == ("shadow", {"share": 0.5, "slots": 3, "seed": 4})
    made = configure(scope, {"exploration": {"share": 0.25, "seed": None}})
    assert (made.serving, made.exploration) == ("shadow", {"share": 0.25, "slots": 3, "seed": None})
    made = configure(scope, {"experiment": ARMS})
    assert made.experiment == {
        "arms": [
            {"name": "without", "percent": 40.0, "memory": "off", "profile": "default", "strategy": "graph"},
            {"name": "words", "percent": 30, "memory": "read", "profile": "paper", "strategy": "lexical"},
        ]
    }
    one = configure(scope, {"experiment": {"arms": [{"name": "only", "percent": 5}]}}).experiment
    assert one is not None
    assert [arm["name"] for arm in one["arms"]] == ["only"]
    assert configure(scope, {"serving": None, "experiment": None, "exploration": None}) == fresh
    assert application.access.scope(curie).collection == fresh


def test_concurrent_patches_are_all_applied(application: Application, curie: str) -> None:
    patches: list[dict[str, Any]] = [{"serving": "shadow"}, {"experiment": ARMS}, {"exploration": {"share": 0.5}}]
    for _ in range(5):
        application.serving.configure(
            application.access.scope(curie), {"serving": None, "experiment": None, "exploration": None}
        )
        with ThreadPoolExecutor(len(patches)) as pool:
            list(
                pool.map(
                    lambda patch: application.serving.configure(application.access.scope(curie), patch), patches
                )
            )
        found = application.access.scope(curie).collection
        assert found.serving == "shadow"
        assert found.experiment is not None
        assert found.exploration is not None


@pytest.mark.parametrize(
    "patch",
    [
        {"experiment": {}},
        {"experiment": {"arms": []}},
        {"experiment": {"arms": [{"name": "a", "percent": 60}, {"name": "b", "percent": 41}]}},
        {"experiment": {"arms": [{"name": "a", "percent": 6}, {"name": "a", "percent": 4}]}},
        {"exploration": {"slots": 2}},
    ],
)
def test_invalid_experiment_settings_change_nothing(
    application: Application, curie: str, patch: Mapping[str, Any]
) -> None:
    before = (
        application.serving.configure(application.access.scope(curie), {"experiment": ARMS})
        if "exploration" in patch
        else None
    )
    with pytest.raises(InvalidRequestError):
        application.serving.configure(application.access.scope(curie), {"serving": "shadow", **patch})
    assert application.access.scope(curie).collection.serving == "live"
    assert before is None or application.access.scope(curie).collection == before


# RFC 7396, Appendix A.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merging_is_that_of_the_standard(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result
