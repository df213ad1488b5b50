"""The protocol ``adapt``: what evolved keys are worth (ERM, Section 4) to the questions whose expansions made them,
to questions like these, and to all others.

A share of the questions with expansions gets one verdict each: the expansions, and the passages that are relevant.
No sentence is named and every other scope is frozen, so that keys alone learn; then they evolve, once.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import InvalidRequestError
from engram.core.learning.logged_verdict import Expansion
from engram.core.ranking.profiles import ProfileName
from engram.services.question.query import Memory, Strategy
from engram.services.verdict.verdict import Verdict
from engram.wings.published.parts import published_of
from engram_evaluation import adapt_table
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.finished_phases import Phase, Phases
from engram_evaluation.harness import QueryArm
from engram_evaluation.learning_turns import build_harness
from engram_evaluation.learning_variations import Variation
from engram_evaluation.protocols import Run, measure
from engram_evaluation.retrieval_metrics import QuestionResult, QuestionScores, score
from engram_evaluation.run_options import SCOPES, Way

NEAR_COSINE = 0.85
"""From here on a question that shares a passage with an adapted one counts as the same in other words."""
ALL_QUESTIONS = "all questions"
FROZEN_SCOPES = frozenset(SCOPES)
VARIATIONS: Mapping[Way, Variation] = {
    "supported": Variation("supported", frozen=FROZEN_SCOPES),
    "published": Variation("published", frozen=FROZEN_SCOPES),
    "ungated": Variation("ungated", frozen=FROZEN_SCOPES, ungated_keys=True),
}
PROFILES: Mapping[Way, ProfileName] = {"supported": "default", "published": "paper", "ungated": "default"}
"""Of the judged episode: it decides whether units are credited to supported or to all retrieved passages."""

Rows = Mapping[str, QuestionScores]


@dataclass(frozen=True, slots=True)
class AdaptationSplit:
    """The questions that keys are adapted to, and the groups that are measured."""

    adapted: list[Question]
    groups: dict[str, list[Question]]


def select_expandable(dataset: Dataset, limit: int | None) -> list[Question]:
    """The first ``limit`` questions with expansions.

    Raises:
        InvalidRequestError: there are none.
    """
    with_expansions = [question for question in dataset.questions if question.id in dataset.expansions]
    if not with_expansions:
        raise InvalidRequestError(f"{dataset.name} has no expansions (expansions.jsonl), which adapt needs.")
    return with_expansions[:limit]


def split(
    dataset: Dataset,
    expandable: Sequence[Question],
    fraction: float,
    seed: int,
    vectors: Mapping[str, NDArray[np.float32]],
) -> AdaptationSplit:
    """Adapt to a fraction of the expandable questions, at least one; a larger fraction's include a smaller one's.

    Args:
        vectors: of every question, unit length, (d,); only read where the data set has no paraphrases.
    """
    order = random.Random(f"adapt/{seed}").sample(expandable, len(expandable))  # noqa: S311 - repeatable, not secret
    adapted = order[: max(1, round(fraction * len(order)))]
    chosen = {question.id for question in adapted}
    covered = frozenset().union(*(question.relevant for question in adapted))
    unadapted = [question for question in dataset.questions if question.id not in chosen]
    sharing = [question for question in unadapted if question.relevant & covered]
    if dataset.paraphrases:
        near = dataset.list_paraphrases(adapted)
    else:
        adapted_vectors = np.stack([vectors[question.id] for question in adapted])
        near = [question for question in sharing if np.max(adapted_vectors @ vectors[question.id]) >= NEAR_COSINE]
    unrelated = [question for question in unadapted if not question.relevant & covered]
    groups = dict(zip(adapt_table.GROUPS, (adapted, near, sharing, unrelated), strict=True))
    return AdaptationSplit(adapted, {name: group for name, group in groups.items() if group})


def vectors(run: Run) -> dict[str, NDArray[np.float32]]:
    """Embed every question, as ``split`` takes them; empty where paraphrases tell what is near."""
    questions = run.dataset.questions
    if run.dataset.paraphrases:
        return {}
    embedded = run.harness.services.models.embedder.embed([question.text for question in questions])
    return {question.id: vector for question, vector in zip(questions, embedded, strict=True)}


def adapt(run: Run) -> list[Phase]:
    """Ask everything with base keys, then with the keys that each way, fraction and seed evolves."""
    options, dataset = run.options, run.dataset
    pool = select_expandable(dataset, options.limit)
    near_by = vectors(run)
    splits = {
        (fraction, seed): split(dataset, pool, fraction, seed, near_by)
        for fraction in options.fractions
        for seed in options.seeds
    }
    questions = [*dataset.questions, *dataset.list_paraphrases(pool)]
    based = {retriever: base(run, retriever, questions) for retriever in options.retrievers}
    evolved: dict[tuple[float, int, Way], dict[Strategy, Rows]] = {}
    price: list[Phase] = []
    for (fraction, seed), of_split in splits.items():
        for way in options.list_ways(fraction):
            priced = (fraction, seed, way) == (max(options.fractions), options.seeds[0], options.ways[0])
            evolved[fraction, seed, way], paid = _measure_evolved(
                run, way, of_split, fraction, seed, questions, priced=priced
            )
            price += paid
    phases = []
    for retriever in options.retrievers:
        for (fraction, seed), of_split in splits.items():
            name = adapt_table.arm(retriever, fraction, adapt_table.BASE)
            phases += _group_rows(name, of_split, 0, seed, based[retriever])
            for way in options.list_ways(fraction):
                name = adapt_table.arm(retriever, fraction, way)
                phases += _group_rows(name, of_split, 1, seed, evolved[fraction, seed, way][retriever])
    return phases + price


def base(run: Run, retriever: Strategy, questions: Sequence[Question]) -> Rows:
    """All questions with base keys, whatever has evolved: no seed changes these figures."""
    name = f"{retriever}, {adapt_table.BASE}"
    store = store_of(run, questions)
    phase = store.get(name, ALL_QUESTIONS, turn=0, seed=None)
    if phase is None:
        phase = Phase(name, ALL_QUESTIONS, 0, None, _ask(run, name, questions, arm_of(run, retriever, "off")))
        store.put(phase)
    return index_by_id(phase)


def _measure_evolved(
    run: Run,
    way: Way,
    split: AdaptationSplit,
    fraction: float,
    seed: int,
    questions: Sequence[Question],
    *,
    priced: bool,
) -> tuple[dict[Strategy, Rows], list[Phase]]:
    """All questions with the keys that a way evolves; and what queries cost then, if that is wanted."""
    variation = VARIATIONS[way]
    store = store_of(
        run,
        questions,
        variation=variation.parameters(),
        episodes=PROFILES[way],
        adapted=sorted(question.id for question in split.adapted),
    )
    names = {retriever: adapt_table.arm(retriever, fraction, way) for retriever in run.options.retrievers}
    finished = {retriever: store.get(name, ALL_QUESTIONS, turn=1, seed=seed) for retriever, name in names.items()}
    cost = {
        (retriever, keys): store.get(
            adapt_table.arm(retriever, fraction, keys), adapt_table.PRICE, turn=_turn(keys), seed=seed
        )
        for retriever in (names if priced else ())
        for keys in adapt_table.PRICED_ARMS
    }
    if not (all(finished.values()) and all(cost.values())):
        label = f"{way}, {100 * fraction:g}%, seed {seed}: verdicts"
        teach(run, way, variation, split.adapted, label, run.dataset.expansions)
    for retriever, name in names.items():
        if finished[retriever] is None:
            rows = _ask(run, f"{name}, seed {seed}", questions, arm_of(run, retriever, "read"))
            finished[retriever] = phase = Phase(name, ALL_QUESTIONS, 1, seed, rows)
            store.put(phase)
        if priced and not all(cost[retriever, keys] for keys in adapt_table.PRICED_ARMS):
            for keys, seen in _measure_costs(run, retriever, split.adapted).items():
                paid = adapt_table.arm(retriever, fraction, keys)
                cost[retriever, keys] = phase = Phase(
                    paid, adapt_table.PRICE, _turn(keys), seed, tuple(score(seen))
                )
                store.put(phase)
    rows_of = {retriever: index_by_id(phase) for retriever, phase in finished.items() if phase}
    return rows_of, [phase for phase in cost.values() if phase]


def teach(
    run: Run,
    way: Way,
    variation: Variation,
    adapted: Sequence[Question],
    label: str,
    units: Mapping[str, Sequence[Expansion]],
) -> None:
    """One verdict for each question, with its units, then the keys evolve."""
    harness = build_harness(run, variation)
    harness.reset()
    step = run.begin(label, len(adapted))
    arm = QueryArm(PROFILES[way], "off", strategy="dense")
    for question in adapted:
        answer, _ = harness.ask(question, arm)
        verdict = Verdict(
            query_id=answer.query_id,
            scope=harness.scope,
            partial=True,
            supporting_passages=sorted(question.relevant),
            expansions=tuple(units[question.id]),
            judge="oracle",
        )
        harness.give(question, verdict)
        step()
    published_of(harness.services).evolve.evolve(harness.scope)


def _measure_costs(run: Run, retriever: Strategy, adapted: Sequence[Question]) -> dict[str, list[QuestionResult]]:
    """Every question by base keys, by evolved keys and expanded, whichever comes first changing with each."""
    ways = {
        adapt_table.BASE: (arm_of(run, retriever, "off"), False),
        adapt_table.EVOLVED_ARM: (arm_of(run, retriever, "read"), False),
        adapt_table.EXPANDED_ARM: (arm_of(run, retriever, "off"), True),
    }
    seen: dict[str, list[QuestionResult]] = {keys: [] for keys in ways}
    step = run.begin(f"{retriever}: what a query costs", len(adapted))
    for at, question in enumerate(adapted):
        first = at % len(adapt_table.PRICED_ARMS)
        for keys in (*adapt_table.PRICED_ARMS[first:], *adapt_table.PRICED_ARMS[:first]):
            arm, expand = ways[keys]
            expansions = run.dataset.expansions[question.id] if expand else ()
            seen[keys].append(run.harness.ask(question, arm, expansions=expansions)[1])
        step()
    return seen


def _ask(run: Run, label: str, questions: Sequence[Question], arm: QueryArm) -> tuple[QuestionScores, ...]:
    return tuple(score(measure(run, label, questions, lambda question: run.harness.ask(question, arm)[1])))


def store_of(run: Run, questions: Iterable[Question], **parameters: Any) -> Phases:
    return run.store(
        asked=[question.id for question in questions], key_building=run.options.key_building, adapt=parameters
    )


def arm_of(run: Run, retriever: Strategy, memory: Memory) -> QueryArm:
    """Hops are ended by ``--stop-rule`` where there are any."""
    stop_rule = run.options.stop_rule if retriever == "graph" else None
    return QueryArm(run.options.profile, memory, stop_rule, strategy=retriever)


def _turn(keys: str) -> int:
    return int(keys == adapt_table.EVOLVED_ARM)


def index_by_id(phase: Phase) -> Rows:
    return {row.id: row for row in phase.rows}


def _group_rows(name: str, split: AdaptationSplit, turn: int, seed: int, rows: Rows) -> list[Phase]:
    return [
        Phase(name, group, turn, seed, tuple(rows[question.id] for question in questions))
        for group, questions in split.groups.items()
    ]
