"""Proof that what is learned follows from the log: every learned row is replayed and compared, bit by bit.

All is read on one snapshot, in pages, and nothing is locked, so collections may learn on meanwhile. What a verdict
was applied with and cannot be told from it (noises, whether its expansions were validated, which passages they
were credited to) is part of the log. Terms of the ranking weights and credits of expansion units go through
exponentials and matrix products, whose last bits differ between kinds of processors, and are compared to within
``TOLERANCE``; what is made of them is compared to the bit.
"""

import hashlib
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from app.core import caps
from app.core.belief import Evidence
from app.core.caps import Pulled
from app.core.keys import KeyRules
from app.services import replay
from app.services.attribution import text_hash
from app.services.evolve import EvolveService
from app.services.prior import RankingPrior
from app.storage import collections, experience, history, key_log, keys, passages, weights
from app.storage.database import Database, Reader
from app.storage.experience import Support
from app.storage.history import StoredQuestion, Term
from app.storage.keys import Credit, EvolvedKey, Posting
from app.storage.memories import Memory

TOLERANCE = 1e-9
CHUNK = 200
"""Sentences, questions, terms or passages that are compared at a time: bounds memory."""
EVENTS = 50
"""Events whose audit rows, up to some thousands each, are read at a time."""
TABLES = (
    "sentence_memory",
    "question",
    "question_support",
    "memory_audit",
    "ranking_belief",
    "ranking_audit",
    "key_credit",
    "expansion_memory",
    "passage_key",
    "evolved_posting",
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that the log does not lead to; ``row`` says which, in the table's own words."""

    table: str
    row: str
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A table's rows of one collection; ``checksum`` is SHA-256 over them as they are stored, in hexadecimal."""

    table: str
    rows: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one collection; ``difference_count`` is of all differences, of which some are kept."""

    collection: str
    tables: list[Checked]
    differences: list[Difference]
    difference_count: int

    @property
    def clean(self) -> bool:
        """Whether everything learned follows from the log."""
        return self.difference_count == 0


@dataclass(slots=True)
class _Findings:
    """What a comparison found so far."""

    most: int
    kept: list[Difference] = field(default_factory=list)
    count: int = 0
    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 0))
    digests: dict[str, Any] = field(default_factory=lambda: {table: hashlib.sha256() for table in TABLES})

    def differs(self, table: str, row: str, reason: str) -> None:
        self.count += 1
        if len(self.kept) < self.most:
            self.kept.append(Difference(table, row, reason))

    def seen(self, table: str, *values: object) -> None:
        """Count a stored row into the table's checksum."""
        self.rows[table] += 1
        self.digests[table].update(b"".join(map(_bytes, values)))

    def compare(
        self, table: str, stored: Mapping[Any, object], replayed: Mapping[Any, object], name: str = "{}"
    ) -> None:
        """Compare rows by their keys, which ``name`` puts in words."""
        for key in sorted(stored.keys() | replayed.keys()):
            row = name.format(*key) if isinstance(key, tuple) else name.format(key)
            if key not in stored:
                self.differs(table, row, "is missing")
            elif key not in replayed:
                self.differs(table, row, "no event that counts leads to it")
            else:
                wrong = _columns(stored[key], replayed[key])
                if wrong:
                    self.differs(table, row, wrong)


class VerifyService:
    """Compares what is stored with a replay of the log."""

    def __init__(self, database: Database, prior: RankingPrior, evolve: EvolveService, *, capacity: int) -> None:
        self._database = database
        self._prior = prior
        self._evolve = evolve
        self._capacity = capacity

    def names(self) -> list[str]:
        """All collections, in name order."""
        found: list[str] = []
        with self._database.read() as reader:
            while page := collections.page(reader, found[-1] if found else None, 1_000):
                found += [collection.name for collection in page]
        return found

    def verify(self, collection: str, most: int = 100) -> Report:
        """Verify a collection as it is now, keeping ``most`` differences.

        Raises:
            NotFoundError: there is no such collection.
        """
        findings = _Findings(most)
        with self._database.snapshot() as reader:
            target = collections.find(reader, collection).id
            _events(reader, target, findings)
            _memories(reader, target, findings)
            _questions(reader, target, findings)
            for prior in history.priors(reader, target):
                _weights(reader, target, prior, self._prior, findings)
            rules = self._evolve.serving_rules(reader, target)
            for chunk in _pages(lambda after: key_log.keyed_passages(reader, target, after, CHUNK)):
                _credits(reader, target, chunk, findings)
                _expansion_memory(reader, target, chunk, self._capacity, findings)
                _evolved(reader, target, chunk, rules, findings)
            for table in ("memory_audit", "ranking_audit", "key_evidence"):
                for event, status in history.left_behind(reader, target, table, most):
                    findings.differs(table, f"event {event}", f"is {status}, and should have left nothing")
        checked = [Checked(table, findings.rows[table], findings.digests[table].hexdigest()) for table in TABLES]
        return Report(collection, checked, findings.kept, findings.count)


def _events(reader: Reader, collection_id: int, findings: _Findings) -> None:
    """What events left in the audit is what their verdicts speak of, and they taught the questions asked."""
    after = 0
    while page := history.events(reader, collection_id, after, EVENTS):
        after = page[-1].id
        spoken = {event.id: replay.targets_of(event.verdict, event.activated) for event in page}
        alive = history.existing(reader, collection_id, sorted({s for named in spoken.values() for s in named}))
        taught = {event.question_id for event in page if event.question_id is not None}
        questions = history.stored_questions(reader, collection_id, sorted(taught))
        for event in page:
            named = spoken[event.id]
            name = f"event {event.id}, sentence {{}}, {{}}"
            for row in event.audit:
                findings.seen("memory_audit", *_values(row))
                if named.get(row.sentence_id) != row.target:
                    text = name.format(row.sentence_id, row.channel)
                    findings.differs("memory_audit", text, "is not what the verdict says")
            for channel in ("task", "recall"):
                told = {row.sentence_id for row in event.audit if row.channel == channel}
                for sentence in sorted(named.keys() & alive - told):
                    findings.differs("memory_audit", name.format(sentence, channel), "is missing")
            question = None if event.question_id is None else questions.get(event.question_id)
            if question is None or question.text_hash != replay.question_hash(event.question):
                findings.differs("question", f"of event {event.id}", "is not the one that was asked")


def _memories(reader: Reader, collection_id: int, findings: _Findings) -> None:
    for chunk in _pages(lambda after: history.judged_sentences(reader, collection_id, after, CHUNK)):
        stored = {(m.sentence_id, m.channel): m for m in history.stored_memories(reader, collection_id, chunk)}
        for memory in stored.values():
            findings.seen("sentence_memory", *_values(memory))
        replayed: dict[tuple[int, str], Memory] = {}
        for done in replay.memories(reader, collection_id, chunk):
            replayed[done.state.sentence_id, done.state.channel] = done.state
            _correct(findings, done.corrected)
        findings.compare("sentence_memory", stored, replayed, "sentence {}, {}")


def _questions(reader: Reader, collection_id: int, findings: _Findings) -> None:
    for chunk in _pages(lambda after: history.question_ids(reader, collection_id, after, CHUNK)):
        stored = history.stored_questions(reader, collection_id, chunk)
        for row in stored.values():
            findings.seen("question", *_values(row))
        wanted = {
            question: StoredQuestion(question, replay.question_hash(first.text), first.text, first.embedding)
            for question, first in history.first_asked(reader, collection_id, chunk).items()
        }
        findings.compare("question", stored, wanted, "question {}")
        known = {(s.question_id, s.sentence_id): s for s in experience.supports_of(reader, collection_id, chunk)}
        for support in known.values():
            findings.seen("question_support", *_values(support))
        replayed: dict[tuple[int, int], Support] = {}
        for done in replay.supports(reader, collection_id, chunk):
            replayed[done.state.question_id, done.state.sentence_id] = done.state
            _correct(findings, done.corrected)
        findings.compare("question_support", known, replayed, "question {}, sentence {}")


def _correct(findings: _Findings, corrected: Sequence[Any]) -> None:
    for row in corrected:
        name = f"event {row.event_id}, sentence {row.sentence_id}, {row.channel}"
        findings.differs("memory_audit", name, "gain, residual or perplexities are not what a replay gives")


def _weights(reader: Reader, collection_id: int, prior: str, known: RankingPrior, findings: _Findings) -> None:
    stored = weights.find(reader, collection_id, prior)
    replayed = replay.belief(reader, collection_id, prior)
    for learned in () if stored is None else (stored,):
        findings.seen(
            "ranking_belief", prior, learned.evidence.information, learned.evidence.precision, learned.events
        )
    findings.compare(
        "ranking_belief",
        {} if stored is None else {prior: asdict(stored)},
        {} if replayed is None else {prior: asdict(replayed)},
        "prior {}",
    )
    after, counts = 0, Counter[tuple[str, str]]()
    while page := history.terms(reader, collection_id, prior, after, CHUNK):
        after = page[-1].sequence
        spoken = {term.event_id: replay.targets_of(term.verdict, term.activated) for term in page}
        holders = passages.sentences_by_id(
            reader, collection_id, sorted({sentence for named in spoken.values() for sentence in named})
        )
        for term in page:
            evidence = term.evidence
            findings.seen(
                "ranking_audit", term.event_id, prior, term.noise, evidence.information, evidence.precision
            )
            counts_now = caps.counted([term.cap], counts[term.judge, term.day])[0]
            counts[term.judge, term.day] += counts_now
            if counts_now != term.counted:
                findings.differs("ranking_audit", f"event {term.event_id}", f"counted is {term.counted}")
            named = spoken[term.event_id]
            # A term can be made anew as long as its prior is at hand and all it speaks of is still there.
            if prior == known.name and named.keys() <= holders.keys():
                pairs = [(holders[sentence].passage_id, target) for sentence, target in named.items()]
                if not _same_term(term, pairs, known):
                    findings.differs("ranking_audit", f"event {term.event_id}", "is not what the verdict says")


def _same_term(term: Term, named: Sequence[tuple[int, int]], known: RankingPrior) -> bool:
    if term.ranked is None or term.features is None:
        return False
    seen = replay.observation(
        term.ranked,
        term.features,
        named,
        term.verdict,
        prior=known.prior,
        noise=term.noise,
    )
    return seen is not None and _near(term.evidence, seen.evidence)


def _near(one: Evidence, other: Evidence) -> bool:
    scale = TOLERANCE * max(1.0, float(np.abs(other.precision).max()))
    return np.allclose(one.information, other.information, rtol=TOLERANCE, atol=scale) and np.allclose(
        one.precision, other.precision, rtol=TOLERANCE, atol=scale
    )


def _credits(reader: Reader, collection_id: int, chunk: Sequence[int], findings: _Findings) -> None:
    stored = {(c.event_id, c.passage_id, c.unit_id): c for c in key_log.credits(reader, collection_id, chunk)}
    for credit in stored.values():
        findings.seen("key_credit", *_values(credit))
    pairs = keys.pairs(reader, collection_id, chunk)
    bases = {passage: base.vector for passage, base in keys.base_keys(reader, collection_id, chunk).items()}
    units = keys.embeddings(reader, collection_id, sorted({pair.unit_id for pair in pairs}))
    said = key_log.expansions(reader, collection_id, sorted({pair.event_id for pair in pairs}))
    brought = {
        event: {text_hash(expansion["text"]) for expansion in expansions} for event, expansions in said.items()
    }
    hashes = key_log.text_hashes(reader, collection_id, sorted(units))
    for credit in replay.credits(pairs, bases, units):
        held = stored[credit.event_id, credit.passage_id, credit.unit_id]
        row = f"event {credit.event_id}, passage {credit.passage_id}, unit {credit.unit_id}"
        if hashes[credit.unit_id] not in brought.get(credit.event_id, set()):
            findings.differs("key_credit", row, "the verdict did not bring the unit")
        elif not _near_credit(held, credit):
            findings.differs("key_credit", row, f"{_columns(held, credit)}")


def _near_credit(held: Credit, replayed: Credit) -> bool:
    return abs(held.gain - replayed.gain) <= TOLERANCE and abs(held.weight - replayed.weight) <= TOLERANCE


def _expansion_memory(
    reader: Reader, collection_id: int, chunk: Sequence[int], capacity: int, findings: _Findings
) -> None:
    stored = {(row[0], row[1]): row[2] for row in sorted(keys.memory(reader, collection_id, chunk))}
    for (passage, unit), score in stored.items():
        findings.seen("expansion_memory", passage, unit, score)
    best = {(row[0], row[1]): row[2] for row in keys.best(reader, collection_id, chunk, capacity)}
    findings.compare("expansion_memory", _scores(stored), _scores(best), "passage {}, unit {}")


def _scores(rows: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], dict[str, float]]:
    return {key: {"score": score} for key, score in rows.items()}


