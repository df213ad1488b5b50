"""States of a query without single verdicts: memories, supports and the weights of models.

All is read from the log on one snapshot and replayed with and without a verdict, so that both sides of a difference
are computed alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice

import numpy as np
from numpy.typing import NDArray

from engram.core.learning import state_replay as core
from engram.core.learning.caps import find_weight_limit, select_within_limit
from engram.core.learning.judge_standing import NEWCOMERS
from engram.core.learning.state_replay import ReplayStep
from engram.core.learning.states import Support
from engram.core.ranking.question_memory import net_acceptance
from engram.core.ranking.sufficiency import compute_mean
from engram.core.ranking.weight_beliefs import PriorIdentity, WeightBelief, WeightEvidence, build_empty_evidence
from engram.services.feedback_log import log_replay
from engram.services.question.plan import QueryPlan
from engram.services.question.question_spreads import QuestionSpreads
from engram.services.question.recall import RECALL_QUESTIONS, judge_needs, summarise_recall, summarise_rejections
from engram.services.question.walk import Walk
from engram.storage.corpus import current_vectors
from engram.storage.database import Reader
from engram.storage.learning import learned_weights
from engram.storage.learning.question_supports import PastSupport
from engram.storage.question.query_focus import Focus
from engram.wings.published.core.memory_replay import replay_memories
from engram.wings.published.services import memory_rewriting
from engram.wings.published.storage import memory_history
from engram.wings.why.core import influence
from engram.wings.why.services.counterfactual_scores import PastJudgements
from engram.wings.why.storage import influence_rows as log
from engram.wings.why.storage.influence_rows import LoggedTerm, MovedSentence, NearQuestion

MOST_STEPS = 4_000
"""Steps of memories, and of supports, that are read: bounds memory and time."""
TERMS = 1_000
"""Verdicts, the latest, that can be left out of a model's weights."""

Floats = NDArray[np.float64]
States = dict[tuple[int, str], tuple[float, float]]
"""(Sentence, channel) -> perplexity, and cosine with the question or its time constraint."""


class Memories:
    """Scores of what hops reached, without this verdict or that.

    Args:
        channels: "task", and "time" for a question with a time constraint.
        events: that may be left out.
    """

    def __init__(
        self,
        reader: Reader,
        focus: Focus,
        walk: Walk,
        channels: Sequence[str],
        events: Sequence[int],
    ) -> None:
        self._hops = [hop.candidates for hop in walk.hops]
        directions = {"task": focus.vector, "time": focus.time_vector}
        target = focus.collection.id
        reached = sorted({sentence for rows in self._hops for sentence in rows.sentence_ids.tolist()})
        touched = log.list_moved_sentences(reader, target, events, reached) if events else []
        loaded = _select_loadable(touched)
        self._too_long = {event for row in touched if row.sentence_id not in loaded for event in row.events}
        nothing = {(sentence, channel): (1.0, 0.0) for sentence in loaded for channel in channels}
        # Without its only event, a memory is as it was before any.
        self._states: dict[int | None, States] = {None: dict(nothing)}
        for row in touched:
            for event in row.events:
                initial_states = {state: nothing[state] for state in nothing if state[0] == row.sentence_id}
                self._states.setdefault(event, {}).update(initial_states)
        bases = memory_history.load_bases(reader, target, loaded) if loaded else {}
        steps = memory_rewriting.read_steps(reader, target, loaded) if loaded else iter(())
        for replayed in replay_memories(bases, steps, frozenset(events)):
            memory = replayed.state
            direction = directions[memory.channel]
            if direction is not None:
                cosine = float(memory.vector.astype(np.float64) @ direction.astype(np.float64))
                self._states[replayed.without][memory.sentence_id, memory.channel] = (memory.perplexity, cosine)
        self._scores = self._score_states(self._states[None])

    def can_leave_out(self, event: int) -> bool:
        """Whether the log of all that it touched could be read."""
        return event not in self._too_long

    def scores(self, without: int | None = None) -> list[Floats]:
        """By hop, (n,), parallel to its candidates."""
        if without not in self._states or without is None:
            return self._scores
        return self._score_states(self._states[None] | self._states[without])

    def _score_states(self, states: States) -> list[Floats]:
        return [influence.compute_scores(rows, states) for rows in self._hops]


def _select_loadable(touched: Sequence[MovedSentence]) -> list[int]:
    """Sentences whose logs are read, in id order: as many as there is room for."""
    room, chosen = MOST_STEPS, []
    for row in sorted(touched, key=lambda row: row.steps):
        room -= row.steps
        if room >= 0:
            chosen.append(row.sentence_id)
    return sorted(chosen)


