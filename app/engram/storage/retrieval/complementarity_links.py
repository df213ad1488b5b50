"""Reads of complementarity reranking: entities of the best passages, and links of candidates to them.

Vectors never leave the database; what comes of them are cosines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.storage.carried_statements import CarriedStatement, as_rows
from engram.storage.column_parameters import Numbers, decode_column, integers
from engram.storage.database import Reader
from engram.storage.half_vectors import HALVED_QUESTION
from engram.storage.retrieval.passages_by_key import build_key_similarity
from engram.storage.retrieval.query_focus import Focus
from engram.storage.row_lookups import id_rows, join_by_index, join_once


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity, normalised, and how many passages name it, counted up to the limit of hubs."""

    name: str
    passages: int


@dataclass(frozen=True, slots=True)
class PoolLinks:
    """Links between a pool of m passages and n candidates.

    Attributes:
        members: of the pool those that have sentences, in the order in which they were asked for, (m,).
        sentences: each one's sentence most like the question.
        similarities: of that sentence and the question (cosine), (m,).
        across: of that sentence and every candidate's key, (m, n).
        entities: entity -> those that a member or the question names.
        naming: (candidate's place among those given, entity) of each of them that a candidate names, (k, 2).
        aside: rows of the statement that was carried along.
    """

    members: Sequence[int]
    sentences: Sequence[int]
    similarities: NDArray[np.float64]
    across: NDArray[np.float64]
    entities: Mapping[int, NamedEntity]
    naming: NDArray[np.int64]
    aside: Sequence[Mapping[str, Any]]


_CANDIDATES = "%(candidates)s::bigint[]"
_MEMBERS = id_rows("pool")

_ENTITIES = f"""
    SELECT e.id, e.name, (
        SELECT count(DISTINCT counted.passage_id) FROM (
            SELECT l.passage_id FROM entity_sentence l
            WHERE l.collection_id = %(collection)s AND l.entity_id = e.id
            ORDER BY l.sentence_id LIMIT %(most)s
        ) AS counted
    ) AS passages
    FROM known AS wanted {join_by_index("entity e", "e.id = wanted.id")}
"""

# IS TRUE: as a sub-select that is hashed once, where a join would be left to the planner.
_STATEMENT = f"""
    WITH best AS MATERIALIZED (
        SELECT member.id AS passage_id, own.id, own.similarity, own.embedding::vector, member.place
        FROM unnest(%(pool)s::bigint[]) WITH ORDINALITY AS member(id, place)
        CROSS JOIN LATERAL (
            SELECT s.id, -(s.embedding <#> {HALVED_QUESTION}) AS similarity, s.embedding FROM sentence s
            WHERE s.collection_id = %(collection)s AND s.passage_id = member.id
            ORDER BY similarity DESC, s.id LIMIT 1
        ) AS own
    ), known AS MATERIALIZED (
        SELECT l.entity_id AS id FROM {_MEMBERS} {join_by_index("entity_sentence l", "l.passage_id = wanted.id")}
        UNION SELECT unnest(%(asked)s::bigint[])
    ), named AS MATERIALIZED (
        SELECT l.passage_id, l.entity_id FROM {join_once("entity_sentence l", "passage_id", _CANDIDATES)}
        WHERE (l.entity_id IN (SELECT id FROM known)) IS TRUE
    )
    SELECT {as_rows("SELECT passage_id, id, similarity FROM best ORDER BY place")} AS members,
           {as_rows(_ENTITIES)} AS entities,
           (SELECT array_send(array_agg(passage_id)) FROM named) AS naming,
           (SELECT array_send(array_agg(entity_id)) FROM named) AS named,
           (SELECT array_send(array_agg({{across}} ORDER BY p.id))
            FROM {join_once("passage p", "id", _CANDIDATES)} {{key}}) AS across,
           {{aside}} AS aside
"""


def look(
    reader: Reader,
    focus: Focus,
    pool: Sequence[int],
    candidates: NDArray[np.int64],
    entities: Sequence[int],
    most: int,
    carried: CarriedStatement | None = None,
) -> PoolLinks:
    """Read the entities of the pool's members, and the links of candidates to them.

    Args:
        pool: passages, at least one.
        candidates: that there are, in id order, each once, (n,).
        entities: entities that the question names.
        most: sentences that are looked at of an entity at most.
        carried: what else is to be read.

    Raises:
        ValueError: the candidates are not in id order.
    """
    if np.any(candidates[1:] <= candidates[:-1]):
        raise ValueError("candidates are wanted in id order, each of them once")
    key = join_by_index("passage_key key", "key.passage_id = p.id", outer=True) if focus.evolved else ""
    members = [f"(SELECT embedding FROM best WHERE place = {at})" for at in range(1, len(pool) + 1)]
    cosines = [f"coalesce({build_key_similarity(focus, member)}, 0)" for member in members]
    row = reader.row(
        _STATEMENT.format(
            across=f"ARRAY[{', '.join(cosines)}]", key=key, aside=carried.column if carried else "NULL"
        ),
        focus.parameters(
            pool=integers(pool),
            candidates=Numbers(candidates),
            asked=integers(entities),
            most=most,
            **(carried.parameters if carried else {}),
        ),
    )
    best = {member["passage_id"]: member for member in row.members or ()}
    places = [at for at, passage in enumerate(pool) if passage in best]
    across = decode_column(row.across, np.float64).reshape(len(candidates), len(pool))
    return PoolLinks(
        members=[pool[at] for at in places],
        sentences=[best[pool[at]]["id"] for at in places],
        similarities=np.array([best[pool[at]]["similarity"] for at in places]),
        across=across.T[places],
        entities={one["id"]: NamedEntity(one["name"], one["passages"]) for one in row.entities or ()},
        naming=np.column_stack(
            [np.searchsorted(candidates, decode_column(row.naming, np.int64)), decode_column(row.named, np.int64)]
        ),
        aside=row.aside or (),
    )
