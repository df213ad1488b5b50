"""Rules of learning that leave a part out: everything else is as in the service."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.core.learning.logged_verdict import LoggedVerdict
from engram.core.learning.state_rows import SupportRows
from engram.core.learning.states import AUDITED, RECALL, JudgedText
from engram.wings.published.core.memory_states import MemoryRows, SentenceMemory
from engram_evaluation.learning_rules import PartialMemoryRule, PartialRule, WithoutValidation
from tests.support.applied_rules import MovedStates, apply_rules
from tests.support.logs import BASES, Verdict, bits, logs

some = settings(deadline=None)


BEGUN = MemoryRows.from_rows([SentenceMemory(*key, vector) for key, vector in BASES.items()])


def apply_whole(log: Sequence[Verdict]) -> MovedStates:
    return apply_rules([verdict.label() for verdict in log], BEGUN, SupportRows.from_rows([]))


def apply_partial(log: Sequence[Verdict], frozen: set[str], gain: float | None = None) -> MovedStates:
    return apply_rules(
        [verdict.label() for verdict in log],
        BEGUN,
        SupportRows.from_rows([]),
        rule=PartialRule(RECALL in frozen, gain),
        memory_rule=PartialMemoryRule(frozen, gain),
    )


@some
@given(logs())
def test_with_nothing_left_out_events_move_states_as_in_the_service(log: list[Verdict]) -> None:
    partial, whole = apply_partial(log, set()), apply_whole(log)
    assert bits([*partial.memories]) == bits([*whole.memories])
    assert bits([*partial.supports]) == bits([*whole.supports])
    assert sorted(map(bits, partial.audit)) == sorted(map(bits, whole.audit))
    assert partial.contested == whole.contested


@some
@given(logs(), st.sampled_from(AUDITED))
def test_a_frozen_channel_stays(log: list[Verdict], channel: str) -> None:
    partial, whole = apply_partial(log, {channel}), apply_whole(log)
    channels = {row.channel for row in whole.audit}
    assert {row.channel for row in partial.audit} == channels - {channel}
    assert {memory.channel for memory in partial.memories} == channels - {channel, RECALL}
    assert (len(partial.supports) == 0) == (channel == RECALL or len(whole.supports) == 0)


@some
@given(logs(), st.sampled_from([0.05, 0.3]))
def test_a_fixed_gain_ignores_perplexity_where_no_cap_holds_it(log: list[Verdict], gain: float) -> None:
    weights = {
        (verdict.event.id, sentence): verdict.examined.get(sentence, 1.0)
        * verdict.texts.get(sentence, JudgedText()).likeness
        for verdict in log
        for sentence in verdict.targets
    }
    for row in apply_partial(log, set(), gain).audit:
        weight = weights[row.event_id, row.sentence_id]
        if not row.capped:
            assert row.gain == pytest.approx(gain / (gain + (1.0 - gain) / weight))


def test_expansions_count_without_any_success() -> None:
    verdict = LoggedVerdict(retrieval_success=False, generation_success=False)
    assert WithoutValidation().gate(verdict, is_retrieved=False) == "retrieval"
