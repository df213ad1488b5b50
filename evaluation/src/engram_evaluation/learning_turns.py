"""Turns of verdicts: measure, judge, measure again; once per seed and per way to learn."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice, product

from engram.services.auth.scope import LOCAL, Principal
from engram.wings.published.parts import published_of
from engram_evaluation.dataset import Question
from engram_evaluation.finished_phases import Phase, Phases
from engram_evaluation.harness import Harness, QueryArm
from engram_evaluation.learning_variations import (
    ATTACKS,
    COMPARED_VARIATIONS,
    FULL,
    Variation,
    add_expansions,
    flip_verdicts,
    oppose,
)
from engram_evaluation.protocols import MEMORY_OFF, ProtocolPlan, Run, measure_arm, plan
from engram_evaluation.retrieval_metrics import score
from engram_evaluation.run_options import Options
from engram_evaluation.verdict_givers import Judge


def run_learning(run: Run, variations: Sequence[Variation] = (FULL,)) -> list[Phase]:
    """Measure every group before the first and after every turn of verdicts."""
    return [
        phase
        for variation in variations
        for seed in run.options.seeds
        for phase in _measure_turns(run, variation, seed)
    ]


def build_harness(run: Run, variation: Variation) -> Harness:
    """The system under a way to learn."""
    return run.harness if variation == FULL else Harness(run.vary(variation), run.harness.collection)


@dataclass(frozen=True, slots=True)
class _FinishedTurns:
    """Places of the phases of a way to learn and a seed.

    Before any verdict all ways to learn that ask alike answer alike, under any seed: they share those phases.
    """

    learned: Phases
    unlearned: Phases
    name: str
    seed: int

    def key(self, turn: int) -> tuple[Phases, str, int | None]:
        """Return the store of a turn's phases, and the arm and seed that they have there."""
        return (self.learned, self.name, self.seed) if turn else (self.unlearned, "unlearned", None)

    def get(self, group: str, turn: int) -> Phase | None:
        """Return a phase that was finished before, as one of this way and seed."""
        store, arm, seed = self.key(turn)
        phase = store.get(arm, group, turn=turn, seed=seed)
        return phase and replace(phase, arm=self.name, seed=self.seed)

    def put(self, phase: Phase) -> None:
        """Keep a finished phase."""
        store, arm, seed = self.key(phase.turn)
        store.put(replace(phase, arm=arm, seed=seed))

    def get_drift(self, group: str, turn: int) -> Phase | None:
        """Return what was answered with memory off after a turn, if that was finished before."""
        phase = self.learned.get(f"{self.name}, {MEMORY_OFF}", group, turn=turn, seed=self.seed)
        return phase and replace(phase, arm=self.name)

    def put_drift(self, phase: Phase) -> None:
        """Keep what was answered with memory off after a turn."""
        self.learned.put(replace(phase, arm=f"{self.name}, {MEMORY_OFF}"))


def _open_finished_turns(run: Run, way: Variation, name: str, plan_of: ProtocolPlan, seed: int) -> _FinishedTurns:
    options = run.options
    variation = _freeze(run, way)
    measured = {group: [question.id for question in asked] for group, asked in plan_of.groups.items()}
    learned = run.store(
        profile=options.profile,
        variation=variation.parameters(),
        verdicts=options.verdicts,
        judged=sorted(question.id for question in plan_of.judged),
        measured=measured,
    )
    unlearned = run.store(profile=options.profile, asking=[variation.ungated], measured=measured)
    return _FinishedTurns(learned, unlearned, name, seed)


def _shows_drift(options: Options) -> bool:
    """Whether every group is also asked with memory off after the verdicts; ways to learn side by side are not."""
    return options.protocol != "levels" and options.protocol not in COMPARED_VARIATIONS


def _freeze(run: Run, way: Variation) -> Variation:
    """Return a way to learn without what the run leaves alone."""
    return replace(way, frozen=way.frozen.union(run.options.freeze))


