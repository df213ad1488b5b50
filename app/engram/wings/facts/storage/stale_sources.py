"""Sources that are withdrawn, because their passage was changed and does not state the fact any more.

What the passage said in the past stays known, and is deleted with the passage.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import uuid4

from engram.storage.column_parameters import integers
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, join_by_index
from engram.wings.facts.core.beliefs import SOURCE_NOISE
from engram.wings.facts.storage import fact_events
from engram.wings.facts.storage.fact_events import NewFactEvent
from engram.wings.facts.storage.fact_graph import OWN_GRAPH

CHANGE = "change"
INGEST = "ingest"
"""Who says that a passage was changed."""


@dataclass(frozen=True, slots=True)
class StatedSource:
    """A statement that says a fact, with the passage that it came from."""

    id: int
    fact_id: int
    passage_id: int
    text: str


def list_stated(reader: Reader, collection_id: int, passages: Sequence[int]) -> list[StatedSource]:
    """Return the counting statements whose source is one of these passages, in any graph."""
    rows = reader.rows(
        f"""
        SELECT held.id, held.fact_id, held.passage_id, told.text
        FROM {WANTED_IDS}
        {join_by_index("fact_source held", "held.passage_id = wanted.id AND held.withdrawn_by IS NULL")}
        {join_by_index("fact_statement told", "told.id = held.statement_id")}
        ORDER BY held.sequence
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    return [StatedSource(**row._asdict()) for row in rows]


def withdraw(writer: Writer, collection_id: int, sources: Sequence[StatedSource]) -> set[int]:
    """Withdraw these sources by one event.

    Returns:
        The facts that the sources stated.
    """
    event = fact_events.append(
        writer,
        collection_id,
        NewFactEvent(
            graph_id=OWN_GRAPH,
            kind=CHANGE,
            judge=INGEST,
            principal=INGEST,
            idempotency_key=uuid4().hex,
            body_hash=b"",
            positive=SOURCE_NOISE,
            negative=SOURCE_NOISE,
            process_noise=0.0,
            share=1.0,
            contested_share=1.0,
            standing=1.0,
        ),
    )
    writer.execute(
        f"""
        UPDATE fact_source s SET withdrawn_by = %(event)s FROM {WANTED_IDS}
        WHERE s.collection_id = wanted.collection_id AND s.id = wanted.id
        """,
        {"collection": collection_id, "event": event.id, "ids": integers(one.id for one in sources)},
    )
    return {one.fact_id for one in sources}


def restore(writer: Writer, collection_id: int, event_ids: Iterable[int]) -> set[int]:
    """Restore the sources that these events withdrew; return the facts that they state."""
    rows = writer.rows(
        f"""
        UPDATE fact_source s SET withdrawn_by = NULL FROM {WANTED_IDS}
        WHERE s.collection_id = wanted.collection_id AND s.withdrawn_by = wanted.id RETURNING s.fact_id
        """,
        {"collection": collection_id, "ids": sorted(set(event_ids))},
    )
    return {row.fact_id for row in rows}
