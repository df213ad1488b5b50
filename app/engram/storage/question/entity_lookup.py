"""The entities that a question's names are aligned to: by name, by spelling, or by embedding.

Embeddings have unit length, so the negative inner product ``<#>`` is minus the cosine and costs less.
"""

from collections.abc import Sequence

from engram.core.text.spelling import normalise_spelling
from engram.storage.corpus.collections import Collection
from engram.storage.database import Reader
from engram.storage.question.nearest_neighbours import nearness
from engram.storage.question.query_focus import GraphLimits, Vector
from engram.storage.row_lookups import LAST_CHARACTER, join_by_index
from engram.storage.written_names import WRITTEN_NAME

SENTENCES_PER_PASSAGE = 20
"""Sentences per passage that are read to count the passages that name an entity; titles are named in each."""
PREFIXED_NAMES = 500
"""Names with a prefix that are looked at, in their order, hidden ones too: a prefix of two letters has too many."""
COUNTED_SENTENCES = 100
COMPARED_ENTITIES = 500_000
"""Entities that a name is compared with one by one; millions take longer than a statement may."""
NEAR_ENTITIES = 10
"""Entities that an index gives for nearest, of which one is: it gives them in no strict order."""
NEAR_HIDDEN_ENTITIES = 100
"""Entities nearest to a name that are looked up for a caller who does not see all: seldom are all hidden."""


ENTITY_STATEMENT = f"""
    SELECT given.name, called.id, called.surface
    FROM unnest(%(names)s::text[], %(spellings)s::text[]) AS given(name, spelling)
    CROSS JOIN LATERAL (
        SELECT * FROM (
            (SELECT e.id, {WRITTEN_NAME} AS surface, 0 AS off FROM entity e
             WHERE e.collection_id = %(collection)s AND e.name = given.name)
            UNION ALL
            (SELECT e.id, {WRITTEN_NAME}, 1 FROM entity e
             WHERE e.collection_id = %(collection)s AND e.spelling = given.spelling ORDER BY e.id LIMIT 1)
        ) AS either ORDER BY off LIMIT 1
    ) AS called
"""
"""The statement of the entities that bear the names of ``build_entity_parameters``, or else are spelt like them."""


def build_entity_parameters(names: Sequence[str]) -> dict[str, list[str]]:
    """Parameters of ``ENTITY_STATEMENT``: normalised names and their spelling keys."""
    return {"names": list(names), "spellings": [normalise_spelling(name) for name in names]}


def find_called_entities(
    reader: Reader, collection: Collection, names: Sequence[str]
) -> dict[str, tuple[int, str]]:
    """Normalised name -> (entity, surface) for the names that an entity bears, be they spelt a little otherwise."""
    rows = reader.rows(ENTITY_STATEMENT, {"collection": collection.id, **build_entity_parameters(names)})
    return {row.name: (row.id, row.surface) for row in rows}


def find_rare_entities(reader: Reader, collection: Collection, names: Sequence[str], most: int) -> list[str]:
    """Find the normalised names of these that an entity bears which at most ``most`` passages name."""
    rows = reader.rows(
        """
        SELECT e.name FROM entity e
        CROSS JOIN LATERAL (
            SELECT count(DISTINCT named.passage_id) AS passages FROM (
                SELECT l.passage_id FROM entity_sentence l
                WHERE l.collection_id = %(collection)s AND l.entity_id = e.id LIMIT %(read)s
            ) AS named
        ) AS counted
        WHERE e.collection_id = %(collection)s AND e.name = ANY(%(names)s::text[]) AND counted.passages <= %(most)s
        """,
        {"collection": collection.id, "names": list(names), "most": most, "read": SENTENCES_PER_PASSAGE * most},
    )
    return [row.name for row in rows]


def find_names_with_prefixes(
    reader: Reader, collection: Collection, prefixes: Sequence[str], most: int
) -> list[str]:
    """Find names and titles that begin with one of these normalised prefixes, those that most sentences have first.

    Whether a caller sees a name is tested of the first ``PREFIXED_NAMES`` alone, however many are hidden.
    """
    rows = reader.rows(
        f"""
        SELECT {WRITTEN_NAME} AS name FROM (
            SELECT begun.id FROM unnest(%(prefixes)s::text[], %(ends)s::text[]) AS given(prefix, beyond)
            CROSS JOIN LATERAL (
                SELECT id FROM entity_name WHERE collection_id = %(collection)s
                    AND name ~>=~ given.prefix AND name ~<~ given.beyond ORDER BY name USING ~<~ LIMIT %(compared)s
            ) AS begun LIMIT %(compared)s
        ) AS named {join_by_index("entity e", "e.id = named.id")} CROSS JOIN LATERAL (
            SELECT count(*) AS sentences FROM (
                SELECT FROM entity_sentence l
                WHERE l.collection_id = %(collection)s AND l.entity_id = e.id LIMIT %(counted)s
            ) AS having_it
        ) AS counted
        ORDER BY counted.sentences DESC, length(e.name), e.name LIMIT %(most)s
        """,
        {
            "collection": collection.id,
            "prefixes": list(prefixes),
            "ends": [prefix + LAST_CHARACTER for prefix in prefixes],
            "compared": PREFIXED_NAMES,
            "counted": COUNTED_SENTENCES,
            "most": most,
        },
    )
    return [row.name for row in rows]


def find_nearest_entity(
    reader: Reader, collection: Collection, vector: Vector, limits: GraphLimits
) -> tuple[int, str, float] | None:
    """(entity, surface, cosine) of the entity nearest to ``vector`` (GAM-RAG, Eq. 3), of those embedded by now.

    None, too, while a collection of more than ``COMPARED_ENTITIES`` has no index of them.
    """
    if not limits.exact and "entity" not in collection.indexed and collection.entity_count > COMPARED_ENTITIES:
        return None
    near = nearness(collection, "entity", "embedding", "%(v)s", exact=limits.exact)
    if reader.reader_sets is not None:
        # Whether a caller sees a name takes a look-up for each, and an exact search compares all of them. What that
        # gives in strict order is looked up in order, until one is seen.
        then = ", id" if limits.exact or "entity" not in collection.indexed else ""
        row = reader.row(
            f"""
            SELECT e.id, {WRITTEN_NAME} AS surface, -near.distance AS similarity FROM (
                SELECT id, {near.distance} AS distance FROM entity_embedding
                WHERE {near.rows} AND embedding IS NOT NULL ORDER BY {near.order}{then} LIMIT %(limit)s
            ) AS near {join_by_index("entity e", "e.id = near.id")}
            ORDER BY near.distance, near.id LIMIT 1
            """,
            {"collection": collection.id, "v": vector, "limit": NEAR_HIDDEN_ENTITIES},
        )
        if row is not None:
            return row.id, row.surface, row.similarity
    row = reader.row(
        f"""
        SELECT * FROM (
            SELECT id, {WRITTEN_NAME} AS surface, -({near.distance}) AS similarity FROM entity e
            WHERE {near.rows} AND embedding IS NOT NULL ORDER BY {near.order} LIMIT %(limit)s
        ) AS nearest ORDER BY similarity DESC, id LIMIT 1
        """,
        {"collection": collection.id, "v": vector, "limit": NEAR_ENTITIES},
    )
    return None if row is None else (row.id, row.surface, row.similarity)
