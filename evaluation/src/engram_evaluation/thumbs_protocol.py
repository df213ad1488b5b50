"""The protocol ``thumbs``: people rate answers and judge no passage, seldom and not always rightly.

Questions arrive with Zipf repetition. One answer in 10, in 100 or in 1,000 gets a thumb, and none, 10% or 30% of
the thumbs are wrong. Engram, with each thumb of another judge and its shipped caps, is compared with the rules of
other systems over Engram's ranking without learning (``feedback_rules``). Measured are the answers to arrivals, how
soon a wrong answer is mended, and, after the last arrival, every group of questions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from engram.services.question.query import Memory
from engram_evaluation.arrivals import arrivals
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.feedback_rules import RULES
from engram_evaluation.finished_phases import Phase, Phases
from engram_evaluation.harness import QueryArm
from engram_evaluation.learning_turns import build_harness
from engram_evaluation.learning_variations import FULL
from engram_evaluation.protocols import (
    MEMORY_OFF,
    PARAPHRASES,
    SHARING_GROUP,
    Run,
    choose_teaching,
    draw_at_most,
    measure,
    split_by_sharing,
)
from engram_evaluation.retrieval_metrics import QuestionResult, QuestionScores, score
from engram_evaluation.thumbs_stream import (
    CITATION_RATE,
    SAMPLED_ARRIVALS,
    EngramLearner,
    Learner,
    RuleLearner,
    StreamOutcome,
    Thumb,
    draw_thumbs,
    follow,
    list_sampled,
)
from engram_evaluation.thumbs_table import (
    ARMS,
    ARRIVALS_GROUP,
    ARRIVING_GROUP,
    ENGRAM,
    NO_LEARNING,
    OTHER_GROUP,
    THUMB_RATES,
    WRONG_GROUP,
    WRONG_RATES,
    list_shares,
    name_arm,
)

ARRIVALS = 5_000
ARRIVING_QUESTIONS = 100
"""Questions that may arrive."""
MOST_BYSTANDERS = 100
"""Other questions that are measured at most, and questions that share a passage."""
CANDIDATES = 50
"""Passages of an answer that rules reorder."""
LEAST_LOSS = 1e-9
SCORED = "scored"
"""Among the details of a row: the candidates with their scores, best first."""


@dataclass(frozen=True, slots=True)
class ThumbsPlan:
    """Questions that arrive, in order, and groups of questions that are measured afterwards."""

    arriving: Sequence[Question]
    groups: Mapping[str, Sequence[Question]]


def thumbs(run: Run) -> list[Phase]:
    """All groups without learning, and after each way to learn from each share of thumbs; for each seed."""
    return [phase for seed in run.options.seeds for phase in _seed(run, seed)]


def plan(dataset: Dataset, arrived: int, seed: int) -> ThumbsPlan:
    """Choose the questions that arrive and those that are measured.

    Those arrive that ``choose_teaching`` chooses. Other questions share no relevant passage with one that arrives.
    """
    eligible = choose_teaching(dataset)
    numbered = arrivals(eligible[:ARRIVING_QUESTIONS], arrived, seed)
    arriving = [replace(question, id=question.id.rpartition("#")[0]) for question in numbered]
    ids = {question.id for question in arriving}
    distinct = [question for question in eligible if question.id in ids]
    sharing, others = split_by_sharing([one for one in dataset.questions if one.id not in ids], distinct)
    groups = {
        ARRIVING_GROUP: distinct,
        PARAPHRASES: dataset.list_paraphrases(distinct),
        SHARING_GROUP: draw_at_most(sharing, MOST_BYSTANDERS, f"thumbs/{seed}"),
        OTHER_GROUP: draw_at_most(others, MOST_BYSTANDERS, f"thumbs/{seed}"),
    }
    return ThumbsPlan(arriving, {name: group for name, group in groups.items() if group})


def _seed(run: Run, seed: int) -> list[Phase]:
    planned = plan(run.dataset, run.options.limit or ARRIVALS, seed)
    store = run.store(
        profile=run.options.profile,
        thumbs=[THUMB_RATES, WRONG_RATES, CITATION_RATE, CANDIDATES, SAMPLED_ARRIVALS],
        arriving=[question.id for question in planned.arriving],
        measured={name: [question.id for question in group] for name, group in planned.groups.items()},
        frozen=run.options.frozen,
    )
    untaught = _answer_without_learning(run, planned, store, seed)
    phases = [
        Phase(
            NO_LEARNING, group, 0, seed, tuple(replace(untaught[question.id], details={}) for question in questions)
        )
        for group, questions in {
            ARRIVALS_GROUP: [planned.arriving[at] for at in list_sampled(len(planned.arriving))],
            **planned.groups,
        }.items()
    ]
    most = draw_thumbs(len(planned.arriving), THUMB_RATES[0], WRONG_RATES[-1], f"thumbs/{seed}")
    measured: dict[tuple[str, tuple[tuple[int, Thumb], ...]], tuple[str, list[Phase]]] = {}
    for rate, wrong_rate in list_shares():
        drawn = draw_thumbs(len(planned.arriving), rate, wrong_rate, f"thumbs/{seed}")
        for arm in ARMS:
            name, state = name_arm(arm, rate, wrong_rate), (arm, tuple(drawn.items()))
            if state not in measured:
                groups = [(name, group) for group in (ARRIVALS_GROUP, WRONG_GROUP, *planned.groups)]
                if arm == ENGRAM and drawn == most:
                    groups += [(f"{name}, {MEMORY_OFF}", group) for group in planned.groups]
                measured[state] = name, _measure_state(run, planned, store, untaught, arm, groups, drawn, seed)
            # Shares that draw the same thumbs have the same figures.
            first_name, state_phases = measured[state]
            phases += [replace(phase, arm=name + phase.arm.removeprefix(first_name)) for phase in state_phases]
    return [phase for phase in phases if phase.rows]


def _answer_without_learning(run: Run, planned: ThumbsPlan, store: Phases, seed: int) -> dict[str, QuestionScores]:
    """Ask every question without learning; each row has the candidates with their scores among its details."""
    phase = store.get(NO_LEARNING, "all questions", turn=0, seed=seed)
    if phase is None:
        run.harness.reset()
        questions = {question.id: question for group in planned.groups.values() for question in group}
        arm = QueryArm(run.options.profile, "off", run.options.stop_rule)
        step = run.begin(f"{NO_LEARNING}, seed {seed}", len(questions))
        rows = []
        for question in questions.values():
            answer, result = run.harness.ask(question, arm, depth=CANDIDATES)
            scored = [[passage.passage_id, passage.score] for passage in answer.passages]
            rows.append(replace(score([result])[0], details={SCORED: scored}))
            step()
        phase = Phase(NO_LEARNING, "all questions", 0, seed, tuple(rows))
        store.put(phase)
    return {row.id: row for row in phase.rows}


def _measure_state(
    run: Run,
    planned: ThumbsPlan,
    store: Phases,
    untaught: Mapping[str, QuestionScores],
    arm: str,
    groups: Sequence[tuple[str, str]],
    drawn: Mapping[int, Thumb],
    seed: int,
) -> list[Phase]:
    """Have one way to learn follow the stream, then ask the groups.

    Args:
        groups: names of phases with their groups: of arrivals, of wrong answers, then of what is asked afterwards.
    """
    stored = [store.get(name, group, turn=0, seed=seed) for name, group in groups]
    if all(stored):
        return [phase for phase in stored if phase]
    name, _ = groups[0]
    learner = _build_learner(run, arm, untaught)
    wrong = {question.id for question in planned.arriving if not untaught[question.id].values["ndcg@1"]}
    step = run.begin(f"{name}, seed {seed}", len(planned.arriving))
    outcome = follow(learner, planned.arriving, drawn, wrong, f"user {seed}", step)
    arrived = {f"{at}": planned.arriving[at] for at in outcome.sampled}
    results = [
        QuestionResult(replace(arrived[f"{at}"], id=f"{at}"), ranking) for at, ranking in outcome.sampled.items()
    ]
    originals = {number: untaught[question.id] for number, question in arrived.items()}
    phases = [
        Phase(name, ARRIVALS_GROUP, 0, seed, tuple(compare(score(results), originals))),
        Phase(name, WRONG_GROUP, 0, seed, tuple(_score_lags(outcome))),
    ]
    for phase_name, group in groups[2:]:
        answering = learner if phase_name == name else _build_learner(run, arm, untaught, memory="off")
        ask = partial(_ask, answering)
        results = measure(run, f"{phase_name}, seed {seed}: {group}", planned.groups[group], ask)
        phases.append(Phase(phase_name, group, 0, seed, tuple(compare(score(results), untaught))))
    for phase in phases:
        store.put(phase)
    return phases


def _ask(learner: Learner, question: Question) -> QuestionResult:
    return QuestionResult(question, learner.answer(question))


def _build_learner(
    run: Run, arm: str, untaught: Mapping[str, QuestionScores], memory: Memory | None = None
) -> Learner:
    """Build a way to learn that knows nothing; with ``memory``, Engram with what it has learned."""
    if arm != ENGRAM:
        scored = {
            question: [(str(passage), float(value)) for passage, value in row.details[SCORED]]
            for question, row in untaught.items()
        }
        return RuleLearner(RULES[arm](), scored)
    harness = build_harness(run, replace(FULL, frozen=frozenset(run.options.freeze)))
    if memory is None:
        harness.reset()
    return EngramLearner(harness, QueryArm(run.options.profile, memory or "read", run.options.stop_rule))


def compare(rows: Sequence[QuestionScores], untaught: Mapping[str, QuestionScores]) -> list[QuestionScores]:
    """Add to each row how it differs from the same question without learning."""
    compared = []
    for row in rows:
        before = untaught[row.id].values
        gain, recall = (row.values[metric] - before[metric] for metric in ("ndcg@10", "recall@5"))
        changes = {"gain": gain, "recall_change": recall, "lost": float(gain < -LEAST_LOSS)}
        compared.append(replace(row, values=row.values | changes))
    return compared


def _score_lags(outcome: StreamOutcome) -> list[QuestionScores]:
    """A row of each question that was answered wrongly without learning: whether it was mended, and how late."""
    return [
        QuestionScores(
            question, "", (), {"mended": float(lag is not None)} | ({} if lag is None else {"lag": float(lag)})
        )
        for question, lag in sorted(outcome.lags.items())
    ]