def _evolved(
    reader: Reader, collection_id: int, chunk: Sequence[int], rules: KeyRules, findings: _Findings
) -> None:
    stored = {key.passage_id: key for key in key_log.evolved(reader, collection_id, chunk)}
    for key in stored.values():
        findings.seen("passage_key", key.passage_id, key.generation, key.vector, list(key.units), list(key.scores))
    standing = keys.standing(reader, collection_id, chunk, rules.units)
    units = sorted({scored.unit_id for scored in standing})
    bases = keys.base_keys(reader, collection_id, chunk)
    composed = replay.evolved_keys(
        standing,
        bases,
        keys.embeddings(reader, collection_id, units),
        keys.frequencies(reader, collection_id, units),
        rules,
    )
    findings.compare("passage_key", _shown(stored.values()), _shown(composed), "passage {}")
    postings = _by_term(key_log.postings(reader, collection_id, chunk))
    for posting in postings.values():
        findings.seen("evolved_posting", *_values(posting))
    raised = _by_term(posting for key in composed for posting in keys.postings(key, bases[key.passage_id]))
    findings.compare("evolved_posting", postings, raised, "passage {}, term {!r}")


def _shown(found: Any) -> dict[int, dict[str, object]]:
    columns = ("generation", "vector", "units", "scores")
    evolved: Sequence[EvolvedKey] = list(found)
    return {key.passage_id: {name: getattr(key, name) for name in columns} for key in evolved}


