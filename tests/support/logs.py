"""Logs of verdicts made up in memory, the states that a worker makes of them, and rows to the last bit."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from engram.core.learning.judge_standing import NEWCOMERS
from engram.core.learning.state_replay import ReplayStep, SentenceJudgement
from engram.core.learning.states import RECALL, TASK, TIME, Audit, Event, JudgedText, Vector
from engram.core.learning.steps import LabelledEvent
from engram.wings.published.core.memory_replay import MemoryStep
from tests.support.row_engine import RowEngine, apply_by_rows

some = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

sizes = st.sampled_from([3, 1, 4_000])
"""Steps that are moved together: a state's way may go on in the next batch."""
DIMENSION = 6
SENTENCES = range(1, 6)
DATED = (1, 3, 5)
"""Sentences with a time channel."""
QUESTIONS = (7, 8)
TEXTS = (JudgedText(0, 0.8), JudgedText(1, 0.9), JudgedText(2))
"""Texts that a sentence had."""
DAY = "2026-05-01"
EVENT = Event(
    id=1,
    question_id=7,
    judge="a",
    day=DAY,
    share=1.0,
    contested_share=1.0,
    process_noise=0.001,
    noise=(1.0, 0.5),
    complete=True,
)
"""One that no cap holds back."""


def bits(value: Any) -> Any:
    """A row, or rows, such that two are equal if and only if no bit of them differs."""
    match value:
        case float():
            return value.hex()
        case np.ndarray():
            return (str(value.dtype), value.shape, value.tobytes())
        case list() | tuple():
            return tuple(map(bits, value))
        case dict():
            return {key: bits(held) for key, held in value.items()}
    if is_dataclass(value):
        return tuple((one.name, bits(getattr(value, one.name))) for one in fields(value))
    return value


def unit(seed: int, dimension: int = DIMENSION) -> Vector:
    """A vector of length 1."""
    drawn = np.random.default_rng(seed).normal(size=dimension)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


BASES = {(s, TASK): unit(s) for s in SENTENCES} | {(s, TIME): unit(100 + s) for s in DATED}


@dataclass(frozen=True)
class Verdict:
    """One entry of a log.

    Attributes:
        targets: sentence -> y.
        directions: channel -> unit vector.
        examined: sentence -> with what probability it was looked at.
        texts: sentence -> the text that was judged, of those that were revised.
    """

    event: Event
    targets: dict[int, int]
    directions: dict[str, Vector]
    examined: dict[int, float] = field(default_factory=dict)
    texts: dict[int, JudgedText] = field(default_factory=dict)

    def label(self) -> tuple[LabelledEvent, dict[str, Vector]]:
        """Return the event as the filter takes it, and the directions of memories."""
        return LabelledEvent(self.event, self.targets, self.examined, self.texts), self.directions


@st.composite
def verdicts(draw: st.DrawFn, event: int) -> Verdict:
    question = draw(st.sampled_from(QUESTIONS))
    timed = {TIME: unit(300 + question)} if draw(st.booleans()) else {}
    shares = st.sampled_from([0.0, 0.1, 0.8, 0.98, 1.0])
    confidence = draw(st.sampled_from([1.0, 0.7, 0.01]))
    return Verdict(
        event=Event(
            id=event,
            question_id=question,
            judge=draw(st.sampled_from(["a", "b", "c", NEWCOMERS])),
            day=draw(st.sampled_from(["2026-05-01", "2026-05-02"])),
            share=draw(shares),
            contested_share=draw(shares),
            process_noise=draw(st.sampled_from([0.001, 0.05])),
            noise=(1.0 / confidence, 0.5 / confidence),
            complete=draw(st.booleans()),
            sufficiency=draw(st.sampled_from([None, 0.0, 0.4, 1.0])),
        ),
        targets=draw(st.dictionaries(st.sampled_from(SENTENCES), st.sampled_from([0, 1]), max_size=4)),
        directions={TASK: unit(200 + question)} | timed,
        examined=draw(st.dictionaries(st.sampled_from(SENTENCES), st.sampled_from([0.01, 0.3, 1.0]), max_size=2)),
        texts=draw(st.dictionaries(st.sampled_from(SENTENCES), st.sampled_from(TEXTS), max_size=2)),
    )


@st.composite
def logs(draw: st.DrawFn, most: int = 10) -> list[Verdict]:
    """Verdicts in the order of application, on few questions and sentences, so that most of them meet."""
    return [draw(verdicts(event)) for event in range(1, draw(st.integers(1, most)) + 1)]


def replay_by_rows(log: Sequence[Verdict]) -> RowEngine:
    """What the row-wise engine makes of a log, verdict by verdict."""
    return apply_by_rows([one.label() for one in log], BASES)


def memory_steps(log: Sequence[Verdict], audit: Sequence[Audit]) -> list[MemoryStep]:
    """As storage gives them: by sentence, sequence and channel. An event's id is its place in the order."""
    known = {one.event.id: one for one in log}
    rows = sorted(audit, key=lambda row: (row.sentence_id, row.event_id, row.channel))
    return [
        MemoryStep(row.event_id, known[row.event_id].event, row, known[row.event_id].directions[row.channel])
        for row in rows
        if row.channel != RECALL
    ]


def support_steps(log: Sequence[Verdict], audit: Sequence[Audit]) -> list[ReplayStep]:
    """As storage gives them: by question, sentence and sequence."""
    known = {one.event.id: one.event for one in log}
    steps = [ReplayStep(row.event_id, known[row.event_id], row) for row in audit if row.channel == RECALL]
    return sorted(steps, key=lambda step: (step.event.question_id, step.recorded.sentence_id, step.sequence))


def words(log: Sequence[Verdict]) -> list[SentenceJudgement]:
    """As storage gives them: by question, sentence and sequence."""
    found = [
        SentenceJudgement(
            one.event.question_id,
            sentence,
            one.event.id,
            one.event.id,
            one.event.judge,
            target,
            one.texts.get(sentence, JudgedText()).revision,
        )
        for one in log
        for sentence, target in one.targets.items()
    ]
    return sorted(found, key=lambda word: (word.question_id, word.sentence_id, word.sequence))
