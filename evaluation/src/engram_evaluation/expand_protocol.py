"""The protocol ``expand``: each method to widen questions as an arm of its own (ERM, Figure 6 and Table 5).

A method is measured at query time, which is what it is worth without keys that evolve, in the keys, and as both. As
in ``adapt`` a share of the questions gets one verdict each, with the units of one method, and keys alone learn.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast, get_args

from engram.context.errors import InvalidRequestError, LlmNotConfiguredError
from engram.core.filter.logged_verdict import Expansion
from engram.core.passage_keys.expansion import Method
from engram.providers.llm import Llm, Usage
from engram.services.question.query import Memory, Strategy
from engram_evaluation import expand_table, worded_answers
from engram_evaluation.adapt_protocol import (
    PROFILES,
    VARIATIONS,
    Rows,
    arm_of,
    base,
    index_by_id,
    select_expandable,
    split,
    store_of,
    teach,
)
from engram_evaluation.adapt_protocol import vectors as vectors_of
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.finished_phases import Phase, Phases
from engram_evaluation.protocols import Run, measure, measure_in_parts
from engram_evaluation.retrieval_metrics import QuestionScores, score
from engram_evaluation.run_options import Options, Way

HALF = 0.5
"""Of the questions with expansions, that keys adapt to; the others are kept back."""
PASSAGE_METHOD: Method = "prf"
"""The method that needs no language model."""
EXPANDED_QUESTIONS = "questions with expansions"


@dataclass(frozen=True, slots=True)
class ExpandedQuestion:
    """A question's units by one method, and what they took; nothing where they came with the data set."""

    units: tuple[Expansion, ...]
    spent: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ArmResult:
    """Results of an arm for every question, with the marks of its answers."""

    turn: int
    rows: Rows
    marks: worded_answers.Marks

    def select_scores(self, questions: Sequence[Question], *, answered: bool) -> tuple[QuestionScores, ...]:
        """Return the results of some questions; ``answered`` where all of them were answered."""
        rows = [self.rows[question.id] for question in questions]
        return worded_answers.add_marks(rows, self.marks if answered else {})


Units = Mapping[str, Mapping[str, ExpandedQuestion]]
"""Method -> question id -> its units."""


def check(dataset: Dataset, options: Options, llm: Llm | None) -> tuple[str, ...]:
    """The methods that a run measures; whatever it lacks is said before anything is ingested.

    Raises:
        InvalidRequestError: the data set has no expansions, or none by a method, or nobody makes such.
        LlmNotConfiguredError: a method is to be asked of a language model, and none is configured.
    """
    if options.answered:
        worded_answers.check(dataset.name, select_questions(dataset, options), llm)
    if not options.live:
        pool = select_expandable(dataset, options.limit)
        kinds = dict.fromkeys(unit.method for question in pool for unit in dataset.expansions[question.id])
        return _check_methods(
            options.methods or (*kinds, expand_table.ALL_METHODS),
            (*kinds, expand_table.ALL_METHODS),
            f"{dataset.name} has",
        )
    methods = _check_methods(options.methods or (PASSAGE_METHOD,), get_args(Method), "--live makes")
    needing = [method for method in methods if method != PASSAGE_METHOD]
    if needing and llm is None:
        raise LlmNotConfiguredError(f"--live with {', '.join(needing)} needs ENGRAM_LLM_BASE_URL to be set.")
    return methods


def _check_methods(methods: Sequence[str], known: Sequence[str], name: str) -> tuple[str, ...]:
    for method in methods:
        if method not in known:
            raise InvalidRequestError(f"--methods are some of what {name}, {', '.join(known)}; {method!r} is none.")
    return tuple(methods)


def select_questions(dataset: Dataset, options: Options) -> list[Question]:
    """The questions that are widened: the same ones, whoever widens them, where the data set has expansions.

    Raises:
        InvalidRequestError: it has none, and none are to be made.
    """
    if options.live and not dataset.expansions:
        return list(dataset.questions[: options.limit])
    return select_expandable(dataset, options.limit)


