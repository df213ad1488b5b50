"""Turns of verdicts: measure, judge, measure again; once per seed and per way to learn."""

import random
from collections.abc import Sequence

from app.evaluation.dataset import Question
from app.evaluation.harness import Arm, Harness
from app.evaluation.judges import Judge
from app.evaluation.metrics import score
from app.evaluation.phases import Phase
from app.evaluation.protocols import Run, measure, plan
from app.evaluation.variations import FULL, FlippingJudge, Variation


def learning(run: Run, variations: Sequence[Variation] = (FULL,)) -> list[Phase]:
    """Measure every group before the first and after every turn of verdicts."""
    return [
        phase for variation in variations for seed in run.options.seeds for phase in _learning(run, variation, seed)
    ]


def _learning(run: Run, variation: Variation, seed: int) -> list[Phase]:
    options = run.options
    arm = Arm(options.profile, "read", options.sufficiency)
    name = options.profile if variation == FULL else variation.name
    plan_of = plan(run.dataset, options, seed)
    store = run.store(
        profile=options.profile,
        variation=repr(variation),
        verdicts=options.verdicts if options.judge == "oracle" else None,
        judge=options.judge,
        judged=sorted(question.id for question in plan_of.judged),
        measured={group: [question.id for question in asked] for group, asked in plan_of.groups.items()},
    )
    found = {
        (turn, group): store.get(name, group, turn, seed)
        for turn in range(options.turns + 1)
        for group in plan_of.groups
    }
    missing = [turn for (turn, _), phase in found.items() if phase is None]
    if not missing:
        return [_present(phase) for phase in found.values()]
    harness = run.harness if variation == FULL else Harness(run.vary(variation), run.harness.collection)
    judge = run.judge
    # Learned state is rebuilt from its first verdict: what is left in the collection may be another run's.
    harness.reset()
    for turn in range(max(missing) + 1):
        label = f"{name}, seed {seed}, turn {turn}"
        if turn:
            if variation.flipped:
                judge = FlippingJudge(run.judge, variation.flipped, f"{seed}/{turn}")
            _teach(run, harness, judge, plan_of.judged, arm, f"{label}: verdicts", f"{seed}/{turn}")
        for group, questions in plan_of.groups.items():
            if found[turn, group] is None:
                rows = measure(run, f"{label}: {group}", questions, lambda q: harness.ask(q, arm)[2])
                found[turn, group] = phase = Phase(name, group, turn, seed, tuple(score(rows)))
                store.put(phase)
    return [_present(phase) for phase in found.values()]


def _teach(
    run: Run, harness: Harness, judge: Judge, judged: Sequence[Question], arm: Arm, label: str, order: str
) -> None:
    """One turn: every judged question is asked and judged once, in an order of its own."""
    step = run.begin(label, len(judged))
    for question in random.Random(order).sample(judged, len(judged)):  # noqa: S311 - repeatable, not secret
        harness.teach(question, arm, judge)
        step()


def _present(phase: Phase | None) -> Phase:
    if phase is None:
        raise RuntimeError("a phase was not measured")
    return phase
