"""Copy of a past moment: first the corpus, then the log of verdicts, then what the log teaches.

The copy gets the corpus, and the log of verdicts as it was then: those applied by then and not revoked by then. All
that is learned is computed from that log, by what a revocation and a verification use. Nothing is embedded or
analysed anew but expansion units that a later revocation removed.

The log does not say everything of the past. Of what it does not say the copy has what is so now:

- Passages that came since are left out; those that changed since are there as they are now; those deleted since are
  missing, and verdicts on their sentences are history without a state.
- Of a verdict that was revoked since, no audit is left (see ``restore``); of an assertion of facts, no sentence.
- A rollback of evolved keys leaves no date. Known is which generations were made by then, and from which one the
  next was made, or which one serves now. That one serves in the copy; the report says if it may have been another.
- What is set for judges, the capacity of expansion memories and the ranking prior are today's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from engram.core.learning.state_rows import SupportRows
from engram.services.feedback_log import log_replay
from engram.services.revocation.derived_state import DerivedState, Report
from engram.storage.corpus import collections
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log import audit_rows, replay_history, stored_outcomes
from engram.storage.learning import learned_weights, question_supports
from engram.storage.learning.learned_weights import Days
from engram.storage.revocation.copied_rows import Copy
from engram.wings.history.services.restored_verdicts import PreparedEffects, VerdictRestorer
from engram.wings.history.storage import collection_copies, copied_log

PASSAGES = 200
ROWS = 2_000
"""Entities or terms that are copied at a time."""
EVENTS = 100
CHUNK = 200
"""Sentences, questions or passages whose states are computed and written together: bounds memory."""

CORPUS = (
    "passage", "sentence", "entity", "entity_sentence", "lexical_term", "lexical_posting", "lexical_passage",
)  # fmt: skip
LOG = (
    "judged_query", "feedback_event", "verdict_sentence", "verdict_passage", "verdict_expansion", "memory_audit",
    "weight_audit",
)  # fmt: skip
STATES = ("question", "question_support")


@dataclass(frozen=True, slots=True)
class PastCopy:
    """Result of a copy.

    Attributes:
        collection: the new one, which holds what ``of`` was at ``until``.
        passages_since: that came later and are left out.
        passages_updated: that are there as they are now, not as they were.
        events: verdicts that counted then.
        events_restored: of these, revoked since.
        sentences_gone: that the verdicts speak of and the copy does not have.
        key_generation: of the evolved keys that serve; 0: base keys.
        key_generation_certain: whether no other can have served.
        learned: table -> rows.
    """

    collection: str
    of: str
    until: datetime
    passages: int
    passages_since: int
    passages_updated: int
    events: int
    events_restored: int
    sentences_gone: int
    key_generation: int
    key_generation_certain: bool
    learned: Mapping[str, int]

    def as_json(self) -> dict[str, Any]:
        """Return the result as the job stores it."""
        return asdict(self) | {"until": self.until.isoformat()}


class PastCopyBuilder:
    """One copy: the corpus, the log, and then every state that the log speaks of."""

    def __init__(
        self,
        writer: Writer,
        copy: Copy,
        derived: Sequence[DerivedState],
        report: Report,
    ) -> None:
        self._writer = writer
        self._copy = copy
        self._derived = derived
        self._report = report

    def make(self, source_name: str, name: str, restore: VerdictRestorer, prepared: PreparedEffects) -> PastCopy:
        """Make all of it.

        Args:
            source_name: what the source is called.
            name: what the copy is called.
            prepared: effects of wings, as ``VerdictRestorer.prepare`` gives them.
        """
        writer, copy = self._writer, self._copy
        census = collection_copies.census(writer, copy.source, copy.until)
        self._pages(
            "passages", census.passages, collection_copies.passages, collection_copies.copy_passages, PASSAGES
        )
        self._pages("entities", census.entities, collection_copies.entities, collection_copies.copy_entities, ROWS)
        self._pages("terms", census.terms, collection_copies.terms, collection_copies.copy_terms, ROWS)
        collection_copies.settle_counts(writer, copy)
        self._pages("verdicts", census.events, copied_log.events, self._copy_events, EVENTS)
        derived_tables = [table for state in self._derived for table in state.verified_tables]
        self._analyse("statistics", (*CORPUS, *LOG, *derived_tables))
        restored = restore.run(writer, copy, prepared)
        days = self._questions(restored.questions_gone)
        self._beliefs(days | restored.days)
        certainties = [state.copy(writer, copy, restored.events, self._report) for state in self._derived]
        self._analyse("statistics of states", (*STATES, *derived_tables))
        return PastCopy(
            collection=name,
            of=source_name,
            until=copy.until,
            passages=census.passages,
            passages_since=census.later,
            passages_updated=census.updated,
            events=census.events,
            events_restored=len(restored.events),
            sentences_gone=copied_log.count_removed_sentences(writer, copy),
            key_generation=collections.load_by_id(writer, copy.target).key_generation,
            key_generation_certain=all(certainties),
            learned=copied_log.count_learned_rows(
                writer, copy, [table for state in self._derived for table in state.counted_tables]
            ),
        )

    def _copy_events(self, writer: Writer, copy: Copy, events: Sequence[int]) -> None:
        copied_log.copy_events(writer, copy, events)
        for state in self._derived:
            state.copy_events(writer, copy, events)

    def _pages(
        self,
        stage: str,
        total: int,
        read: Callable[[Reader, Copy, int, int], list[int]],
        write: Callable[[Writer, Copy, Sequence[int]], None],
        size: int,
    ) -> None:
        """Write what ``read`` gives, ``size`` ids at a time, and report the progress of the stage."""
        written_count, after = 0, 0
        self._report(stage, 0, total)
        while page := read(self._writer, self._copy, after, size):
            write(self._writer, self._copy, page)
            written_count, after = written_count + len(page), page[-1]
            self._report(stage, written_count, total)

    def _analyse(self, stage: str, tables: Sequence[str]) -> None:
        """Update the planner's statistics of tables that the copy filled, and report the progress."""
        for table_count, table in enumerate(tables):
            self._report(stage, table_count, len(tables))
            collection_copies.analyse(self._writer, table)
        self._report(stage, len(tables), len(tables))

    def _questions(self, removed: Mapping[int, bytes]) -> Days:
        """Replay all questions; the days of which terms of weights became contested, or no more so."""
        days = Days()

        def write(writer: Writer, copy: Copy, questions: Sequence[int]) -> None:
            copied_log.begin_questions(
                writer,
                copy,
                questions,
                {question: removed[question] for question in questions if question in removed},
            )
            first_questions = replay_history.find_first_questions(writer, copy.target, questions)
            put = {question: (first.text, first.embedding) for question, first in first_questions.items()}
            question_supports.put_questions(writer, copy.target, put, [])
            replays = list(log_replay.supports(writer, copy.target, questions))
            audit_rows.rewrite(writer, copy.target, [row for replay in replays for row in replay.corrected])
            question_supports.replace_supports(
                writer, copy.target, SupportRows.from_rows([replay.state for replay in replays]), []
            )
            against = log_replay.find_opposing_events(writer, copy.target, questions)
            days.update(learned_weights.contest(writer, copy.target, questions, against))

        total = copied_log.count_questions(self._writer, self._copy)
        self._pages("questions", total, _read_from_target(stored_outcomes.question_ids), write, CHUNK)
        return days

    def _beliefs(self, days: Days) -> None:
        """Replay the weights, and settle what counts on these days."""
        writer, target = self._writer, self._copy.target
        learned_weights.settle(writer, target, days)
        for believed in stored_outcomes.beliefs(writer, target):
            learned_weights.replace(writer, target, believed, log_replay.belief(writer, target, believed))


def _read_from_target(
    read: Callable[[Reader, int, int, int], list[int]],
) -> Callable[[Reader, Copy, int, int], list[int]]:
    return lambda reader, copy, after, limit: read(reader, copy.target, after, limit)
