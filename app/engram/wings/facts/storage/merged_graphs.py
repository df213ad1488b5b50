"""Reading a graph of facts for another one that adopts it: sentences, and what judges said, each with its place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engram.storage.column_parameters import integers
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, join_by_index
from engram.wings.facts.storage.fact_graph import SourcedFact


@dataclass(frozen=True, slots=True)
class StatedSentence:
    """A sentence that somebody stated, with a fact that it says.

    Attributes:
        fact_id: in the graph that is adopted.
        sequence: its place among all that was said.
        statement_id: the sentence that was stated first, wherever that was.
        fact: the fact, without the sentence.
    """

    fact_id: int
    sequence: int
    statement_id: int
    source: str
    text: str
    fact: SourcedFact


@dataclass(frozen=True, slots=True)
class StatedEvent:
    """A judge's event on a fact: its id, its place, and the facts that it names in the graph adopted."""

    event_id: int
    sequence: int
    fact_id: int
    other_id: int | None


@dataclass(frozen=True, slots=True)
class NamedJoin:
    """A join of entities in the graph adopted, as names."""

    event_id: int
    judge: str
    joining: str
    staying: str


def list_next_facts(reader: Reader, collection_id: int, graph_id: int, after: int, limit: int) -> list[int]:
    """The next facts of a graph, in id order."""
    rows = reader.rows(
        """
        SELECT id FROM fact WHERE collection_id = %(collection)s AND graph_id = %(graph)s AND id > %(after)s
        ORDER BY id LIMIT %(limit)s
        """,
        {"collection": collection_id, "graph": graph_id, "after": after, "limit": limit},
    )
    return [row.id for row in rows]


def statements(reader: Reader, collection_id: int, facts: Sequence[int], into: int) -> list[StatedSentence]:
    """Return the statements of facts that graph ``into`` does not repeat yet."""
    rows = reader.rows(
        f"""
        SELECT f.id, held.sequence, coalesce(said.origin_id, said.id) AS statement_id, said.source, said.text,
               s.name AS subject, s.surface AS subject_surface, f.predicate, o.name AS object,
               o.surface AS object_surface, f.object_key, f.object_text, f.object_kind, f.valid_from, f.valid_to,
               held.confidence, held.observation_noise_positive AS positive,
               held.observation_noise_negative AS negative, held.process_noise, held.passage_id
        FROM {WANTED_IDS} {join_by_index("fact f", "f.id = wanted.id")}
        {join_by_index("fact_source held", "held.fact_id = f.id")}
        {join_by_index("fact_statement said", "said.id = held.statement_id")}
        {join_by_index("fact_entity s", "s.id = f.named_subject_id")}
        {join_by_index("fact_entity o", "o.id = f.named_object_id", outer=True)}
        WHERE held.withdrawn_by IS NULL AND NOT EXISTS (
            SELECT FROM fact_statement again {join_by_index("fact_event event", "event.id = again.event_id")}
            WHERE again.collection_id = %(collection)s AND event.graph_id = %(into)s
              AND again.origin_id = coalesce(said.origin_id, said.id) OFFSET 0
        )
        """,
        {"collection": collection_id, "ids": list(facts), "into": into},
    )
    return [
        StatedSentence(
            row.id,
            row.sequence,
            row.statement_id,
            row.source,
            row.text,
            SourcedFact(
                subject=(row.subject, row.subject_surface),
                predicate=row.predicate,
                object=(row.object_key, row.object_text)
                if row.object is None
                else (row.object, row.object_surface),
                kind=row.object_kind,
                confidence=row.confidence,
                positive=row.positive,
                negative=row.negative,
                process_noise=row.process_noise,
                passage_id=row.passage_id,
                valid_from=row.valid_from,
                valid_to=row.valid_to,
            ),
        )
        for row in rows
    ]


def list_stated_events(reader: Reader, collection_id: int, facts: Sequence[int]) -> list[StatedEvent]:
    """Return the counting events of judges on facts."""
    rows = reader.rows(
        f"""
        SELECT e.id, e.sequence, e.fact_id, e.other_id FROM {WANTED_IDS}
        {join_by_index("fact_event e", "e.fact_id = wanted.id")}
        WHERE e.status = 'applied'
        """,
        {"collection": collection_id, "ids": list(facts)},
    )
    return [StatedEvent(row.id, row.sequence, row.fact_id, row.other_id) for row in rows]


