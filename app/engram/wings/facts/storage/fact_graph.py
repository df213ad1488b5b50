"""Writing the graph of facts: entities, facts and their sources, and the graphs that hold them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engram.storage.column_parameters import floats, integers
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, join_by_index
from engram.wings.facts.core.alignment import ends
from engram.wings.facts.core.claims import ALWAYS, NEVER

OWN_GRAPH = 0
"""The collection's own graph."""


@dataclass(frozen=True, slots=True)
class SourcedFact:
    """A fact that somebody says, with the statement that says it.

    Attributes:
        subject, object: (normalised name, name as written); of an object that is no entity, its key and its text.
        kind: of the object: entity, date, number or text.
        positive, negative, process_noise: by which it counts.
    """

    subject: tuple[str, str]
    predicate: str
    object: tuple[str, str]
    kind: str
    confidence: float
    positive: float
    negative: float
    process_noise: float
    statement_id: int | None = None
    passage_id: int | None = None
    valid_from: int = ALWAYS
    valid_to: int = NEVER


def lock(writer: Writer, collection_id: int) -> None:
    """Serialise writers of a collection's facts until the transaction ends.

    Taken after the collection's row, whether that is kept or locked.
    """
    writer.row("SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0))", {"name": f"facts:{collection_id}"})


def find_graph(reader: Reader, collection_id: int, name: str) -> int | None:
    """The graph of this name."""
    graph_id: int | None = reader.scalar(
        "SELECT id FROM fact_graph WHERE collection_id = %(collection)s AND name = %(name)s",
        {"collection": collection_id, "name": name},
    )
    return graph_id


def open_graph(writer: Writer, collection_id: int, name: str) -> int:
    """The graph of this name, made if there is none; called under the lock."""
    graph_id = find_graph(writer, collection_id, name)
    if graph_id is None:
        graph_id = writer.scalar(
            "INSERT INTO fact_graph (collection_id, name) VALUES (%(collection)s, %(name)s) RETURNING id",
            {"collection": collection_id, "name": name},
        )
    assert graph_id is not None  # noqa: S101  (a row was inserted)
    return graph_id


def put(writer: Writer, collection_id: int, graph_id: int, facts: Sequence[SourcedFact]) -> list[int]:
    """Make the facts that are not there yet, of entities that are; the fact of each, in the given order."""
    parameters = {
        "collection": collection_id,
        "graph": graph_id,
        "subjects": [row.subject[0] for row in facts],
        "predicates": [row.predicate for row in facts],
        "objects": [row.object[0] if row.kind == "entity" else None for row in facts],
        "texts": [row.object[1] for row in facts],
        "keys": ["" if row.kind == "entity" else row.object[0] for row in facts],
        "kinds": [row.kind for row in facts],
        "starts": integers(row.valid_from for row in facts),
        "ends": integers(row.valid_to for row in facts),
    }
    entity = join_by_index("fact_entity {0}", "{0}.graph_id = %(graph)s AND {0}.name = said.{1}")
    named = f"""
        SELECT said.n, s.id AS named_subject_id, coalesce(s.stands_for, s.id) AS subject_id, said.predicate,
               coalesce(o.id, 0) AS named_object_id, coalesce(o.stands_for, o.id, 0) AS object_id,
               said.object_text, said.object_key, said.object_kind, said.valid_from::int, said.valid_to::int
        FROM unnest(%(subjects)s::text[], %(predicates)s::text[], %(objects)s::text[], %(texts)s::text[],
                    %(keys)s::text[], %(kinds)s::text[], %(starts)s::bigint[], %(ends)s::bigint[])
            WITH ORDINALITY AS said(subject, predicate, object, object_text, object_key, object_kind, valid_from,
                                    valid_to, n)
        {entity.format("s", "subject")}
        {entity.format("o", "object").replace("INNER JOIN", "LEFT JOIN")}
    """
    writer.execute(
        f"""
        INSERT INTO fact (collection_id, graph_id, named_subject_id, subject_id, predicate, named_object_id,
                          object_id, object_text, object_key, object_kind, valid_from, valid_to)
        SELECT %(collection)s, %(graph)s, named_subject_id, subject_id, predicate, named_object_id, object_id,
               object_text, object_key, object_kind, valid_from, valid_to
        FROM ({named}) AS named ORDER BY n
        ON CONFLICT DO NOTHING
        """,
        parameters,
    )
    conflict = """
        f.named_subject_id = named.named_subject_id AND f.predicate = named.predicate
        AND f.named_object_id = named.named_object_id AND f.object_key = named.object_key
        AND f.valid_from = named.valid_from AND f.valid_to = named.valid_to
    """
    rows = writer.rows(
        f"SELECT f.id FROM ({named}) AS named {join_by_index('fact f', conflict)} ORDER BY named.n", parameters
    )
    return [row.id for row in rows]


def put_entities(writer: Writer, collection_id: int, graph_id: int, facts: Sequence[SourcedFact]) -> dict[int, str]:
    """Make the entities of these facts that are not there yet: their names by their ids."""
    surfaces: dict[str, str] = {}
    for row in facts:
        surfaces.setdefault(*row.subject)
        if row.kind == "entity":
            surfaces.setdefault(*row.object)
    names = sorted(surfaces)
    rows = writer.rows(
        """
        INSERT INTO fact_entity (collection_id, graph_id, name, bare, tail, surface)
        SELECT %(collection)s, %(graph)s, row.*
        FROM unnest(%(names)s::text[], %(bare)s::text[], %(tails)s::text[], %(surfaces)s::text[]) AS row
        ON CONFLICT DO NOTHING RETURNING id, name
        """,
        {
            "collection": collection_id,
            "graph": graph_id,
            "names": names,
            "bare": [drop_brackets(name) for name in names],
            "tails": [ends(name)[1] for name in names],
            "surfaces": [surfaces[name] for name in names],
        },
    )
    return {row.id: row.name for row in rows}


