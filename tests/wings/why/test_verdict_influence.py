"""What a trace says that single verdicts did, held against what revoking them really does."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from engram.composition.container import Application
from engram.core.learning.logged_verdict import Expansion
from engram.core.ranking import same_need
from engram.core.ranking.passage_scores import PASSAGE_FEATURES
from engram.core.ranking.question_units import QuestionUnits
from engram.core.ranking.same_need import NearPairs, QuestionSpread
from engram.services.question.answer import Answer
from engram.services.question.query import Query
from engram.services.question.trace import PassageTrace, SentenceTrace, Trace
from engram.wings.published.parts import published_of
from tests.support import state, undo
from tests.support.keys import statements

BORN = "Marie Curie was born in Warsaw in 1867."
DISCOVERY = "Marie Curie discovered polonium in 1898."
QUESTION = "Where was Marie Curie born?"
CAPITAL = "What is the capital of Poland?"
# Postgres adds up cosines in single precision.
NEAR: Mapping[str, Any] = {"abs": 3e-6}


@pytest.fixture(autouse=True)
def same_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the spread that a test measures first: an explanation leaves what questions show of each other."""
    measured: dict[str, QuestionSpread] = {}
    measure = same_need.measure_spread

    def measure_once(units: QuestionUnits, judged: NearPairs, asked: NearPairs | None = None) -> QuestionSpread:
        return measured.setdefault("spread", measure(units, judged, asked))

    monkeypatch.setattr(same_need, "measure_spread", measure_once)


def ask_with_trace(application: Application, name: str, text: str = QUESTION, **more: Any) -> tuple[Answer, Trace]:
    """One hop, which is what single verdicts are told apart in exactly."""
    query = Query(
        text=text,
        scope=application.auth.access.scope(name),
        include=frozenset({"trace"}),
        **{"max_hops": 1, "top_k": 10} | more,
    )
    answer = application.answers.question.answer(query)
    assert answer.trace is not None
    return answer, answer.trace


def map_selected(trace: Trace) -> dict[int, SentenceTrace]:
    return {row.sentence_id: row for row in trace.hops[0].sentences}


def map_passages(trace: Trace) -> dict[str, PassageTrace]:
    assert trace.passages is not None
    return {row.passage_id: row for row in trace.passages}


def list_named_verdicts(trace: Trace) -> set[int]:
    """The verdicts that a trace names."""
    sentences = {row.event_id for sentence in map_selected(trace).values() for row in sentence.influences}
    return sentences | {row.event_id for passage in map_passages(trace).values() for row in passage.influences}


def assert_came_true(before: Trace, after: Trace, event: int) -> tuple[int, int]:
    """Every number that changed with the event changed by as much as was said; how many were said to change."""
    said = moved = 0
    left = map_selected(after)
    for sentence, row in map_selected(before).items():
        told = {influence.event_id: influence for influence in row.influences}.get(event)
        assert not row.influences_cut
        if sentence in left:
            score, prior = (told.score, told.recall_probability) if told else (0.0, 0.0)
            assert row.recall_probability - left[sentence].recall_probability == pytest.approx(prior, **NEAR)
            if told and score:
                assert row.score - left[sentence].score == pytest.approx(score, **NEAR)
                said += 1
    standing = map_passages(after)
    for passage, found in map_passages(before).items():
        assert not found.influences_cut
        effect = {influence.event_id: influence for influence in found.influences}.get(event)
        said_score = effect.score if effect else 0.0
        assert found.score - standing[passage].score == pytest.approx(said_score, **NEAR), passage
        moved += effect is not None
    return said, moved


