"""Learned state as the log says it is: each state anew from what it began as and the events that still count.

Revoking an event writes what comes of this, and a verification compares it with what is stored: there is one way to
compute a state from the log. An event counts with the noises that it was applied with, so that a later change of
settings does not rewrite the past.
"""

import hashlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.core import kalman
from app.core import keys as core
from app.core.belief import Observation, Prior, no_evidence, observe
from app.core.keys import KeyRules
from app.storage import history
from app.storage.database import Reader
from app.storage.experience import Support
from app.storage.graph import Vector
from app.storage.history import PAGE, Step
from app.storage.keys import Base, Credit, EvolvedKey, Pair, Scored
from app.storage.memories import AuditRow, Memory
from app.storage.weights import Learned

State = TypeVar("State")
Key = TypeVar("Key")

UNSUPPORTED = (0.0, 1.0)
"""Support and perplexity of a sentence that no verdict spoke of for a question."""


@dataclass(frozen=True, slots=True)
class Replayed(Generic[State]):
    """A state after the last event that touched it, and audit rows that say otherwise than the replay.

    Attributes:
        corrected: rows as they ought to read.
    """

    state: State
    corrected: list[AuditRow]


def question_hash(question: str) -> bytes:
    """Equal questions meet here; white space and case do not make another question."""
    return hashlib.sha256(" ".join(question.casefold().split()).encode()).digest()


def targets_of(verdict: Mapping[str, Any], activated: Sequence[int]) -> dict[int, int]:
    """Sentence -> y: named support 1, named rejects 0, and activated but not named 0 unless partial.

    Of a passage that helped as a whole it is not known which sentences did: those are left alone.

    Raises:
        ValueError, TypeError, KeyError: the verdict names something that is no sentence id.
    """
    spared = set(verdict.get("spared", ()))
    targets = {} if verdict["partial"] else {sentence: 0 for sentence in activated if sentence not in spared}
    targets.update(dict.fromkeys(map(int, verdict["rejects"]), 0))
    targets.update(dict.fromkeys(map(int, verdict["supports"]), 1))
    return targets


def memories(
    reader: Reader, collection_id: int, sentences: Sequence[int], *, without: Container[int] = ()
) -> Iterator[Replayed[Memory]]:
    """The memories of these sentences that an event touched, by sentence and channel.

    Of sentences that are gone, and of time memories whose expression is, there is nothing to replay.

    Args:
        without: events to leave out, as if they had never come.
    """
    bases = history.bases(reader, collection_id, sentences)
    every = _all(
        lambda after: history.memory_steps(reader, collection_id, sentences, after),
        lambda step: (step.owner, step.recorded.channel, step.sequence),
        (0, "", 0),
    )
    steps = (step for step in every if step.recorded.event_id not in without)
    for key, group in groupby(steps, key=lambda step: (step.owner, step.recorded.channel)):
        if key in bases:
            yield _memory(Memory(*key, bases[key], 1.0, 0), group)


def _memory(state: Memory, steps: Iterator[Step]) -> Replayed[Memory]:
    corrected = []
    for step in steps:
        recorded = step.recorded
        update = kalman.update_memories(
            state.vector[None],
            np.array([state.perplexity]),
            _known(step.direction),
            np.array([float(recorded.target)]),
            np.array([recorded.observation_noise]),
            recorded.process_noise,
        )
        after = float(update.perplexities[0])
        done = replace(
            recorded,
            gain=float(update.gains[0]),
            residual=float(update.residuals[0]),
            perplexity_before=state.perplexity,
            perplexity_after=after,
        )
        if done != recorded:
            corrected.append(done)
        state = replace(state, vector=update.vectors[0], perplexity=after, update_count=state.update_count + 1)
    return Replayed(state, corrected)


def supports(
    reader: Reader,
    collection_id: int,
    questions: Sequence[int],
    sentences: Sequence[int] | None = None,
    *,
    without: Container[int] = (),
) -> Iterator[Replayed[Support]]:
    """The supports of these questions, by question and sentence; ``sentences``: only of these.

    Args:
        without: events to leave out, as if they had never come.
    """
    every = _all(
        lambda after: history.support_steps(reader, collection_id, questions, sentences, after),
        lambda step: (step.owner, step.recorded.sentence_id, step.sequence),
        (0, 0, 0),
    )
    steps = (step for step in every if step.recorded.event_id not in without)
    for (question, sentence), group in groupby(steps, key=lambda step: (step.owner, step.recorded.sentence_id)):
        yield _support(Support(question, sentence, *UNSUPPORTED, 0, False), group)


