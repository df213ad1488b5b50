"""Learned state as the log says it is: each state anew from what it began as and the events that still count.

Revoking an event writes what comes of this, and a verification compares it with what is stored: there is one way to
compute a state from the log. An event counts with the noises that it was applied with, so that a later change of
settings does not rewrite the past.
"""

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.core import kalman
from app.core import keys as core
from app.core.belief import Observation, Prior, no_evidence, observe
from app.core.caps import Pulled, Said, contested, most_gain, with_word
from app.core.keys import KeyRules
from app.core.verdict import LoggedVerdict
from app.storage.database import Reader
from app.storage.keys.evolved_keys import Base, EvolvedKey
from app.storage.keys.key_credits import Credit, Pair, Scored
from app.storage.learning.experience import Support
from app.storage.learning.memories import AuditRow, Memory
from app.storage.learning.weights import Learned
from app.storage.log import history
from app.storage.log.history import PAGE, Step, Word
from app.storage.retrieval.hops import Vector

State = TypeVar("State")
Key = TypeVar("Key")
Row = TypeVar("Row")

CHANNELS = ("task", "time")


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


def memories(reader: Reader, collection_id: int, sentences: Sequence[int]) -> Iterator[Replayed[Memory]]:
    """The memories of these sentences that an event touched, by sentence and channel.

    Of sentences that are gone, and of time memories whose expression is, there is nothing to replay.
    """
    steps = memory_steps(reader, collection_id, sentences)
    yield from memories_of(history.bases(reader, collection_id, sentences), steps)


def memory_steps(reader: Reader, collection_id: int, sentences: Sequence[int]) -> Iterator[Step]:
    """All steps of these sentences' memories, as ``memories_of`` takes them."""
    return _all(
        lambda after: history.memory_steps(reader, collection_id, sentences, after),
        lambda step: (step.owner, step.sequence, step.recorded.channel),
        (0, 0, ""),
    )


def memories_of(bases: Mapping[tuple[int, str], Vector], steps: Iterable[Step]) -> Iterator[Replayed[Memory]]:
    """What these steps, by sentence, sequence and channel, make of the memories that begin as ``bases``."""
    for sentence, group in groupby(steps, key=lambda step: step.owner):
        begun = {
            channel: Memory(sentence, channel, bases[sentence, channel], 1.0, 0)
            for channel in CHANNELS
            if (sentence, channel) in bases
        }
        yield from _sentence(begun, group)


def _sentence(states: dict[str, Memory], steps: Iterator[Step]) -> Iterator[Replayed[Memory]]:
    """The channels of one sentence that an event touched. Both hear what judges said of it for each question."""
    corrected: dict[str, list[AuditRow]] = {}
    said: dict[int, Said] = {}
    for _, of_event in groupby(steps, key=lambda step: step.sequence):
        for step in of_event:
            words = said.get(step.question, ())
            channel = step.recorded.channel
            if channel in states:
                before = states[channel].perplexity
                ((states[channel], gain, residual),) = _moved([(states[channel], words)], step)
                wrong = _corrections(step.recorded, before, gain, residual, states[channel].perplexity)
                corrected.setdefault(channel, []).extend(wrong)
        said[step.question] = _heard(words, step)
    for channel in sorted(corrected):
        yield Replayed(states[channel], corrected[channel])


