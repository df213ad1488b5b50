"""Namesakes of a new name: entities that are called alike, with their facts."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from engram.storage.database import Reader
from engram.storage.row_lookups import WANTED_IDS, join_by_index
from engram.wings.facts.core.alignment import ALIAS_PREDICATE, ends

MOST_NAMESAKES = 64
"""Entities called alike that one new name is held against."""
FACTS_PER_ENTITY = 64
"""Facts of one entity and direction that say what it is and what is around it."""
CROWD = 20
"""Facts of an entity from which on it is nobody's neighbourhood: a country, an award."""


@dataclass(frozen=True, slots=True)
class NamePair:
    """A new name and an entity that it may mean; ``also`` where a fact says that this is another name of that."""

    mention: int
    node: int
    node_name: str
    also: bool


@dataclass(slots=True)
class KnownEntity:
    """Facts of an entity that tell it from namesakes.

    Attributes:
        objects_by_predicate: predicate -> objects.
        around: entities that it has facts with.
        told_in: passages and assertions that tell of it.
        statements: those whose facts name it.
    """

    surface: str
    root: int
    facts: int = 0
    objects_by_predicate: dict[str, set[Hashable]] = field(default_factory=lambda: defaultdict(set))
    around: set[int] = field(default_factory=set)
    told_in: set[tuple[str, int]] = field(default_factory=set)
    statements: set[int] = field(default_factory=set)


def pairs(reader: Reader, collection_id: int, names: Mapping[int, str]) -> list[NamePair]:
    """Return the namesakes of new names, by id: same last word, or an alias by a fact."""
    parts = {entity: ends(name) for entity, name in names.items()}
    other_names = "f.named_subject_id = wanted.id AND f.predicate = %(also)s AND f.named_object_id <> 0"
    rows = reader.rows(
        f"""
        WITH mention AS MATERIALIZED (
            SELECT row.id, e.graph_id, e.name, row.word
            FROM unnest(%(mentions)s::bigint[], %(words)s::text[]) AS row(id, word)
            {join_by_index("fact_entity e", "e.id = row.id")}
        )
        SELECT mention.id AS mention, v.id AS node, v.name, false AS also FROM mention CROSS JOIN LATERAL (
            SELECT v.id, v.name FROM fact_entity v
            WHERE v.collection_id = %(collection)s AND v.graph_id = mention.graph_id AND v.tail = mention.word
              AND v.id <> mention.id LIMIT %(alike)s
        ) AS v
        UNION SELECT other_name.id, v.id, v.name, true FROM (
            SELECT id FROM {WANTED_IDS} UNION SELECT f.named_object_id FROM {WANTED_IDS}
            {join_by_index("fact f", other_names)}
        ) AS other_name
        {join_by_index("fact f", "f.named_object_id = other_name.id")}
        {join_by_index("fact_entity v", "v.id = f.named_subject_id")} WHERE f.predicate = %(also)s
        ORDER BY 1, 2
        """,
        {
            "collection": collection_id,
            "ids": list(names),
            "mentions": [entity for entity, both in parts.items() for _ in dict.fromkeys(both)],
            "words": [word for both in parts.values() for word in dict.fromkeys(both)],
            "alike": MOST_NAMESAKES,
            "also": ALIAS_PREDICATE,
        },
    )
    return [NamePair(row.mention, row.node, row.name, row.also) for row in rows]


def load_known(reader: Reader, collection_id: int, entities: Sequence[int]) -> dict[int, KnownEntity]:
    """Return the facts of entities; only some for an entity with very many."""
    along = """
        SELECT f.* FROM fact f WHERE f.collection_id = %(collection)s AND f.{0} = wanted.id LIMIT %(told)s
    """
    crowd = """
        (SELECT count(*) FROM (SELECT FROM fact n WHERE n.collection_id = %(collection)s AND n.object_id = {0}
                               LIMIT %(crowd)s) AS n)
    """
    rows = reader.rows(
        f"""
        SELECT e.id, e.surface, coalesce(e.stands_for, e.id) AS root, f.predicate, f.object_key, f.object_id,
               f.subject_id, f.named_subject_id = e.id AS outwards, told.passage_id, told.event_id,
               told.statement_id,
               {crowd.format("CASE WHEN f.named_subject_id = e.id THEN f.object_id ELSE f.subject_id END")} AS crowd
        FROM {WANTED_IDS} {join_by_index("fact_entity e", "e.id = wanted.id")}
        LEFT JOIN LATERAL (
            ({along.format("named_subject_id")}) UNION ALL ({along.format("named_object_id")})
        ) AS f ON true
        LEFT JOIN LATERAL (
            SELECT held.passage_id, said.event_id, held.statement_id FROM fact_source held
            {join_by_index("fact_statement said", "said.id = held.statement_id")}
            WHERE held.collection_id = %(collection)s AND held.fact_id = f.id LIMIT 1
        ) AS told ON true
        """,
        {"collection": collection_id, "ids": list(entities), "told": FACTS_PER_ENTITY, "crowd": CROWD},
    )
    known_entities: dict[int, KnownEntity] = {}
    for row in rows:
        one = known_entities.setdefault(row.id, KnownEntity(row.surface, row.root))
        if row.predicate is None:
            continue
        one.facts += 1
        if row.outwards:
            one.objects_by_predicate[row.predicate].add(row.object_id or row.object_key)
        other = row.object_id if row.outwards else row.subject_id
        if other and row.predicate != ALIAS_PREDICATE and row.crowd < CROWD:
            one.around.add(other)
        if row.passage_id is not None:
            one.told_in.add(("passage", row.passage_id))
        else:
            one.told_in.add(("assertion", row.event_id))
        one.statements.add(row.statement_id)
    return known_entities