def _support(state: Support, steps: Iterator[Step]) -> Replayed[Support]:
    corrected = []
    for step in steps:
        recorded = step.recorded
        update = kalman.update_supports(
            np.array([state.support]),
            np.array([state.perplexity]),
            np.array([float(recorded.target)]),
            np.array([recorded.observation_noise]),
            recorded.process_noise,
        )
        after = float(update.perplexities[0])
        done = replace(
            recorded,
            gain=float(update.gains[0]),
            residual=float(update.residuals[0]),
            perplexity_before=state.perplexity,
            perplexity_after=after,
        )
        if done != recorded:
            corrected.append(done)
        state = replace(
            state,
            support=float(update.supports[0]),
            perplexity=after,
            update_count=state.update_count + 1,
            complete=step.complete,
        )
    return Replayed(state, corrected)


def observation(
    ranked: Sequence[int],
    features: NDArray[np.float32],
    named: Sequence[tuple[int, int]],
    verdict: Mapping[str, Any],
    *,
    prior: Prior,
    noise: float,
) -> Observation | None:
    """What a verdict says of the ranking weights; None if it compares no two ranked passages.

    Args:
        ranked: passages, best first, with their features, (n, k).
        named: (passage, y) of the sentences that the verdict speaks of.
        verdict: names passages that helped as a whole besides. If it is partial it speaks of the named passages
            only, else it rejects every other one.
        noise: R of the verdict.
    """
    if features.shape[1] != len(prior.mean):
        return None  # of a version with other features
    verdicts = {passage: 0 for passage, _ in named} | {passage: 1 for passage, target in named if target}
    verdicts |= dict.fromkeys(verdict.get("passages", ()), 1)
    spoken = np.array([passage in verdicts or not verdict["partial"] for passage in ranked])
    supported = np.array([verdicts.get(passage) == 1 for passage in ranked])
    return observe(features.astype(np.float64)[spoken], supported[spoken], prior, noise)


def belief(reader: Reader, collection_id: int, prior: str) -> Learned | None:
    """The sum of the prior's terms, added one by one in the order of application; None if there is none."""
    total, count, after = None, 0, 0
    while page := history.term_sums(reader, collection_id, prior, after):
        for _, term in page:
            total = (no_evidence(len(term.information)) if total is None else total) + term
        count += len(page)
        after = page[-1][0]
    return None if total is None else Learned(total, count)


def credits(pairs: Sequence[Pair], bases: Mapping[int, Vector], units: Mapping[int, Vector]) -> list[Credit]:
    """What these pairs, by event, passage and unit, are credited by base keys (d,) and units (d,)."""
    given = []
    for (event, passage), group in groupby(pairs, key=lambda pair: (pair.event_id, pair.passage_id)):
        row = list(group)
        added = np.stack([units[pair.unit_id] for pair in row])
        gain = core.gains(row[0].question, bases[passage][None, :], added, row[0].strength)
        weight = core.attribution(gain)
        given += [
            Credit(event, passage, pair.unit_id, float(gain[0, at]), float(weight[0, at]))
            for at, pair in enumerate(row)
        ]
    return given


def evolved_keys(
    standing: Sequence[Scored],
    bases: Mapping[int, Base],
    vectors: Mapping[int, Vector],
    terms: Mapping[int, Mapping[str, float]],
    rules: KeyRules,
) -> list[EvolvedKey]:
    """The keys of passages that units stand with, by passage.

    Args:
        standing: the passages' best units, by passage, best first.
        bases: passage -> base keys.
        vectors, terms: unit -> embedding (d,) and term frequencies.
    """
    composed = []
    for passage, group in groupby(standing, key=lambda scored: scored.passage_id):
        best = list(group)
        scores = [scored.score for scored in best]
        base = bases[passage]
        added = np.stack([vectors[scored.unit_id] for scored in best])
        composed.append(
            EvolvedKey(
                passage_id=passage,
                generation=best[0].generation,
                vector=core.compose(base.vector, added, np.array(scores), rules.strength),
                units=[scored.unit_id for scored in best],
                scores=scores,
                increments=core.compose_terms(
                    base.length, [terms[scored.unit_id] for scored in best], scores, rules.term_strength
                ),
            )
        )
    return composed


def _all(read: Callable[[Key], list[Step]], key_of: Callable[[Step], Key], after: Key) -> Iterator[Step]:
    """All steps, page by page."""
    while page := read(after):
        yield from page
        if len(page) < PAGE:
            return
        after = key_of(page[-1])


def _known(direction: Vector | None) -> Vector:
    if direction is None:
        raise RuntimeError("an event moved a memory without a direction")
    return direction
