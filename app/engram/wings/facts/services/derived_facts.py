"""Facts in copies, and the proof that beliefs follow from their sources and from what was said of them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from engram.services.revocation.derived_state import DerivedState, Report
from engram.services.revocation.verification_findings import Findings, values
from engram.storage.database import Reader, Writer
from engram.storage.erasure.erased_log import Selection
from engram.storage.revocation.copied_rows import Copy
from engram.wings.facts.core.beliefs import Fact, replay
from engram.wings.facts.core.entity_joins import roots
from engram.wings.facts.services import fact_learning
from engram.wings.facts.storage import belief_groups, copied_facts, fact_events, joined_entities

CHUNK = 500
"""Facts that are compared at a time: bounds memory."""
COPIED_ROWS = 2_000
"""Facts of a copy that are replayed at a time."""


class DerivedFacts(DerivedState):
    """Beliefs of facts. They stay when verdicts are forgotten, and no time ends them."""

    verified_tables = ("fact_entity", "fact", "fact_audit")

    def copy(self, writer: Writer, copy: Copy, restored: Sequence[int], report: Report) -> bool:
        """Copy what was known of facts by then, apply the joins, and replay beliefs."""
        joined_entities.stand_for(writer, copy.target, roots(copied_facts.copy_facts(writer, copy)))
        after = 0
        while page := belief_groups.list_next(writer, copy.target, after, COPIED_ROWS):
            after = page[-1]
            fact_learning.settle(writer, copy.target, belief_groups.find_keys(writer, copy.target, page))
        return True

    def erase(
        self, writer: Writer, collection_id: int, selection: Selection, random_name: str
    ) -> Mapping[str, int]:
        """Take the person's name out of what they stated or judged of facts; beliefs stay as they are."""
        return {"fact_event": fact_events.rename_person(writer, collection_id, selection, random_name)}

    def verify(self, reader: Reader, collection_id: int, findings: Findings) -> None:
        """Replay every group of facts, and compare what is stored of them and of what moved them, to the bit."""
        _verify_joins(reader, collection_id, findings)
        _verify_beliefs(reader, collection_id, findings)


def _verify_beliefs(reader: Reader, collection_id: int, findings: Findings) -> None:
    after = 0
    while page := belief_groups.list_next(reader, collection_id, after, CHUNK):
        after = page[-1]
        facts, moves = replay(
            belief_groups.groups(reader, collection_id, belief_groups.find_keys(reader, collection_id, page))
        )
        stored = belief_groups.load_beliefs(reader, collection_id, page)
        audit = belief_groups.load_moves(reader, collection_id, page)
        for fact in stored.values():
            findings.add("fact", *(_normalise_value(value) for value in values(fact)))
        for move in audit.values():
            findings.add("fact_audit", *values(move))
        fact_ids = set(page)
        findings.compare(
            "fact",
            {fact: _row(state) for fact, state in stored.items()},
            {fact: _row(state) for fact, state in facts.items() if fact in fact_ids},
            "fact {}",
        )
        findings.compare(
            "fact_audit",
            audit,
            {(move.fact_id, move.sequence): move for move in moves if move.fact_id in fact_ids},
            "fact {}, word {}",
        )
        for fact_id in sorted(belief_groups.find_without_source(reader, collection_id, page)):
            findings.differs("fact", f"fact {fact_id}", "nobody says so")


def _verify_joins(reader: Reader, collection_id: int, findings: Findings) -> None:
    """Compare what entities stand for with the joins that count; those of which only the log knows are left out."""
    root_by_entity = joined_entities.load_joins(reader, collection_id)
    expected_roots = roots(joined_entities.list_counting_joins(reader, collection_id))
    stored_roots = joined_entities.find_existing(reader, collection_id, list(expected_roots))
    for entity, root in sorted(root_by_entity.items()):
        findings.add("fact_entity", entity, root)
    findings.compare(
        "fact_entity",
        {entity: {"stands_for": root} for entity, root in root_by_entity.items()},
        {entity: {"stands_for": root} for entity, root in expected_roots.items() if entity in stored_roots},
        "entity {}",
    )


def _row(state: Fact) -> dict[str, object]:
    return {name: _normalise_value(value) for name, value in asdict(state).items()}


def _normalise_value(value: object) -> object:
    """A value that a checksum takes: nothing is empty text, a moment is in UTC as ISO 8601 writes it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return "" if value is None else value