class Supports:
    """Judgements of nearby past questions, without this verdict or that.

    How near the collection's questions come is left as it was: one of them more or less hardly moves it.

    Attributes:
        too_long: whether the log of these questions is too long to be read; then no verdict is left out.
        placed: the sentences that verdicts spoke of for these questions.
        strongest: the ``most`` events that moved each sentence's support most, the strongest of each first.
    """

    def __init__(self, reader: Reader, plan: QueryPlan, walk: Walk, spreads: QuestionSpreads, most: int) -> None:
        focus = plan.focus
        # One more than are heard: a question that a single verdict taught goes with it, and the next moves up.
        near = log.list_near_questions(reader, focus, RECALL_QUESTIONS + 1)
        self.too_long = sum(question.steps for question in near) > MOST_STEPS
        self._near: Sequence[NearQuestion] = near
        self._steps: dict[int, list[ReplayStep]] = {question.question_id: [] for question in near}
        if near and not self.too_long:
            for step in log_replay.support_steps(reader, focus.collection.id, list(self._steps)):
                self._steps[step.event.question_id].append(step)
        every = [step for steps in self._steps.values() for step in steps]
        self._question = {step.event.id: step.event.question_id for step in every}
        self._by_sentence: dict[int, list[ReplayStep]] = {}
        for step in every:
            self._by_sentence.setdefault(step.recorded.sentence_id, []).append(step)
        self.placed = log.find_places(reader, focus, sorted(self._by_sentence)) if every else {}
        passages: dict[int, set[int]] = {}
        for step in every:
            passages.setdefault(step.event.question_id, set()).add(
                self.placed[step.recorded.sentence_id].passage_id
            )
        current = current_vectors.find_current(reader, focus.collection.id)
        self._compared = spreads.compare(
            reader, focus.collection, current, plan.question, focus.vector, near, passages
        )
        self._fixed = PastJudgements(walk.recall.probabilities, walk.recall.rejections) if self.too_long else None
        ranked = sorted(
            (place, step.event.id)
            for steps in self._by_sentence.values()
            for place, step in enumerate(sorted(steps, key=_weakness)[:most])
        )
        self.strongest = list(dict.fromkeys(event for _, event in ranked))
        self._supports: dict[int | None, dict[tuple[int, int], Support]] = {None: {}}
        self.leave_out(())
        self._judgements = self._judge_without(None)

    def leave_out(self, events: Sequence[int]) -> None:
        """Make ready to tell judgements without these events."""
        steps = (step for of_question in self._steps.values() for step in of_question)
        for replayed in core.replay_supports(steps, frozenset(events)):
            support = replayed.state
            known = self._supports.setdefault(replayed.without, {})
            known[support.question_id, support.sentence_id] = support

    def count_verdicts(self, sentence: int) -> int:
        """Count the verdicts on the sentence."""
        return len(self._by_sentence.get(sentence, ()))

    def list_rejecting_events(self, passage: int) -> list[int]:
        """List the verdicts that reject a sentence of the passage and that their judges did not take back later."""
        last: dict[tuple[int, int, str], tuple[int, int]] = {}
        for sentence, steps in self._by_sentence.items():
            if sentence in self.placed and self.placed[sentence].passage_id == passage:
                for step in sorted(steps, key=lambda one: one.sequence):
                    judge = step.event.judge if step.event.judge != NEWCOMERS else f"{NEWCOMERS} {step.event.id}"
                    last[step.event.question_id, sentence, judge] = (step.event.id, step.recorded.target)
        return sorted({event for event, target in last.values() if target == 0})

    def find_judgements(self, without: int | None = None) -> PastJudgements:
        """Return recall and rejection probabilities, see ``recall``."""
        if self._fixed is not None:
            return self._fixed
        return self._judgements if without not in self._question else self._judge_without(without)

    def _judge_without(self, without: int | None) -> PastJudgements:
        less = None if without is None else self._question.get(without)
        questions = [question for question in self._near if question.question_id != less or question.events > 1]
        past: list[PastSupport] = []
        for question in questions[:RECALL_QUESTIONS]:
            key = question.question_id
            supported = self._list_supports(key, without if key == less else None)
            past += [
                PastSupport(
                    question_id=key,
                    question=question.question,
                    similarity=question.similarity,
                    sentence_id=support.sentence_id,
                    passage_id=self.placed[support.sentence_id].passage_id,
                    support=support.support,
                    perplexity=support.perplexity,
                    acceptance=support.acceptance,
                    complete=support.complete,
                    answered=support.answered,
                    sufficiency=support.sufficiency,
                )
                for support in supported
                if self.placed[support.sentence_id].passing
            ]
        judged = judge_needs(past, self._compared)
        return PastJudgements(summarise_recall(judged)[0], summarise_rejections(judged))

    def _list_supports(self, question: int, without: int | None) -> list[Support]:
        """Supports of what verdicts speak for or against, as ``question_supports.recall`` reads them."""
        changed = {} if without is None else self._supports[without]
        supports = [
            changed.get(pair, support) for pair, support in self._supports[None].items() if pair[0] == question
        ]
        return [support for support in supports if net_acceptance(support.acceptance, support.perplexity) != 0]


