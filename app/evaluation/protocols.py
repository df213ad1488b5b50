"""The protocols: which questions are judged, which are measured, and in which state of the memory."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.errors import InvalidRequestError
from app.evaluation import baselines
from app.evaluation.dataset import Dataset, Question
from app.evaluation.harness import Arm, Harness
from app.evaluation.judges import Judge
from app.evaluation.metrics import Observation, score
from app.evaluation.options import Options
from app.evaluation.phases import Phase, Phases, code_fingerprint

Begin = Callable[[str, int], Callable[[], None]]
"""Announces a stretch of so many steps; what it returns is called after each."""

JUDGED = "judged questions"
PARAPHRASES = "their paraphrases"
UNJUDGED = "unjudged questions"
OTHER_HALF = "other half"
DIFFERENT_LIMIT = 50


@dataclass(frozen=True, slots=True)
class Plan:
    """Questions to judge, and named groups of questions to measure before and after."""

    judged: list[Question]
    groups: dict[str, list[Question]]


@dataclass(slots=True)
class Run:
    """One run: the system, what is asked of it, where finished phases are kept."""

    harness: Harness
    dataset: Dataset
    options: Options
    judge: Judge
    phases: Callable[[dict[str, Any]], Phases]
    begin: Begin
    engine: dict[str, Any] = field(default_factory=dict)

    def store(self, **parameters: Any) -> Phases:
        """Where phases with these parameters are kept; the data set, the code and its settings always count."""
        return self.phases(
            {
                "dataset": [self.dataset.name, self.dataset.fingerprint],
                "code": code_fingerprint(),
                "engine": self.engine,
                "sufficiency": self.options.sufficiency,
                **parameters,
            }
        )


def plan(dataset: Dataset, options: Options, seed: int) -> Plan:
    """Who is judged and who is measured under ``same``, ``similar``, ``unrelated`` and ``different``.

    Raises:
        InvalidRequestError: the data set has nothing to measure with this protocol.
    """
    if options.protocol == "different":
        return _halves(dataset, options.limit or DIFFERENT_LIMIT, seed)
    first = {
        "same": len(dataset.questions),
        "similar": len(dataset.questions),
        "unrelated": max(1, len(dataset.questions) // 2),
    }[options.protocol]
    eligible = list(dataset.questions)
    if options.protocol == "similar" or (options.protocol == "unrelated" and dataset.paraphrases):
        eligible = [question for question in eligible if question.id in dataset.paraphrases]
        first = len(eligible)
    judged = eligible[: options.limit or first]
    chosen = {question.id for question in judged}
    groups = {
        JUDGED: judged,
        PARAPHRASES: [dataset.paraphrases[q.id] for q in judged if q.id in dataset.paraphrases],
        UNJUDGED: [question for question in dataset.questions if question.id not in chosen],
    }
    wanted = {"same": JUDGED, "similar": PARAPHRASES, "unrelated": UNJUDGED}[options.protocol]
    if not groups[wanted]:
        raise InvalidRequestError(
            f"{dataset.name} has none of what --protocol {options.protocol} measures: {wanted}."
        )
    return Plan(judged, {name: group for name, group in groups.items() if group})


def _halves(dataset: Dataset, limit: int, seed: int) -> Plan:
    """Disjoint halves of every question type (GAM-RAG, Appendix D); ``limit`` of one are judged."""
    by_type: dict[str, list[Question]] = {}
    for question in dataset.questions:
        by_type.setdefault(question.type, []).append(question)
    order = random.Random(seed)  # noqa: S311
    one: list[Question] = []
    other: list[Question] = []
    for kind in sorted(by_type):
        shuffled = order.sample(by_type[kind], len(by_type[kind]))
        one += shuffled[: len(shuffled) // 2]
        other += shuffled[len(shuffled) // 2 :]
    if not one:
        raise InvalidRequestError(f"{dataset.name} has too few questions to halve.")
    judged = order.sample(one, min(limit, len(one)))
    return Plan(judged, {JUDGED: judged, OTHER_HALF: other})


def learning(run: Run) -> list[Phase]:
    """Measure every group before the first and after every turn of verdicts, once per seed."""
    return [phase for seed in run.options.seeds for phase in _learning(run, seed)]


def _learning(run: Run, seed: int) -> list[Phase]:
    options = run.options
    arm = Arm(options.profile, "read", options.sufficiency)
    plan_of = plan(run.dataset, options, seed)
    store = run.store(
        profile=options.profile,
        verdicts=options.verdicts if options.judge == "oracle" else None,
        judge=options.judge,
        judged=sorted(question.id for question in plan_of.judged),
        measured={name: [question.id for question in group] for name, group in plan_of.groups.items()},
    )
    found = {
        (turn, group): store.get(arm.profile, group, turn, seed)
        for turn in range(options.turns + 1)
        for group in plan_of.groups
    }
    missing = [turn for (turn, _), phase in found.items() if phase is None]
    if missing:
        # Learned state is rebuilt from its first verdict: what is left in the collection may be another run's.
        run.harness.reset()
    for turn in range(max(missing, default=-1) + 1):
        if turn:
            _teach(run, plan_of.judged, arm, turn, seed)
        for group, questions in plan_of.groups.items():
            if found[turn, group] is None:
                label = f"seed {seed}, turn {turn}: {group}"
                rows = measure(run, label, questions, lambda q: run.harness.ask(q, arm)[2])
                found[turn, group] = Phase(arm.profile, group, turn, seed, tuple(score(rows)))
                store.put(_present(found[turn, group]))
    return [_present(phase) for phase in found.values()]


def _teach(run: Run, judged: Sequence[Question], arm: Arm, turn: int, seed: int) -> None:
    """One turn: every judged question is asked and judged once, in an order of its own."""
    step = run.begin(f"seed {seed}, turn {turn}: verdicts", len(judged))
    for question in random.Random(f"{seed}/{turn}").sample(judged, len(judged)):  # noqa: S311
        run.harness.teach(question, arm, run.judge)
        step()


def cold(run: Run) -> list[Phase]:
    """No memory: dense, BM25, their fusion, and both profiles, on the same questions."""
    questions = list(run.dataset.questions[: run.options.limit])
    store = run.store(asked=[question.id for question in questions])
    run.harness.reset()
    dense = baselines.Dense(run.harness)
    bm25 = baselines.Bm25(run.dataset)
    systems: dict[str, Callable[[Question], Observation]] = {
        "dense": lambda q: baselines.observe(dense, q),
        "bm25": lambda q: baselines.observe(bm25, q),
        "rrf": lambda q: baselines.observe(baselines.Fused(dense, bm25), q),
        "paper": lambda q: run.harness.ask(q, Arm("paper", "off", run.options.sufficiency))[2],
        "default": lambda q: run.harness.ask(q, Arm("default", "off", run.options.sufficiency))[2],
    }
    phases = []
    for name, ask in systems.items():
        phase = store.get(name, "all questions", 0, None)
        if phase is None:
            phase = Phase(name, "all questions", 0, None, tuple(score(measure(run, name, questions, ask))))
            store.put(phase)
        phases.append(phase)
    return phases


def measure(
    run: Run, label: str, questions: Sequence[Question], ask: Callable[[Question], Observation]
) -> list[Observation]:
    """Ask every question once."""
    step = run.begin(label, len(questions))
    observations = []
    for question in questions:
        observations.append(ask(question))
        step()
    return observations


def _present(phase: Phase | None) -> Phase:
    if phase is None:
        raise RuntimeError("a phase was not measured")
    return phase