def expand(run: Run) -> list[Phase]:
    """Every question by base keys, widened, by evolved keys and by both, for each method and seed."""
    options, dataset = run.options, run.dataset
    methods = check(dataset, options, run.harness.services.models.llm)
    pool = select_questions(dataset, options)
    units = _load_or_generate_units(run, pool, methods) if options.live else _load_units(dataset, pool, methods)
    vectors = vectors_of(run)
    splits = {seed: split(dataset, pool, HALF, seed, vectors) for seed in options.seeds}
    all_questions = [*dataset.questions, *dataset.list_paraphrases(pool)]
    phases = []
    by_base = {retriever: base(run, retriever, all_questions) for retriever in options.retrievers}
    base_answers = {
        expand_table.arm(retriever): _base_words(run, retriever, pool) for retriever in options.retrievers
    }
    at_once = {
        (retriever, method): _measure_widened(run, retriever, method, pool, units[method])
        for method in methods
        for retriever in options.retrievers
    }
    for seed, of_split in splits.items():
        groups = dict(of_split.groups)
        adapted = {question.id for question in of_split.adapted}
        groups[expand_table.HELD_BACK_GROUP] = [question for question in pool if question.id not in adapted]
        results: dict[str, ArmResult] = {
            expand_table.arm(retriever): ArmResult(0, rows, base_answers[expand_table.arm(retriever)])
            for retriever, rows in by_base.items()
        }
        for method in methods:
            learned = _measure_learned(run, method, of_split.adapted, pool, all_questions, units[method], seed)
            for retriever in options.retrievers:
                results[expand_table.arm(retriever, method, expand_table.WIDENED)] = at_once[retriever, method]
            results |= learned
        phases += [
            Phase(name, group, one.turn, seed, one.select_scores(questions, answered=group in expand_table.SENDING))
            for name, one in results.items()
            for group, questions in groups.items()
            if group in expand_table.SENDING or not name.endswith(expand_table.SENT)
        ]
    return [phase for phase in phases if phase.rows]


def _measure_learned(
    run: Run,
    method: str,
    adapted: Sequence[Question],
    pool: Sequence[Question],
    questions: Sequence[Question],
    units: Mapping[str, ExpandedQuestion],
    seed: int,
) -> dict[str, ArmResult]:
    """Arms by the keys that the method's units make of verdicts on ``adapted``."""
    way: Way = "published" if run.options.profile == "paper" else "supported"
    store = store_of(
        run,
        questions,
        variation=VARIATIONS[way].parameters(),
        episodes=PROFILES[way],
        adapted=sorted(question.id for question in adapted),
        units=_digest(units),
        pool=[question.id for question in pool],
    )
    wording = _open_wording_store(run, pool, units, way=way, adapted=sorted(question.id for question in adapted))
    questions_by_arm = {expand_table.EVOLVED: questions, expand_table.BOTH: pool}
    arms = [
        (retriever, how, expand_table.arm(retriever, method, how))
        for retriever in run.options.retrievers
        for how in questions_by_arm
    ]
    finished = {name: store.get(name, EXPANDED_QUESTIONS, turn=1, seed=seed) for _, _, name in arms}
    answered = (
        {name: worded_answers.load_phase((wording, name, 1, seed)) for *_, name in arms}
        if run.options.answered
        else {}
    )
    if not (all(finished.values()) and all(answered.values())):
        sent = {of: one.units for of, one in units.items()}
        teach(run, way, VARIATIONS[way], adapted, f"{method}, seed {seed}: verdicts", sent)
    results = {}
    for retriever, how, name in arms:
        phase, of_arm = finished[name], units if how == expand_table.BOTH else {}
        if phase is None:
            observations = _ask(run, f"{name}, seed {seed}", retriever, questions_by_arm[how], of_arm, "read")
            phase = Phase(name, EXPANDED_QUESTIONS, 1, seed, observations)
            store.put(phase)
        asking = arm_of(run, retriever, "read")
        key = wording, name, 1, seed
        marks = worded_answers.words(run, run.harness, key, pool, asking, partial(_find_expansions, of_arm))
        results[name] = ArmResult(1, index_by_id(phase), marks)
    return results


