"""What a trace says of passages that judges rejected and of answers that they denied, and that it comes true."""

from typing import Any

import pytest

from engram.composition.container import Application
from engram.services.question.trace import RejectionTrace, Trace
from tests.conftest import Ingest
from tests.support import state
from tests.support.command import Cli
from tests.wings.why.test_verdict_influence import (
    BORN,
    DISCOVERY,
    NEAR,
    QUESTION,
    ask_with_trace,
    assert_came_true,
    map_passages,
)


def judge(application: Application, name: str, text: str = QUESTION, **verdict: Any) -> int:
    """Judge an answer to the question, and return the event. No other test has heard of the judge."""
    answer, _ = ask_with_trace(application, name, text)
    verdict["judge"] = f"{verdict.get('judge', 'ana')}-{name}"
    return state.judge(application, name, answer.query_id, wait=True, **verdict).event.id


def list_rejected(trace: Trace) -> dict[str, RejectionTrace]:
    assert trace.rejected is not None
    return {row.passage_id: row for row in trace.rejected}


def revoke(application: Application, name: str, event: int) -> None:
    application.learning.revocation.revoke(application.auth.access.scope(name), event)


@pytest.fixture
def ids(application: Application, curie: str) -> dict[str, int]:
    return state.sentences(application, curie, "curie")


def test_what_judges_rejected_is_listed_with_their_verdicts(
    application: Application, curie: str, ids: dict[str, int]
) -> None:
    _, untouched = ask_with_trace(application, curie)
    assert untouched.rejected == []
    first = judge(application, curie, rejected=[ids[BORN]], partial=True, judge="ana")
    second = judge(application, curie, rejected=[ids[BORN]], partial=True, judge="ben")
    _, before = ask_with_trace(application, curie)
    row = list_rejected(before)["curie"]
    assert (row.judges, row.rank, row.influences_cut) == (2, map_passages(before)["curie"].rank, False)
    assert {one.event_id for one in row.influences} == {first, second}
    assert row.score == pytest.approx(map_passages(before)["curie"].recall)
    assert row.score < 0 < row.probability < 1

    revoke(application, curie, second)
    _, after = ask_with_trace(application, curie)
    assert_came_true(before, after, second)
    told = next(one for one in row.influences if one.event_id == second)
    assert row.score - list_rejected(after)["curie"].score == pytest.approx(told.score, **NEAR)
    revoke(application, curie, first)
    _, restored = ask_with_trace(application, curie)
    assert restored.rejected == []
    assert map_passages(restored)["curie"].score == pytest.approx(map_passages(untouched)["curie"].score)


def test_a_rejected_passage_that_is_not_shown_is_listed(
    application: Application, curie: str, ids: dict[str, int]
) -> None:
    judge(application, curie, rejected=list(ids.values()), partial=True)
    answer, trace = ask_with_trace(application, curie, top_k=1)
    assert [one.passage_id for one in answer.passages] != ["curie"]
    row = list_rejected(trace)["curie"]
    assert row.rank is None
    assert row.score < 0
    assert [one.score < 0 for one in row.influences] == [True]


def test_mixed_votes_count_a_judge_by_its_last_word(
    application: Application, curie: str, ids: dict[str, int]
) -> None:
    for name in ("ana", "ben", "carol"):
        judge(application, curie, rejected=[ids[DISCOVERY]], partial=True, judge=name)
    judge(application, curie, supporting=[ids[DISCOVERY]], partial=True, judge="carol")
    _, trace = ask_with_trace(application, curie)
    assert list_rejected(trace)["curie"].judges == 2
    judge(application, curie, supporting=[ids[BORN]], partial=True, judge="dora")
    _, supported = ask_with_trace(application, curie)
    assert supported.rejected == [], "a passage with a supported sentence is not rejected"
    assert map_passages(supported)["curie"].rank == 1


@pytest.mark.parametrize(
    ("words", "net"),
    [
        (["ana rejects", "ana supports"], 0),
        (["ana supports", "ben rejects"], 0),
        (["ana rejects", "ben supports"], 0),
        (["ana rejects", "ben rejects", "carol supports"], 0.2),
        (["ana rejects", "ben supports", "carol supports"], 0),
    ],
)
def test_what_two_judges_disagree_on_is_not_rejected(
    application: Application, curie: str, ids: dict[str, int], words: list[str], net: float
) -> None:
    for name, word in map(str.split, words):
        named: dict[str, Any] = {"supporting" if word == "supports" else "rejected": [ids[DISCOVERY]]}
        judge(application, curie, partial=True, judge=name, **named)
    _, trace = ask_with_trace(application, curie)
    rejected = list_rejected(trace)
    assert (rejected["curie"].probability if rejected else 0) == pytest.approx(net, abs=0.005)


