"""The protocol ``unseen``: verdicts on some questions, and what others gain that nobody has judged.

Questions come in a random order. A third of them, at most ``ASKED``, are asked and never judged. The next ones are
judged one by one. After 25 verdicts, and whenever their number has doubled, the collection's question encoder is
tuned, and every strategy answers three groups:

- others: they share no relevant passage with any question that is judged by the end
- sharing: they share one with a question that is judged by now
- judged: the first ``MOST_JUDGED_ASKED`` judged questions

The *gate* is the rule by which held-out verdicts decide whether a tuned encoder serves. With the gate off the last
one serves whatever they say. Strategy ``graph`` does not read it, and is asked with the gate on alone.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engram.context.errors import InvalidRequestError
from engram.services.question.query import Strategy
from engram.wings.tuning.parts import tuning_of
from engram.wings.tuning.services.tuning_service import TuningStanding
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.finished_phases import Phase
from engram_evaluation.harness import EvaluatedServices, QueryArm
from engram_evaluation.learning_variations import UNGATED_TUNING
from engram_evaluation.protocols import Run, measure_arm, split_by_sharing
from engram_evaluation.retrieval_metrics import QuestionScores, score
from engram_evaluation.unseen_table import GATE, JUDGED, OTHERS, SHARING, name_ungated_arm

ASKED = 200
"""Questions that are never judged, at the most."""
JUDGED_LIMIT = 400
FIRST_COUNT = 25
"""Verdicts after which is measured first."""
MOST_JUDGED_ASKED = 50
TUNED_STRATEGIES: tuple[Strategy, ...] = ("dense", "hybrid")
"""Strategies that read the tuned encoder."""
STRATEGIES: tuple[Strategy, ...] = (*TUNED_STRATEGIES, "graph")


@dataclass(frozen=True, slots=True)
class UnseenPlan:
    """Questions of one seed.

    Attributes:
        judged: in the order of their verdicts.
        asked: questions that nobody judges.
        counts: numbers of verdicts after which is measured.
    """

    judged: Sequence[Question]
    asked: Sequence[Question]
    counts: Sequence[int]

    def group(self, count: int) -> dict[str, list[Question]]:
        """Questions of each group after so many verdicts; before the first, of all that are ever in it."""
        sharing, others = split_by_sharing(self.asked, self.judged)
        judged = self.judged
        if count:
            judged = self.judged[:count]
            sharing, _ = split_by_sharing(self.asked, judged)
        groups = {OTHERS: others, SHARING: sharing, JUDGED: [*judged[:MOST_JUDGED_ASKED]]}
        return {name: questions for name, questions in groups.items() if questions}


def plan(dataset: Dataset, limit: int | None, seed: int) -> UnseenPlan:
    """Choose the questions.

    Args:
        limit: verdicts at most; ``JUDGED_LIMIT`` by default.

    Raises:
        InvalidRequestError: there are fewer than ``FIRST_COUNT`` questions to judge.
    """
    draw = random.Random(f"unseen/{seed}")  # noqa: S311 - repeatable, not secret
    questions = draw.sample(dataset.questions, len(dataset.questions))
    asked = min(ASKED, len(questions) // 3)
    judged = questions[asked : asked + (limit or JUDGED_LIMIT)]
    if len(judged) < FIRST_COUNT:
        raise InvalidRequestError(
            f"{dataset.name} has {len(judged)} questions to judge, of {FIRST_COUNT} at least."
        )
    return UnseenPlan(judged, questions[:asked], list_counts(len(judged)))


def list_counts(judged: int) -> list[int]:
    """List 0, ``FIRST_COUNT`` and its doubles below the number of judged questions, and that number."""
    counts = [0]
    count = FIRST_COUNT
    while count < judged:
        counts.append(count)
        count *= 2
    return [*counts, judged]


def run_unseen(run: Run) -> list[Phase]:
    """Judge, tune and ask for each seed.

    Raises:
        InvalidRequestError: the wing ``tuning`` is off, or the data set has too few questions.
    """
    try:
        tuning_of(run.harness.services)
    except LookupError:
        raise InvalidRequestError("--protocol unseen measures the wing tuning, which is off.") from None
    return [phase for seed in run.options.seeds for phase in _Course(run, seed).follow()]


class _Course:
    """The verdicts and measurements of one seed."""

    def __init__(self, run: Run, seed: int) -> None:
        self._run = run
        self._seed = seed
        self._plan = plan(run.dataset, run.options.limit, seed)
        self._phases: list[Phase] = []
        self._store = run.store(
            profile=run.options.profile,
            judged=[question.id for question in self._plan.judged],
            asked=[question.id for question in self._plan.asked],
        )

    def follow(self) -> list[Phase]:
        """Measure at each count. A seed that is stored in full is not run again, any other one from its start."""
        stored = [self._store.get(*key, turn=turn, seed=self._seed) for *key, turn in self._list_keys()]
        finished = [phase for phase in stored if phase is not None]
        if len(finished) == len(stored):
            return finished
        self._run.harness.reset()
        before = 0
        for count in self._plan.counts:
            if count:
                self._judge(self._plan.judged[before:count], count)
                self._tune_and_measure(count)
            else:
                for strategy in STRATEGIES:
                    self._measure(strategy, self._name_arm(strategy), count)
            before = count
        for phase in self._phases:
            self._store.put(phase)
        return self._phases

    def _list_keys(self) -> list[tuple[str, str, int]]:
        """Arm, group and turn of each phase."""
        keys = []
        for count in self._plan.counts:
            arms = [self._name_arm(strategy) for strategy in STRATEGIES]
            if count:
                arms += map(name_ungated_arm, TUNED_STRATEGIES)
                keys.append((GATE, GATE, count))
            keys += [(arm, group, count) for arm in arms for group in self._plan.group(count)]
        return keys

    def _name_arm(self, strategy: Strategy) -> str:
        return self._run.options.profile if strategy == "graph" else strategy

    def _judge(self, questions: Sequence[Question], count: int) -> None:
        step = self._run.begin(f"seed {self._seed}, {count} verdicts", len(questions))
        asking = QueryArm(self._run.options.profile, "read", self._run.options.stop_rule)
        for question in questions:
            self._run.harness.teach(question, asking, self._run.judge)
            step()

    def _tune_and_measure(self, count: int) -> None:
        """Tune, ask with what the gate lets serve, then with what it refused."""
        harness = self._run.harness
        tuning = tuning_of(harness.services).tuning
        served = tuning.load_standing(harness.scope).serving
        standing = self._tune(harness.services)
        self._phases.append(Phase(GATE, GATE, count, self._seed, (describe_decision(standing, count),)))
        for strategy in STRATEGIES:
            self._measure(strategy, self._name_arm(strategy), count)
        if standing.generations[0].accepted:
            same = [phase for phase in self._phases if phase.turn == count and phase.arm in TUNED_STRATEGIES]
            self._phases += [replace(phase, arm=name_ungated_arm(phase.arm)) for phase in same]
            return
        ungated = self._tune(self._run.vary(UNGATED_TUNING)).generations[0]
        if not ungated.accepted:
            raise RuntimeError(f"the encoder cannot be tuned: {ungated.reason}")
        for strategy in TUNED_STRATEGIES:
            self._measure(strategy, name_ungated_arm(strategy), count)
        tuning.change(harness.scope, serving=served)

    def _tune(self, services: EvaluatedServices) -> TuningStanding:
        """Learn a generation of the collection by these services, and return where its tuning stands then.

        Raises:
            RuntimeError: the job failed.
        """
        scope = self._run.harness.scope
        tuning = tuning_of(services).tuning
        job_id = tuning.request(scope)
        services.jobs.runner.run_ready(collection_id=scope.collection.id)
        job = services.jobs.jobs.job(scope, job_id)
        if job.status != "succeeded":
            raise RuntimeError(f"the encoder was not tuned: {job.error or job.status}")
        return tuning.load_standing(scope)

    def _measure(self, strategy: Strategy, arm: str, count: int) -> None:
        """Ask all groups by one strategy."""
        options = self._run.options
        asking = QueryArm(
            options.profile, "read", options.stop_rule if strategy == "graph" else None, strategy=strategy
        )
        for group, questions in self._plan.group(count).items():
            label = f"seed {self._seed}, {count} verdicts, {arm}, {group}"
            rows = score(measure_arm(self._run, label, questions, self._run.harness, asking))
            self._phases.append(Phase(arm, group, count, self._seed, tuple(rows)))


def describe_decision(standing: TuningStanding, count: int) -> QuestionScores:
    """Describe what held-out verdicts said of the last generation, after so many verdicts, as a row of a phase."""
    generation = standing.generations[0]
    others = generation.figures.get("others", {})
    figures = {
        "used": float(generation.accepted),
        "gain": others.get("mean"),
        "error": others.get("error"),
        "overlap": generation.figures.get("overlap"),
    }
    values = {name: value for name, value in figures.items() if value is not None}
    return QuestionScores(f"after {count}", "", (), values, {"reason": generation.reason})
