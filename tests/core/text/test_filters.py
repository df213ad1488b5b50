"""Filters as callers write them."""

from typing import Any

import pytest

from engram.core.text.conditions import Combination, Comparison, Containment, Negation
from engram.core.text.filters import read_filter


@pytest.mark.parametrize(
    ("document", "condition"),
    [
        ({}, None),
        (
            {"topic": "space", "place": {"name": "Titan"}},
            Combination(
                "all",
                (
                    Comparison("topic", "equal", "space"),
                    Combination(
                        "any",
                        (Containment({"place": {"name": "Titan"}}), Containment({"place": [{"name": "Titan"}]})),
                    ),
                ),
            ),
        ),
        ({"year": {"$gt": 5}}, Comparison("year", "more", 5)),
        ({"year": {"$lte": 5}}, Comparison("year", "at-most", 5)),
        ({"year": {"$ne": 5}}, Negation(Comparison("year", "equal", 5))),
        (
            {"topic": "space", "year": {"$gte": 5, "$lt": 9}},
            Combination(
                "all",
                (
                    Comparison("topic", "equal", "space"),
                    Combination("all", (Comparison("year", "at-least", 5), Comparison("year", "less", 9))),
                ),
            ),
        ),
        (
            {"$and": [{"a": {"$contains": "x"}}, {}]},
            Combination("all", (Comparison("a", "contains", "x"), Containment({}))),
        ),
        ({"$not": {"a": {"$exists": True}}}, Negation(Comparison("a", "exists"))),
        ({"a": {"$present": False}}, Negation(Comparison("a", "present"))),
        ({"a": {"$not": {"$starts": "x"}}}, Negation(Comparison("a", "starts", "x"))),
        ({"a": {"$nin": [True]}}, Negation(Combination("any", (Comparison("a", "equal", True),)))),
    ],
)
def test_read(document: Any, condition: Any) -> None:
    assert read_filter(document) == condition


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"$where": "1"}, "no operator that joins"),
        ({"year": {"gt": 5}}, "write .gt below 'year'"),
        ({"year": {">=": 5, "<": 9}}, "write .gte below 'year'"),
        ({"year": {"GT": 5}}, "write .gt below 'year'"),
        ({"year": {"between": [5, 9]}}, "write .gte below 'year'"),
        ({"or": [{"year": 5}, {"year": 6}]}, "write .or"),
        ({"AND": [{"year": 5}]}, "write .and"),
        ({"must": [{"key": "year", "match": {"value": 5}}]}, "write .and"),
        ({"field": "year", "operator": ">=", "value": 5}, "below a field: write .FIELD: ..[$]gte"),
        ({"key": "year", "operator": "in", "value": [5]}, "below a field"),
        ({"on": "2026-02-30"}, "date of the calendar"),
        ({"on": ["2026-02-30"]}, "date of the calendar"),
        ({"on": {"$gt": "2026-2-3"}}, "such as 2026-05-01"),
        ({"on": {"$lt": "01.03.2026"}}, "such as 2026-05-01"),
        ({"not": {"year": 5}}, "write .not"),
        ({"on": {"$gte": "2026-02-30"}}, "date of the calendar"),
        ({"on": {"$lt": "2026-13-01"}}, "date of the calendar"),
        ({"on": {"$in": ["2026-02-30"]}}, "date of the calendar"),
        ({"on": {"$lt": "2026-02-01T25:00"}}, "date of the calendar"),
        ({"year": {"$gtt": 5}}, "below 'year' is no operator"),
        ({"year": {"$gt": 5, "other": 1}}, "no operator"),
        ({"year": {"$gt": None}}, "number or a text"),
        ({"year": {"$gt": True}}, "number or a text"),
        ({"year": {"$eq": [1]}}, "compares with"),
        ({"year": {"$in": []}}, "at least one value"),
        ({"year": {"$in": 5}}, "at least one value"),
        ({"year": {"$exists": 1}}, "true or false"),
        ({"year": {"$not": 5}}, "takes operators"),
        ({"year": {"$contains": ""}}, "not empty"),
        ({"$not": []}, "takes a filter"),
        ({"$and": []}, "at least one filter"),
        ({"$or": [5]}, "each a JSON object"),
        ({"a": {"b": {"$gt": 5}}}, "not deeper"),
        ({"a": [{"b": 1, "$gt": 5}]}, "not deeper"),
        ({"$or": [{"a": {"$lt": 2**63}}]}, "64 bits"),
        ({"a": [-(2**63) - 1]}, "64 bits"),
    ],
)
def test_refused(document: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_filter(document)
