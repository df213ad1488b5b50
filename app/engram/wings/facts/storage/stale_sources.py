"""Sources that are withdrawn, because their passage was changed and does not state the fact any more.

Their sentences are kept with the event of the change, as long as the passage exists: what the passage said in the
past stays known, and is deleted with the passage.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import uuid4

from engram.storage.column_parameters import integers
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, alias_rows, join_by_index
from engram.wings.facts.core.beliefs import SOURCE_NOISE
from engram.wings.facts.storage import fact_events
from engram.wings.facts.storage.fact_events import NewFactEvent
from engram.wings.facts.storage.fact_graph import OWN_GRAPH

CHANGE = "change"
INGEST = "ingest"
"""Who says that a passage was changed."""


@dataclass(frozen=True, slots=True)
class StatedSource:
    """A source that says a fact, with its sentence; ``statement_id`` is None if that is one of the passage's own.

    ``passage`` is the passage's name.
    """

    id: int
    fact_id: int
    passage_id: int
    passage: str
    sentence_id: int | None
    statement_id: int | None
    text: str


_SENTENCE_JOIN = join_by_index("sentence told", "told.id = held.sentence_id")
_STATEMENT_JOIN = join_by_index("fact_statement told", "told.id = held.statement_id")


def list_by_sentence(reader: Reader, collection_id: int, sentences: Sequence[int]) -> list[StatedSource]:
    """Return the sources that are these sentences."""
    return _list_sources(reader, collection_id, "held.sentence_id = wanted.id", _SENTENCE_JOIN, sentences)


def list_by_source(reader: Reader, collection_id: int, sources: Iterable[int]) -> list[StatedSource]:
    """Return these sources with their sentences; a source that is no sentence of a passage is left out."""
    return _list_sources(reader, collection_id, "held.id = wanted.id", _SENTENCE_JOIN, sorted(sources))


def list_stated(reader: Reader, collection_id: int, passages: Sequence[int]) -> list[StatedSource]:
    """Return the counting statements whose source is one of these passages, in any graph."""
    condition = "held.passage_id = wanted.id AND num_nonnulls(held.statement_id) = 1 AND held.withdrawn_by IS NULL"
    return _list_sources(reader, collection_id, condition, _STATEMENT_JOIN, passages)


def _list_sources(
    reader: Reader, collection_id: int, source_condition: str, text_join: str, ids: Sequence[int]
) -> list[StatedSource]:
    """Return the sources that ``source_condition`` finds for the ids, with the text that ``text_join`` finds.

    Args:
        source_condition: on ``held``, a source, and ``wanted.id``, one of the ids.
        text_join: SQL that joins ``told``, the sentence or statement, to ``held``.
    """
    if not ids:
        return []
    rows = reader.rows(
        f"""
        SELECT held.id, held.fact_id, held.passage_id, p.external_id AS passage, held.sentence_id,
               held.statement_id, told.text
        FROM {WANTED_IDS} {join_by_index("fact_source held", source_condition)}
        {join_by_index("passage p", "p.id = held.passage_id")} {text_join}
        ORDER BY held.sequence
        """,
        {"collection": collection_id, "ids": list(ids)},
    )
    return [StatedSource(**row._asdict()) for row in rows]


def withdraw(writer: Writer, collection_id: int, sources: Sequence[StatedSource]) -> set[int]:
    """Withdraw these sources by one event, which keeps the sentences that their passages lose.

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
    own = {one.sentence_id: (one.passage, one.text) for one in sources if one.sentence_id is not None}
    remaining = dict(
        zip(own, fact_events.add_statements(writer, collection_id, event.id, list(own.values())), strict=True)
    )
    writer.execute(
        f"""
        UPDATE fact_source SET sentence_id = NULL, statement_id = new.statement, withdrawn_by = %(event)s
        FROM {alias_rows("unnest(%(ids)s::bigint[], %(statements)s::bigint[]) AS row(id, statement)")}
        WHERE fact_source.collection_id = new.collection_id AND fact_source.id = new.id
        """,
        {
            "collection": collection_id,
            "event": event.id,
            "ids": integers(one.id for one in sources),
            "statements": [
                one.statement_id if one.sentence_id is None else remaining[one.sentence_id] for one in sources
            ],
        },
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
