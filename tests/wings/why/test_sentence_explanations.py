"""Memories as they stand, beside the vectors they began as; and what they count for without their gate."""

from dataclasses import replace
from uuid import uuid4

import numpy as np
import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import EmbeddingSpaceMismatchError
from engram.core.ranking.profiles import ProfileName
from engram.services.question.query import Query
from engram.services.question.trace import Trace
from engram.wings.why.parts import why_of
from engram_evaluation.commands.evaluate_command import build_variation
from engram_evaluation.learning_variations import Variation
from tests.support.databases import application_on
from tests.support.encoder import RotatedEncoder
from tests.support.state import add_episode, judge, sentences

BORN = "Marie Curie was born in Warsaw in 1867."
DISCOVERY = "Marie Curie discovered polonium in 1898."
QUESTION = "Where was Marie Curie born?"


def teach(application: Application, name: str, time_constraint: str | None = None) -> dict[str, int]:
    """One verdict: born supported, discovered rejected."""
    ids = sentences(application, name, "curie")
    query_id = add_episode(application, name, QUESTION, [ids[BORN], ids[DISCOVERY]], time_constraint)
    judge(application, name, query_id, [ids[BORN]], wait=True)
    return ids


def ask_with_trace(
    application: Application, name: str, text: str, *, ungated: bool = False, profile: ProfileName = "paper"
) -> Trace:
    scope = application.auth.access.scope(name)
    query = Query(text=text, scope=scope, profile=profile, include=frozenset({"trace"}), stop_rule="none")
    constants = application.retrieval.planner.retrievers.find_profile(profile)
    answer = application.answers.question.answer(
        query, replace(constants, policy=replace(constants.policy, gated=not ungated))
    )
    assert answer.trace is not None
    return answer.trace


def perplexities(trace: Trace) -> dict[str, float]:
    return {sentence.text: sentence.task_perplexity for hop in trace.hops for sentence in hop.sentences}


def test_untouched_memory_stands_at_its_base(application: Application, curie: str) -> None:
    ids = sentences(application, curie, "curie")
    states = why_of(application).explain.memories(application.auth.access.scope(curie), [*ids.values(), 2**40])
    assert states.keys() == set(ids.values())
    for text, sentence in ids.items():
        task, time = states[sentence]["task"], states[sentence]["time"]  # both sentences name a year
        assert (task.text, task.perplexity, task.update_count) == (text, 1.0, 0)
        np.testing.assert_array_equal(task.vector, task.base)
        assert not np.array_equal(task.base, time.base)


def test_a_verdict_moves_memories_and_leaves_their_bases(application: Application, curie: str) -> None:
    ids = sentences(application, curie, "curie")
    before = why_of(application).explain.memories(application.auth.access.scope(curie), list(ids.values()))
    teach(application, curie)
    after = why_of(application).explain.memories(application.auth.access.scope(curie), list(ids.values()))
    towards = application.models.embedder.embed([QUESTION])[0]
    moved = {text: after[ids[text]]["task"] for text in (BORN, DISCOVERY)}
    for text, state in moved.items():
        np.testing.assert_array_equal(state.base, before[ids[text]]["task"].base)
        assert state.perplexity < 1
        assert state.update_count == 1
    assert towards @ moved[BORN].vector > towards @ moved[BORN].base
    assert towards @ moved[DISCOVERY].vector < towards @ moved[DISCOVERY].base
    untimed = after[ids[BORN]]["time"]  # the question names no time
    assert (untimed.perplexity, untimed.update_count) == (1.0, 0)


@pytest.mark.parametrize("text", [QUESTION, "in which city was the chemist born?"], ids=["entities", "no entities"])
def test_ungated_memories_count_in_full(application: Application, curie: str, text: str) -> None:
    teach(application, curie)
    gated, ungated = (
        perplexities(ask_with_trace(application, curie, text, ungated=value)) for value in (False, True)
    )
    # π / (π + R) of it is gone after one verdict: R / (1 + R) + Q is left.
    assert gated[BORN] == pytest.approx(0.5 / 1.5 + 0.001)
    assert ungated[BORN] == 0
    others = {text: value for text, value in ungated.items() if text not in {BORN, DISCOVERY}}
    assert others
    assert set(others.values()) == {1.0}


def test_ungated_times_count_in_full(application: Application, curie: str) -> None:
    teach(application, curie, "1867")
    text = f"{QUESTION} In 1867?"
    times = {
        ungated: {
            sentence.text: sentence.time_perplexity
            for hop in ask_with_trace(application, curie, text, ungated=ungated).hops
            for sentence in hop.sentences
        }
        for ungated in (False, True)
    }
    assert 0 < times[False][BORN] < 1
    assert times[True][BORN] == 0


def test_ungated_supports_count_in_full(application: Application, curie: str) -> None:
    teach(application, curie)
    gated, ungated = (
        ask_with_trace(application, curie, QUESTION, ungated=value, profile="default").recalled
        for value in (False, True)
    )
    assert [row.support for row in gated] == [pytest.approx(1 / 1.5)]
    assert [row.support for row in ungated] == [1.0]
    assert ungated[0].recall_probability > gated[0].recall_probability


def test_a_memory_that_no_verdict_moved_counts_for_nothing_gated_or_not(
    application: Application, addresses: Servers, curie: str
) -> None:
    services = build_variation(application, addresses, Variation("x", frozen=frozenset({"task"})))
    answer = services.answers.question.answer(Query(text=QUESTION, scope=services.auth.access.scope(curie)))
    ids = sentences(services, curie, "curie")
    judge(services, curie, answer.query_id, [ids[BORN]], wait=True, key=f"frozen-{uuid4()}")
    seen = perplexities(ask_with_trace(services, curie, QUESTION, ungated=True))
    services.close()
    assert set(seen.values()) == {1.0}


def test_a_memory_is_read_without_its_encoder_and_not_compared_with_a_text(
    application: Application, addresses: Servers, settings: Settings, curie: str
) -> None:
    sentence = teach(application, curie)[BORN]
    with application_on(addresses, settings, application, RotatedEncoder(application.models.embedder)) as other:
        explain, scope = why_of(other).explain, other.auth.access.scope(curie)
        assert explain.sentence(scope, sentence).channels
        with pytest.raises(EmbeddingSpaceMismatchError, match=f"^Collection '{curie}' holds vectors of"):
            explain.sentence(scope, sentence, QUESTION)