def test_a_hostile_judge_is_one_judge_however_often_it_rejects(
    application: Application, curie: str, ids: dict[str, int]
) -> None:
    judge(application, curie, supporting=[ids[BORN]], partial=True, judge="ana")
    judge(application, curie, supporting=[ids[BORN]], partial=True, judge="ben")
    for _ in range(6):
        judge(application, curie, rejected=list(ids.values()), partial=True, judge="hostile")
    _, trace = ask_with_trace(application, curie)
    assert trace.rejected == []
    assert map_passages(trace)["curie"].rank == 1


def test_a_rejection_of_the_only_evidence_leaves_it_shown_and_says_so(
    application: Application, ingest: Ingest, collection: str
) -> None:
    ingest({"id": "only", "title": "Travel", "text": "The daily allowance is 32 EUR."})
    text = "What is the daily allowance?"
    before, _ = ask_with_trace(application, collection, text)
    (sentence,) = state.sentences(application, collection, "only").values()
    judge(application, collection, text, rejected=[sentence], partial=True)
    answer, trace = ask_with_trace(application, collection, text)
    assert [one.passage_id for one in answer.passages] == ["only"]
    probabilities = [one.passages[0].probability or 1.0 for one in (before, answer)]
    odds_before, odds_after = (one / (1.0 - one) for one in probabilities)
    assert odds_after == pytest.approx(odds_before / 2.0, rel=0.01)
    assert list_rejected(trace)["only"].rank == 1


def test_leaving_a_denial_out_is_what_revoking_it_does(application: Application, curie: str) -> None:
    _, untouched = ask_with_trace(application, curie)
    assert untouched.sufficiency is not None
    assert untouched.sufficiency.judgements == []
    confirmation = judge(application, curie, rating="up", judge="dora")
    _, confirmed = ask_with_trace(application, curie)
    assert confirmed.sufficiency is not None
    assert confirmed.sufficiency.judgements == [], "a confirmation alone takes no denial back"
    revoke(application, curie, confirmation)
    denied = [judge(application, curie, rating="down", reason="missing", judge=name) for name in ("ana", "ben")]
    for event in denied:
        _, before = ask_with_trace(application, curie)
        assert before.sufficiency is not None
        told = {row.event_id: row.probability for row in before.sufficiency.judgements}
        assert told[event] < 0
        revoke(application, curie, event)
        _, after = ask_with_trace(application, curie)
        assert after.sufficiency is not None
        rest = before.sufficiency.probability / before.sufficiency.undenied
        left = before.sufficiency.probability - rest * after.sufficiency.undenied
        assert told[event] == pytest.approx(left)
    assert after.sufficiency.judgements == []


def test_without_its_last_denial_the_judges_earlier_one_counts(application: Application, curie: str) -> None:
    first = judge(application, curie, rating="down", reason="missing", judge="ana")
    second = judge(application, curie, rating="down", reason="missing", judge="ana")
    _, trace = ask_with_trace(application, curie)
    assert trace.sufficiency is not None
    assert {row.event_id: row.probability for row in trace.sufficiency.judgements} == {second: 0.0}
    revoke(application, curie, first)
    _, alone = ask_with_trace(application, curie)
    assert alone.sufficiency is not None
    assert [row.probability < 0 for row in alone.sufficiency.judgements] == [True]


def test_a_stored_answer_keeps_the_rejections(application: Application, curie: str, ids: dict[str, int]) -> None:
    judge(application, curie, rejected=[ids[BORN]], partial=True, judge="ana")
    judge(application, curie, rating="down", reason="missing", judge="ben")
    answer, trace = ask_with_trace(application, curie)
    scope = application.auth.access.scope(curie)
    stored = application.answers.episodes.read(scope, answer.query_id).trace
    assert stored.rejected == trace.rejected
    assert stored.sufficiency == trace.sufficiency


def test_the_command_names_judges_and_verdicts(
    application: Application, cli: Cli, curie: str, ids: dict[str, int]
) -> None:
    rejected = judge(application, curie, rejected=[ids[BORN]], partial=True, judge="ana")
    denied = judge(application, curie, rating="down", reason="missing", judge="ben")
    lines = cli("query", QUESTION, "-c", curie, "--trace").stdout.splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("curie: 1 judge said"))
    assert f"by feedback {rejected} of judge ana" in lines[at + 1]
    assert any(
        line.startswith("     sufficiency -") and f"feedback {denied} of judge ben" in line for line in lines
    )
