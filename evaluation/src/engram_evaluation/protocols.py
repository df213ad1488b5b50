"""The protocols: which questions are judged, which are measured, and in which state of the memory."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engram.context.errors import InvalidRequestError
from engram_evaluation import baselines
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.finished_phases import Phase, Phases, code_fingerprint
from engram_evaluation.harness import EvaluatedServices, Harness, QueryArm
from engram_evaluation.learning_variations import Variation
from engram_evaluation.retrieval_metrics import QuestionResult, score
from engram_evaluation.run_options import Options
from engram_evaluation.run_progress import Begin
from engram_evaluation.verdict_givers import Judge

JUDGED_GROUP = "judged questions"
PARAPHRASES = "their paraphrases"
SHARING_GROUP = "sharing a passage"
UNJUDGED = "unjudged questions"
MEMORY_OFF = "memory off"
OTHER_HALF = "other half"
DIFFERENT_LIMIT = 50
MOST_BYSTANDERS = 300
FEWEST_SHARING = 25
"""Questions that share a relevant passage with others, below which a data set counts as having none."""


@dataclass(frozen=True, slots=True)
class ProtocolPlan:
    """Questions to judge, and named groups of questions to measure before and after."""

    judged: list[Question]
    groups: dict[str, list[Question]]


@dataclass(slots=True)
class Run:
    """One run: the system, what is asked of it, where finished phases are kept.

    Attributes:
        drift: groups asked with memory off after the last verdicts; what differs from before is no memory's doing.
    """

    harness: Harness
    dataset: Dataset
    options: Options
    judge: Judge
    phases: Callable[[dict[str, Any]], Phases]
    begin: Begin
    vary: Callable[[Variation], EvaluatedServices]
    engine: dict[str, Any] = field(default_factory=dict)
    drift: list[Phase] = field(default_factory=list)

    def store(self, **parameters: Any) -> Phases:
        """Return the store of phases with these parameters, the data set, the code and its settings."""
        return self.phases(
            {
                "dataset": [self.dataset.name, self.dataset.fingerprint],
                "code": code_fingerprint(),
                "engine": self.engine,
                "stop_rule": self.options.stop_rule,
                **parameters,
            }
        )


def plan(dataset: Dataset, options: Options, seed: int) -> ProtocolPlan:
    """Choose the questions that are judged and those that are measured.

    ``different`` halves every type of question. All others judge the first questions in file order: of those with
    a paraphrase, or, where a data set has none of these, of its first half. Without
    paraphrases ``similar`` judges the first of those that share a relevant passage. ``levels`` judges as
    ``choose_teaching`` says, and draws at most ``MOST_BYSTANDERS`` of each group that is not judged.

    Under ``similar`` and ``levels`` the questions that share a relevant passage with a judged one are a
    group apart from the unjudged ones, under ``different`` a part of the other half.

    Raises:
        InvalidRequestError: the data set has nothing to measure with this protocol.
    """
    if options.protocol == "different":
        return _halves(dataset, options.limit or DIFFERENT_LIMIT, seed)
    eligible = list(dataset.questions)
    by_passage = options.protocol in {"similar", "levels"}
    if options.protocol == "levels":
        eligible = choose_teaching(dataset)
    elif options.protocol == "similar" and not dataset.paraphrases:
        eligible = select_first_of_sharing(eligible)
    elif dataset.paraphrases:
        eligible = [question for question in eligible if question.id in dataset.paraphrases]
    else:
        eligible = eligible[: max(1, len(eligible) // 2)]
    judged = eligible[: options.limit]
    chosen = {question.id for question in judged}
    unjudged = [question for question in dataset.questions if question.id not in chosen]
    sharing, others = split_by_sharing(unjudged, judged) if by_passage else ([], unjudged)
    groups = {
        JUDGED_GROUP: judged,
        PARAPHRASES: dataset.list_paraphrases(judged),
        SHARING_GROUP: sharing,
        UNJUDGED: others,
    }
    near = PARAPHRASES if dataset.paraphrases else SHARING_GROUP
    group_name = near if options.protocol == "similar" else JUDGED_GROUP
    if not groups[group_name]:
        raise InvalidRequestError(
            f"{dataset.name} has none of what --protocol {options.protocol} measures: {group_name}."
        )
    if options.protocol == "levels":
        for name in (SHARING_GROUP, UNJUDGED):
            groups[name] = draw_at_most(groups[name], MOST_BYSTANDERS, f"levels/{seed}")
    if options.protocol == "noise":
        del groups[UNJUDGED]  # what is asked is how much of a gain remains, and theirs is none
    return ProtocolPlan(judged, {name: group for name, group in groups.items() if group})


def choose_teaching(dataset: Dataset) -> list[Question]:
    """Choose questions whose verdicts should carry to others, in file order.

    Those with a paraphrase; without paraphrases, the first of those that share a relevant passage; where these are
    fewer than ``FEWEST_SHARING``, all. At most half of the questions, so that others remain.
    """
    eligible = [question for question in dataset.questions if question.id in dataset.paraphrases]
    eligible = eligible or select_first_of_sharing(dataset.questions)
    if not dataset.paraphrases and len(eligible) < FEWEST_SHARING:
        eligible = list(dataset.questions)
    return eligible[: max(1, len(dataset.questions) // 2)]


def draw_at_most(questions: Sequence[Question], most: int, seed: str) -> list[Question]:
    """At most so many of the questions, drawn by the seed, in their order."""
    if len(questions) <= most:
        return list(questions)
    drawn = set(random.Random(seed).sample(range(len(questions)), most))  # noqa: S311 - repeatable, not secret
    return [question for at, question in enumerate(questions) if at in drawn]


def split_by_sharing(
    questions: Sequence[Question], judged: Sequence[Question]
) -> tuple[list[Question], list[Question]]:
    """Split questions into those that share a relevant passage with a judged one, and all others."""
    evidence = frozenset[str]().union(*(question.relevant for question in judged))
    sharing = [question for question in questions if question.relevant & evidence]
    return sharing, [question for question in questions if not question.relevant & evidence]


def select_first_of_sharing(questions: Sequence[Question]) -> list[Question]:
    """Select the questions that share a relevant passage with another question, but with none before them."""
    question_counts = Counter(passage for question in questions for passage in question.relevant)
    earlier_passages: set[str] = set()
    selected = []
    for question in questions:
        shares = any(question_counts[passage] > 1 for passage in question.relevant)
        if shares and not question.relevant & earlier_passages:
            selected.append(question)
        earlier_passages |= question.relevant
    return selected


def _halves(dataset: Dataset, limit: int, seed: int) -> ProtocolPlan:
    """Halve every question type (GAM-RAG, Appendix D); ``limit`` questions of one half are judged."""
    by_type: dict[str, list[Question]] = {}
    for question in dataset.questions:
        by_type.setdefault(question.type, []).append(question)
    order = random.Random(seed)  # noqa: S311 - repeatable, not secret
    one: list[Question] = []
    other: list[Question] = []
    for kind in sorted(by_type):
        shuffled = order.sample(by_type[kind], len(by_type[kind]))
        one += shuffled[: len(shuffled) // 2]
        other += shuffled[len(shuffled) // 2 :]
    if not one:
        raise InvalidRequestError(f"{dataset.name} has too few questions to halve.")
    judged = order.sample(one, min(limit, len(one)))
    sharing, _ = split_by_sharing(other, judged)
    groups = {
        JUDGED_GROUP: judged,
        PARAPHRASES: dataset.list_paraphrases(judged),
        OTHER_HALF: other,
        SHARING_GROUP: sharing,
    }
    return ProtocolPlan(judged, {name: group for name, group in groups.items() if group})


def run_cold(run: Run) -> list[Phase]:
    """Measure without memory: dense, BM25, their fusion, and both profiles, on the same questions.

    All verdicts are forgotten first. Phases that are already stored are not asked again.
    """
    questions = list(run.dataset.questions[: run.options.limit])
    store = run.store(asked=[question.id for question in questions])
    run.harness.reset()
    dense = baselines.Dense(run.harness)
    bm25 = baselines.Bm25(run.dataset)
    systems: dict[str, Callable[[Question], QuestionResult]] = {
        "dense": lambda q: baselines.observe(dense, q),
        "bm25": lambda q: baselines.observe(bm25, q),
        "rrf": lambda q: baselines.observe(baselines.RankFusion(dense, bm25), q),
        "paper": lambda q: run.harness.ask(q, QueryArm("paper", "off", run.options.stop("paper")))[1],
        "default": lambda q: run.harness.ask(q, QueryArm("default", "off", run.options.stop("default")))[1],
    }
    phases = []
    for arm, ask in systems.items():
        phase = store.get(arm, "all questions", turn=0, seed=None)
        if phase is None:
            phase = Phase(
                arm, "all questions", turn=0, seed=None, rows=tuple(score(measure(run, arm, questions, ask)))
            )
            store.put(phase)
        phases.append(phase)
    return phases


def measure(
    run: Run, label: str, questions: Sequence[Question], ask: Callable[[Question], QuestionResult]
) -> list[QuestionResult]:
    """Ask every question once, and return the results in order."""
    step = run.begin(label, len(questions))
    observations = []
    for question in questions:
        observations.append(ask(question))
        step()
    return observations


def measure_arm(
    run: Run, label: str, questions: Sequence[Question], harness: Harness, arm: QueryArm
) -> list[QuestionResult]:
    """Ask every question once with an arm, and return the results in order."""
    return measure(run, label, questions, lambda question: harness.ask(question, arm)[1])