def _weakness(step: ReplayStep) -> tuple[float, int]:
    return -step.recorded.strength, -step.sequence


class Weights:
    """The weights of a model, without this verdict or that.

    Attributes:
        mean: after all verdicts, (k,).
        events: verdicts that count.
        left_out, means: the latest of them, and about what the weights are without each, (m, k).
        too_long: whether the log of what was said for the events' questions is too long to be read.
    """

    def __init__(self, reader: Reader, collection_id: int, believed: PriorIdentity, prior: WeightBelief) -> None:
        self._reader, self._collection_id, self._prior, self._model = reader, collection_id, prior, believed.model
        self.mean = prior.mean
        self.events = 0
        self.left_out: list[int] = []
        self.means = np.zeros((0, len(prior.mean)))
        self.too_long = False
        self._terms: list[LoggedTerm] = []
        self._total = build_empty_evidence(len(prior.mean))
        self._flipped: dict[int, set[int]] = {}
        learned = learned_weights.find(reader, collection_id, believed)
        if learned is not None:
            self._total, self.events = learned.evidence, learned.events
            self.mean = compute_mean(believed.model, prior, self._total)
        self._terms = log.list_latest_terms(reader, collection_id, believed, TERMS)
        heeded = [term for term in self._terms if term.counted]
        self.left_out = [term.event_id for term in heeded]
        self.means = influence.compute_means_without(
            self._model, prior, self._total, [term.evidence for term in heeded]
        )

    def leave_out(self, events: Sequence[int]) -> None:
        """Make ready to tell the weights without these events: of which others they say whether they count.

        A verdict against what other judges said of a question does not count; without one of these, it may.
        """
        questions = log.find_questions(self._reader, self._collection_id, events)
        question_ids = sorted(set(questions.values()))
        every = log_replay.words(self._reader, self._collection_id, question_ids) if question_ids else iter(())
        words = list(islice(every, MOST_STEPS + 1))
        self.too_long = len(words) > MOST_STEPS
        if self.too_long:
            return
        of_question = {
            question: list(group) for question, group in groupby(words, key=lambda word: word.question_id)
        }
        now = {question: core.find_opposing_events(group) for question, group in of_question.items()}
        for event, question in questions.items():
            remaining = [word for word in of_question.get(question, ()) if word.event_id != event]
            self._flipped[event] = (now.get(question, set()) ^ core.find_opposing_events(remaining)) - {event}

    def compute_mean_without(self, event: int) -> Floats:
        """The mean as if the event had never come, (k,); ``leave_out`` comes first."""
        flipped = self._flipped.get(event, set())
        concerned = {(term.judge, term.day) for term in self._terms if term.event_id in {event, *flipped}}
        removed = build_empty_evidence(len(self._total.information))
        for judge, day in sorted(concerned):
            of_day = [term for term in self._terms if (term.judge, term.day) == (judge, day)]
            remaining = [term for term in of_day if term.event_id != event]
            caps = [
                find_weight_limit(term.cap, contested=term.contested != (term.event_id in flipped))
                for term in remaining
            ]
            counts = {
                term.event_id: count for term, count in zip(remaining, select_within_limit(caps), strict=True)
            }
            for term in of_day:
                sign = int(term.counted) - int(counts.get(term.event_id, False))
                removed += WeightEvidence(sign * term.evidence.information, sign * term.evidence.precision)
        mean: Floats = influence.compute_means_without(self._model, self._prior, self._total, [removed])[0]
        return mean


@dataclass(frozen=True, slots=True)
class Version:
    """States that a query uses.

    Attributes:
        scores: by hop, (n,), parallel to its candidates.
        past: what past questions say.
    """

    scores: list[Floats]
    past: PastJudgements
