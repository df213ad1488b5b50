"""Mapping other products' scores to ratings: written down before the rules, one line for each case."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engram_pull import dify_feedbacks, langfuse_scores, open_webui_feedbacks
from engram_pull.product_scores import (
    REASON_CHARACTERS,
    Scale,
    ScoreShapeError,
    digest,
    judge_name,
    moment,
    reason_text,
    word_rating,
)
from tests.support.product_servers import dify_feedback, langfuse_score, open_webui_feedback

FIVE, TEN = Scale(1, 5), Scale(1, 10)


@pytest.mark.parametrize(
    ("scale", "value", "rating"),
    [
        (Scale(), 1, "up"),
        (Scale(), 0, "down"),
        (Scale(), 0.5, None),
        (Scale(), 0.61, "up"),
        (Scale(), 0.39, "down"),
        (Scale(-1, 1), 1, "up"),
        (Scale(-1, 1), 0, None),
        (Scale(-1, 1), -1, "down"),
        *(
            (FIVE, value, rating)
            for value, rating in zip(range(1, 6), ("down", "down", None, "up", "up"), strict=True)
        ),
        *((TEN, value, "down") for value in range(1, 5)),
        (TEN, 5, None),
        (TEN, 6, None),
        *((TEN, value, "up") for value in range(7, 11)),
    ],
)
def test_a_number_is_up_in_the_upper_40_percent_of_its_scale(
    scale: Scale, value: float, rating: str | None
) -> None:
    assert scale.convert_value(value) == rating


@pytest.mark.parametrize("value", [-0.1, 1.1, 5])
def test_a_number_outside_its_scale_is_refused(value: float) -> None:
    with pytest.raises(ScoreShapeError, match="--scale"):
        Scale().convert_value(value)


def test_a_scale_goes_up() -> None:
    with pytest.raises(ValueError, match="goes up"):
        Scale(1, 1)


@pytest.mark.parametrize(
    ("word", "rating"),
    [
        ("👍", "up"),
        ("Thumbs_Up", "up"),
        (" LIKE ", "up"),
        ("thumbs-down", "down"),
        ("Not Helpful", "down"),
        ("meh", None),
    ],
)
def test_words_for_thumbs(word: str, rating: str | None) -> None:
    assert word_rating(word) == rating


@pytest.mark.parametrize(
    ("rating", "comment", "reason"),
    [
        ("down", " too\n old ", "too old"),
        ("down", "outdated", "outdated"),
        ("up", "outdated", None),
        ("up", "thanks", "thanks"),
        ("down", "", None),
        (None, "why", None),
        ("down", "x" * 2_000, "x" * REASON_CHARACTERS),
        ("down", "a\x00b\ud800", "a b?"),
    ],
)
def test_a_comment_is_the_reason(rating: Any, comment: str, reason: str | None) -> None:
    assert reason_text(rating, comment) == reason


@pytest.mark.parametrize(
    ("author", "judge"),
    [(None, "dify"), ("Ada@Example.org", "dify:ada@example.org"), ("ü x", "dify:x"), ("!", "dify")],
)
def test_a_judge_is_the_product_and_the_person(author: str | None, judge: str) -> None:
    assert judge_name("dify", author) == judge


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("2026-11-20T10:00:00.000Z", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T11:00:00+01:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T10:00:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_moments(value: Any, found: datetime) -> None:
    assert moment({"at": value}, "at") == found


@pytest.mark.parametrize("value", [None, "soon", True, 1e30])
def test_invalid_timestamp_is_refused(value: Any) -> None:
    with pytest.raises(ScoreShapeError):
        moment({"at": value}, "at")


class TestLangfuse:
    @pytest.mark.parametrize(
        ("changed", "rating"),
        [
            ({}, "up"),
            ({"value": False}, "down"),
            ({"value": 1}, "up"),  # version 2
            ({"value": 0}, "down"),
            ({"dataType": "NUMERIC", "value": 0.9}, "up"),
            ({"dataType": "NUMERIC", "value": 0}, "down"),
            ({"dataType": "NUMERIC", "value": 0.5}, None),
            ({"dataType": "CATEGORICAL", "value": "thumbs-down"}, "down"),
            ({"dataType": "CATEGORICAL", "value": None, "stringValue": "good"}, "up"),  # version 2
            ({"dataType": "CATEGORICAL", "value": "so so"}, None),
            ({"dataType": "TEXT", "value": "good"}, None),
            ({"dataType": "CORRECTION", "value": ""}, None),
        ],
    )
    def test_types_of_scores(self, changed: dict[str, Any], rating: str | None) -> None:
        score = langfuse_scores.score_of_record(langfuse_score("a", "t") | changed, Scale())
        assert score is not None
        assert (score.score_id, score.trace_id, score.rating) == ("a", "t", rating)

    @pytest.mark.parametrize(
        ("record", "trace"),
        [
            ({"subject": {"kind": "trace", "id": "t"}}, "t"),
            ({"subject": {"kind": "observation", "id": "o", "traceId": "t"}}, "t"),
            ({"subject": {"kind": "observation", "id": "o"}}, None),
            ({"subject": {"kind": "session", "id": "s"}}, None),
            ({"subject": {"kind": "experiment", "id": "e"}}, None),
            ({"traceId": "t", "observationId": "o"}, "t"),
            ({"traceId": None, "sessionId": "s"}, None),
        ],
    )
    def test_the_trace_of_either_version(self, record: dict[str, Any], trace: str | None) -> None:
        score = langfuse_scores.score_of_record(langfuse_score("a", None) | record, Scale())
        assert (score and score.trace_id) == trace

    def test_the_author_is_who_annotated_or_else_whose_trace_it_is(self) -> None:
        of_trace = langfuse_score("a", "t") | {"trace": {"userId": "u"}}
        for record, author in (
            (of_trace, "u"),
            (of_trace | {"authorUserId": "v"}, "v"),
            (langfuse_score("a", "t"), None),
        ):
            score = langfuse_scores.score_of_record(record, Scale())
            assert score is not None
            assert score.author == author

    @pytest.mark.parametrize(
        "changed",
        [
            {"dataType": "IMAGE"},
            {"value": "yes"},
            {"dataType": "NUMERIC", "value": True},
            {"dataType": "NUMERIC", "value": 7},
            {"id": None},
            {"timestamp": "soon"},
        ],
    )
    def test_another_shape_is_refused(self, changed: dict[str, Any]) -> None:
        with pytest.raises(ScoreShapeError):
            langfuse_scores.score_of_record(langfuse_score("a", "t") | changed, Scale())


class TestDify:
    @pytest.mark.parametrize(("given", "rating"), [("like", "up"), ("dislike", "down"), (None, None)])
    def test_ratings(self, given: Any, rating: str | None) -> None:
        score = dify_feedbacks.score_of_feedback(dify_feedback("a", "m", given, content="too old"))
        assert (score.trace_id, score.rating, score.author) == ("m", rating, "end-user-1")
        assert score.reason == (None if rating is None else "too old")

    def test_another_rating_is_refused(self) -> None:
        with pytest.raises(ScoreShapeError, match="neither like nor dislike"):
            dify_feedbacks.score_of_feedback(dify_feedback("a", "m", "love"))

    def test_resources_name_queries(self) -> None:
        query, other = "019a0000-0000-7000-8000-000000000001", "3c90c3cc-0d44-4b50-8888-8dd25736052a"
        resources = [
            {"document_id": f"{query}:titan"},
            {"document_id": f"engram/{query.upper()}"},
            {"document_id": other},
        ]
        assert dify_feedbacks.query_ids({"retriever_resources": [*resources, {}, None]}) == [query]
        assert dify_feedbacks.query_ids({}) == []


class TestOpenWebUi:
    @pytest.mark.parametrize(
        ("given", "data", "rating", "reason"),
        [
            (1, {}, "up", None),
            (-1, {}, "down", None),
            ("1", {}, "up", None),
            ("-1", {}, "down", None),
            (0, {}, None, None),
            (None, {}, None, None),
            (None, {"details": {"rating": 9}}, "up", None),
            (None, {"details": {"rating": 2}}, "down", None),
            (-1, {"details": {"rating": 9}}, "down", None),  # the thumb counts
            (1, {"reason": "accurate_information", "comment": "nice"}, "up", "nice"),
            (-1, {"reason": "too_verbose", "comment": "long"}, "down", "wrong_answer"),
            (-1, {"reason": "not_helpful", "comment": "long"}, "down", "long"),
            (-1, {"comment": "missing"}, "down", "missing"),
        ],
    )
    def test_ratings(self, given: Any, data: dict[str, Any], rating: str | None, reason: str | None) -> None:
        score = open_webui_feedbacks.score_of_feedback(open_webui_feedback("a", "m", given, **data))
        assert score is not None
        assert (score.trace_id, score.rating, score.reason, score.author) == ("m", rating, reason, "user-1")

    def test_arena_and_detached_feedback_is_left_out(self) -> None:
        arena = open_webui_feedback("a", "m", 1)
        arena["meta"]["arena"] = True
        assert open_webui_feedbacks.score_of_feedback(arena) is None
        assert open_webui_feedbacks.score_of_feedback(open_webui_feedback("a", None, 1)) is None
        assert open_webui_feedbacks.score_of_feedback(open_webui_feedback("a", "m", 1) | {"meta": None}) is None

    @pytest.mark.parametrize(
        "changed", [{"data": {"rating": 3}}, {"data": []}, {"data": {"details": {"rating": "x"}}}, {"id": 7}]
    )
    def test_another_shape_is_refused(self, changed: dict[str, Any]) -> None:
        with pytest.raises(ScoreShapeError):
            open_webui_feedbacks.score_of_feedback(open_webui_feedback("a", "m", 1) | changed)


def test_the_digest_changes_with_whatever_the_rating_says() -> None:
    plain = dify_feedbacks.score_of_feedback(dify_feedback("a", "m", "like"))
    later = dify_feedbacks.score_of_feedback(dify_feedback("a", "m", "like", updated_at="2026-11-21T00:00:00"))
    others = [
        dify_feedbacks.score_of_feedback(record)
        for record in (
            dify_feedback("a", "m", "dislike"),
            dify_feedback("a", "n", "like"),
            dify_feedback("a", "m", "like", content="b"),
        )
    ]
    assert digest("ada", plain) == digest("ada", later)
    assert len({digest("ada", plain), digest("bea", plain), *(digest("ada", one) for one in others)}) == 5
