"""The protocol ``expand``: each method to widen questions as an arm of its own (ERM, Figure 6 and Table 5).

A method is measured at query time, which is what it is worth without keys that evolve, in the keys, and as both. As
in ``adapt`` a share of the questions gets one verdict each, with the units of one method, and keys alone learn.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast, get_args

from app.core.expansion import Method
from app.core.verdict import Expansion
from app.errors import InvalidRequestError, LlmNotConfiguredError
from app.evaluation import widened
from app.evaluation.adapt import PROFILES, VARIATIONS, Rows, arm_of, base, by_id, expandable, split, store_of, teach
from app.evaluation.adapt import vectors as vectors_of
from app.evaluation.dataset import Dataset, Question
from app.evaluation.metrics import Scored, score
from app.evaluation.options import Options, Way
from app.evaluation.phases import Phase
from app.evaluation.protocols import Run, measure
from app.providers.llm import Llm, Usage
from app.services.retrieval.query import Memory, Strategy

HALF = 0.5
"""Of the questions with expansions, that keys adapt to; the others are kept back."""
TOGETHER = 20
"""Questions of one file of those widened: what a failing endpoint can lose."""
BY_PASSAGES: Method = "prf"
"""The method that needs no language model."""
ASKED = "questions with expansions"


@dataclass(frozen=True, slots=True)
class Widened:
    """A question's units by one method, and what they took; nothing where they came with the data set."""

    units: tuple[Expansion, ...]
    spent: Mapping[str, float]


Units = Mapping[str, Mapping[str, Widened]]
"""Method -> question id -> its units."""


def check(dataset: Dataset, options: Options, llm: Llm | None) -> tuple[str, ...]:
    """The methods that a run measures; whatever it lacks is said before anything is ingested.

    Raises:
        InvalidRequestError: the data set has no expansions, or none by a method, or nobody makes such.
        LlmNotConfiguredError: a method is to be asked of a language model, and none is configured.
    """
    if not options.live:
        pool = expandable(dataset, options.limit)
        kinds = dict.fromkeys(unit.method for question in pool for unit in dataset.expansions[question.id])
        return _known(options.methods or (*kinds, widened.ALL), (*kinds, widened.ALL), f"{dataset.name} has")
    methods = _known(options.methods or (BY_PASSAGES,), get_args(Method), "--live makes")
    needing = [method for method in methods if method != BY_PASSAGES]
    if needing and llm is None:
        raise LlmNotConfiguredError(f"--live with {', '.join(needing)} needs ENGRAM_LLM_BASE_URL to be set.")
    return methods


def _known(methods: Sequence[str], known: Sequence[str], who: str) -> tuple[str, ...]:
    for method in methods:
        if method not in known:
            raise InvalidRequestError(f"--methods are some of what {who}, {', '.join(known)}; {method!r} is none.")
    return tuple(methods)


def expand(run: Run) -> list[Phase]:
    """Every question by base keys, widened, by evolved keys and by both, for each method and seed."""
    options, dataset = run.options, run.dataset
    methods = check(dataset, options, run.harness.services.llm)
    pool = list(dataset.questions[: options.limit]) if options.live else []
    if dataset.expansions:  # the same questions, whoever widens them
        pool = expandable(dataset, options.limit)
    units = _live(run, pool, methods) if options.live else _stored(dataset, pool, methods)
    vectors = vectors_of(run)
    splits = {seed: split(dataset, pool, HALF, seed, vectors) for seed in options.seeds}
    reworded = [dataset.paraphrases[question.id] for question in pool if question.id in dataset.paraphrases]
    asked = [*dataset.questions, *reworded]
    phases = []
    by_base = {retriever: base(run, retriever, asked) for retriever in options.retrievers}
    at_once = {
        (retriever, method): _widened(run, retriever, method, pool, units[method], "off")
        for method in methods
        for retriever in options.retrievers
    }
    for seed, of_split in splits.items():
        groups = dict(of_split.groups)
        adapted = {question.id for question in of_split.adapted}
        groups[widened.KEPT] = [question for question in pool if question.id not in adapted]
        found: dict[str, tuple[int, Rows]] = {
            widened.arm(retriever): (0, rows) for retriever, rows in by_base.items()
        }
        for method in methods:
            learned = _learned(run, method, of_split.adapted, pool, asked, units[method], seed)
            for retriever in options.retrievers:
                found[widened.arm(retriever, method, widened.WIDENED)] = (1, at_once[retriever, method])
                for how, rows in learned[retriever].items():
                    found[widened.arm(retriever, method, how)] = (1, rows)
        phases += [
            Phase(name, group, turn, seed, tuple(rows[question.id] for question in questions))
            for name, (turn, rows) in found.items()
            for group, questions in groups.items()
            if group in widened.SENDING or not name.endswith(widened.SENT)
        ]
    return [phase for phase in phases if phase.rows]