def twins(reader: Reader, collection_id: int, facts: Sequence[int], into: int) -> dict[int, int]:
    """Fact -> the fact of graph ``into`` that says the same by the same names, of those that have one."""
    equal_facts = """
        f.named_subject_id = s2.id AND f.predicate = g.predicate AND f.named_object_id = coalesce(o2.id, 0)
        AND f.object_key = g.object_key AND f.valid_from = g.valid_from AND f.valid_to = g.valid_to
    """
    rows = reader.rows(
        f"""
        SELECT g.id, f.id AS twin FROM {WANTED_IDS} {join_by_index("fact g", "g.id = wanted.id")}
        {join_by_index("fact_entity s", "s.id = g.named_subject_id")}
        {join_by_index("fact_entity o", "o.id = g.named_object_id", outer=True)}
        {join_by_index("fact_entity s2", "s2.graph_id = %(into)s AND s2.name = s.name")}
        {join_by_index("fact_entity o2", "o2.graph_id = %(into)s AND o2.name = o.name", outer=True)}
        {join_by_index("fact f", equal_facts)}
        """,
        {"collection": collection_id, "ids": list(facts), "into": into},
    )
    return {row.id: row.twin for row in rows}


def list_joins(reader: Reader, collection_id: int, graph_id: int) -> list[NamedJoin]:
    """The joins of a graph that count, in their order; those whose names nothing says any more are left out."""
    rows = reader.rows(
        f"""
        SELECT e.id, e.judge, joining.name AS joining, staying.name AS staying
        FROM (
            SELECT id, judge, sequence, other_id, entity_id FROM fact_event
            WHERE collection_id = %(collection)s AND graph_id = %(graph)s AND kind = 'merge' AND status = 'applied'
        ) AS e
        {join_by_index("fact_entity joining", "joining.id = e.other_id")}
        {join_by_index("fact_entity staying", "staying.id = e.entity_id")}
        ORDER BY e.sequence
        """,
        {"collection": collection_id, "graph": graph_id},
    )
    return [NamedJoin(row.id, row.judge, row.joining, row.staying) for row in rows]


def repeat(
    writer: Writer,
    collection_id: int,
    adoption: int,
    graph_id: int,
    events: Mapping[int, int],
    facts: Mapping[int, int],
) -> None:
    """Have judges say in a graph what they said in another one, by the same noises.

    What a judge said of the same fact in this graph already is not said again.

    Args:
        adoption: the event that has it so.
        events: event -> its place here.
        facts: fact there -> fact here.
    """
    writer.execute(
        f"""
        WITH meant AS MATERIALIZED (
            SELECT * FROM unnest(%(there)s::bigint[], %(here)s::bigint[]) AS meant(there, here)
        )
        INSERT INTO fact_event (collection_id, graph_id, kind, judge, idempotency_key, body_hash, fact_id, other_id,
            valid_until, reason, part_of, origin_id, sequence, observation_noise_positive,
            observation_noise_negative, process_noise, daily_share, contested_share, standing)
        SELECT %(collection)s, %(graph)s, e.kind, e.judge, gen_random_uuid()::text, e.body_hash,
               named.here, other.here, e.valid_until, e.reason, %(adoption)s, coalesce(e.origin_id, e.id),
               row.place, e.observation_noise_positive, e.observation_noise_negative, e.process_noise,
               e.daily_share, e.contested_share, e.standing
        FROM unnest(%(events)s::bigint[], %(places)s::bigint[]) AS row(id, place)
        {join_by_index("fact_event e", "e.id = row.id")}
        JOIN meant AS named ON named.there = e.fact_id LEFT JOIN meant AS other ON other.there = e.other_id
        WHERE NOT EXISTS (
            SELECT FROM fact_event again WHERE again.collection_id = %(collection)s AND again.fact_id = named.here
              AND again.kind = e.kind AND again.status = 'applied'
              AND (again.judge = e.judge OR again.origin_id = coalesce(e.origin_id, e.id)) OFFSET 0
        )
        ORDER BY row.place
        """,
        {
            "collection": collection_id,
            "graph": graph_id,
            "adoption": adoption,
            "events": integers(events),
            "places": integers(events.values()),
            "there": integers(facts),
            "here": integers(facts.values()),
        },
    )


def parts(reader: Reader, collection_id: int, events: Sequence[int]) -> list[int]:
    """Return the events that came with these: parts of merges, and repetitions in other graphs."""
    rows = reader.rows(
        f"""
        SELECT e.id FROM {WANTED_IDS} {join_by_index("fact_event e", "e.part_of = wanted.id")}
        UNION SELECT e.id FROM {WANTED_IDS} {join_by_index("fact_event e", "e.origin_id = wanted.id")}
        """,
        {"collection": collection_id, "ids": list(events)},
    )
    return [row.id for row in rows]
