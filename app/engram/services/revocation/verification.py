"""Proof that what is learned follows from the log: every learned row is replayed and compared, bit by bit.

All is read on one snapshot, in pages, and nothing is locked, so collections may learn on meanwhile. What a verdict
was applied with and cannot be told from it (noises, whether its expansions were validated, which passages they
were credited to) is part of the log. Terms of weights and credits of expansion units go through
exponentials and matrix products, whose last bits differ between kinds of processors, and are compared to within
``TOLERANCE``; what is made of them is compared to the bit.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple
from typing import Any

import numpy as np

from engram.context.errors import CollectionMovingError, NotFoundError
from engram.core.learning import caps
from engram.core.learning.states import RECALL, JudgedText, Support, question_hash
from engram.core.ranking.weight_beliefs import PriorIdentity, WeightBelief, WeightEvidence
from engram.providers.ranking_prior import RankingPriors
from engram.services.auth.scope import Scope
from engram.services.feedback_log import log_replay
from engram.services.feedback_log.weight_terms import observe_verdicts
from engram.services.revocation.derived_state import DerivedState
from engram.services.revocation.verification_findings import TABLES, TOLERANCE, Findings, VerificationReport, values
from engram.storage.corpus import collections, passages, sentence_revisions
from engram.storage.corpus.collections import LOCAL_TENANT
from engram.storage.database import Database, Reader
from engram.storage.feedback_log import replay_history, stored_outcomes
from engram.storage.feedback_log.replay_history import Term
from engram.storage.feedback_log.stored_outcomes import StoredQuestion
from engram.storage.learning import learned_weights, question_supports

CHUNK = 200
"""Questions or terms that are compared at a time: bounds memory."""
COLLECTIONS = 1_000
"""Collections whose names are read at a time."""
EVENTS = 50
"""Events whose audit rows, up to some thousands each, are read at a time."""


class VerificationService:
    """Compares what is stored with a replay of the log."""

    def __init__(
        self,
        database: Database,
        priors: RankingPriors,
        derived: Sequence[DerivedState],
    ) -> None:
        self._database = database
        self._priors = priors
        self._derived = derived

    def verify_all(self, most: int = 100) -> Iterator[VerificationReport]:
        """Verify all collections of all tenants, in name order, keeping ``most`` differences of each.

        One that is deleted or moved meanwhile is left out: nothing of it is left to differ. Another tenant's is
        called by both names, as in ``acme/docs``.
        """
        after = ("", 0)
        while page := self._page(after):
            for collection in page:
                try:
                    yield self._verify(collection, most)
                except (NotFoundError, CollectionMovingError):
                    continue
            after = (page[-1].name, page[-1].id)

    def verify(self, scope: Scope, most: int = 100) -> VerificationReport:
        """Verify a collection as it is now, keeping ``most`` differences; it is called as ``verify_all`` calls it.

        Raises:
            NotFoundError: it was deleted meanwhile.
        """
        return self._verify(scope.collection, most)

    def _page(self, after: tuple[str, int]) -> list[collections.Collection]:
        with self._database.read() as reader:
            return collections.list_of_all_tenants(reader, after, COLLECTIONS)

    def _verify(self, collection: collections.Collection, most: int) -> VerificationReport:
        with self._database.snapshot() as reader:
            return self.verify_on(reader, collection, most)

    def verify_on(self, reader: Reader, collection: collections.Collection, most: int = 100) -> VerificationReport:
        """Verify a collection as ``verify`` does, on the snapshot of ``reader``."""
        findings = Findings(most, (*TABLES, *(table for state in self._derived for table in state.verified_tables)))
        target = collections.load_by_id(reader, collection.id).id
        _check_events(reader, target, findings)
        opposing_events = _check_questions(reader, target, findings)
        priors = self._priors.priors
        for believed in stored_outcomes.beliefs(reader, target):
            _check_weights(reader, target, believed, priors.get(believed), opposing_events, findings)
        for state in self._derived:
            state.verify(reader, target, findings)
        for table in ("memory_audit", "weight_audit"):
            for event, status in stored_outcomes.list_left_behind(reader, target, table, most):
                findings.differs(table, f"event {event}", f"is {status}, and should have left nothing")
        own = collection.tenant == LOCAL_TENANT
        return findings.report(collection.name if own else f"{collection.tenant}/{collection.name}")


def _check_events(reader: Reader, collection_id: int, findings: Findings) -> None:
    """Check that the audit of events names what their verdicts name, and that they taught their questions."""
    after = 0
    while page := stored_outcomes.events(reader, collection_id, after, EVENTS):
        after = page[-1].id
        targets = sorted({sentence for event in page for sentence in event.targets})
        alive = stored_outcomes.find_existing(reader, collection_id, targets)
        returned = stored_outcomes.find_returned(reader, collection_id, targets)
        revisions = sentence_revisions.load(reader, collection_id, sorted(alive))
        taught = {event.question_id for event in page}
        questions = stored_outcomes.load_questions(reader, collection_id, sorted(taught))
        for event in page:
            name = f"event {event.id}, sentence {{}}, {{}}"
            for row in event.audit:
                findings.add("memory_audit", *values(row))
                if event.targets.get(row.sentence_id) != row.target:
                    text = name.format(row.sentence_id, row.channel)
                    findings.differs("memory_audit", text, "is not what the verdict says")
                revised = revisions.get(row.sentence_id)
                judged = JudgedText() if revised is None else revised.find_text(event.answered_at)
                if row.sentence_id in alive and row.revision != judged.revision:
                    text = name.format(row.sentence_id, row.channel)
                    findings.differs("memory_audit", text, "is of another text of the sentence")
            for sentence in event.list_unaudited(RECALL, alive, returned):
                findings.differs("memory_audit", name.format(sentence, RECALL), "is missing")
            question = questions.get(event.question_id)
            if question is None or question.text_hash != question_hash(event.question):
                findings.differs("question", f"of event {event.id}", "is not the one that was asked")


def _check_questions(reader: Reader, collection_id: int, findings: Findings) -> set[int]:
    """Compare stored questions and supports with a replay of the log.

    Returns:
        Events that contradict other judges.
    """
    opposing_events: set[int] = set()
    for chunk in _pages(lambda after: stored_outcomes.question_ids(reader, collection_id, after, CHUNK)):
        stored = stored_outcomes.load_questions(reader, collection_id, chunk)
        for row in stored.values():
            findings.add("question", *values(row))
        expected = {
            question: StoredQuestion(question, question_hash(first.text), first.text, first.embedding)
            for question, first in replay_history.find_first_questions(reader, collection_id, chunk).items()
        }
        findings.compare("question", stored, expected, "question {}")
        stored_supports = {
            (s.question_id, s.sentence_id): s for s in question_supports.load_supports(reader, collection_id, chunk)
        }
        for support in stored_supports.values():
            findings.add("question_support", *values(support))
        replayed: dict[tuple[int, int], Support] = {}
        for done in log_replay.supports(reader, collection_id, chunk):
            replayed[done.state.question_id, done.state.sentence_id] = done.state
            findings.report_corrections(done.corrected)
        opposing_events |= log_replay.find_opposing_events(reader, collection_id, chunk)
        findings.compare("question_support", stored_supports, replayed, "question {}, sentence {}")
    return opposing_events


def _check_weights(
    reader: Reader,
    collection_id: int,
    believed: PriorIdentity,
    known: WeightBelief | None,
    opposing_events: set[int],
    findings: Findings,
) -> None:
    """Compare stored weights, and each verdict's term in them, with a replay of the log.

    Args:
        known: the prior itself; None where this process does not have it.
        models: those beside the models of answers and rerankers, by their names.
        opposing_events: events that contradict other judges.
    """
    stored = learned_weights.find(reader, collection_id, believed)
    replayed = log_replay.belief(reader, collection_id, believed)
    for learned in () if stored is None else (stored,):
        findings.add(
            "learned_weights",
            believed.model,
            believed.prior,
            learned.evidence.information,
            learned.evidence.precision,
            learned.events,
        )
    findings.compare(
        "learned_weights",
        {} if stored is None else {astuple(believed): asdict(stored)},
        {} if replayed is None else {astuple(believed): asdict(replayed)},
        "{}, prior {}",
    )
    after, counts = 0, Counter[tuple[str, str]]()
    while page := replay_history.terms(reader, collection_id, believed, after, CHUNK):
        after = page[-1].sequence
        judged = sorted({sentence for term in page for sentence in term.targets})
        holders = passages.holders(reader, collection_id, judged)
        returned = stored_outcomes.find_returned(reader, collection_id, judged)
        # A term can be made anew as long as its prior is at hand and all it speaks of was there all the time.
        terms = [
            term
            for term in page
            if term.targets.keys() <= holders.keys()
            and not any(term.applied_at < returned[one] for one in term.targets.keys() & returned.keys())
        ]
        placed = [term.place(holders, term.noise) for term in terms]
        anew = () if known is None else observe_verdicts(believed, known, placed)
        for term, seen in zip(terms, anew, strict=known is not None):
            if seen is None or not _is_near(term.evidence, seen.evidence):
                findings.differs(
                    "weight_audit", f"event {term.event_id}, {believed.model}", "is not what the verdict says"
                )
        for term in page:
            _check_term(term, believed, findings)
            name = f"event {term.event_id}, {believed.model}"
            cap = caps.find_weight_limit(term.cap, contested=term.contested)
            counts_now = caps.select_within_limit([cap], counts[term.judge, term.day])[0]
            counts[term.judge, term.day] += counts_now
            if term.contested != (term.event_id in opposing_events):
                findings.differs("weight_audit", name, f"contested is {term.contested}")
            if counts_now != term.counted:
                findings.differs("weight_audit", name, f"counted is {term.counted}")


def _check_term(term: Term, believed: PriorIdentity, findings: Findings) -> None:
    evidence = term.evidence
    findings.add(
        "weight_audit",
        term.event_id,
        believed.model,
        believed.prior,
        term.noise,
        evidence.information,
        evidence.precision,
    )


def _is_near(one: WeightEvidence, other: WeightEvidence) -> bool:
    scale = TOLERANCE * max(1.0, float(np.abs(other.precision).max()))
    return np.allclose(one.information, other.information, rtol=TOLERANCE, atol=scale) and np.allclose(
        one.precision, other.precision, rtol=TOLERANCE, atol=scale
    )


def _pages(read: Any) -> Iterator[list[int]]:
    """Pages of ids, until there are no more."""
    after = 0
    while page := read(after):
        yield page
        after = page[-1]