def _measure_widened(
    run: Run, retriever: Strategy, method: str, pool: Sequence[Question], units: Mapping[str, ExpandedQuestion]
) -> ArmResult:
    """The questions with their units sent along, by base keys: no seed changes these figures."""
    name = expand_table.arm(retriever, method, expand_table.WIDENED)
    store = store_of(run, pool, units=_digest(units))
    phase = store.get(name, EXPANDED_QUESTIONS, turn=0, seed=None)
    if phase is None:
        phase = Phase(name, EXPANDED_QUESTIONS, 0, None, _ask(run, name, retriever, pool, units, "off"))
        store.put(phase)
    kept_as = (_open_wording_store(run, pool, units), name, 0, None)
    asking = arm_of(run, retriever, "off")
    marks = worded_answers.words(run, run.harness, kept_as, pool, asking, partial(_find_expansions, units))
    return ArmResult(1, index_by_id(phase), marks)


def _base_words(run: Run, retriever: Strategy, pool: Sequence[Question]) -> worded_answers.Marks:
    kept_as = (_open_wording_store(run, pool, {}), expand_table.arm(retriever), 0, None)
    return worded_answers.words(run, run.harness, kept_as, pool, arm_of(run, retriever, "off"))


def _open_wording_store(
    run: Run, pool: Sequence[Question], units: Mapping[str, ExpandedQuestion], **parameters: Any
) -> Phases:
    of_answers = worded_answers.parameters(run.options)
    return store_of(run, pool, units=_digest(units), **of_answers, **parameters)


def _find_expansions(units: Mapping[str, ExpandedQuestion], question: Question) -> tuple[Expansion, ...]:
    """Return the expansions of a question; none where it has no units."""
    return units[question.id].units if question.id in units else ()


def _ask(
    run: Run,
    label: str,
    retriever: Strategy,
    questions: Sequence[Question],
    units: Mapping[str, ExpandedQuestion],
    memory: Memory,
) -> tuple[QuestionScores, ...]:
    """Ask with the units there are; making them counts as part of the query."""
    asking = arm_of(run, retriever, memory)
    observations = measure(
        run, label, questions, lambda one: run.harness.ask(one, asking, expansions=_find_expansions(units, one))[1]
    )
    return tuple(_add_costs(row, units[row.id].spent) if row.id in units else row for row in score(observations))


def _add_costs(row: QuestionScores, spent: Mapping[str, float]) -> QuestionScores:
    return replace(
        row, values=row.values | {name: row.values.get(name, 0.0) + more for name, more in spent.items()}
    )


def _load_units(dataset: Dataset, pool: Sequence[Question], methods: Sequence[str]) -> Units:
    return {
        method: {
            question.id: ExpandedQuestion(
                tuple(
                    unit
                    for unit in dataset.expansions[question.id]
                    if method in (unit.method, expand_table.ALL_METHODS)
                ),
                {},
            )
            for question in pool
        }
        for method in methods
    }


def _load_or_generate_units(run: Run, pool: Sequence[Question], methods: Sequence[str]) -> Units:
    """Made now by what ``POST /expand`` calls, and kept: a run that was stopped asks for no unit twice.

    Raises:
        LlmError: the endpoint failed; what it gave before is kept for the next run.
    """
    store = run.store(widened=run.options.key_building)
    made: dict[str, dict[str, ExpandedQuestion]] = {method: {} for method in methods}
    for method in methods:
        make = partial(_generate_units, run, cast("Method", method))
        for row in measure_in_parts(run, f"{method}: widen", (store, method, 0, None), pool, make):
            texts = [Expansion(method, text) for text in row.details["units"]]
            made[method][row.id] = ExpandedQuestion(tuple(texts), row.values)
    return made


def _generate_units(run: Run, method: Method, question: Question) -> QuestionScores:
    services = run.harness.services
    before, began = _usage(services.models.llm), time.perf_counter()
    units = services.retrieval.expand.expand(run.harness.scope, question.text, [method])
    ms = (time.perf_counter() - began) * 1000.0
    after = _usage(services.models.llm)
    values = {
        "ms": ms,
        "llm_calls": float(after.calls - before.calls),
        "prompt_tokens": float(after.prompt_tokens - before.prompt_tokens),
        "completion_tokens": float(after.completion_tokens - before.completion_tokens),
    }
    return QuestionScores(question.id, question.type, (), values, {"units": [unit.text for unit in units]})


def _usage(llm: Llm | None) -> Usage:
    return Usage() if llm is None else llm.usage


def _digest(units: Mapping[str, ExpandedQuestion]) -> str:
    """Hash the texts, since other units give other figures."""
    plain = {of: [[unit.method, unit.text] for unit in one.units] for of, one in units.items()}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