def _by_term(found: Any) -> dict[tuple[int, str], Posting]:
    return {(posting.passage_id, posting.term): posting for posting in found}


def _pages(read: Any) -> Iterator[list[int]]:
    """Pages of ids, until there are no more."""
    after = 0
    while page := read(after):
        yield page
        after = page[-1]


def _values(row: Any) -> list[object]:
    return list(_named(row).values())


def _named(row: Any) -> dict[str, object]:
    return row if isinstance(row, dict) else {name: getattr(row, name) for name in row.__slots__}


def _columns(stored: object, replayed: object) -> str:
    """Which columns differ, with their values where these are short; empty if none does."""
    wrong = []
    wanted = _named(replayed)
    for name, value in _named(stored).items():
        if _bytes(value) != _bytes(wanted[name]):
            short = all(isinstance(v, int | float | str) for v in (value, wanted[name]))
            wrong.append(f"{name} is {value!r}, replayed {wanted[name]!r}" if short else f"{name} differs")
    return "; ".join(wrong)


def _bytes(value: object) -> bytes:
    """A value to the last bit, with its kind, so that no two rows run together."""
    match value:
        case bool():
            packed = b"?" + bytes([value])
        case int():
            packed = b"i" + struct.pack("<q", value)
        case float():
            packed = b"d" + struct.pack("<d", value)
        case bytes():
            packed = b"b" + struct.pack("<q", len(value)) + value
        case str():
            packed = _bytes(value.encode())
        case np.ndarray():
            packed = _bytes(np.ascontiguousarray(value).tobytes())
        case dict():
            packed = _bytes(list(value.values()))
        case Pulled():
            packed = _bytes([value.day, value.kept])
        case list() | tuple():
            packed = b"[" + struct.pack("<q", len(value)) + b"".join(map(_bytes, value))
        case _:
            raise TypeError(f"a {type(value).__name__} is no value of a row")
    return packed
