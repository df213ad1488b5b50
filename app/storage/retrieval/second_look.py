"""What the second look reads: whom the best passages name, and what every candidate shares with them.

Vectors never leave the database; what comes of them are cosines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.storage.database import Reader
from app.storage.lookups import WANTED, each
from app.storage.retrieval.focus import Focus


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity, normalised, and how many passages name it, counted up to the limit of hubs."""

    name: str
    passages: int


@dataclass(frozen=True, slots=True)
class Members:
    """Of the pool's members, in the order in which they were asked for.

    Attributes:
        passages: the members; one without sentences is none.
        sentences: each one's sentence most like the question.
        similarities: of that sentence and the question (cosine).
        entities: entity -> those that a member or the question names.
    """

    passages: Sequence[int]
    sentences: Sequence[int]
    similarities: Sequence[float]
    entities: Mapping[int, NamedEntity]


@dataclass(frozen=True, slots=True)
class Shared:
    """Of one candidate: cosines of its key with each member's sentence, and which of the entities it names, each as
    often as its sentences do."""

    across: Sequence[float]
    entities: Sequence[int]


_BEST_SENTENCE = """
    CROSS JOIN LATERAL (
        SELECT s.id, -(s.embedding <#> %(q)s) AS similarity FROM sentence s
        WHERE s.collection_id = %(collection)s AND s.passage_id = wanted.id
        ORDER BY similarity DESC, s.id LIMIT 1
    ) AS best
"""


def members(reader: Reader, focus: Focus, passages: Sequence[int], asked: Sequence[int], most: int) -> Members:
    """What is known of the pool's members.

    Args:
        passages: of the pool.
        asked: entities that the question names.
        most: passages that are counted of an entity at most.
    """
    rows = reader.rows(
        f"""
        SELECT e.id, e.name, named.passages, NULL::bigint AS passage_id, NULL::float8 AS similarity FROM (
            SELECT l.entity_id FROM {WANTED} {each("entity_sentence l", "l.passage_id = wanted.id")}
            UNION SELECT unnest(%(asked)s::bigint[])
        ) AS wanted(id) {each("entity e", "e.id = wanted.id")}
        CROSS JOIN LATERAL (
            SELECT count(DISTINCT counted.passage_id) AS passages FROM (
                SELECT l.passage_id FROM entity_sentence l
                WHERE l.collection_id = %(collection)s AND l.entity_id = e.id
                ORDER BY l.sentence_id LIMIT %(most)s
            ) AS counted
        ) AS named
        UNION ALL
        SELECT best.id, NULL, NULL, wanted.id, best.similarity FROM {WANTED} {_BEST_SENTENCE}
        """,
        focus.parameters(ids=list(passages), asked=list(asked), most=most),
    )
    best = {row.passage_id: (row.id, row.similarity) for row in rows if row.passage_id is not None}
    present = [passage for passage in passages if passage in best]
    return Members(
        passages=present,
        sentences=[best[passage][0] for passage in present],
        similarities=[best[passage][1] for passage in present],
        entities={row.id: NamedEntity(row.name, row.passages) for row in rows if row.passage_id is None},
    )


def shared(
    reader: Reader, focus: Focus, passages: Sequence[int], sentences: Sequence[int], entities: Sequence[int]
) -> dict[int, Shared]:
    """Of each candidate, what it shares with members whose ``sentences`` and ``entities`` these are."""
    key, vector = "", "p.embedding"
    if focus.evolved:
        key = each("passage_key key", "key.passage_id = p.id", outer=True)
        vector = "coalesce(key.vector, p.embedding)"
    rows = reader.rows(
        f"""
        WITH best AS MATERIALIZED (
            SELECT given.place, s.embedding
            FROM unnest(%(sentences)s::bigint[]) WITH ORDINALITY AS given(id, place)
            {each("sentence s", "s.id = given.id")}
        ), known AS MATERIALIZED (SELECT unnest(%(entities)s::bigint[]) AS id)
        SELECT p.id, its.across, its.entities
        FROM {WANTED} {each("passage p", "p.id = wanted.id")} {key}
        CROSS JOIN LATERAL (SELECT
            ARRAY(SELECT -({vector} <#> best.embedding) FROM best ORDER BY best.place) AS across,
            ARRAY(
                SELECT l.entity_id FROM entity_sentence l
                WHERE l.collection_id = %(collection)s AND l.passage_id = p.id
                  AND l.entity_id IN (SELECT id FROM known)
            ) AS entities
        ) AS its
        """,
        focus.parameters(ids=list(passages), sentences=list(sentences), entities=list(entities)),
    )
    return {row.id: Shared(row.across, row.entities) for row in rows}