def _learned(
    run: Run,
    method: str,
    adapted: Sequence[Question],
    pool: Sequence[Question],
    asked: Sequence[Question],
    units: Mapping[str, Widened],
    seed: int,
) -> dict[Strategy, dict[str, Rows]]:
    """Retriever -> how -> rows, by the keys that the method's units make of verdicts on ``adapted``."""
    way: Way = "published" if run.options.profile == "paper" else "supported"
    store = store_of(
        run,
        asked,
        variation=VARIATIONS[way].parameters(),
        episodes=PROFILES[way],
        adapted=sorted(question.id for question in adapted),
        units=_digest(units),
        pool=[question.id for question in pool],
    )
    wanted = {widened.EVOLVED: asked, widened.BOTH: pool}
    arms = [(retriever, how) for retriever in run.options.retrievers for how in wanted]
    found = {
        (retriever, how): store.get(widened.arm(retriever, method, how), ASKED, 1, seed) for retriever, how in arms
    }
    if not all(found.values()):
        sent = {of: one.units for of, one in units.items()}
        teach(run, way, VARIATIONS[way], adapted, f"{method}, seed {seed}: verdicts", sent)
    rows: dict[Strategy, dict[str, Rows]] = {}
    for (retriever, how), kept in found.items():
        name, phase = widened.arm(retriever, method, how), kept
        if phase is None:
            of_arm = units if how == widened.BOTH else {}
            seen = _ask(run, f"{name}, seed {seed}", retriever, wanted[how], of_arm, "read")
            phase = Phase(name, ASKED, 1, seed, seen)
            store.put(phase)
        rows.setdefault(retriever, {})[how] = by_id(phase)
    return rows


def _widened(
    run: Run,
    retriever: Strategy,
    method: str,
    pool: Sequence[Question],
    units: Mapping[str, Widened],
    memory: Memory,
) -> Rows:
    """The questions with their units sent along, by base keys: no seed changes these figures."""
    name = widened.arm(retriever, method, widened.WIDENED)
    store = store_of(run, pool, units=_digest(units))
    phase = store.get(name, ASKED, 0, None)
    if phase is None:
        phase = Phase(name, ASKED, 0, None, _ask(run, name, retriever, pool, units, memory))
        store.put(phase)
    return by_id(phase)


def _ask(
    run: Run,
    label: str,
    retriever: Strategy,
    questions: Sequence[Question],
    units: Mapping[str, Widened],
    memory: Memory,
) -> tuple[Scored, ...]:
    """Ask with the units there are; making them counts as part of the query."""
    asking = arm_of(run, retriever, memory)
    none = Widened((), {})

    def sent(question: Question) -> tuple[Expansion, ...]:
        return units.get(question.id, none).units

    seen = measure(run, label, questions, lambda one: run.harness.ask(one, asking, expansions=sent(one))[1])
    return tuple(_priced(row, units.get(row.id, none).spent) for row in score(seen))


def _priced(row: Scored, spent: Mapping[str, float]) -> Scored:
    return replace(
        row, values=row.values | {name: row.values.get(name, 0.0) + more for name, more in spent.items()}
    )


def _stored(dataset: Dataset, pool: Sequence[Question], methods: Sequence[str]) -> Units:
    return {
        method: {
            question.id: Widened(
                tuple(unit for unit in dataset.expansions[question.id] if method in (unit.method, widened.ALL)), {}
            )
            for question in pool
        }
        for method in methods
    }


def _live(run: Run, pool: Sequence[Question], methods: Sequence[str]) -> Units:
    """Made now by what ``POST /expand`` calls, and kept: a run that was stopped asks for no unit twice.

    Raises:
        LlmError: the endpoint failed; what it gave before is kept for the next run.
    """
    store = run.store(widened=run.options.key_building)
    made: dict[str, dict[str, Widened]] = {method: {} for method in methods}
    for method in methods:
        step = run.begin(f"{method}: widen", len(pool))
        for start in range(0, len(pool), TOGETHER):
            some = pool[start : start + TOGETHER]
            name = f"questions {start + 1} to {start + len(some)}"
            phase = store.get(method, name, 0, None)
            if phase is None or [row.id for row in phase.rows] != [question.id for question in some]:
                rows = []
                for question in some:
                    rows.append(_made(run, cast("Method", method), question))
                    step()
                phase = Phase(method, name, 0, None, tuple(rows))
                store.put(phase)
            else:
                for _ in some:
                    step()
            for row in phase.rows:
                texts = [Expansion(method, text) for text in row.said["units"]]
                made[method][row.id] = Widened(tuple(texts), row.values)
    return made


def _made(run: Run, method: Method, question: Question) -> Scored:
    services = run.harness.services
    before, began = _usage(services.llm), time.perf_counter()
    units = services.expand.expand(run.harness.scope, question.text, [method])
    ms = (time.perf_counter() - began) * 1000.0
    after = _usage(services.llm)
    values = {
        "ms": ms,
        "llm_calls": float(after.calls - before.calls),
        "prompt_tokens": float(after.prompt_tokens - before.prompt_tokens),
        "completion_tokens": float(after.completion_tokens - before.completion_tokens),
    }
    return Scored(question.id, question.type, (), values, {"units": [unit.text for unit in units]})


def _usage(llm: Llm | None) -> Usage:
    return Usage() if llm is None else llm.usage


def _digest(units: Mapping[str, Widened]) -> str:
    """Of the texts: figures of other units are others."""
    plain = {of: [[unit.method, unit.text] for unit in one.units] for of, one in units.items()}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
