"""The protocol ``run_human``: what people said of passages teaches, and people who were held out measure.

Half of the rated questions teach. Of each, one rater is held out; every word of the others goes through the
feedback service as a verdict of its own, in a random order: on the whole passage, for or against it, as surely as
the word is far from the middle of its scale (``rating_scale.as_verdict``). Nothing else is said, so of a passage
that nobody rated nothing is learned, and the ranking weights, which need rivals to compare, hear nothing at all.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from engram.context.errors import InvalidRequestError
from engram.services.question.query import Memory
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram_evaluation import ratings_table
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.finished_phases import Phase, Phases
from engram_evaluation.harness import Harness, QueryArm
from engram_evaluation.learning_turns import build_harness
from engram_evaluation.learning_variations import HUMAN, Variation
from engram_evaluation.protocols import MEMORY_OFF, Run, measure_arm
from engram_evaluation.rating_scale import PassageRatings, as_verdict, is_agreed, mean_value
from engram_evaluation.retrieval_metrics import QuestionResult, QuestionScores, compute_graded_ndcg, costs, score


@dataclass(frozen=True, slots=True)
class RaterSplit:
    """Raters that teach, and raters that measure.

    Attributes:
        taught: question and the rater of it that is held out, by position.
        untaught: the other rated questions.
        others: labelled questions that nobody rated.
    """

    taught: tuple[tuple[Question, int], ...]
    untaught: tuple[Question, ...]
    others: tuple[Question, ...]


def split(dataset: Dataset, limit: int | None, seed: int) -> RaterSplit:
    """Halve the rated questions, and draw the rater to hold out of each that teaches, as the seed has it.

    ``limit`` is how many of the rated questions, and of the others, take part at most.

    Raises:
        InvalidRequestError: fewer than two questions are rated by two people or more.
    """
    rated = [
        question
        for question in (*dataset.questions, *dataset.unlabelled)
        if question.id in dataset.ratings and _raters(dataset.ratings[question.id]) > 1
    ]
    if len(rated[:limit]) < 2:
        raise InvalidRequestError(
            f"{dataset.name} has too few ratings (ratings.jsonl) by several people, which human needs."
        )
    draw = random.Random(f"human/{seed}")  # noqa: S311 - repeatable, not secret
    order = draw.sample(rated, len(rated))[:limit]
    rater_by_question = {question.id: draw.randrange(_raters(dataset.ratings[question.id])) for question in order}
    half = len(order) // 2
    unrated = [question for question in dataset.questions if question.id not in dataset.ratings]
    return RaterSplit(
        tuple((question, rater_by_question[question.id]) for question in order[:half]),
        tuple(order[half:]),
        tuple(unrated if limit is None else draw.sample(unrated, min(limit, len(unrated)))),
    )


def run_human(run: Run) -> list[Phase]:
    """Ask everything before any verdict, and after those of every rule, for each seed."""
    phases = []
    for seed in run.options.seeds:
        parts = split(run.dataset, run.options.limit, seed)
        (before,) = _measure(run, parts, _store(run, parts), ratings_table.BEFORE_PHASE, 0, seed, None)
        for rule in HUMAN:
            # What drifts without memory is measured once, with the system as it is.
            memories: tuple[Memory, ...] = ("read", "off") if rule is HUMAN[0] else ("read",)
            after, *off = _measure(run, parts, _store(run, parts, rule), rule.name, 1, seed, rule, memories)
            for turn, rows in enumerate((before, after)):
                phases += _build_phases(run, parts, rows, rule.name, turn, seed)
            for rows in off:
                run.drift += _build_phases(run, parts, rows, rule.name, 1, seed)
    return phases


def _build_phases(
    run: Run, parts: RaterSplit, rows: Mapping[str, tuple[QuestionScores, ...]], arm: str, turn: int, seed: int
) -> list[Phase]:
    return [Phase(arm, group, turn, seed, of) for group, of in _group_rows(run, parts, rows)]


def _measure(
    run: Run,
    parts: RaterSplit,
    store: Phases,
    arm: str,
    turn: int,
    seed: int,
    rule: Variation | None,
    memories: Sequence[Memory] = ("read",),
) -> list[Mapping[str, tuple[QuestionScores, ...]]]:
    """All questions in one state of the memory, asked in each of these ways: group -> rows."""
    suffixes: Mapping[Memory, str] = {"read": "", "off": f", {MEMORY_OFF}"}
    names = {memory: arm + suffixes[memory] for memory in memories}
    finished = {
        (memory, group): store.get(name, group, turn=turn, seed=seed)
        for memory, name in names.items()
        for group in (ratings_table.RATED_GROUP, ratings_table.OTHER_GROUP)
    }
    if not all(finished.values()):
        harness = run.harness
        if rule is not None:
            harness = build_harness(run, replace(rule, frozen=frozenset(run.options.freeze)))
        harness.reset()
        label = f"{arm}, seed {seed}"
        asking = QueryArm(run.options.profile, "read", run.options.stop_rule)
        if rule is not None:
            _teach(run, harness, parts, asking, f"{label}: ratings", seed)
        questions_by_group = {
            ratings_table.RATED_GROUP: [*(q for q, _ in parts.taught), *parts.untaught],
            ratings_table.OTHER_GROUP: parts.others,
        }
        for (memory, group), phase in finished.items():
            if phase is None:
                way = replace(asking, memory=memory)
                results = measure_arm(run, f"{label}: {group}", questions_by_group[group], harness, way)
                rows = (
                    score(results)
                    if group == ratings_table.OTHER_GROUP
                    else _judge_rankings(run.dataset, parts, results)
                )
                finished[memory, group] = new_phase = Phase(names[memory], group, turn, seed, tuple(rows))
                store.put(new_phase)
    return [
        {group: phase.rows for (memory, group), phase in finished.items() if memory == one and phase}
        for one in memories
    ]


def _teach(run: Run, harness: Harness, parts: RaterSplit, arm: QueryArm, label: str, seed: int) -> None:
    """Every taught question is asked once, and every rater of it but one says what they said."""
    passages = {passage["id"]: passage["text"] for passage in run.dataset.passages}
    order = random.Random(f"human/{seed}/order")  # noqa: S311 - repeatable, not secret
    step = run.begin(label, len(parts.taught))
    for question, unheard_rater in order.sample(parts.taught, len(parts.taught)):
        answer, _ = harness.ask(question, arm)
        pairs = run.dataset.ratings[question.id]
        raters = [at for at in range(max(len(pair.words) for pair in pairs)) if at != unheard_rater]
        for rater in order.sample(raters, len(raters)):
            for pair in pairs:
                if rater < len(pair.words):
                    harness.give(question, _verdict(harness, answer.query_id, pair, rater, passages))
        step()


def _verdict(
    harness: Harness, query_id: UUID, pair: PassageRatings, rater: int, passages: Mapping[str, str]
) -> Verdict:
    """One word of one rater: it names the sentences of the whole passage, and says nothing of any other."""
    target, confidence = as_verdict(pair.words[rater])
    named = [NamedSentence(passage_id=pair.passage_id, text=passages[pair.passage_id])]
    return Verdict(
        query_id=query_id,
        scope=harness.scope,
        supporting=named if target else (),
        rejected=() if target else named,
        partial=True,
        judge=f"rater {rater + 1}",
        confidence=confidence,
    )


def _judge_rankings(dataset: Dataset, parts: RaterSplit, results: Sequence[QuestionResult]) -> list[QuestionScores]:
    """Rated questions by what people who were not heard say of the ranking.

    Left out are those of which they found everything bad: no order of these is better than another.
    """
    rater_by_question = {question.id: rater for question, rater in parts.taught}
    rows = []
    for one in results:
        question = one.question
        gains = {
            pair.passage_id: mean_value(_select_unheard(pair.words, rater_by_question.get(question.id)))
            for pair in dataset.ratings[question.id]
        }
        if not any(gains.values()):
            continue
        ordered = [passage for passage in one.ranking if passage in gains]
        values = {"rated": compute_graded_ndcg(ordered, gains), "graded": compute_graded_ndcg(one.ranking, gains)}
        rows.append(QuestionScores(question.id, question.type, tuple(one.ranking), values | costs(one)))
    return rows


def _select_unheard(words: Sequence[str], rater: int | None) -> Sequence[str]:
    return words if rater is None else words[rater : rater + 1]


def _raters(pairs: Sequence[PassageRatings]) -> int:
    """Return the least number of raters of a question's passages."""
    return min(len(pair.words) for pair in pairs)