def memories_without(
    bases: Mapping[tuple[int, str], Vector], steps: Iterable[Step], events: Container[int]
) -> Iterator[tuple[int | None, list[Memory]]]:
    """As ``memories_of``, with all the steps (None) and without each of the events, sentence by sentence.

    A memory without an event goes its own way from that event on; all ways are gone together, which takes little
    longer than one of them.
    """
    for sentence, group in groupby(steps, key=lambda step: step.owner):
        states = {
            channel: Memory(sentence, channel, bases[sentence, channel], 1.0, 0)
            for channel in CHANNELS
            if (sentence, channel) in bases
        }
        ways: dict[int | None, tuple[dict[str, Memory], dict[int, Said]]] = {None: (states, {})}
        for _, of_event in groupby(group, key=lambda step: step.sequence):
            taken = list(of_event)
            event, question = taken[0].recorded.event_id, taken[0].question
            fork = (dict(ways[None][0]), dict(ways[None][1])) if event in events else None
            for step in taken:
                channel = step.recorded.channel
                if channel in states:
                    before = [(known[channel], said.get(question, ())) for known, said in ways.values()]
                    for (known, _), (moved, _, _) in zip(ways.values(), _moved(before, step), strict=True):
                        known[channel] = moved
            for _, said in ways.values():
                said[question] = _heard(said.get(question, ()), taken[0])
            if fork is not None:
                ways[event] = fork
        for left_out, (known, _) in ways.items():
            yield left_out, [memory for memory in known.values() if memory.update_count]


def _moved(states: Sequence[tuple[Memory, Said]], step: Step) -> list[tuple[Memory, float, float]]:
    """Each memory after one more event, with the gain and the residual; what was said goes by each."""
    recorded, count = step.recorded, len(states)
    before = [_before(state.pulled, step) for state, _ in states]
    update = kalman.update_memories(
        np.stack([state.vector for state, _ in states]),
        np.array([state.perplexity for state, _ in states]),
        _known(step.direction),
        np.full(count, float(recorded.target)),
        np.full(count, recorded.observation_noise),
        recorded.process_noise,
        most=np.array([_most(pulled, said, step) for pulled, (_, said) in zip(before, states, strict=True)]),
    )
    return [
        (
            replace(
                state,
                vector=update.vectors[at],
                perplexity=float(update.perplexities[at]),
                update_count=state.update_count + 1,
                pulled=_pulled(before[at], step, float(update.gains[at])),
            ),
            float(update.gains[at]),
            float(update.residuals[at]),
        )
        for at, (state, _) in enumerate(states)
    ]


def most_of(pulled: Pulled, said: Said, judge: str, target: int, share: float, contested_share: float) -> float:
    """The largest gain that a judge's caps leave a verdict.

    Args:
        pulled: of the memory, on the verdict's day.
        said: of the sentence, for the question.
        share, contested_share: the judge's caps; the second holds, if it is the lower one, for a verdict that goes
            against what others said.
    """
    cap = min(share, contested_share) if contested(said, judge, target) else share
    return most_gain(pulled.left(judge), cap)


def _most(pulled: Pulled, said: Said, step: Step) -> float:
    if step.share is None or step.contested is None:
        return 1.0
    return most_of(pulled, said, step.judge, step.recorded.target, step.share, step.contested)


def _before(pulled: Pulled, step: Step) -> Pulled:
    return pulled if step.share is None else pulled.on(step.day)


def _pulled(before: Pulled, step: Step, gain: float) -> Pulled:
    """What was applied before there were caps counts towards none."""
    return before if step.share is None else before.after(step.judge, gain)


def _heard(said: Said, step: Step) -> Said:
    return said if step.share is None else with_word(said, step.judge, step.recorded.target)


def _corrections(recorded: AuditRow, before: float, gain: float, residual: float, after: float) -> list[AuditRow]:
    """The row as it ought to read; nothing if it does."""
    done = replace(recorded, gain=gain, residual=residual, perplexity_before=before, perplexity_after=after)
    return [] if done == recorded else [done]


def supports(
    reader: Reader, collection_id: int, questions: Sequence[int], sentences: Sequence[int] | None = None
) -> Iterator[Replayed[Support]]:
    """The supports of these questions, by question and sentence; ``sentences``: only of these."""
    yield from supports_of(support_steps(reader, collection_id, questions, sentences))


def support_steps(
    reader: Reader, collection_id: int, questions: Sequence[int], sentences: Sequence[int] | None = None
) -> Iterator[Step]:
    """All steps of these questions' supports, as ``supports_of`` takes them; ``sentences``: only of these."""
    return _all(
        lambda after: history.support_steps(reader, collection_id, questions, sentences, after),
        lambda step: (step.owner, step.recorded.sentence_id, step.sequence),
        (0, 0, 0),
    )


