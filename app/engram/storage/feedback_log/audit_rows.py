"""Audit rows as the log keeps them: what each event did to each state."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from engram.core.filter.states import Audit, measure_likeness
from engram.core.ranking.weight_beliefs import WeightEvidence
from engram.storage.database import Reader
from engram.storage.row_lookups import WANTED_IDS, join_by_index

AUDIT_COLUMNS = """
    audit.event_id, audit.sentence_id, audit.channel, audit.target, audit.observation_noise, audit.gain,
    audit.residual, audit.perplexity_before, audit.perplexity_after, audit.process_noise,
    audit.revision, s.revision_likeness
"""
"""Of ``memory_audit audit`` and its ``sentence s``, what ``audit_of`` takes."""


def audit_of(row: Any) -> Audit:
    """The audit row that a row of ``AUDIT_COLUMNS`` is."""
    return Audit(
        event_id=row.event_id,
        sentence_id=row.sentence_id,
        channel=row.channel,
        target=row.target,
        observation_noise=row.observation_noise,
        gain=row.gain,
        residual=row.residual,
        perplexity_before=row.perplexity_before,
        perplexity_after=row.perplexity_after,
        process_noise=row.process_noise,
        revision=row.revision,
        likeness=measure_likeness(row.revision_likeness or (), row.revision),
    )


def read_evidence(row: Any) -> WeightEvidence:
    """The term that a row of ``weight_audit`` holds."""
    return WeightEvidence(np.array(row.information), np.array(row.precision).reshape(len(row.information), -1))


def read(reader: Reader, collection_id: int, events: Sequence[int]) -> dict[int, list[Audit]]:
    """Load the audits of events: event -> audits in order of sentence and channel."""
    rows = reader.rows(
        f"""
        SELECT {AUDIT_COLUMNS} FROM {WANTED_IDS} {join_by_index("memory_audit audit", "audit.event_id = wanted.id")}
        {join_by_index("sentence s", "s.id = audit.sentence_id", outer=True)}
        ORDER BY audit.event_id, audit.sentence_id, audit.channel
        """,
        {"collection": collection_id, "ids": list(events)},
    )
    audits: dict[int, list[Audit]] = {event: [] for event in events}
    for row in rows:
        audits[row.event_id].append(audit_of(row))
    return audits
