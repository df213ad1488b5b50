"""Audit rows as the log keeps them: what each event did to each state."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from engram.core.learning.states import Audit, AuditRows, measure_likeness
from engram.core.ranking.weight_beliefs import WeightEvidence
from engram.storage.column_parameters import Numbers, floats, integers
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, alias_rows, id_rows, join_by_index

AUDIT_COLUMNS = """
    audit.event_id, audit.sentence_id, audit.channel, audit.target, audit.observation_noise, audit.gain,
    audit.residual, audit.perplexity_before, audit.perplexity_after, audit.process_noise,
    audit.revision, s.revision_likeness
"""
"""Of ``memory_audit audit`` and its ``sentence s``, what ``audit_of`` takes."""


CHANNEL_NAME = "(ARRAY['task', 'time', 'recall'])[{} + 1]"
"""A channel by its place in ``AUDITED``: a name for each of thousands of rows takes longer to send."""


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


def record(writer: Writer, collection_id: int, rows: AuditRows) -> None:
    """Write audit rows, in the transaction of the change they explain."""
    # In the order of their key, of which each row then goes to the page of the one before it.
    order = np.lexsort((rows.channels, rows.sentence_ids, rows.event_ids))
    writer.execute(
        f"""
        INSERT INTO memory_audit (collection_id, event_id, sentence_id, channel, target, observation_noise,
                                  gain, residual, perplexity_before, perplexity_after, process_noise, revision)
        SELECT %(collection)s, row.event_id, row.sentence_id, {CHANNEL_NAME.format("row.channel")}, row.target,
               row.noise, row.gain, row.residual, row.before, row.after, row.process, row.revision
        FROM unnest(
            %(events)s::bigint[], %(sentences)s::bigint[], %(channels)s::bigint[], %(targets)s::bigint[],
            %(noises)s::float8[], %(gains)s::float8[], %(residuals)s::float8[], %(before)s::float8[],
            %(after)s::float8[], %(process)s::float8[], %(revisions)s::bigint[]
        ) AS row(event_id, sentence_id, channel, target, noise, gain, residual, before, after, process, revision)
        """,
        {
            "collection": collection_id,
            "events": Numbers(rows.event_ids[order]),
            "sentences": Numbers(rows.sentence_ids[order]),
            "channels": Numbers(rows.channels[order]),
            "targets": Numbers(rows.targets[order]),
            "noises": Numbers(rows.observation_noise[order]),
            "gains": Numbers(rows.gains[order]),
            "residuals": Numbers(rows.residuals[order]),
            "before": Numbers(rows.perplexities_before[order]),
            "after": Numbers(rows.perplexities_after[order]),
            "process": Numbers(rows.process_noise[order]),
            "revisions": Numbers(rows.revisions[order]),
        },
    )


def rewrite(writer: Writer, collection_id: int, rows: Sequence[Audit]) -> None:
    """Write what events do to their states now that another event is revoked; their rows are there already."""
    new = alias_rows(
        """
        unnest(
            %(events)s::bigint[], %(sentences)s::bigint[], %(channels)s::text[], %(gains)s::float8[],
            %(residuals)s::float8[], %(before)s::float8[], %(after)s::float8[]
        ) AS given(event_id, sentence_id, channel, gain, residual, perplexity_before, perplexity_after)
        """
    )
    writer.execute(
        f"""
        UPDATE memory_audit SET gain = new.gain, residual = new.residual,
            perplexity_before = new.perplexity_before, perplexity_after = new.perplexity_after
        FROM {new}
        WHERE memory_audit.collection_id = new.collection_id AND memory_audit.event_id = new.event_id
          AND memory_audit.sentence_id = new.sentence_id AND memory_audit.channel = new.channel
        """,
        {
            "collection": collection_id,
            "events": integers(row.event_id for row in rows),
            "sentences": integers(row.sentence_id for row in rows),
            "channels": [row.channel for row in rows],
            "gains": floats(row.gain for row in rows),
            "residuals": floats(row.residual for row in rows),
            "before": floats(row.perplexity_before for row in rows),
            "after": floats(row.perplexity_after for row in rows),
        },
    )


def withdraw(writer: Writer, collection_id: int, events: Sequence[int], channels: Sequence[str]) -> list[int]:
    """Remove the events' audit rows of these channels; the sentences that they were of, in order."""
    rows = writer.rows(
        f"""
        DELETE FROM memory_audit audit USING {id_rows("events")}
        WHERE audit.collection_id = wanted.collection_id AND audit.event_id = wanted.id
          AND audit.channel = ANY(%(channels)s)
        RETURNING audit.sentence_id
        """,
        {"collection": collection_id, "events": list(events), "channels": list(channels)},
    )
    return sorted({row.sentence_id for row in rows})