def _measure_turns(run: Run, way: Variation, seed: int) -> list[Phase]:
    options = run.options
    name = options.profile if way == FULL else way.name
    variation = _freeze(run, way)
    arm = QueryArm(options.profile, "read", options.stop_rule, ungated=variation.ungated)
    plan_of = plan(run.dataset, options, seed)
    finished = _open_finished_turns(run, way, name, plan_of, seed)
    drift = {group: finished.get_drift(group, options.turns) for group in plan_of.groups if _shows_drift(options)}
    turns = options.turns + variation.attacked
    measured = sorted({0, turns, *(options.at or range(turns))})
    phases_by_group = {
        (turn, group): finished.get(group, turn) for turn, group in product(measured, plan_of.groups)
    }
    missing = [turn for (turn, _), phase in phases_by_group.items() if phase is None]
    missing += [turns for phase in drift.values() if phase is None]
    if not missing:
        run.drift += map(_require_phase, drift.values())
        return list(map(_require_phase, phases_by_group.values()))
    harness = build_harness(run, variation)
    honest = add_expansions(run.judge, run.dataset.expansions) if variation.expanded else run.judge
    judge = honest
    # Learned state is rebuilt from its first verdict: what is left in the collection may be another run's.
    harness.reset()
    for turn in range(max(missing) + 1):
        label = f"{name}, seed {seed}, turn {turn}"
        if turn > options.turns:
            attack = _flood if variation.sybils else _attack
            attack(run, harness, plan_of.judged, arm, f"{label}: hostile verdicts", variation)
        elif turn:
            if variation.flipped:
                judge = flip_verdicts(honest, variation.flipped, f"{seed}/{turn}")
            _teach(run, harness, judge, plan_of.judged, arm, f"{label}: verdicts", f"{seed}/{turn}")
            if variation.expanded:
                published_of(harness.services).evolve.evolve(harness.scope)
        for group, questions in plan_of.groups.items() if turn in measured else ():
            if phases_by_group[turn, group] is None:
                rows = measure_arm(run, f"{label}: {group}", questions, harness, arm)
                phases_by_group[turn, group] = phase = Phase(name, group, turn, seed, tuple(score(rows)))
                finished.put(phase)
    for group, questions in plan_of.groups.items() if _shows_drift(options) else ():
        if drift[group] is None:
            label = f"{name}, seed {seed}, {MEMORY_OFF}: {group}"
            rows = measure_arm(run, label, questions, harness, replace(arm, memory="off"))
            drift[group] = phase = Phase(name, group, options.turns, seed, tuple(score(rows)))
            finished.put_drift(phase)
    run.drift += map(_require_phase, drift.values())
    return list(map(_require_phase, phases_by_group.values()))


def _teach(
    run: Run, harness: Harness, judge: Judge, judged: Sequence[Question], arm: QueryArm, label: str, order: str
) -> None:
    """One turn: every judged question is asked and judged once, in an order of its own."""
    step = run.begin(label, len(judged))
    for question in random.Random(order).sample(judged, len(judged)):  # noqa: S311 - repeatable, not secret
        harness.teach(question, arm, judge)
        step()


def _attack(
    run: Run, harness: Harness, judged: Sequence[Question], arm: QueryArm, label: str, _way: Variation
) -> None:
    """One judge gives ``ATTACKS`` verdicts, each the opposite of the truth, on the judged questions in turn.

    They are asked with memory off: what recall has no say in is free to teach the ranking.
    """
    step, hostile = run.begin(label, ATTACKS), oppose(run.judge)
    for question in islice(cycle(judged), ATTACKS):
        harness.teach(question, replace(arm, memory="off"), hostile)
        step()


def _flood(
    run: Run, harness: Harness, judged: Sequence[Question], arm: QueryArm, label: str, way: Variation
) -> None:
    """Each judged question is asked once, and all new names contradict its answer."""
    step, hostile = run.begin(label, len(judged)), oppose(run.judge)
    named = [
        Principal(f"sybil-{n}", LOCAL.tenant, judges_as=f"sybil-{n}", trusted=way.trusted)
        for n in range(way.sybils)
    ]
    for question in judged:
        harness.flood(question, replace(arm, memory="off"), hostile, named)
        step()


def _require_phase(phase: Phase | None) -> Phase:
    if phase is None:
        raise RuntimeError("a phase was not measured")
    return phase
