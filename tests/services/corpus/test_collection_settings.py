"""Settings of collections, which change by merge patches."""

from collections.abc import Mapping
from typing import Any

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.services.corpus.collection_settings import merge_patch
from tests.support.threads import ThreadPoolExecutor

ARMS = {
    "arms": [
        {"name": "without", "percent": 40.0, "memory": "off"},
        {"name": "words", "percent": 30, "strategy": "lexical", "profile": "paper"},
    ]
}


@pytest.mark.wing("experiments")
def test_patches_change_what_they_name(application: Application, curie: str) -> None:
    scope, configure = application.auth.access.scope(curie), application.corpus.collection_settings.configure
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
    assert application.auth.access.scope(curie).collection == fresh


@pytest.mark.wing("experiments")
def test_concurrent_patches_are_all_applied(application: Application, curie: str) -> None:
    patches: list[dict[str, Any]] = [{"serving": "shadow"}, {"experiment": ARMS}, {"exploration": {"share": 0.5}}]
    for _ in range(5):
        application.corpus.collection_settings.configure(
            application.auth.access.scope(curie), {"serving": None, "experiment": None, "exploration": None}
        )
        with ThreadPoolExecutor(len(patches)) as pool:
            list(
                pool.map(
                    lambda patch: application.corpus.collection_settings.configure(
                        application.auth.access.scope(curie), patch
                    ),
                    patches,
                )
            )
        found = application.auth.access.scope(curie).collection
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
@pytest.mark.wing("experiments")
def test_invalid_experiment_settings_change_nothing(
    application: Application, curie: str, patch: Mapping[str, Any]
) -> None:
    before = (
        application.corpus.collection_settings.configure(application.auth.access.scope(curie), {"experiment": ARMS})
        if "exploration" in patch
        else None
    )
    with pytest.raises(InvalidRequestError):
        application.corpus.collection_settings.configure(
            application.auth.access.scope(curie), {"serving": "shadow", **patch}
        )
    assert application.auth.access.scope(curie).collection.serving == "live"
    assert before is None or application.auth.access.scope(curie).collection == before


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
