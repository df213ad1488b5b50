"""Reads of complementarity: entities of passages, and cosines of the best passages and candidates.

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
from engram.storage.question.passages_by_key import build_key_join, build_key_similarity
from engram.storage.question.query_focus import Focus
from engram.storage.row_lookups import WANTED_IDS, join_by_index, join_once


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity, normalised, and how many passages name it, counted up to the limit of hubs."""

    name: str
    passages: int


@dataclass(frozen=True, slots=True)
class PoolLinks:
    """Cosines of a pool of m passages and n candidates.

    Attributes:
        members: of the pool those that have sentences, in the order in which they were asked for, (m,).
        sentences: each one's sentence most like the question.
        similarities: of that sentence and the question (cosine), (m,).
        across: of that sentence and every candidate's key, (m, n).
        aside: rows of the statement that was carried along.
    """

    members: Sequence[int]
    sentences: Sequence[int]
    similarities: NDArray[np.float64]
    across: NDArray[np.float64]
    aside: Sequence[Mapping[str, Any]]


_ENTITIES = f"""
    SELECT e.id, e.name, (
        SELECT count(DISTINCT counted.passage_id) FROM (
            SELECT l.passage_id FROM entity_sentence l
            WHERE l.collection_id = %(collection)s AND l.entity_id = e.id
            ORDER BY l.sentence_id LIMIT %(most)s
        ) AS counted
    ) AS passages
    FROM {WANTED_IDS} {join_by_index("entity e", "e.id = wanted.id")}
"""

_STATEMENT = f"""
    WITH best AS MATERIALIZED (
        SELECT member.id AS passage_id, own.id, own.similarity, own.embedding::vector, member.place
        FROM unnest(%(pool)s::bigint[]) WITH ORDINALITY AS member(id, place)
        CROSS JOIN LATERAL (
            SELECT s.id, -(s.embedding <#> {HALVED_QUESTION}) AS similarity, s.embedding FROM sentence s
            WHERE s.collection_id = %(collection)s AND s.passage_id = member.id
            ORDER BY similarity DESC, s.id LIMIT 1
        ) AS own
    )
    SELECT {as_rows("SELECT passage_id, id, similarity FROM best ORDER BY place")} AS members,
           (SELECT array_send(array_agg({{across}} ORDER BY p.id))
            FROM {join_once("passage p", "id", "%(candidates)s::bigint[]")} {{key}}) AS across,
           {{aside}} AS aside
"""


def load_entities_of_passages(
    reader: Reader, collection_id: int, passages: Sequence[int]
) -> dict[int, NDArray[np.int64]]:
    """Passage -> the entities that its sentences name, (n,); passages that name none are absent."""
    row = reader.row(
        f"""
        SELECT array_send(array_agg(l.passage_id)) AS passages, array_send(array_agg(l.entity_id)) AS entities
        FROM {join_once("entity_sentence l", "passage_id", "%(ids)s::bigint[]")}
        """,
        {"collection": collection_id, "ids": integers(passages)},
    )
    holders, entities = decode_column(row.passages, np.int64), decode_column(row.entities, np.int64)
    order = np.argsort(holders, kind="stable")
    ids, starts = np.unique(holders[order], return_index=True)
    parts = np.split(entities[order], starts[1:])
    return {passage: np.unique(part) for passage, part in zip(ids.tolist(), parts, strict=False)}


def load_named_entities(
    reader: Reader, collection_id: int, entities: Sequence[int], most: int
) -> dict[int, NamedEntity]:
    """Load the entities of these that exist; of each at most ``most`` sentences are looked at."""
    rows = reader.rows(_ENTITIES, {"collection": collection_id, "ids": integers(entities), "most": most})
    return {row.id: NamedEntity(row.name, row.passages) for row in rows}


def look(
    reader: Reader,
    focus: Focus,
    pool: Sequence[int],
    candidates: NDArray[np.int64],
    carried: CarriedStatement | None = None,
) -> PoolLinks:
    """Read how like the members of a pool and the candidates are to each other.

    Args:
        pool: passages, at least one.
        candidates: that there are, in id order, each once, (n,).
        carried: what else is to be read.

    Raises:
        ValueError: the candidates are not in id order.
    """
    if np.any(candidates[1:] <= candidates[:-1]):
        raise ValueError("candidates are wanted in id order, each of them once")
    members = [f"(SELECT embedding FROM best WHERE place = {at})" for at in range(1, len(pool) + 1)]
    cosines = [f"coalesce({build_key_similarity(focus, member)}, 0)" for member in members]
    row = reader.row(
        _STATEMENT.format(
            across=f"ARRAY[{', '.join(cosines)}]",
            key=build_key_join(focus),
            aside=carried.column if carried else "NULL",
        ),
        focus.parameters(
            pool=integers(pool),
            candidates=Numbers(candidates),
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
        aside=row.aside or (),
    )