def reserve_places(writer: Writer, number: int) -> list[int]:
    """Return the next places in the order of observations."""
    rows = writer.rows("SELECT nextval('fact_said') AS at FROM generate_series(1, %(n)s)", {"n": number})
    return [row.at for row in rows]


def add_sources(
    writer: Writer,
    collection_id: int,
    facts: Sequence[int],
    sourced_facts: Sequence[SourcedFact],
    places: Sequence[int] | None = None,
) -> None:
    """Record who says these facts, in the given order; who said one already says nothing new.

    Args:
        places: where they come in the order of all that is said; by default after all.
    """
    drawn = "coalesce(row.place, nextval('fact_said'))"
    if writer.distributed:  # no node can draw it
        drawn = "row.place"
        places = reserve_places(writer, len(sourced_facts)) if places is None else places
    writer.execute(
        f"""
        INSERT INTO fact_source (collection_id, fact_id, passage_id, statement_id, confidence,
                                 sequence, observation_noise_positive, observation_noise_negative, process_noise)
        SELECT %(collection)s, row.fact, row.passage, row.statement, row.confidence,
               {drawn}, row.positive, row.negative, row.process
        FROM (
            SELECT DISTINCT ON (fact, statement) * FROM unnest(
                %(facts)s::bigint[], %(passages)s::bigint[], %(statements)s::bigint[], %(confidences)s::float8[],
                %(positives)s::float8[], %(negatives)s::float8[], %(processes)s::float8[], %(places)s::bigint[]
            ) WITH ORDINALITY AS row(fact, passage, statement, confidence, positive, negative, process, place, n)
            ORDER BY fact, statement, n
        ) AS row
        WHERE (SELECT held.id FROM fact_source held
               WHERE held.collection_id = %(collection)s AND held.fact_id = row.fact
                 AND held.statement_id = row.statement LIMIT 1) IS NULL
        ORDER BY row.n
        """,
        {
            "collection": collection_id,
            "facts": integers(facts),
            "passages": [row.passage_id for row in sourced_facts],
            "statements": [row.statement_id for row in sourced_facts],
            "confidences": floats(row.confidence for row in sourced_facts),
            "positives": floats(row.positive for row in sourced_facts),
            "negatives": floats(row.negative for row in sourced_facts),
            "processes": floats(row.process_noise for row in sourced_facts),
            "places": [None] * len(sourced_facts) if places is None else list(places),
        },
    )


def statements_of_passage(reader: Reader, collection_id: int, passage_id: int) -> list[int]:
    """The sentences that were stated with a passage for their source."""
    rows = reader.rows(
        """
        SELECT statement_id FROM fact_source
        WHERE collection_id = %(collection)s AND passage_id = %(passage)s
        """,
        {"collection": collection_id, "passage": passage_id},
    )
    return sorted({row.statement_id for row in rows})


def list_stated_facts(reader: Reader, collection_id: int, statements: Iterable[int]) -> list[int]:
    """The facts that these statements say."""
    # Every source has a confidence above 0; but the index of all facts with their sources does not hold it, so that
    # to read that one alone cannot seem cheaper than the one of statements.
    rows = reader.rows(
        f"""
        SELECT DISTINCT held.fact_id
        FROM {WANTED_IDS}
        {join_by_index("fact_source held", "held.statement_id = wanted.id AND held.confidence > 0")}
        """,
        {"collection": collection_id, "ids": list(statements)},
    )
    return [row.fact_id for row in rows]


def remove_unsaid(writer: Writer, collection_id: int, facts: Iterable[int]) -> list[int]:
    """Remove those of these facts that nobody says any more, and entities that no fact names then; who went."""
    rows = writer.rows(
        f"""
        DELETE FROM fact f USING {WANTED_IDS} WHERE f.collection_id = wanted.collection_id AND f.id = wanted.id
          AND (SELECT held.id FROM fact_source held
               WHERE held.collection_id = f.collection_id AND held.fact_id = f.id LIMIT 1) IS NULL
        RETURNING f.id, f.named_subject_id, f.named_object_id, f.subject_id, f.object_id
        """,
        {"collection": collection_id, "ids": sorted(set(facts))},
    )
    named = {
        entity
        for row in rows
        for entity in (row.named_subject_id, row.named_object_id, row.subject_id, row.object_id)
    }
    _remove_unnamed(writer, collection_id, named)
    return [row.id for row in rows]


def _remove_unnamed(writer: Writer, collection_id: int, entities: Iterable[int]) -> None:
    """Remove entities that no fact names, nor means by another's name."""
    unnamed = """
        (SELECT f.id FROM fact f WHERE f.collection_id = e.collection_id AND f.{0} = e.id LIMIT 1) IS NULL
    """
    ids = sorted(set(entities) - {0})
    if not ids:
        return
    writer.execute(
        f"""
        DELETE FROM fact_entity e USING {WANTED_IDS}
        WHERE e.collection_id = wanted.collection_id AND e.id = wanted.id
          AND {unnamed.format("subject_id")} AND {unnamed.format("object_id")}
          AND {unnamed.format("named_subject_id")} AND {unnamed.format("named_object_id")}
        """,
        {"collection": collection_id, "ids": ids},
    )


def drop_brackets(name: str) -> str:
    """A normalised name without what is added in brackets: of "green (album)" it is "green"."""
    match = re.fullmatch(r"(.*\S)\s*\([^()]*\)", name)
    return match[1] if match else name
