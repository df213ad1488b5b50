"""Rules of learning that leave a part out: everything else is as in the service."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.core.filter.logged_verdict import LoggedVerdict
from engram.core.filter.state_rows import MemoryRows, SupportRows
from engram.core.filter.states import AUDITED, RECALL, SentenceMemory
from engram.core.filter.steps import LearningRule, MovedStates, apply_statements
from engram_evaluation.learning_rules import PartialRule, WithoutValidation
from tests.support.logs import BASES, Verdict, bits, logs

some = settings(deadline=None)


def apply_rule(rule: LearningRule, log: Sequence[Verdict]) -> MovedStates:
    bases = MemoryRows.from_rows([SentenceMemory(*key, vector) for key, vector in BASES.items()])
    return rule([verdict.as_statement() for verdict in log], bases, SupportRows.from_rows([]))


@some
@given(logs())
def test_with_nothing_left_out_events_move_states_as_in_the_service(log: list[Verdict]) -> None:
    partial, whole = apply_rule(PartialRule(frozenset(), None), log), apply_rule(apply_statements, log)
    assert bits([*partial.memories]) == bits([*whole.memories])
    assert bits([*partial.supports]) == bits([*whole.supports])
    assert sorted(map(bits, partial.audit)) == sorted(map(bits, whole.audit))
    assert partial.contested == whole.contested


@some
@given(logs(), st.sampled_from(AUDITED))
def test_a_frozen_channel_stays(log: list[Verdict], channel: str) -> None:
    partial, whole = apply_rule(PartialRule({channel}, None), log), apply_rule(apply_statements, log)
    channels = {row.channel for row in whole.audit}
    assert {row.channel for row in partial.audit} == channels - {channel}
    assert {memory.channel for memory in partial.memories} == channels - {channel, RECALL}
    assert (len(partial.supports) == 0) == (channel == RECALL or len(whole.supports) == 0)


@some
@given(logs(), st.sampled_from([0.05, 0.3]))
def test_a_fixed_gain_ignores_perplexity_where_no_cap_holds_it(log: list[Verdict], gain: float) -> None:
    examined = {
        (verdict.event.id, sentence): verdict.examined.get(sentence, 1.0)
        for verdict in log
        for sentence in verdict.targets
    }
    for row in apply_rule(PartialRule(frozenset(), gain), log).audit:
        seen = examined[row.event_id, row.sentence_id]
        if not row.capped:
            assert row.gain == pytest.approx(gain / (gain + (1.0 - gain) / seen))


def test_expansions_count_without_any_success() -> None:
    verdict = LoggedVerdict(retrieval_success=False, generation_success=False)
    assert WithoutValidation().gate(verdict, is_retrieved=False) == "retrieval"
