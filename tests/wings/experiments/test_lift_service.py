"""What arms come to by their verdicts: every figure from a handful of queries, worked by hand."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.core.learning.logged_verdict import GENERATION_THRESHOLD
from engram.services.question.query import Query, create_query_id
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.question.episodes import EpisodeRow
from engram.wings.experiments.core.lift import Sums, mean_difference, share_difference
from engram.wings.experiments.parts import ExperimentServices
from engram.wings.experiments.services.lift_service import ArmLift, Lift
from engram.wings.experiments.storage import query_outcomes
from tests.support import state

ARMS = {"arms": [{"name": "off", "percent": 50, "memory": "off"}, {"name": "read", "percent": 50}]}


def add_query(
    application: Application,
    collection: str,
    arm: str | None,
    passages: Sequence[str] = ("curie", "warsaw"),
    *,
    hops: int = 1,
    total_ms: float = 10.0,
) -> UUID:
    """A query of an arm that was answered these passages."""
    ids = state.passages(application, collection)
    row = EpisodeRow(
        id=create_query_id(),
        question="Where?",
        embedding=application.models.embedder.embed(["Where?"])[0],
        time_constraint=None,
        time_embedding=None,
        memory="read",
        profile="default",
        strategy="graph",
        filter=None,
        activated=[],
        shown=[ids[name] for name in passages],
        hops=hops,
        total_ms=total_ms,
        answer={
            "passages": [
                {"score": 1.0, "sentences": [], "name_digest": name, "text_digest": ""} for name in passages
            ]
        },
        trace={"time_constraint": None, "entities": [], "recalled": [], "hops": [], "passages": None},
        arm=arm,
    )
    application.answers.question.store_episode(state.collection_id(application, collection), row)
    return row.id


def add_verdict(application: Application, collection: str, query: UUID, **said: Any) -> int:
    """A verdict that names sentences by their passages: the first of each."""

    def name_first_sentence(passage: str) -> NamedSentence:
        return NamedSentence(next(iter(state.sentences(application, collection, passage).values())))

    words = [word for word in ("supporting", "rejected", "missed") if word in said]
    named = {word: [name_first_sentence(passage) for passage in said.pop(word)] for word in words}
    verdict = Verdict(query_id=query, scope=application.auth.access.scope(collection), judge="j", **named, **said)
    receipt = application.learning.verdicts.accept(verdict, str(uuid4()), wait=True)
    assert receipt.event.status == "applied", receipt.event.error
    return receipt.event.id


def report(application: Application, collection: str, **said: Any) -> Lift:
    return application.wing(ExperimentServices).lift.lift(
        application.auth.access.scope(collection), **({"since": None, "before": None, "baseline": None} | said)
    )


def means(arm: ArmLift) -> dict[str, float | None]:
    return {name: sums.mean for name, sums in arm.figures.items()}


def measure_unassigned(application: Application, collection: str) -> ArmLift:
    """Of queries that no arm was given to."""
    [arm] = report(application, collection).arms
    assert arm.arm is None
    return arm


def test_figures_are_those_of_the_verdicts(application: Application, curie: str) -> None:
    application.corpus.collection_settings.configure(application.auth.access.scope(curie), {"experiment": ARMS})
    off = [add_query(application, curie, "off", hops=hops, total_ms=10.0 * hops) for hops in (1, 2, 3, 3)]
    add_verdict(application, curie, off[0], supporting=["warsaw"])  # second of two: recall 1, reciprocal rank 1/2
    add_verdict(application, curie, off[1], missed=["tokyo"])  # nothing found: recall 0, rank 0, no success
    add_verdict(application, curie, off[2], supporting=["curie"], missed=["tokyo"], generation_success=False)
    read = [add_query(application, curie, "read", ("curie", "warsaw", "tokyo"), total_ms=5.0) for _ in range(2)]
    add_verdict(application, curie, read[0], supporting=["tokyo", "warsaw"], generation_success=True)
    first, second, rest = report(application, curie).arms
    assert (first.arm, first.queries, first.judged, first.unjudged) == ("off", 4, 3, 1)
    assert means(first) == pytest.approx(
        {
            "retrieval_success": 2 / 3,
            "generation_success": 0.0,
            "evidence_recall": (1 + 0 + 1 / 2) / 3,
            "reciprocal_rank": (1 / 2 + 0 + 1) / 3,
            "hops": (1 + 2 + 3 + 3) / 4,
        }
    )
    assert first.figures["generation_success"].n == 1
    assert first.median_total_ms == pytest.approx((20 + 30) / 2)
    assert first.differences is None
    assert (second.arm, second.queries, second.judged, second.unjudged) == ("read", 2, 1, 1)
    assert means(second) == pytest.approx(
        {
            "retrieval_success": 1.0,
            "generation_success": 1.0,
            "evidence_recall": 1.0,
            "reciprocal_rank": 1 / 2,
            "hops": 1.0,
        }
    )
    assert second.median_total_ms == pytest.approx(5.0)
    assert second.differences is not None
    assert second.differences["retrieval_success"] == share_difference(Sums(1, 1, 1), Sums(3, 2, 2))
    assert second.differences["hops"] == mean_difference(Sums(2, 2, 2), Sums(4, 9, 1 + 4 + 9 + 9))
    assert (rest.arm, rest.queries, rest.median_total_ms) == (None, 0, None)
    assert rest.differences == dict.fromkeys(second.differences, None)


def test_a_verdicts_word_comes_before_what_it_names(application: Application, curie: str) -> None:
    query = add_query(application, curie, None)
    add_verdict(application, curie, query, supporting=["curie"], retrieval_success=False)
    assert means(measure_unassigned(application, curie))["retrieval_success"] == 0.0
    add_verdict(application, curie, query, rejected=["curie"], retrieval_success=True)
    assert means(measure_unassigned(application, curie))["retrieval_success"] == 1.0


def test_a_verdict_that_names_nothing_says_so_unless_it_is_partial(application: Application, curie: str) -> None:
    add_verdict(application, curie, add_query(application, curie, None), rejected=["curie"], partial=True)
    arm = measure_unassigned(application, curie)
    assert (arm.judged, arm.figures["retrieval_success"].n, arm.figures["evidence_recall"].n) == (1, 0, 0)
    add_verdict(application, curie, add_query(application, curie, None), rejected=["curie"])
    arm = measure_unassigned(application, curie)
    assert arm.figures["retrieval_success"] == Sums(1, 0.0, 0.0)
    assert (arm.figures["evidence_recall"].n, arm.figures["reciprocal_rank"].n) == (0, 0)


def test_passages_that_helped_as_a_whole_are_evidence(application: Application, curie: str) -> None:
    query = add_query(application, curie, None, ("polonium", "curie"))
    add_verdict(application, curie, query, supporting_passages=["curie", "tokyo"], supporting=["curie"])
    found = means(measure_unassigned(application, curie))
    assert (found["evidence_recall"], found["reciprocal_rank"], found["retrieval_success"]) == (0.5, 0.5, 1.0)


def test_a_generation_score_counts_from_the_threshold_on(application: Application, curie: str) -> None:
    threshold = GENERATION_THRESHOLD
    for score in (threshold - 0.01, threshold, threshold + 0.01):
        add_verdict(application, curie, add_query(application, curie, None), partial=True, generation_score=score)
    add_verdict(application, curie, add_query(application, curie, None), partial=True)
    assert measure_unassigned(application, curie).figures["generation_success"] == Sums(3, 2.0, 2.0)


def test_the_verdict_applied_last_speaks_and_a_revoked_one_does_not(application: Application, curie: str) -> None:
    query = add_query(application, curie, None)
    add_verdict(application, curie, query, supporting=["curie"])
    last = add_verdict(application, curie, query, missed=["tokyo"])
    arm = measure_unassigned(application, curie)
    assert (arm.queries, arm.judged, means(arm)["evidence_recall"]) == (1, 1, 0.0)
    application.learning.revocation.revoke(application.auth.access.scope(curie), last)
    arm = measure_unassigned(application, curie)
    assert (arm.judged, means(arm)["evidence_recall"]) == (1, 1.0)


def test_a_query_whose_only_verdict_was_revoked_is_neither(application: Application, curie: str) -> None:
    event = add_verdict(application, curie, add_query(application, curie, None), supporting=["curie"])
    application.learning.revocation.revoke(application.auth.access.scope(curie), event)
    add_query(application, curie, None)
    arm = measure_unassigned(application, curie)
    assert (arm.queries, arm.judged, arm.unjudged) == (2, 0, 1)
    assert arm.figures["retrieval_success"].n == 0


def test_a_verdict_that_waits_does_not_count_yet(application: Application, curie: str) -> None:
    verdict = Verdict(
        query_id=add_query(application, curie, None),
        scope=application.auth.access.scope(curie),
        retrieval_success=True,
    )
    application.learning.verdicts.accept(verdict, str(uuid4()))
    arm = measure_unassigned(application, curie)
    assert (arm.judged, arm.unjudged) == (0, 0)


def test_evidence_that_is_gone_is_left_out(application: Application, curie: str) -> None:
    add_verdict(application, curie, add_query(application, curie, None), supporting=["curie"], missed=["tokyo"])
    add_verdict(application, curie, add_query(application, curie, None), missed=["tokyo"])
    application.corpus.ingest.delete_passage(application.auth.access.scope(curie), "tokyo")
    arm = measure_unassigned(application, curie)
    assert arm.figures["evidence_recall"] == Sums(1, 1.0, 1.0)
    assert arm.figures["retrieval_success"] == Sums(1, 1.0, 1.0)


def test_arms_come_in_the_experiments_order_then_former_ones_then_none(
    application: Application, curie: str
) -> None:
    for arm in ("zeta", "alpha", "read", None):
        add_query(application, curie, arm)
    found = report(application, curie)
    assert [arm.arm for arm in found.arms] == ["alpha", "read", "zeta", None]
    assert found.baseline == "alpha"
    application.corpus.collection_settings.configure(application.auth.access.scope(curie), {"experiment": ARMS})
    found = report(application, curie)
    assert [(arm.arm, arm.queries) for arm in found.arms] == [
        ("off", 0), ("read", 1), ("alpha", 1), ("zeta", 1), (None, 1)
    ]  # fmt: skip
    assert found.baseline == "off"


def test_any_arm_can_be_the_baseline(application: Application, curie: str) -> None:
    add_query(application, curie, "off", hops=1)
    add_query(application, curie, "read", hops=3)
    found = report(application, curie, baseline="read")
    off, read, _ = found.arms
    assert (found.baseline, read.differences) == ("read", None)
    assert off.differences is not None
    assert off.differences["hops"] == mean_difference(Sums(1, 1, 1), Sums(1, 3, 9))
    with pytest.raises(InvalidRequestError, match="'gone'"):
        report(application, curie, baseline="gone")


def test_without_arms_nothing_is_compared(application: Application, curie: str) -> None:
    add_query(application, curie, None)
    found = report(application, curie)
    assert found.baseline is None
    assert [arm.differences for arm in found.arms] == [None]


def test_only_the_window_counts(application: Application, curie: str) -> None:
    query = add_query(application, curie, None)
    moment = application.answers.episodes.read(application.auth.access.scope(curie), query).created_at
    for since, before, expected in (
        (moment, None, 1),
        (None, moment, 0),
        (moment - timedelta(days=1), moment + timedelta(microseconds=1), 1),
        (moment + timedelta(microseconds=1), None, 0),
        (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC), 1),
    ):
        [arm] = report(application, curie, since=since, before=before).arms
        assert arm.queries == expected, (since, before)


def test_pages_miss_nothing_and_count_nothing_twice(
    application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        query = add_query(application, curie, "ab"[number % 2], hops=number)
        if number < 3:
            add_verdict(application, curie, query, supporting=["warsaw"])
    with application.database.write() as writer:  # several of one moment, as of one transaction
        writer.execute(
            "UPDATE episode SET created_at = now() WHERE collection_id = %(id)s",
            {"id": state.collection_id(application, curie)},
        )
    whole = report(application, curie)
    monkeypatch.setattr(query_outcomes, "PAGE", 2)
    assert report(application, curie) == whole
    assert [arm.queries for arm in whole.arms] == [4, 3, 0]


def test_real_queries_are_measured(application: Application, curie: str) -> None:
    application.corpus.collection_settings.configure(
        application.auth.access.scope(curie), {"experiment": {"arms": [{"name": "only", "percent": 100}]}}
    )
    query = Query(
        text="Where was Marie Curie born?", scope=application.auth.access.scope(curie), caller_chose_arm=False
    )
    answer = application.answers.question.serve(query)
    add_verdict(application, curie, answer.query_id, supporting=[answer.passages[1].passage_id])
    only_arm, _ = report(application, curie).arms
    assert (only_arm.queries, only_arm.judged) == (1, 1)
    assert means(only_arm)["reciprocal_rank"] == pytest.approx(1 / 2)
    assert means(only_arm)["hops"] == answer.hops
    assert only_arm.median_total_ms == pytest.approx(answer.timings.total_ms, rel=1e-4)
