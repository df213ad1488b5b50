"""Conditions on metadata, as Postgres decides on them."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from engram.composition.container import Application
from engram.core.text.conditions import (
    Combination,
    Comparison,
    Condition,
    Containment,
    Negation,
    Scalar,
    build_comparison,
)
from engram.core.text.filters import read_filter
from engram.storage.question.metadata_filter import compile_condition

ODD_TEXT = 'a"b\\c $.d%(e)s é🙂\n[^x]*'
"""A text that quoting in SQL, JSON, paths and regular expressions could each mistake."""


def holds(application: Application, condition: Condition, metadata: dict[str, Any]) -> bool | None:
    with application.database.read() as reader:
        compiled = compile_condition(condition)
        found: bool | None = reader.scalar(
            f"SELECT {compiled.sql} FROM (SELECT %(metadata)s::jsonb AS metadata) AS p",
            {"metadata": Jsonb(metadata), **compiled.values},
        )
        return found


@pytest.mark.parametrize(
    ("comparator", "value", "met", "missed"),
    [
        ("equal", "x", ["x", ["y", "x"]], ["y", "X", 5, None, [], {}]),
        ("equal", 5, [5, 5.0, [4, 5]], [4, "5", True, None]),
        ("equal", True, [True], [False, 1, "true"]),
        ("equal", 0.1, [0.1], [0.1000001]),
        ("less", 5, [4, -1e300], [5, "4", None]),
        ("at-most", 5, [5, 4.5], [5.1]),
        ("more", "2024-05", ["2024-05-01", "2025"], ["2024-05", "2023", 2025]),
        ("at-least", 5, [5, 6], [4, "6"]),
        ("contains", "a.c", ["xa.cx", ["", "a.c"]], ["abc", "A.C", 5]),
        ("contains", ODD_TEXT, [ODD_TEXT, f"-{ODD_TEXT}-"], [ODD_TEXT[:-1]]),
        ("starts", ODD_TEXT, [ODD_TEXT + "z"], ["z" + ODD_TEXT]),
        ("ends", ODD_TEXT, ["z" + ODD_TEXT], [ODD_TEXT + "z"]),
        ("ends", "c", ["abc", "b\nc"], ["c\nb", "cb"]),
        ("present", "", ["x", 0, False, [1], {"a": 1}], [None, "", []]),
        ("exists", "", ["x", 0, None, "", [], {}], []),
    ],
)
def test_comparisons(application: Application, comparator: Any, value: Any, met: Any, missed: Any) -> None:
    condition = Comparison("field", comparator, value)
    for held in met:
        assert holds(application, condition, {"field": held}) is True, held
        assert holds(application, Negation(condition), {"field": held}) is False, held
    for other in missed:
        assert holds(application, condition, {"field": other}) is False, other
        assert holds(application, Negation(condition), {"field": other}) is True, other
    assert holds(application, condition, {"other": value}) is False
    assert holds(application, Negation(condition), {}) is True


def test_a_field_of_any_name(application: Application) -> None:
    assert holds(application, Comparison(ODD_TEXT, "equal", ODD_TEXT), {ODD_TEXT: ODD_TEXT}) is True
    assert holds(application, Comparison(ODD_TEXT, "equal", ODD_TEXT), {"field": ODD_TEXT}) is False


def test_combinations(application: Application) -> None:
    recent, space = Comparison("year", "at-least", 2000), Comparison("topic", "equal", "space")
    both, either = Combination("all", (recent, space)), Combination("any", (recent, space))
    assert holds(application, both, {"year": 2001, "topic": "space"}) is True
    assert holds(application, both, {"year": 1999, "topic": "space"}) is False
    assert holds(application, either, {"year": 1999, "topic": "space"}) is True
    assert holds(application, either, {"year": 1999}) is False
    assert holds(application, Combination("all", (either, Negation(both))), {"topic": "space"}) is True
    in_space = Containment({"place": {"kind": "space"}})
    assert (
        holds(application, Combination("all", (recent, in_space)), {"year": 2001, "place": {"kind": "space"}})
        is True
    )
    assert holds(application, Negation(Combination("any", (recent, in_space))), {"year": 1999, "place": 5}) is True


@pytest.mark.parametrize(
    ("comparator", "value", "met", "missed"),
    [
        (
            "equal",
            "2024-05-01",
            ["2024-05-01", "2024-05-01T02:00:00+02:00", ["x", "2024-05-01T00:00Z"]],
            ["2024-05-02"],
        ),
        (
            "less",
            "2024-05-01T12:00:00Z",
            ["2024-05-01T13:59:59.9+02:00", "2024-05-01"],
            ["2024-05-01 12:00", "2024", 5],
        ),
        (
            "at-most",
            "2024-05-01T12:00:00+02:00",
            ["2024-05-01T10:00:00.000Z", "2024-05-01t06:00-0400"],
            ["2024-05-02"],
        ),
        (
            "more",
            "2024-02-28",
            ["2024-02-29", "2024-02-28T00:00:01"],
            ["2024-02-30", "2024-02-28", "never", None, {}],
        ),
        ("at-least", "0001-01-01", ["0001-01-01", "9999-12-31T23:59:59-12:00"], ["0000-01-01", "2024-13-01", "9"]),
    ],
)
def test_dates_compare_as_instants(
    application: Application, comparator: Any, value: str, met: list[Any], missed: list[Any]
) -> None:
    condition = build_comparison("day", comparator, value)
    for held in met:
        assert holds(application, condition, {"day": held}) is True, held
        assert holds(application, Negation(condition), {"day": held}) is False, held
    for other in missed:
        assert holds(application, condition, {"day": other}) is False, other
        assert holds(application, Negation(condition), {"day": other}) is True, other
    assert holds(application, Negation(condition), {}) is True


@pytest.mark.parametrize(
    ("document", "held", "expected"),
    [
        ({"a": {"$in": ["x", 5]}, "b": 1}, {"a": 5, "b": 1}, True),
        ({"a": {"$in": ["x", 5]}, "b": 1}, {"a": 5, "b": 2}, False),
        ({"a": {"$nin": ["x", 5]}}, {}, True),
        ({"$or": [{"a": {"b": 1}}, {"c": {"$exists": False}}]}, {"a": {"b": 1, "d": 2}, "c": 1}, True),
        ({"$or": [{"a": {"b": 1}}, {"c": {"$exists": False}}]}, {"a": {"b": 2}, "c": None}, False),
        ({"a": {"$gt": 1, "$not": {"$gte": 3}}}, {"a": 2}, True),
        ({"a": {"$gt": 1, "$not": {"$gte": 3}}}, {"a": 3}, False),
        ({"a": ["x"]}, {"a": ["y", "x"]}, True),
        ({"a": "x"}, {"a": ["y", "x"]}, True),
        ({"a": 5}, {"a": ["y", 5]}, True),
        ({"a": "z"}, {"a": ["y", "x"]}, False),
        ({"a": {"b": 1}}, {"a": [{"b": 2}, {"b": 1, "c": 3}]}, True),
        ({"a": {"b": 1}}, {"a": [{"b": 2}, {"c": 1}]}, False),
        *(
            (document, held, is_met)
            for held, is_absent in (({}, True), ({"a": None}, True), ({"a": ["x", None]}, True), ({"a": ""}, False))
            for document, is_met in (
                ({"a": None}, is_absent),
                ({"a": {"$eq": None}}, is_absent),
                ({"a": {"$in": ["y", None]}}, is_absent),
                ({"a": {"$ne": None}}, not is_absent),
                ({"a": {"$nin": ["y", None]}}, not is_absent),
                ({"a": {"$not": {"$eq": None}}}, not is_absent),
            )
        ),
    ],
)
def test_filters(application: Application, document: Any, held: Any, expected: bool) -> None:
    condition = read_filter(document)
    assert condition is not None
    assert holds(application, condition, held) is expected


scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
)


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=scalars, comparator=st.sampled_from(["equal", "at-most", "at-least", "contains", "starts", "ends"]))
def test_value_satisfies_comparisons_with_itself(application: Application, value: Scalar, comparator: Any) -> None:
    is_text = isinstance(value, str)
    if comparator in {"contains", "starts", "ends"} and not is_text:
        return
    assert holds(application, Comparison("field", comparator, value), {"field": value}) is True