def _group_rows(
    run: Run, parts: RaterSplit, rows: Mapping[str, tuple[QuestionScores, ...]]
) -> list[tuple[str, tuple[QuestionScores, ...]]]:
    """Group -> its rows: taught and untaught, whole and by whether raters agree, and everything else."""
    rated = {row.id: row for row in rows[ratings_table.RATED_GROUP]}
    groups = []
    for name, questions in (
        (ratings_table.TAUGHT_GROUP, [question for question, _ in parts.taught]),
        (ratings_table.UNTAUGHT, parts.untaught),
    ):
        rated_ids = [question.id for question in questions if question.id in rated]
        agree = {key for key in rated_ids if is_agreed(run.dataset.ratings[key])}
        for group, keys in (
            (name, rated_ids),
            (ratings_table.name_agreeing_group(name), [key for key in rated_ids if key in agree]),
            (ratings_table.name_disagreeing_group(name), [key for key in rated_ids if key not in agree]),
        ):
            groups.append((group, tuple(rated[key] for key in keys)))
    groups.append((ratings_table.OTHER_GROUP, rows[ratings_table.OTHER_GROUP]))
    return [(group, of) for group, of in groups if of]


def _store(run: Run, parts: RaterSplit, rule: Variation | None = None) -> Phases:
    """Return the store of phases; phases before any verdict are shared by all rules."""
    taught = sorted((question.id, rater) for question, rater in parts.taught)
    return run.store(
        profile=run.options.profile,
        frozen=run.options.frozen,
        taught=taught,
        untaught=[question.id for question in parts.untaught],
        others=[question.id for question in parts.others],
        rule=None if rule is None else rule.parameters(),
    )
