"""Replays of made-up logs: what they come to is what a worker came to, to the bit, also without single events."""

from dataclasses import replace

import pytest
from hypothesis import given

from engram.core.learning import state_replay
from engram.core.learning.states import RECALL, Audit
from tests.support.logs import (
    Verdict,
    bits,
    logs,
    replay_by_rows,
    sizes,
    some,
    support_steps,
    words,
)


class TestWithAllEvents:
    @some
    @given(logs(), sizes)
    def test_supports_are_what_the_worker_made_them(
        self, monkeypatch: pytest.MonkeyPatch, log: list[Verdict], size: int
    ) -> None:
        monkeypatch.setattr(state_replay, "BATCH", size)
        made = replay_by_rows(log)
        replayed = {
            (done.state.question_id, done.state.sentence_id): done
            for done in state_replay.replay_supports(support_steps(log, made.audit))
        }
        assert list(replayed) == sorted(replayed)
        assert {pair: bits(done.state) for pair, done in replayed.items()} == {
            pair: bits(support) for pair, support in made.supports.items()
        }
        assert not any(done.corrected or done.without for done in replayed.values())

    @some
    @given(logs())
    def test_replay_finds_the_contested_verdicts_of_the_worker(self, log: list[Verdict]) -> None:
        assert state_replay.find_opposing_events(words(log)) == replay_by_rows(log).contested

    @some
    @given(logs(), sizes)
    def test_a_row_that_reads_otherwise_is_found_and_changes_nothing_else(
        self, monkeypatch: pytest.MonkeyPatch, log: list[Verdict], size: int
    ) -> None:
        monkeypatch.setattr(state_replay, "BATCH", size)
        made = replay_by_rows(log)
        rows = [row for row in made.audit if row.channel == RECALL]
        wrong = [replace(row, gain=row.gain + 0.25) if row is rows[-1] else row for row in rows] if rows else []
        done = list(state_replay.replay_supports(support_steps(log, wrong)))
        assert [row for replayed in done for row in replayed.corrected] == rows[-1:]
        assert sorted(bits(replayed.state) for replayed in done) == sorted(map(bits, made.supports.values()))

    @some
    @given(logs(), sizes)
    def test_replay_restores_zeroed_audit_rows(
        self, monkeypatch: pytest.MonkeyPatch, log: list[Verdict], size: int
    ) -> None:
        monkeypatch.setattr(state_replay, "BATCH", size)
        made = replay_by_rows(log)
        rows = [row for row in made.audit if row.channel == RECALL]
        nothing = {"gain": 0.0, "residual": 0.0, "perplexity_before": 1.0, "perplexity_after": 1.0}
        untold = [replace(row, **nothing) for row in rows]
        corrected = [
            row for done in state_replay.replay_supports(support_steps(log, untold)) for row in done.corrected
        ]

        def place(row: Audit) -> tuple[int, int, str]:
            return row.event_id, row.sentence_id, row.channel

        told = {place(row): bits(row) for row in untold} | {place(row): bits(row) for row in corrected}
        assert told == {place(row): bits(row) for row in rows}


class TestWithoutSingleEvents:
    @some
    @given(logs(), sizes)
    def test_each_support_is_as_if_the_event_had_never_come(
        self, monkeypatch: pytest.MonkeyPatch, log: list[Verdict], size: int
    ) -> None:
        monkeypatch.setattr(state_replay, "BATCH", size)
        made = replay_by_rows(log)
        events = {one.event.id for one in log}
        ways: dict[int | None, dict[tuple[int, int], object]] = {event: {} for event in (None, *events)}
        for done in state_replay.replay_supports(support_steps(log, made.audit), events):
            if done.state.update_count:
                ways[done.without][done.state.question_id, done.state.sentence_id] = bits(done.state)
        for one in log:
            without = replay_by_rows([other for other in log if other is not one]).supports
            touched = {(one.event.question_id, sentence) for sentence in one.targets}
            assert ways[one.event.id] == {
                pair: bits(support) for pair, support in without.items() if pair in touched
            }
            assert {pair: bits(support) for pair, support in without.items() if pair not in touched} == {
                pair: found for pair, found in ways[None].items() if pair not in touched
            }

    @some
    @given(logs(), sizes)
    def test_of_what_goes_another_way_no_row_is_corrected(
        self, monkeypatch: pytest.MonkeyPatch, log: list[Verdict], size: int
    ) -> None:
        monkeypatch.setattr(state_replay, "BATCH", size)
        made = replay_by_rows(log)
        events = {one.event.id for one in log}
        assert not any(
            done.corrected for done in state_replay.replay_supports(support_steps(log, made.audit), events)
        )