def supports_of(steps: Iterable[Step]) -> Iterator[Replayed[Support]]:
    """What these steps, by question, sentence and sequence, make of supports."""
    for (question, sentence), group in groupby(steps, key=lambda step: (step.owner, step.recorded.sentence_id)):
        yield _support(Support(question, sentence), group)


def supports_without(steps: Iterable[Step], events: Container[int]) -> Iterator[tuple[int | None, Support]]:
    """As ``supports_of``, with all the steps (None) and without each of the events: see ``memories_without``."""
    for (question, sentence), group in groupby(steps, key=lambda step: (step.owner, step.recorded.sentence_id)):
        ways: dict[int | None, Support] = {None: Support(question, sentence)}
        for step in group:
            before, event = ways[None], step.recorded.event_id
            moved = _supported(list(ways.values()), step)
            ways = {way: state for way, (state, _, _) in zip(ways, moved, strict=True)}
            if event in events:
                ways[event] = before
        yield from ways.items()


def _support(state: Support, steps: Iterator[Step]) -> Replayed[Support]:
    corrected = []
    for step in steps:
        before = state.perplexity
        ((state, gain, residual),) = _supported([state], step)
        corrected += _corrections(step.recorded, before, gain, residual, state.perplexity)
    return Replayed(state, corrected)


def _supported(states: Sequence[Support], step: Step) -> list[tuple[Support, float, float]]:
    """Each support after one more event, with the gain and the residual."""
    recorded, count = step.recorded, len(states)
    before = [_before(state.pulled, step) for state in states]
    update = kalman.update_supports(
        np.array([state.support for state in states]),
        np.array([state.perplexity for state in states]),
        np.full(count, float(recorded.target)),
        np.full(count, recorded.observation_noise),
        recorded.process_noise,
        most=np.array([_most(pulled, state.said, step) for pulled, state in zip(before, states, strict=True)]),
    )
    return [
        (
            replace(
                state,
                support=float(update.supports[at]),
                perplexity=float(update.perplexities[at]),
                update_count=state.update_count + 1,
                complete=step.complete,
                pulled=_pulled(before[at], step, float(update.gains[at])),
                said=_heard(state.said, step),
            ),
            float(update.gains[at]),
            float(update.residuals[at]),
        )
        for at, state in enumerate(states)
    ]


def contradicting(reader: Reader, collection_id: int, questions: Sequence[int]) -> set[int]:
    """The events on these questions that go against what other judges said, of sentences that are gone as well."""
    return against(words(reader, collection_id, questions))


def words(reader: Reader, collection_id: int, questions: Sequence[int]) -> Iterator[Word]:
    """All words on these questions, as ``against`` takes them."""
    return _all(
        lambda after: history.words(reader, collection_id, questions, after),
        lambda word: (word.question, word.sentence, word.sequence),
        (0, 0, 0),
    )


def against(words: Iterable[Word]) -> set[int]:
    """The events that go against what other judges said, by words in order of question, sentence and sequence."""
    found: set[int] = set()
    for _, group in groupby(words, key=lambda word: (word.question, word.sentence)):
        said: Said = ()
        for word in group:
            if contested(said, word.judge, word.target):
                found.add(word.event_id)
            said = with_word(said, word.judge, word.target)
    return found


def observation(
    ranked: Sequence[int],
    features: NDArray[np.float32],
    named: Sequence[tuple[int, int]],
    verdict: LoggedVerdict,
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
    verdicts |= dict.fromkeys(verdict.passages, 1)
    spoken = np.array([passage in verdicts or not verdict.partial for passage in ranked])
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


def _all(read: Callable[[Key], list[Row]], key_of: Callable[[Row], Key], after: Key) -> Iterator[Row]:
    """All rows, page by page."""
    while page := read(after):
        yield from page
        if len(page) < PAGE:
            return
        after = key_of(page[-1])


def _known(direction: Vector | None) -> Vector:
    if direction is None:
        raise RuntimeError("an event moved a memory without a direction")
    return direction
