"""Steps of learning: worked examples, and properties of every state and event, against the row-wise engine."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.core.learning.caps import GainBudget
from engram.core.learning.state_rows import SupportRows
from engram.core.learning.states import (
    RECALL,
    TASK,
    TIME,
    Audit,
    Event,
    Support,
    Vector,
    question_hash,
)
from engram.core.learning.steps import LabelledEvent
from engram.wings.published.core.memory_states import MemoryRows, SentenceMemory
from tests.support.applied_rules import MovedStates, apply_rules
from tests.support.logs import BASES, DAY, EVENT, SENTENCES, Verdict, bits, logs, replay_by_rows, unit
from tests.support.row_engine import RowEngine, apply_by_rows

some = settings(deadline=None)


def apply_event(
    targets: dict[int, int],
    directions: dict[str, Vector],
    memories: dict[tuple[int, str], SentenceMemory],
    event: Event = EVENT,
    **more: Any,
) -> MovedStates:
    """What ``event`` moves where no support is known."""
    labelled = LabelledEvent(event, targets, **more)
    return apply_rules(
        [(labelled, directions)], MemoryRows.from_rows([*memories.values()]), SupportRows.from_rows([])
    )


def assert_same(batch: MovedStates, engine: RowEngine) -> None:
    """The batch moved all states that the row-wise engine moved from nothing, to the same bits."""
    assert {(m.sentence_id, m.channel): bits(m) for m in batch.memories} == {
        key: bits(memory) for key, memory in engine.list_touched().items()
    }
    assert {(s.question_id, s.sentence_id): bits(s) for s in batch.supports} == {
        key: bits(support) for key, support in engine.supports.items()
    }
    assert sorted(map(bits, batch.audit)) == sorted(map(bits, engine.audit))
    assert batch.contested == engine.contested


class TestWorkedExamples:
    def test_a_first_supporting_verdict_moves_memory_and_support(self) -> None:
        # m = (0.6, 0.8), q = (1, 0): K = 1 / (1 + 0.5) = 2/3, r = 1 - 0.6, m + K r q = (13/15, 0.8).
        memories = {(1, TASK): SentenceMemory(1, TASK, np.array([0.6, 0.8], dtype=np.float32))}
        moved = apply_event({1: 1}, {TASK: np.array([1.0, 0.0], dtype=np.float32)}, memories)

        (memory,), (support,) = moved.memories, moved.supports
        turned = np.array([13 / 15, 0.8])
        np.testing.assert_allclose(memory.vector, turned / np.linalg.norm(turned), rtol=1e-6)
        assert memory.perplexity == pytest.approx(1 / 3 + 0.001)
        assert memory.gain_budget == GainBudget(DAY, (("a", pytest.approx(1 / 3)),))
        assert support == Support(
            question_id=7,
            sentence_id=1,
            support=pytest.approx(2 / 3),
            perplexity=pytest.approx(1 / 3 + 0.001),
            acceptance=pytest.approx(2 / 3),
            update_count=1,
            complete=True,
            gain_budget=memory.gain_budget,
            statements=((("a", 1),),),
        )
        task, recall = moved.audit
        assert (task.channel, task.gain, task.residual) == (TASK, pytest.approx(2 / 3), pytest.approx(0.4))
        assert (recall.channel, recall.gain, recall.residual) == (RECALL, pytest.approx(2 / 3), 1.0)
        assert recall.strength == pytest.approx(2 / 3)

    def test_empty_verdict_moves_no_state(self) -> None:
        moved = apply_event({}, {TASK: unit(1)}, {(1, TASK): SentenceMemory(1, TASK, unit(2))})
        assert [*moved.memories, *moved.supports, *moved.audit, *moved.contested] == []

    def test_a_sentence_that_is_gone_is_left_alone(self) -> None:
        moved = apply_event({1: 1, 2: 1}, {TASK: unit(1)}, {(2, TASK): SentenceMemory(2, TASK, unit(2))})
        assert {row.sentence_id for row in moved.audit} == {2}

    def test_only_a_question_of_time_moves_time_memories(self) -> None:
        memories = {key: SentenceMemory(*key, vector) for key, vector in BASES.items()}
        both = {TASK: unit(1), TIME: unit(2)}
        timed = apply_event({1: 1, 2: 1}, both, memories)
        assert [(row.sentence_id, row.channel) for row in timed.audit] == [
            (1, TASK),
            (2, TASK),
            (1, TIME),  # sentence 2 has no time channel
            (1, RECALL),
            (2, RECALL),
        ]
        timeless = apply_event({1: 1, 2: 1}, {TASK: unit(1)}, memories)
        assert {row.channel for row in timeless.audit} == {TASK, RECALL}

    def test_silence_says_as_much_as_was_looked_at(self) -> None:
        memories = {key: SentenceMemory(*key, vector) for key, vector in BASES.items()}
        directions = {TASK: unit(7)}
        whole = apply_event({1: 0, 2: 0, 3: 1}, directions, memories)
        moved = apply_event({1: 0, 2: 0, 3: 1}, directions, memories, probabilities={2: 0.25})
        of_second = [row for row in moved.audit if row.sentence_id == 2]
        assert [(row.observation_noise, row.gain) for row in of_second] == [(4.0, 0.2)] * 2  # 1 / (1 + 1 / 0.25)
        others = [bits(row) for row in moved.audit if row.sentence_id != 2]
        assert others == [bits(row) for row in whole.audit if row.sentence_id != 2]

    @pytest.mark.parametrize("probability", [0.0, -0.5, 1.01, math.nan])
    def test_invalid_examination_probability_is_refused(self, probability: float) -> None:
        memories = {(1, TASK): SentenceMemory(1, TASK, unit(1))}
        with pytest.raises(ValueError, match="examination probability"):
            apply_event({1: 0}, {TASK: unit(2)}, memories, probabilities={1: probability})

    def test_equal_questions_meet(self) -> None:
        assert question_hash("  Who was\tborn? ") == question_hash("who was born?")
        assert question_hash("Who was born?") == question_hash("“Who was born”")
        assert question_hash("What is C?") != question_hash("What is C++?")
        assert question_hash("?") != question_hash("!")

    def test_a_gain_below_that_of_eq_11_was_capped(self) -> None:
        assert not Audit(1, 1, TASK, 1, 0.5, 0.5, 0.4, 0.5, 0.251, 0.001).capped  # 0.5 / (0.5 + 0.5)
        assert Audit(1, 1, TASK, 1, 0.5, 0.4, 0.4, 0.5, 0.301, 0.001).capped


class TestProperties:
    @some
    @given(logs())
    def test_states_and_gains_stay_in_their_ranges(self, log: list[Verdict]) -> None:
        found = replay_by_rows(log)
        least = min(one.event.process_noise for one in log)
        moved: list[SentenceMemory | Support] = [*found.list_touched().values(), *found.supports.values()]
        for state in moved:
            assert least <= state.perplexity <= 1
        for memory in found.memories.values():
            assert np.linalg.norm(memory.vector.astype(np.float64)) == pytest.approx(1.0, abs=1e-6)
        assert all(0 <= support.support <= 1 for support in found.supports.values())
        for row in found.audit:
            assert 0 <= row.gain <= row.perplexity_before / (row.perplexity_before + row.observation_noise) < 1
            assert row.gain > 0 or row.capped
            assert -1e-6 <= row.residual + 1 <= 3 + 1e-6

    @some
    @given(logs())
    def test_an_audit_row_joins_what_was_to_what_is(self, log: list[Verdict]) -> None:
        found = replay_by_rows(log)
        questions = {one.event.id: one.event.question_id for one in log}
        last: dict[tuple[int, ...] | tuple[int, str], float] = {}
        for row in found.audit:
            recall = row.channel == RECALL
            key = (questions[row.event_id], row.sentence_id) if recall else (row.sentence_id, row.channel)
            assert row.perplexity_before == last.get(key, 1.0)
            last[key] = row.perplexity_after
        states = {**found.list_touched(), **found.supports}
        assert last == {key: state.perplexity for key, state in states.items()}

    @some
    @given(logs())
    def test_a_judge_closes_no_more_of_a_state_in_a_day_than_its_share(self, log: list[Verdict]) -> None:
        share = max(one.event.share for one in log)
        found = replay_by_rows(log)
        states: list[SentenceMemory | Support] = [*found.memories.values(), *found.supports.values()]
        for state in states:
            assert all(1 - left <= share + 1e-9 for _, left in state.gain_budget.remaining_shares)
            assert all(0 < left <= 1 for _, left in state.gain_budget.remaining_shares)

    @some
    @given(logs())
    def test_capped_verdict_leaves_states_unchanged(self, log: list[Verdict]) -> None:
        before = replay_by_rows(log)
        mute = replace(log[-1], event=replace(log[-1].event, share=0.0, id=len(log) + 1))
        after = replay_by_rows([*log, mute])
        for key, memory in after.memories.items():
            known = before.memories[key]
            assert bits((memory.vector, memory.perplexity)) == bits((known.vector, known.perplexity))
        for pair, support in before.supports.items():
            told = after.supports[pair]
            assert (told.support, told.perplexity) == (support.support, support.perplexity)

    @some
    @given(logs(), st.randoms(use_true_random=False))
    def test_the_order_in_which_sentences_are_named_does_not_matter(
        self, log: list[Verdict], random: "np.random.Generator"
    ) -> None:
        def shuffle(targets: dict[int, int]) -> dict[int, int]:
            named = list(targets.items())
            random.shuffle(named)
            return dict(named)

        mixed = [replace(one, targets=shuffle(one.targets)) for one in log]
        assert bits(vars(replay_by_rows(mixed))) == bits(vars(replay_by_rows(log)))

    @some
    @given(logs(), logs())
    def test_verdicts_that_share_no_state_can_change_places(self, one: list[Verdict], two: list[Verdict]) -> None:
        def select_targets(log: list[Verdict], sentences: tuple[int, ...], after: int) -> list[Verdict]:
            kept = [{s: y for s, y in verdict.targets.items() if s in sentences} for verdict in log]
            ids = (replace(verdict.event, id=after + verdict.event.id) for verdict in log)
            return [
                replace(verdict, event=event, targets=targets)
                for verdict, event, targets in zip(log, ids, kept, strict=True)
            ]

        first, second = select_targets(one, (1, 2), 0), select_targets(two, (3, 4, 5), len(one))
        there, back = replay_by_rows([*first, *second]), replay_by_rows([*second, *first])
        for part in ("memories", "supports"):
            states, others = getattr(there, part), getattr(back, part)
            assert {key: bits(state) for key, state in states.items()} == {
                key: bits(state) for key, state in others.items()
            }

    @some
    @given(logs())
    def test_step_does_not_mutate_its_arguments(self, log: list[Verdict]) -> None:
        before = replay_by_rows(log[:-1])
        kept = bits((before.memories, before.supports))
        last = log[-1]
        memories, supports = (
            MemoryRows.from_rows([*before.memories.values()]),
            SupportRows.from_rows([*before.supports.values()]),
        )
        given = bits((memories, supports))
        apply_rules([last.label()], memories, supports)
        assert bits((memories, supports)) == given
        assert bits((before.memories, before.supports)) == kept


class TestBatchedUpdates:
    """A batch comes to the bits that the row-wise engine comes to, one event and one state at a time."""

    @settings(some, max_examples=2 * some.max_examples)
    @given(logs(most=20))
    def test_a_batch(self, log: list[Verdict]) -> None:
        bases = MemoryRows.from_rows([SentenceMemory(*key, vector) for key, vector in BASES.items()])
        assert_same(
            apply_rules([one.label() for one in log], bases, SupportRows.from_rows([])),
            replay_by_rows(log),
        )

    @pytest.mark.parametrize("dimension", [1, 7, 384, 1_024])
    def test_vectors_of_any_length(self, dimension: int) -> None:
        bases = {(s, TASK): unit(s, dimension) for s in SENTENCES}
        log = [
            (
                LabelledEvent(
                    replace(EVENT, id=number, judge=f"judge {number % 3}", process_noise=number / 100, share=0.9),
                    {sentence: (sentence + number) % 2 for sentence in SENTENCES},
                ),
                {TASK: unit(50 + number, dimension)},
            )
            for number in range(1, 6)
        ]
        memories = MemoryRows.from_rows([SentenceMemory(*key, vector) for key, vector in bases.items()])
        assert_same(apply_rules(log, memories, SupportRows.from_rows([])), apply_by_rows(log, bases))

    @some
    @given(logs(most=12), st.integers(0, 12))
    def test_a_batch_goes_on_from_what_an_earlier_one_left(self, log: list[Verdict], first: int) -> None:
        one_by_one = replay_by_rows(log)
        memories = {key: SentenceMemory(*key, vector) for key, vector in BASES.items()}
        supports: dict[tuple[int, int], Support] = {}
        for part in (log[:first], log[first:]):
            moved = apply_rules(
                [one.label() for one in part],
                MemoryRows.from_rows([*memories.values()]),
                SupportRows.from_rows([*supports.values()]),
            )
            memories |= {(memory.sentence_id, memory.channel): memory for memory in moved.memories}
            supports |= {(support.question_id, support.sentence_id): support for support in moved.supports}
            keys = [(support.question_id, support.sentence_id) for support in moved.supports]
            assert keys == sorted(keys)
        assert {key: bits(memory) for key, memory in memories.items()} == {
            key: bits(memory) for key, memory in one_by_one.memories.items()
        }
        assert {key: bits(support) for key, support in supports.items()} == {
            key: bits(support) for key, support in one_by_one.supports.items()
        }


class TestRefusals:
    @pytest.mark.parametrize("noise", [0.0, -1.0, math.nan])
    def test_noise_that_is_not_positive(self, noise: float) -> None:
        with pytest.raises(ValueError, match="noise"):
            apply_event(
                {1: 1}, {}, {(1, TASK): SentenceMemory(1, TASK, unit(1))}, replace(EVENT, noise=(noise, noise))
            )
