"""The protocol ``thumbs``: people rate answers and judge no passage; ways to learn from that are compared.

Questions arrive with Zipf repetition and are answered without learning. Each asker presses a thumb: up if evidence
is among the first passages, and wrongly one time in ten. In half of the cases the frontend knows what the answer
cites: the evidence that was shown, or the first passage where none was. All arms learn from the same ratings:

- no learning;
- Engram, by ratings with and without citations, each of another judge, with its shipped caps;
- the rules of other systems over Engram's ranking without learning (``feedback_rules``).
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from engram.services.learning.incoming_verdict import NamedSentence, Verdict
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.feedback_rules import (
    FeedbackRule,
    MovingAverage,
    RatedAnswer,
    Votes,
    reorder_candidates,
    scale_scores,
)
from engram_evaluation.finished_phases import Phase, Phases
from engram_evaluation.harness import Harness, QueryArm
from engram_evaluation.protocols import (
    PARAPHRASES,
    SHARING_GROUP,
    Run,
    choose_teaching,
    draw_at_most,
    measure,
    split_by_sharing,
)
from engram_evaluation.retrieval_metrics import SHOWN_PASSAGES, QuestionResult, score
from engram_evaluation.stream_protocol import arrivals

ARRIVALS = 300
RATED_QUESTIONS = 100
"""Questions that may arrive."""
MOST_OTHER_QUESTIONS = 200
"""Other questions that are measured at most, and questions that share a passage."""
WRONG_CITATION_RATE = 0.1
CITATION_RATE = 0.5
CANDIDATES = 50
"""Passages of an answer that rules reorder."""
RATED_GROUP = "rated questions"
OTHER_GROUP = "other questions"
NO_LEARNING = "no learning"
ENGRAM = "engram"
RULES: Mapping[str, Callable[[], FeedbackRule]] = {
    "one per chunk (RAGFlow)": Votes,
    "budget of 0.1 (RAGFlow, later)": lambda: Votes(None),
    "moving average (Cognee)": MovingAverage,
}
"""Arm -> a rule of another system."""


@dataclass(frozen=True, slots=True)
class ThumbsPlan:
    """Questions that arrive, in order, and groups of questions that are measured."""

    arriving: Sequence[Question]
    groups: Mapping[str, Sequence[Question]]


@dataclass(frozen=True, slots=True)
class _UntaughtAnswer:
    """A question's answer without learning: its id, its result, and candidates with scores, best first."""

    query_id: UUID
    result: QuestionResult
    scored: Sequence[tuple[str, float]]


def thumbs(run: Run) -> list[Phase]:
    """All groups without learning, and after each arm has learned; for each seed."""
    return [phase for seed in run.options.seeds for phase in _seed(run, seed)]


def plan(dataset: Dataset, arrived: int, seed: int) -> ThumbsPlan:
    """Choose the questions that arrive and those that are measured.

    Those arrive that ``choose_teaching`` chooses. Other questions share no relevant passage with one that arrives.
    """
    eligible = choose_teaching(dataset)
    arriving = arrivals(eligible[:RATED_QUESTIONS], arrived, seed)
    came = {_drop_arrival_number(question) for question in arriving}
    rated = [question for question in eligible if question.id in came]
    sharing, others = split_by_sharing([one for one in dataset.questions if one.id not in came], rated)
    groups = {
        RATED_GROUP: rated,
        PARAPHRASES: dataset.list_paraphrases(rated),
        SHARING_GROUP: draw_at_most(sharing, MOST_OTHER_QUESTIONS, f"thumbs/{seed}"),
        OTHER_GROUP: draw_at_most(others, MOST_OTHER_QUESTIONS, f"thumbs/{seed}"),
    }
    return ThumbsPlan(arriving, {name: group for name, group in groups.items() if group})


def draw_rating(question: Question, passages: Sequence[str], draw: str) -> RatedAnswer:
    """The thumb under an answer; the same ``draw`` gives the same one.

    Args:
        passages: the first passages of the answer, best first.
    """
    evidence = [passage for passage in passages if passage in question.relevant]
    is_wrong = random.Random(f"{draw}/wrong").random() < WRONG_CITATION_RATE  # noqa: S311 - repeatable
    cites = random.Random(f"{draw}/cites").random() < CITATION_RATE  # noqa: S311 - repeatable
    used = evidence or list(passages[:1])
    return RatedAnswer(question.id, bool(evidence) != is_wrong, tuple(passages), tuple(used) if cites else ())