def teach(application: Application, name: str) -> dict[str, int]:
    """Verdicts of two judges on two questions, all asked before the first of them was judged."""
    ids = state.sentences(application, name, "curie") | state.sentences(application, name, "warsaw")
    asked_first = [
        application.answers.question.answer(Query(text=text, scope=application.auth.access.scope(name))).query_id
        for text in (QUESTION, QUESTION, CAPITAL, QUESTION)
    ]
    verdicts = (
        ("alice", [ids[BORN]]),
        ("bob", [ids[DISCOVERY]]),
        ("alice", [ids["Warsaw is the capital of Poland."]]),
        ("bob", [ids[BORN], ids[DISCOVERY]]),
    )
    for query_id, (judge, supporting) in zip(asked_first, verdicts, strict=True):
        state.judge(application, name, query_id, supporting, judge=judge, wait=True)
    return ids


def test_each_verdict_did_what_revoking_it_undoes(application: Application, curie: str) -> None:
    teach(application, curie)
    _, before = ask_with_trace(application, curie)
    everyone = list_named_verdicts(before)
    assert len(everyone) == 3, "those on the same question"
    counts = []
    for event in sorted(everyone):
        application.learning.revocation.revoke(application.auth.access.scope(curie), event)
        _, after = ask_with_trace(application, curie)
        counts.append(assert_came_true(before, after, event))
        before = after
    assert not list_named_verdicts(before)
    assert all(moved for _, moved in counts)
    assert not any(said for said, _ in counts), "this profile reads no sentence memories"


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("Who was born in Warsaw?", {}),
        ("What happened in 1898?", {}),
        ("who discovered polonium", {"profile": "paper"}),
        ("Who was born in Warsaw?", {"filter": {}}),
    ],
    ids=["recalled", "timed", "published", "filtered"],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_each_of_many_verdicts_did_what_revoking_it_undoes(
    application: Application, curie: str, text: str, more: dict[str, Any], seed: int
) -> None:
    undo.apply(application, curie, undo.stream(application, curie, 8, seed))
    _, before = ask_with_trace(application, curie, text, **more)
    everyone = sorted(list_named_verdicts(before))
    assert everyone
    random.Random(seed).shuffle(everyone)
    for event in everyone[:4]:
        application.learning.revocation.revoke(application.auth.access.scope(curie), event)
        _, after = ask_with_trace(application, curie, text, **more)
        assert_came_true(before, after, event)
        before = after


def test_a_verdict_that_a_cap_kept_out_counts_where_one_before_it_goes(
    application: Application, curie: str
) -> None:
    """Of alice's two verdicts only the first counts for sufficiency; without it, the second does."""
    application.learning.judges.set(application.auth.access.scope(curie), "alice", weight_verdicts=1)
    teach(application, curie)
    scope = application.auth.access.scope(curie)
    denied = application.answers.question.answer(Query(text="Which river flows through Warsaw?", scope=scope))
    state.judge(application, curie, denied.query_id, rating="down", reason="missing", judge="carol", wait=True)
    alice = [row["id"] for row in state.rows(application, curie, "feedback_event") if row["judge"] == "alice"]

    def list_weighed() -> set[int]:
        _, trace = ask_with_trace(application, curie)
        assert trace.sufficiency is not None
        return {row.event_id for row in trace.sufficiency.influences if row.probability} & set(alice)

    assert list_weighed() == {min(alice)}
    application.learning.revocation.revoke(application.auth.access.scope(curie), min(alice))
    assert list_weighed() == {max(alice)}


