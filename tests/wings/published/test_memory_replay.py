"""Replays of the memories of made-up logs: to the bit what a worker came to, also without single events."""

from dataclasses import replace

import pytest
from hypothesis import given

from engram.core.learning import state_replay
from engram.core.learning.states import RECALL, TASK, Audit
from engram.wings.published.core.memory_replay import MemoryStep, replay_memories
from tests.support.logs import (
    BASES,
    EVENT,
    Verdict,
    bits,
    logs,
    memory_steps,
    replay_by_rows,
    sizes,
    some,
    unit,
)


class TestWithAllEvents:
    @some
    @given(logs(), sizes)
    def test_memories_are_what_the_worker_made_them(
        self, monkeypatch: pytest.MonkeyPatch, log: list[Verdict], size: int
    ) -> None:
        monkeypatch.setattr(state_replay, "BATCH", size)
        made = replay_by_rows(log)
        replayed = {
            (done.state.sentence_id, done.state.channel): done
            for done in replay_memories(BASES, memory_steps(log, made.audit))
        }
        assert list(replayed) == sorted(replayed)
        assert {key: bits(done.state) for key, done in replayed.items()} == {
            key: bits(memory) for key, memory in made.list_touched().items()
        }
        assert not any(done.corrected or done.without for done in replayed.values())

    @some
    @given(logs(), sizes)
    def test_replay_restores_zeroed_audit_rows(
        self, monkeypatch: pytest.MonkeyPatch, log: list[Verdict], size: int
    ) -> None:
        monkeypatch.setattr(state_replay, "BATCH", size)
        made = replay_by_rows(log)
        rows = [row for row in made.audit if row.channel != RECALL]
        nothing = {"gain": 0.0, "residual": 0.0, "perplexity_before": 1.0, "perplexity_after": 1.0}
        untold = [replace(row, **nothing) for row in rows]
        corrected = [row for done in replay_memories(BASES, memory_steps(log, untold)) for row in done.corrected]

        def place(row: Audit) -> tuple[int, int, str]:
            return row.event_id, row.sentence_id, row.channel

        told = {place(row): bits(row) for row in untold} | {place(row): bits(row) for row in corrected}
        assert told == {place(row): bits(row) for row in rows}

    def test_of_what_has_no_base_nothing_is_replayed(self) -> None:
        step = MemoryStep(1, EVENT, Audit(1, 99, TASK, 1, 0.5, 0.0, 0.0, 1.0, 1.0, 0.001), unit(1))
        assert list(replay_memories(BASES, [step])) == []

    def test_a_memory_cannot_move_without_a_direction(self) -> None:
        step = MemoryStep(1, EVENT, Audit(1, 1, TASK, 1, 0.5, 0.0, 0.0, 1.0, 1.0, 0.001))
        with pytest.raises(ValueError, match="direction"):
            list(replay_memories(BASES, [step]))


class TestWithoutSingleEvents:
    @some
    @given(logs(), sizes)
    def test_each_memory_is_as_if_the_event_had_never_come(
        self, monkeypatch: pytest.MonkeyPatch, log: list[Verdict], size: int
    ) -> None:
        monkeypatch.setattr(state_replay, "BATCH", size)
        made = replay_by_rows(log)
        events = {one.event.id for one in log}
        ways: dict[int | None, dict[tuple[int, str], object]] = {event: {} for event in (None, *events)}
        for done in replay_memories(BASES, memory_steps(log, made.audit), events):
            ways[done.without][done.state.sentence_id, done.state.channel] = bits(done.state)
        assert ways[None] == {key: bits(memory) for key, memory in made.list_touched().items()}
        for event in events:
            without = replay_by_rows([one for one in log if one.event.id != event]).list_touched()
            touched = {row.sentence_id for row in made.audit if row.event_id == event}
            # Sentences that the event did not speak of go no way of their own without it.
            assert ways[event] == {key: bits(memory) for key, memory in without.items() if key[0] in touched}
            assert {key: bits(memory) for key, memory in without.items() if key[0] not in touched} == {
                key: found for key, found in ways[None].items() if key[0] not in touched
            }

    @some
    @given(logs(), sizes)
    def test_of_what_goes_another_way_no_row_is_corrected(
        self, monkeypatch: pytest.MonkeyPatch, log: list[Verdict], size: int
    ) -> None:
        monkeypatch.setattr(state_replay, "BATCH", size)
        made = replay_by_rows(log)
        events = {one.event.id for one in log}
        assert not any(done.corrected for done in replay_memories(BASES, memory_steps(log, made.audit), events))