def _seed(run: Run, seed: int) -> list[Phase]:
    planned = plan(run.dataset, run.options.limit or ARRIVALS, seed)
    store = run.store(
        profile=run.options.profile,
        thumbs=[WRONG_CITATION_RATE, CITATION_RATE, CANDIDATES],
        arriving=[question.id for question in planned.arriving],
        measured={name: [question.id for question in group] for name, group in planned.groups.items()},
        frozen=run.options.frozen,
    )
    arms = [NO_LEARNING, *RULES, ENGRAM]
    finished = [store.get(arm, group, turn=0, seed=seed) for arm in arms for group in planned.groups]
    if all(finished):
        return [phase for phase in finished if phase]
    run.harness.reset()
    base = _answer_without_learning(run, planned, seed)
    ratings = [
        draw_rating(
            question,
            base[question.id.rpartition("#")[0]].result.ranking[:SHOWN_PASSAGES],
            f"thumbs/{seed}/{question.id}",
        )
        for question in planned.arriving
    ]
    phases = _keep(store, NO_LEARNING, planned, seed, lambda question: base[question.id].result)
    for name, make in RULES.items():
        rule = make()
        for question, rated in zip(planned.arriving, ratings, strict=True):
            rule.learn(rated, scale_scores(base[_drop_arrival_number(question)].scored))
        phases += _keep(store, name, planned, seed, partial(_rerank_by_rule, rule, base))
    step = run.begin(f"{ENGRAM}, seed {seed}: ratings", len(ratings))
    for at, (question, rated) in enumerate(zip(planned.arriving, ratings, strict=True)):
        _rate(run.harness, question, base[_drop_arrival_number(question)].query_id, rated, f"user {seed}-{at}")
        step()
    arm = QueryArm(run.options.profile, "read", run.options.stop_rule)
    for group, questions in planned.groups.items():
        results = measure(
            run, f"{ENGRAM}, seed {seed}: {group}", questions, lambda question: run.harness.ask(question, arm)[1]
        )
        phases.append(Phase(ENGRAM, group, 0, seed, tuple(score(results))))
        store.put(phases[-1])
    return phases


def _answer_without_learning(run: Run, planned: ThumbsPlan, seed: int) -> dict[str, _UntaughtAnswer]:
    """Question -> what it is answered without learning, of all that arrive or are measured."""
    questions = {question.id: question for group in planned.groups.values() for question in group}
    arm = QueryArm(run.options.profile, "off", run.options.stop_rule)
    step = run.begin(f"{NO_LEARNING}, seed {seed}", len(questions))
    answered = {}
    for question in questions.values():
        answer, result = run.harness.ask(question, arm, depth=CANDIDATES)
        scored = [(passage.passage_id, passage.score) for passage in answer.passages]
        answered[question.id] = _UntaughtAnswer(answer.query_id, result, scored)
        step()
    return answered


def _drop_arrival_number(arrived: Question) -> str:
    """The id of a question that arrived, without the number of the arrival."""
    return arrived.id.rpartition("#")[0]


def _rerank_by_rule(rule: FeedbackRule, base: Mapping[str, _UntaughtAnswer], question: Question) -> QuestionResult:
    answered = base[question.id]
    return replace(answered.result, ranking=reorder_candidates(answered.scored, rule))


def _keep(
    store: Phases, arm: str, planned: ThumbsPlan, seed: int, ask: Callable[[Question], QuestionResult]
) -> list[Phase]:
    phases = []
    for group, questions in planned.groups.items():
        phases.append(Phase(arm, group, 0, seed, tuple(score([ask(question) for question in questions]))))
        store.put(phases[-1])
    return phases


def _rate(harness: Harness, question: Question, query_id: UUID, rated: RatedAnswer, judge: str) -> None:
    """Have a judge rate an answer. The answer without learning is the same whenever a question arrives."""
    verdict = Verdict(
        query_id=query_id,
        scope=harness.scope,
        partial=True,
        judge=judge,
        rating="up" if rated.up else "down",
        cited=[NamedSentence(passage_id=one) for one in rated.cited],
    )
    harness.give(question, verdict)
