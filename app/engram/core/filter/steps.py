"""Steps of many states along the log, column-wise: ``states`` for all states that the events name.

An event goes by what those before it left of the states that both speak of, and by nothing else. So of a batch
those that meet in no state are moved at once, in waves: the n-th wave has each state's n-th event. That comes to
the bits that one event after the other comes to. All of it is in columns: a batch speaks of thousands of states.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engram.core.filter import kalman, sufficiency_memory
from engram.core.filter.caps import Said, contested, with_word
from engram.core.filter.gain_budget import GainBudgets, Ids, Verdicts
from engram.core.filter.kalman import Floats, MemoryUpdate, SupportUpdate
from engram.core.filter.state_rows import Kept, MemoryRows, SupportRows
from engram.core.filter.states import AUDITED, CHANNELS, RECALL, TASK, AuditRows, Event, Vector

NOWHERE = -1
_NOTHING: Kept = {}


@dataclass(frozen=True, slots=True)
class EventStatement:
    """An event and all that it says.

    Attributes:
        targets: sentence -> y; those without a task memory are gone, and are left alone.
        directions: channel -> what its memories move along, (d,); a channel without one is left alone.
        noise: R of what it rejects, and of what it supports.
        frozen: for ablations: channels that are left alone, ``RECALL`` among them.
        examined: sentence -> with what probability something is said of it, in (0, 1]; of others for certain. R is
            divided by it: silence about what perhaps nobody saw says so much less, and so does the support of a
            passage of whose sentences another one may have helped.
        by_perplexity: for ablations: R of either is so many times the state's perplexity.
    """

    event: Event
    targets: Mapping[int, int]
    directions: Mapping[str, Vector]
    noise: tuple[float, float]
    frozen: frozenset[str] = frozenset()
    examined: Mapping[int, float] = field(default_factory=dict)
    by_perplexity: float | None = None


@dataclass(frozen=True, slots=True)
class MovedStates:
    """States that events moved.

    Attributes:
        memories: the states after the last event that moved them, in the order given.
        supports: the same, by question and sentence.
        audit: a row for each state and event.
        contested: events that go against what other judges said of a sentence.
    """

    memories: MemoryRows
    supports: SupportRows
    audit: AuditRows
    contested: frozenset[int]


def step(saying: EventStatement, memories: MemoryRows, supports: SupportRows) -> MovedStates:
    """Apply one event: see ``steps``."""
    return steps([saying], memories, supports)


def steps(sayings: Sequence[EventStatement], memories: MemoryRows, supports: SupportRows) -> MovedStates:
    """Apply events in the given order to all states that they name.

    A rejection counts also where nothing ever supported the sentence: it recalls nothing, but the surer the state,
    the less a later verdict that errs can move it.

    Args:
        supports: of those that are not there, nothing was said yet.

    Raises:
        ValueError: a value is out of its range.
    """
    places: tuple[dict[int, int], ...] = tuple({} for _ in CHANNELS)
    for at, (sentence, channel) in enumerate(
        zip(memories.sentence_ids.tolist(), memories.channels.tolist(), strict=True)
    ):
        places[channel][sentence] = at
    words = _Words.gather(sayings, places[CHANNELS.index(TASK)])
    prior_statements = _PriorStatements.gather(words, supports)
    remembered, told = _memories(words, prior_statements, memories, places)
    recalled, heard = _supports(words, prior_statements, supports)
    return MovedStates(remembered, recalled, AuditRows.joined([*told, *heard]), prior_statements.contested)


@dataclass(frozen=True, slots=True)
class _Words:
    """Judgements of n (event, sentence) pairs, in the order of events; arrays are (n,).

    Attributes:
        at: place of the event in ``sayings``.
        noise: R of what is said, but where it goes by perplexity.
        per: R over the state's perplexity, where it goes by that, else NaN.
    """

    sayings: Sequence[EventStatement]
    at: Ids
    event_ids: Ids
    sentences: Ids
    targets: Ids
    examined: Floats
    noise: Floats
    per: Floats
    process_noise: Floats

    @classmethod
    def gather(cls, sayings: Sequence[EventStatement], alive: Mapping[int, int]) -> "_Words":
        """The words on sentences that are alive."""
        named = [sorted(saying.targets.keys() & alive.keys()) for saying in sayings]
        at = np.repeat(np.arange(len(sayings)), [len(one) for one in named])
        pairs = list(zip(sayings, named, strict=True))
        targets = _ids(saying.targets[sentence] for saying, own in pairs for sentence in own)
        examined = np.ones(len(at))
        if any(saying.examined for saying in sayings):
            probabilities = (saying.examined.get(sentence, 1.0) for saying, own in pairs for sentence in own)
            examined = np.fromiter(probabilities, np.float64, len(at))
        if np.any(~((examined > 0.0) & (examined <= 1.0))):
            raise ValueError("an examination probability must lie in (0, 1]")
        per = [np.nan if saying.by_perplexity is None else saying.by_perplexity for saying in sayings]
        return cls(
            sayings=sayings,
            at=at,
            event_ids=_ids(saying.event.id for saying in sayings)[at],
            sentences=_ids(sentence for own in named for sentence in own),
            targets=targets,
            examined=examined,
            noise=np.array([saying.noise for saying in sayings]).reshape(-1, 2)[at, targets],
            per=np.array(per, dtype=np.float64)[at],
            process_noise=np.array([saying.event.process_noise for saying in sayings], dtype=np.float64)[at],
        )

    def noise_at(self, places_heard: Ids, perplexities: Floats) -> Floats:
        """R of these words on states of these perplexities."""
        per = self.per[places_heard]
        return np.where(np.isnan(per), self.noise[places_heard], per * perplexities) / self.examined[places_heard]


@dataclass(frozen=True, slots=True)
class _PriorStatements:
    """Statements on each sentence and question before each judgement, and after all of them.

    Attributes:
        places: of each word's support, (n,): those that are there as they are, then those that are new.
        new: (question, sentence) of the new ones.
        said: of each support, after the last word that moves it.
        caps: share of the distance that each word may close, (n,), by what was said before it.
    """

    places: Ids
    new: list[tuple[int, int]]
    said: list[Said]
    caps: Floats
    contested: frozenset[int]

    @classmethod
    def gather(cls, words: _Words, supports: SupportRows) -> "_PriorStatements":
        keys = zip(supports.question_ids.tolist(), supports.sentence_ids.tolist(), strict=True)
        place_of = {key: at for at, key in enumerate(keys)}
        there, said = len(place_of), [*supports.said]
        events = [
            (RECALL not in saying.frozen, saying.event.judge, saying.event.question_id) for saying in words.sayings
        ]
        alone = [(with_word((), judge, 0), with_word((), judge, 1)) for _, judge, _ in events]
        places, against = [], []
        for at, sentence, target in zip(
            words.at.tolist(), words.sentences.tolist(), words.targets.tolist(), strict=True
        ):
            heard, judge, question = events[at]
            place = place_of.setdefault((question, sentence), len(place_of))
            if place == len(said):
                said.append(())
            places.append(place)
            before = said[place]
            if before and before == alone[at][target]:  # its own word once more, and nobody else's
                against.append(False)
                continue
            against.append(contested(before, judge, target))
            if heard:
                said[place] = with_word(before, judge, target)
        shares = np.array(
            [[saying.event.share, saying.event.contested_share] for saying in words.sayings], dtype=np.float64
        ).reshape(-1, 2)[words.at]
        opposed = np.array(against, dtype=np.bool_)
        return cls(
            places=_ids(places),
            new=list(place_of)[there:],
            said=said,
            caps=np.where(opposed, shares.min(axis=1), shares[:, 0]),
            contested=frozenset(words.event_ids[opposed].tolist()),
        )


@dataclass(frozen=True, slots=True)
class _OrderedWords:
    """Words that move states, one each, in the order in which each state is to hear them; arrays are (n,).

    Attributes:
        words: a word may move several states.
        states: places.
        channels: places in ``AUDITED``.
    """

    words: Ids
    states: Ids
    channels: Ids

    def pulls(self, words: _Words, caps: Floats, days: Sequence[str], budgets: Sequence[Kept]) -> GainBudgets:
        """Return the gain budgets of all states after these judgements."""
        events = [saying.event for saying in words.sayings]
        at = words.at[self.words].tolist()
        judges, on = [events[one].judge for one in at], [events[one].day for one in at]
        return GainBudgets(days, budgets, Verdicts(self.states, judges, on, caps[self.words]))

    @property
    def moved_states(self) -> Ids:
        """States that any word moves."""
        return np.unique(self.states)


Prior = tuple[Floats, Floats, Floats, Floats, Floats]
"""Perplexity, y, R and Q, and the most that the gain may be, of the states of a wave, (n,)."""


def _move(
    words: _Words,
    ordered: _OrderedWords,
    pulls: GainBudgets,
    perplexities: Floats,
    update: Callable[[Ids, Prior], MemoryUpdate | SupportUpdate],
) -> list[AuditRows]:
    """Move states wave by wave, and their perplexities in place; the audit of each wave.

    Args:
        update: of the places in ``ordered`` that a wave is of, and what is before it.
    """
    audit = []
    for wave in _waves(ordered.states):
        spoken, states = ordered.words[wave], ordered.states[wave]
        before = perplexities[states]
        noise, process = words.noise_at(spoken, before), words.process_noise[spoken]
        targets = words.targets[spoken]
        after = update(wave, (before, targets.astype(np.float64), noise, process, pulls.most(wave)))
        pulls.pull(wave, after.gains)
        perplexities[states] = after.perplexities
        audit.append(
            AuditRows(
                event_ids=words.event_ids[spoken],
                sentence_ids=words.sentences[spoken],
                channels=ordered.channels[wave],
                targets=targets,
                observation_noise=noise,
                gains=after.gains,
                residuals=after.residuals,
                perplexities_before=before,
                perplexities_after=after.perplexities,
                process_noise=process,
            )
        )
    return audit


def _memories(
    words: _Words, prior_statements: _PriorStatements, memories: MemoryRows, places: Sequence[Mapping[int, int]]
) -> tuple[MemoryRows, list[AuditRows]]:
    """Move the memories; those that moved, and the audit. ``places`` as in ``_heard_by``."""
    heard, rows, directions = _heard_by(words, places)
    if not len(heard.words):
        return MemoryRows.from_rows([]), []
    pulls = heard.pulls(words, prior_statements.caps, memories.days, memories.kept)
    vectors, perplexities = memories.vectors.copy(), memories.perplexities.copy()
    along = kalman.units(np.stack(directions))

    def update(wave: Ids, prior: Prior) -> MemoryUpdate:
        states = heard.states[wave]
        perplexity, target, noise, process, most = prior
        after = kalman.update_along(
            vectors[states], perplexity, along[rows[wave]], target, noise, process, most=most
        )
        vectors[states] = after.vectors
        return after

    audit = _move(words, heard, pulls, perplexities, update)
    moved_words = heard.moved_states
    return MemoryRows(
        sentence_ids=memories.sentence_ids[moved_words],
        channels=memories.channels[moved_words],
        vectors=vectors[moved_words],
        perplexities=perplexities[moved_words],
        update_counts=memories.update_counts[moved_words] + np.bincount(heard.states)[moved_words],
        days=pulls.days(moved_words),
        kept=pulls.shares_left(moved_words),
    ), audit


def _heard_by(words: _Words, places: Sequence[Mapping[int, int]]) -> tuple[_OrderedWords, Ids, list[Vector]]:
    """The words that memories hear, the row of each one's direction, (n,), and the directions.

    Args:
        places: of each channel sentence -> place of its memory.
    """
    directions: list[Vector] = []
    heard, states, channels, rows = list[Ids](), list[Ids](), list[Ids](), list[Ids]()
    for channel, there in zip(CHANNELS, places, strict=True):
        row_of = np.full(len(words.sayings), NOWHERE)
        for at, saying in enumerate(words.sayings):
            if channel in saying.directions and channel not in saying.frozen:
                row_of[at] = len(directions)
                directions.append(saying.directions[channel])
        of, row = _ids(there.get(sentence, NOWHERE) for sentence in words.sentences.tolist()), row_of[words.at]
        words_of_rows = np.flatnonzero((of != NOWHERE) & (row != NOWHERE))
        heard.append(words_of_rows)
        states.append(of[words_of_rows])
        channels.append(np.full(len(words_of_rows), AUDITED.index(channel)))
        rows.append(row[words_of_rows])
    return (
        _OrderedWords(np.concatenate(heard), np.concatenate(states), np.concatenate(channels)),
        np.concatenate(rows),
        directions,
    )


def _supports(
    words: _Words, prior_statements: _PriorStatements, supports: SupportRows
) -> tuple[SupportRows, list[AuditRows]]:
    """Move the supports; those that moved, and the audit."""
    heard_at_all = np.array([RECALL not in saying.frozen for saying in words.sayings], dtype=np.bool_)
    own = np.flatnonzero(heard_at_all[words.at])
    if not len(own):
        return SupportRows.from_rows([]), []
    states, begun = prior_statements.places[own], len(prior_statements.new)
    days, kept = [*supports.days, *[""] * begun], [*supports.kept, *[_NOTHING] * begun]
    ordered = _OrderedWords(own, states, np.full(len(own), AUDITED.index(RECALL)))
    pulls = ordered.pulls(words, prior_statements.caps, days, kept)
    values = np.append(supports.supports, np.zeros(begun))
    perplexities = np.append(supports.perplexities, np.ones(begun))
    answered = np.append(supports.answered, np.zeros(begun))
    sufficiency = np.append(supports.sufficiency, np.zeros(begun))
    events = [saying.event for saying in words.sayings]
    judged = np.array([event.sufficiency for event in events], dtype=np.float64)[words.at[own]]
    claims = np.array([event.complete for event in events], dtype=np.bool_)[words.at[own]]

    def update(wave: Ids, prior: Prior) -> SupportUpdate:
        perplexity, target, noise, process, most = prior
        at = states[wave]
        after = kalman.update_supports(values[at], perplexity, target, noise, process, most=most)
        values[at] = after.supports
        answered[at], sufficiency[at] = sufficiency_memory.updated_sufficiency(
            answered[at],
            sufficiency[at],
            targets=target,
            gains=after.gains,
            judged=judged[wave],
            complete=claims[wave],
        )
        return after

    audit = _move(words, ordered, pulls, perplexities, update)
    complete = np.append(supports.complete, np.zeros(begun, dtype=np.bool_))
    # Of several words on one state the last one stays.
    complete[states] = claims
    questions = np.append(supports.question_ids, _ids(question for question, _ in prior_statements.new))
    sentences = np.append(supports.sentence_ids, _ids(sentence for _, sentence in prior_statements.new))
    moved_words = ordered.moved_states
    moved_words = moved_words[np.lexsort((sentences[moved_words], questions[moved_words]))]
    return SupportRows(
        question_ids=questions[moved_words],
        sentence_ids=sentences[moved_words],
        supports=values[moved_words],
        perplexities=perplexities[moved_words],
        update_counts=np.append(supports.update_counts, np.zeros(begun, dtype=np.int64))[moved_words]
        + np.bincount(states)[moved_words],
        complete=complete[moved_words],
        days=pulls.days(moved_words),
        kept=pulls.shares_left(moved_words),
        said=[prior_statements.said[state] for state in moved_words.tolist()],
        answered=answered[moved_words],
        sufficiency=sufficiency[moved_words],
    ), audit


def _waves(states: Ids) -> list[Ids]:
    """Places of the states, such that the n-th list has each state's n-th place."""
    if not len(states):
        return []
    order = np.argsort(states, kind="stable")
    first = np.flatnonzero(np.diff(states[order], prepend=states[order[0]] - 1))
    turns = np.arange(len(states)) - np.repeat(first, np.diff(first, append=len(states)))
    turn_of = np.empty(len(states), dtype=np.int64)
    turn_of[order] = turns
    by_turn = np.argsort(turn_of, kind="stable")
    return np.split(by_turn, np.flatnonzero(np.diff(turn_of[by_turn])) + 1)


def _ids(values: Iterable[int]) -> Ids:
    return np.fromiter(values, np.int64)