def test_a_question_that_one_verdict_taught_makes_room_for_the_next(
    application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine questions of one wording are as near as eight can vote; the ninth votes once one of them goes."""
    monkeypatch.setattr("engram.services.question.walk.RECALL_QUESTIONS", 8)
    monkeypatch.setattr("engram.services.question.recall.RECALL_QUESTIONS", 8)
    monkeypatch.setattr("engram.wings.why.services.counterfactual_states.RECALL_QUESTIONS", 8)
    ids = state.sentences(application, curie, "curie") | state.sentences(application, curie, "warsaw")
    texts = [f"{QUESTION} ({number})" for number in range(9)]
    for number, text in enumerate(texts):
        query_id = state.add_episode(application, curie, text, list(ids.values()))
        supporting = list(ids.values())[number % len(ids)]
        state.judge(application, curie, query_id, [supporting], partial=True, judge=f"judge-{number}", wait=True)
    _, before = ask_with_trace(application, curie)
    assert len({row.past_question for row in before.recalled}) == 8
    for event in sorted(list_named_verdicts(before))[:3]:
        application.learning.revocation.revoke(application.auth.access.scope(curie), event)
        _, after = ask_with_trace(application, curie)
        assert_came_true(before, after, event)
        before = after


def test_questions_without_entities_or_of_many_hops_are_explained(application: Application, curie: str) -> None:
    teach(application, curie)
    _, trace = ask_with_trace(application, curie, "where was the wife of pierre curie born?", max_hops=None)
    assert list_named_verdicts(trace)
    _, trace = ask_with_trace(
        application, curie, "Which river of Poland did Marie Curie discover?", max_hops=3, stop_rule="none"
    )
    assert len(trace.hops) > 1
    assert all(passage.rank_without_memory for passage in map_passages(trace).values())
    assert all(influence.recall_probability == 0 for row in trace.hops[1].sentences for influence in row.influences)


def test_lists_are_cut_and_say_so(application: Application, curie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    teach(application, curie)
    _, whole = ask_with_trace(application, curie)
    monkeypatch.setattr("engram.wings.why.services.verdict_influence.MOST_SHOWN", 2)
    _, cut = ask_with_trace(application, curie)
    found: list[Any] = [*map_selected(cut).values(), *map_passages(cut).values()]
    full: list[Any] = [*map_selected(whole).values(), *map_passages(whole).values()]
    assert any(row.influences_cut for row in map_selected(cut).values())
    assert any(row.influences_cut for row in map_passages(cut).values())
    for row, uncut in zip(found, full, strict=True):
        assert len(row.influences) <= 2
        assert row.influences_cut or len(uncut.influences) <= 2
    best = map_passages(whole)["curie"].influences[0]
    assert map_passages(cut)["curie"].influences[0] == best


@pytest.mark.parametrize("bound", ["verdict_influence.LEFT_OUT", "counterfactual_states.MOST_STEPS"])
def test_influences_are_cut_when_the_log_is_too_long(
    application: Application, curie: str, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    teach(application, curie)
    _, whole = ask_with_trace(application, curie)
    monkeypatch.setattr(f"engram.wings.why.services.{bound}", 0)
    _, cut = ask_with_trace(application, curie)
    born = next(row for row in map_selected(cut).values() if row.text == BORN)
    assert (born.influences, born.influences_cut) == ([], True)
    assert map_passages(cut)["curie"].influences_cut
    assert not map_passages(cut)["curie"].influences
    assert map_passages(cut)["curie"].recall == pytest.approx(map_passages(whole)["curie"].recall)


def test_without_memory_nothing_had_a_say(application: Application, curie: str) -> None:
    teach(application, curie)
    answer, trace = ask_with_trace(application, curie, memory="off")
    assert not list_named_verdicts(trace)
    assert [(row.rank, row.rank_without_memory) for row in map_passages(trace).values()] == [
        (rank, rank) for rank in range(1, len(answer.passages) + 1)
    ]
    assert {row.recall for row in map_passages(trace).values()} == {0.0}


@pytest.mark.parametrize("memory", ["off", "read"])
def test_trace_lists_every_factor_of_a_score(application: Application, curie: str, memory: str) -> None:
    teach(application, curie)
    answer, trace = ask_with_trace(application, curie, memory=memory)
    for row in map_passages(trace).values():
        added = sum(one.value * one.weight for one in row.features.values())
        assert row.score == pytest.approx(added + row.recall)
        assert 0 < row.features["standing"].value < 1
        assert all(one.value for one in row.features.values())
    assert any(row.recall for row in map_passages(trace).values()) == (memory == "read")
    weights = {name: one.weight for row in map_passages(trace).values() for name, one in row.features.items()}
    assert weights.keys() <= set(PASSAGE_FEATURES)
    completes = {row.passage_id: row.completes for row in map_passages(trace).values()}
    assert any(completes.values())
    assert all(passage != member for passage, member in completes.items())

    again = application.answers.episodes.read(application.auth.access.scope(curie), answer.query_id)
    assert again.trace == trace


@pytest.mark.parametrize("arm", [{"profile": "paper"}, {"strategy": "dense", "max_hops": None}])
def test_unranked_profile_shows_no_features(application: Application, curie: str, arm: dict[str, Any]) -> None:
    _, trace = ask_with_trace(application, curie, **arm)
    assert {(len(row.features), row.completes) for row in map_passages(trace).values()} == {(0, None)}


def test_ranks_without_memory_are_those_of_a_query_without_it(application: Application, curie: str) -> None:
    teach(application, curie)
    for more in ({}, {"profile": "paper"}, {"strategy": "hybrid", "max_hops": None}):
        plain, _ = ask_with_trace(application, curie, **more | {"memory": "off"})
        expected = {passage.passage_id: rank for rank, passage in enumerate(plain.passages, start=1)}
        _, trace = ask_with_trace(application, curie, **more | {"top_k": 2})
        assert {row.passage_id: row.rank_without_memory for row in map_passages(trace).values()} == {
            passage: expected.get(passage) for passage in map_passages(trace)
        }


def test_an_evolved_key_names_its_units_and_their_verdicts(application: Application, curie: str) -> None:
    river = Expansion("hyde", "The longest river of the country flows past the capital into the sea.")
    text = "Which river is the longest of its country?"
    query_id = application.answers.question.answer(
        Query(text=text, scope=application.auth.access.scope(curie))
    ).query_id
    verdict: dict[str, Any] = {"partial": True, "supporting_passages": ("vistula",), "judge": "alice", "wait": True}
    event = state.judge(application, curie, query_id, expansions=(river,), **verdict).event.id
    _, before = ask_with_trace(application, curie, text, strategy="dense", max_hops=None)
    assert {row.key for row in map_passages(before).values()} == {None}
    published_of(application).evolve.evolve(application.auth.access.scope(curie))
    _, after = ask_with_trace(application, curie, text, strategy="dense", max_hops=None)
    key = map_passages(after)["vistula"].key
    assert key is not None
    assert key.similarity == pytest.approx(map_passages(after)["vistula"].score, **NEAR)
    assert key.base_similarity == pytest.approx(map_passages(before)["vistula"].score, **NEAR)
    (held,) = key.units
    assert (held.method, held.text, held.share, held.event_count) == ("hyde", river.text, 1.0, 1)
    assert [(row.event_id, row.judge, row.question) for row in held.events] == [(event, "alice", text)]
    (credit,) = published_of(application).key_view.view(application.auth.access.scope(curie), "vistula", 5).units
    assert held.events[0].gain * held.events[0].weight == pytest.approx(credit.score)
    assert {row.key for name, row in map_passages(after).items() if name != "vistula"} == {None}


def test_query_without_trace_reads_only_judgements_of_its_question(application: Application, curie: str) -> None:
    teach(application, curie)
    with statements() as sent:
        application.answers.question.answer(Query(text=QUESTION, scope=application.auth.access.scope(curie)))
    assert len([statement for statement in sent if "audit" in statement or "feedback_event" in statement]) == 1
    assert not any("weight_audit" in statement for statement in sent)
    plain = len(sent)
    with statements() as sent:
        ask_with_trace(application, curie, top_k=5, max_hops=None)
    # The same search without memory, a dozen statements however many verdicts there are, and five for those behind
    # the probability that the answer is enough.
    assert len(sent) <= 2 * plain + 12 + 5
