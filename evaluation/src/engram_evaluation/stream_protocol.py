"""Questions as they come to a service in use: some often, most seldom, each judged once it is answered."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from engram_evaluation.dataset import Question
from engram_evaluation.finished_phases import Phase
from engram_evaluation.harness import QueryArm
from engram_evaluation.learning_turns import build_harness
from engram_evaluation.learning_variations import FULL
from engram_evaluation.protocols import Run
from engram_evaluation.retrieval_metrics import QuestionResult, score

ARRIVALS = 500
EXPONENT = 1.0
"""Zipf's: the question of rank r comes with weight 1 / r."""
PARTS = 5
"""Equal stretches of the stream that the report shows."""


def arrivals(questions: Sequence[Question], count: int, seed: int) -> list[Question]:
    """``count`` questions drawn with Zipf weights over a random ranking; ids are numbered to tell repeats apart."""
    order = random.Random(f"stream/{seed}")  # noqa: S311 - repeatable, not secret
    ranked = order.sample(questions, len(questions))
    weights = [1.0 / rank**EXPONENT for rank in range(1, len(ranked) + 1)]
    drawn = order.choices(ranked, weights, k=count)
    return [replace(question, id=f"{question.id}#{at}") for at, question in enumerate(drawn, start=1)]


def stream(run: Run) -> list[Phase]:
    """Every arrival is asked with memory off and read, then judged."""
    return [phase for seed in run.options.seeds for phase in _stream(run, seed)]


def _stream(run: Run, seed: int) -> list[Phase]:
    options = run.options
    arriving = arrivals(run.dataset.questions, options.limit or ARRIVALS, seed)
    store = run.store(
        profile=options.profile,
        verdicts=options.verdicts if options.judge == "oracle" else None,
        judge=options.judge,
        stream=[question.id for question in arriving],
        frozen=options.frozen,
    )
    arms = {f"memory {memory}": QueryArm(options.profile, memory, options.stop_rule) for memory in ("off", "read")}
    names = _parts(len(arriving))
    arm_phases = [store.get(arm, name, turn=0, seed=seed) for arm in arms for name in names]
    if all(arm_phases):
        return [phase for phase in arm_phases if phase]
    harness = build_harness(run, replace(FULL, frozen=frozenset(options.freeze)))
    harness.reset()
    step = run.begin(f"seed {seed}: stream", len(arriving))
    seen: dict[str, list[QuestionResult]] = {arm: [] for arm in arms}
    for question in arriving:
        seen["memory off"].append(harness.ask(question, arms["memory off"])[1])
        seen["memory read"].append(harness.teach(question, arms["memory read"], run.judge)[0])
        step()
    phases = []
    for arm, observations in seen.items():
        rows = score(observations)
        for name, (start, end) in names.items():
            phases.append(Phase(arm, name, 0, seed, tuple(rows[start:end])))
            store.put(phases[-1])
    return phases


def _parts(count: int) -> dict[str, tuple[int, int]]:
    """Name -> positions of up to ``PARTS`` equal stretches."""
    parts = min(PARTS, count)
    edges = [count * at // parts for at in range(parts + 1)]
    return {f"arrivals {a + 1} to {b}": (a, b) for a, b in pairwise(edges)}
