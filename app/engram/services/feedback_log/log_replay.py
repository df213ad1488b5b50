"""Learned state as the log says it is: each state anew from what it began as and the events that still count.

Revoking an event writes what comes of this, and a verification compares it with what is stored. The log is read
here, page by page; ``core.learning.state_replay`` makes states of it, by the step that workers take.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from engram.core.learning import state_replay as core
from engram.core.learning.state_replay import ReplayedState, ReplayStep, SentenceJudgement
from engram.core.learning.states import Support
from engram.core.ranking.weight_beliefs import PriorIdentity, build_empty_evidence
from engram.storage.database import Reader
from engram.storage.feedback_log import replay_history
from engram.storage.feedback_log.replay_history import PAGE
from engram.storage.learning.learned_weights import LearnedWeights

Key = TypeVar("Key")
Row = TypeVar("Row")


def supports(
    reader: Reader, collection_id: int, questions: Sequence[int], sentences: Sequence[int] | None = None
) -> Iterator[ReplayedState[Support]]:
    """The supports of these questions, by question and sentence; ``sentences``: only of these."""
    yield from core.replay_supports(support_steps(reader, collection_id, questions, sentences))


def support_steps(
    reader: Reader, collection_id: int, questions: Sequence[int], sentences: Sequence[int] | None = None
) -> Iterator[ReplayStep]:
    """All steps of these questions' supports, as ``state_replay.replay_supports`` takes them; see ``supports``."""
    return read_all(
        lambda after: replay_history.support_steps(reader, collection_id, questions, sentences, after),
        lambda step: (step.event.question_id, step.recorded.sentence_id, step.sequence),
        (0, 0, 0),
    )


def find_opposing_events(reader: Reader, collection_id: int, questions: Sequence[int]) -> set[int]:
    """The events on these questions that go against what other judges said, of sentences that are gone as well."""
    return core.find_opposing_events(words(reader, collection_id, questions))


def words(reader: Reader, collection_id: int, questions: Sequence[int]) -> Iterator[SentenceJudgement]:
    """All words on these questions, as ``state_replay.find_opposing_events`` takes them."""
    return read_all(
        lambda after: replay_history.words(reader, collection_id, questions, after),
        lambda word: (word.question_id, word.sentence_id, word.sequence),
        (0, 0, 0),
    )


def belief(reader: Reader, collection_id: int, believed: PriorIdentity) -> LearnedWeights | None:
    """The sum of its terms, added one by one in the order of application; None if there is none."""
    total, count, after = None, 0, 0
    while page := replay_history.term_sums(reader, collection_id, believed, after):
        for _, term in page:
            total = (build_empty_evidence(len(term.information)) if total is None else total) + term
        count += len(page)
        after = page[-1][0]
    return None if total is None else LearnedWeights(total, count)


def read_all(read: Callable[[Key], list[Row]], key_of: Callable[[Row], Key], after: Key) -> Iterator[Row]:
    """Read all rows, page by page."""
    while page := read(after):
        yield from page
        if len(page) < PAGE:
            return
        after = key_of(page[-1])
