"""Reading the entity-sentence-passage graph: everything a query needs, vectors never leaving the database.

Embeddings have unit length, so the negative inner product ``<#>`` is minus the cosine and costs less.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from app.core.profiles import PAPER, Policy
from app.core.propagation import Candidates
from app.core.temporal import TimeExpression, agreement
from app.storage.corpus.collections import Collection
from app.storage.database import Reader
from app.storage.retrieval.nearness import nearness

Vector = NDArray[np.float32]
NEAR_ENTITIES = 10
"""Entities that an index gives for nearest, of which one is: it gives them in no strict order."""


@dataclass(frozen=True, slots=True)
class GraphLimits:
    """Bounds on what one statement reads; ``exact``: search exactly also where there is a vector index."""

    hub_limit: int
    candidate_limit: int
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Focus:
    """What a query looks for and where: the same for all its statements.

    Attributes:
        collection: the corpus.
        vector: the question's embedding, (d,).
        time_vector: its time constraint's embedding, (d,), or None for a question without one.
        use_memory: whether learned state may be read.
        policy: how far memories count.
        metadata: only passages whose metadata contain this; None for all.
        asked: the intervals its time constraint names; none for a question that names none.
        key_vector: what passage keys are compared with, (d,), where the question was expanded; None for ``vector``.
            What it says of sentences, memories and past questions remains the question's own.
    """

    collection: Collection
    vector: Vector
    time_vector: Vector | None = None
    use_memory: bool = False
    policy: Policy = PAPER.policy
    metadata: Mapping[str, Any] | None = None
    asked: tuple[TimeExpression, ...] = ()
    key_vector: Vector | None = None

    @property
    def evolved(self) -> bool:
        """Whether passages have evolved keys that may be read."""
        return self.use_memory and self.collection.key_generation > 0

    def parameters(self, **more: Any) -> dict[str, Any]:
        """The statement parameters that every statement of this query shares."""
        return {
            "collection": self.collection.id,
            "q": self.vector,
            "key": self.vector if self.key_vector is None else self.key_vector,
            "q_time": self.vector if self.time_vector is None else self.time_vector,
            "timed": self.time_vector is not None and self.use_memory,
            "metadata": Jsonb(dict(self.metadata or {})),
            **more,
        }


@dataclass(frozen=True, slots=True)
class Keyed:
    """How near a passage's key is to the question (cosine), and its title."""

    similarity: float
    title: str | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence that was selected; ``entities`` maps entity -> surface."""

    sentence_id: int
    passage_id: int
    external_id: str
    position: int
    text: str
    entities: dict[int, str]


_IN_SCOPE = """
    JOIN passage p ON p.collection_id = s.collection_id AND p.id = s.passage_id
                  AND p.metadata @> %(metadata)s
"""

# Before the hub limit, or a filter would look only at a hub's first sentences.
_LINK_IN_SCOPE = """
    JOIN sentence s ON s.collection_id = l.collection_id AND s.id = l.sentence_id
    JOIN passage p ON p.collection_id = s.collection_id AND p.id = s.passage_id
                  AND p.metadata @> %(metadata)s
"""

_GATED = "coalesce({channel}.perplexity, 1)"
# A row that no verdict has moved yet knows nothing, gated or not.
_UNGATED = "CASE WHEN {channel}.update_count > 0 THEN 0 ELSE 1 END"
_MEMORY_COLUMNS = """
    {task} AS task_perplexity, coalesce(-(task.vector <#> %(q)s), 0) AS task_similarity,
    {time} AS time_perplexity, coalesce(-(time.vector <#> %(q_time)s), 0) AS time_similarity
"""

_MEMORY_JOINS = """
    LEFT JOIN sentence_memory task ON task.collection_id = s.collection_id
        AND task.sentence_id = s.id AND task.channel = 'task'
    LEFT JOIN sentence_memory time ON %(timed)s AND time.collection_id = s.collection_id
        AND time.sentence_id = s.id AND time.channel = 'time'
"""

_DAYS = "t.starts_on - DATE '0001-01-01' + 1 AS starts, t.ends_on - DATE '0001-01-01' + 1 AS ends"

_TIME_JOIN = """
    LEFT JOIN time_expression t ON t.collection_id = s.collection_id AND t.id = s.time_expression_id
"""

_NO_MEMORY_COLUMNS = "1::float8, 0::float8, 1::float8, 0::float8"


_KEY_OF_PASSAGE = "passage_key key ON key.collection_id = p.collection_id AND key.passage_id = p.id"
_PASSAGE_OF_KEY = "passage p ON p.collection_id = key.collection_id AND p.id = key.passage_id"

# OFFSET 0: similarities are joined, not vectors, which take as long to move as all else takes.
_EXACT_EVOLVED = """
    SELECT p.id, coalesce(key.similarity, -(p.embedding <#> %(key)s)) AS similarity, p.title
    FROM passage p LEFT JOIN (
        SELECT passage_id, -(vector <#> %(key)s) AS similarity FROM passage_key
        WHERE collection_id = %(collection)s OFFSET 0
    ) AS key ON key.passage_id = p.id
    WHERE p.collection_id = %(collection)s {scope} ORDER BY similarity DESC LIMIT %(limit)s
"""

# The few evolved keys exactly, the others by their index. A sub-select that finds no key, and not NOT EXISTS: that
# the planner would turn into a join, which keeps no order and so takes no vector index.
_INDEXED_EVOLVED = """
    WITH evolved AS (
        SELECT key.passage_id, -(key.vector <#> %(key)s) AS similarity FROM passage_key key {chosen}
        WHERE key.collection_id = %(collection)s ORDER BY key.vector <#> %(key)s LIMIT %(limit)s
    ), base AS (
        SELECT p.id, -(p.embedding <#> %(key)s) AS similarity, p.title FROM passage p
        WHERE p.collection_id = {collection} {scope}
          AND (SELECT key.passage_id FROM passage_key key
               WHERE key.collection_id = p.collection_id AND key.passage_id = p.id) IS NULL
        ORDER BY {order} LIMIT %(limit)s
    )
    SELECT id, similarity, title FROM base
    UNION ALL
    SELECT p.id, evolved.similarity, p.title
    FROM evolved JOIN passage p ON p.collection_id = %(collection)s AND p.id = evolved.passage_id
    ORDER BY similarity DESC LIMIT %(limit)s
"""


def exact_entities(reader: Reader, collection: Collection, names: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Normalised name -> (entity, surface) for the names that an entity bears; a cosine of 1 by definition."""
    rows = reader.rows(
        "SELECT name, id, surface FROM entity WHERE collection_id = %(collection)s AND name = ANY(%(names)s)",
        {"collection": collection.id, "names": list(names)},
    )
    return {row.name: (row.id, row.surface) for row in rows}


def nearest_entity(
    reader: Reader, collection: Collection, vector: Vector, limits: GraphLimits
) -> tuple[int, str, float] | None:
    """(entity, surface, cosine) of the entity nearest to ``vector`` (GAM-RAG, Eq. 3)."""
    near = nearness(collection, "entity", "embedding", "v", exact=limits.exact)
    row = reader.row(
        f"""
        SELECT * FROM (
            SELECT id, surface, -(embedding <#> %(v)s) AS similarity FROM entity
            WHERE collection_id = {near.collection} ORDER BY {near.order} LIMIT %(limit)s
        ) AS nearest ORDER BY similarity DESC LIMIT 1
        """,
        {"collection": collection.id, "v": vector, "limit": NEAR_ENTITIES},
    )
    return None if row is None else (row.id, row.surface, row.similarity)


def nearest_passages(reader: Reader, focus: Focus, limit: int, limits: GraphLimits) -> dict[int, Keyed]:
    """The ``limit`` passages whose keys are nearest to the question, best first.

    A passage's key is its evolved one, if it has one that may be read, else its base key.
    """
    scope = "AND p.metadata @> %(metadata)s" if focus.metadata else ""
    near = nearness(focus.collection, "passage", "embedding", "key", exact=limits.exact, alias="p.")
    if not focus.evolved:
        statement = f"""
            SELECT * FROM (
                SELECT p.id, -(p.embedding <#> %(key)s) AS similarity, p.title FROM passage p
                WHERE p.collection_id = {near.collection} {scope} ORDER BY {near.order} LIMIT %(limit)s
            ) AS nearest ORDER BY similarity DESC
        """
    elif limits.exact or "passage" not in focus.collection.indexed:
        statement = _EXACT_EVOLVED.format(scope=scope)
    else:
        chosen = f"JOIN {_PASSAGE_OF_KEY} {scope}" if scope else ""
        statement = _INDEXED_EVOLVED.format(
            scope=scope, chosen=chosen, collection=near.collection, order=near.order
        )
    rows = reader.rows(statement, focus.parameters(limit=limit))
    return {row.id: Keyed(row.similarity, row.title) for row in rows}


def keyed_passages(reader: Reader, focus: Focus, passages: Sequence[int]) -> dict[int, Keyed]:
    """The given passages, as near as their keys are."""
    columns, joined = "p.embedding", ""
    if focus.evolved:
        columns, joined = "coalesce(key.vector, p.embedding)", f"LEFT JOIN {_KEY_OF_PASSAGE}"
    rows = reader.rows(
        f"""
        SELECT p.id, -({columns} <#> %(key)s) AS similarity, p.title FROM passage p {joined}
        WHERE p.collection_id = %(collection)s AND p.id = ANY(%(passages)s)
        """,
        focus.parameters(passages=list(passages)),
    )
    return {row.id: Keyed(row.similarity, row.title) for row in rows}


def timely_passages(reader: Reader, focus: Focus, passages: Sequence[int]) -> dict[int, float]:
    """Of the given passages, those with a dated sentence: how well its days agree with those asked for, in [0, 1].

    A passage is as timely as its best sentence. Nothing is read for a question that names no time.
    """
    if not focus.asked or not passages:
        return {}
    rows = reader.rows(
        f"""
        SELECT DISTINCT s.passage_id, {_DAYS}
        FROM sentence s
        JOIN time_expression t ON t.collection_id = s.collection_id AND t.id = s.time_expression_id
        WHERE s.collection_id = %(collection)s AND s.passage_id = ANY(%(passages)s)
        """,
        {"collection": focus.collection.id, "passages": list(passages)},
    )
    days = np.array([(row.starts, row.ends) for row in rows], dtype=np.float64).reshape(-1, 2)
    timely: dict[int, float] = {}
    for row, share in zip(rows, agreement(focus.asked, days[:, 0], days[:, 1]).tolist(), strict=True):
        timely[row.passage_id] = max(timely.get(row.passage_id, 0.0), share)
    return timely


def linked_sentences(
    reader: Reader,
    focus: Focus,
    activation: Mapping[int, float],
    recalled: Sequence[int],
    limits: GraphLimits,
) -> Candidates:
    """One hop: the sentences that activated entities lead to, with their scalars (Eqs. 4-5).

    Each entity contributes at most ``hub_limit`` sentences and the hop keeps the ``candidate_limit`` most
    activated, before any vector is read. Recalled sentences join them with no activation of their own.
    """
    statement = f"""
        WITH linked AS (
            SELECT link.sentence_id, sum(active.score) AS activation
            FROM unnest(%(entities)s::bigint[], %(scores)s::float8[]) AS active(entity_id, score)
            CROSS JOIN LATERAL (
                SELECT l.sentence_id FROM entity_sentence l
                {_LINK_IN_SCOPE if focus.metadata else ""}
                WHERE l.collection_id = %(collection)s AND l.entity_id = active.entity_id
                ORDER BY l.sentence_id LIMIT %(hub_limit)s
            ) AS link
            GROUP BY link.sentence_id ORDER BY activation DESC, link.sentence_id LIMIT %(candidate_limit)s
        ), reached AS (
            SELECT sentence_id, activation FROM linked
            UNION ALL
            SELECT extra, 0 FROM unnest(%(recalled)s::bigint[]) AS extra
            WHERE NOT EXISTS (SELECT FROM linked WHERE sentence_id = extra)
        )
        SELECT s.id, s.passage_id, reached.activation, -(s.embedding <#> %(q)s) AS semantic,
               {_factor_columns(focus)}
        FROM reached JOIN sentence s ON s.collection_id = %(collection)s AND s.id = reached.sentence_id
        {_IN_SCOPE if focus.metadata else ""}
        {_factor_joins(focus)}
    """
    return _candidates(
        focus,
        reader.rows(
            statement,
            focus.parameters(
                entities=list(activation),
                scores=list(activation.values()),
                recalled=list(recalled),
                hub_limit=limits.hub_limit,
                candidate_limit=limits.candidate_limit,
            ),
        ),
    )


def all_sentences(
    reader: Reader, focus: Focus, passages: Sequence[int] | None, recalled: Sequence[int], limits: GraphLimits
) -> Candidates:
    """Candidates for a question without entities: every sentence with activation 1, the best by weight.

    Args:
        passages: look only into these passages; None for the whole collection.
        recalled: sentences that are candidates in any case.
    """
    within = "AND s.passage_id = ANY(%(passages)s)" if passages is not None else ""
    statement = f"""
        WITH weighed AS (
            SELECT s.id, s.passage_id, 1::float8 AS activation, -(s.embedding <#> %(q)s) AS semantic,
                   {_factor_columns(focus)}
            FROM sentence s {_IN_SCOPE if focus.metadata else ""} {_factor_joins(focus)}
            WHERE s.collection_id = %(collection)s {within}
        )
        (SELECT * FROM weighed ORDER BY {_weight(focus)} DESC, id
         LIMIT %(candidate_limit)s)
        UNION SELECT * FROM weighed WHERE id = ANY(%(recalled)s::bigint[])
    """
    return _candidates(
        focus,
        reader.rows(
            statement,
            focus.parameters(
                passages=None if passages is None else list(passages),
                recalled=list(recalled),
                candidate_limit=limits.candidate_limit,
            ),
        ),
    )


def evidence(reader: Reader, collection: Collection, sentences: Sequence[int]) -> dict[int, Evidence]:
    """The given sentences as they can be read, with the entities they name."""
    rows = reader.rows(
        """
        SELECT s.id, s.passage_id, p.external_id, s.position, s.text,
               coalesce(array_agg(e.id ORDER BY e.id) FILTER (WHERE e.id IS NOT NULL), '{}'),
               coalesce(array_agg(e.surface ORDER BY e.id) FILTER (WHERE e.id IS NOT NULL), '{}')
        FROM sentence s
        JOIN passage p ON p.collection_id = s.collection_id AND p.id = s.passage_id
        LEFT JOIN entity_sentence link ON link.collection_id = s.collection_id AND link.sentence_id = s.id
        LEFT JOIN entity e ON e.collection_id = link.collection_id AND e.id = link.entity_id
        WHERE s.collection_id = %(collection)s AND s.id = ANY(%(sentences)s)
        GROUP BY s.collection_id, s.id, p.external_id ORDER BY s.id
        """,
        {"collection": collection.id, "sentences": list(sentences)},
    )
    return {
        row[0]: Evidence(row[0], row[1], row[2], row[3], row[4], dict(zip(row[5], row[6], strict=True)))
        for row in rows
    }


def sentence_counts(reader: Reader, collection: Collection, entities: Sequence[int], most: int) -> dict[int, int]:
    """Entity -> how many sentences name it, counted up to ``most``."""
    rows = reader.rows(
        """
        SELECT wanted.id, (SELECT count(*) FROM (
            SELECT FROM entity_sentence link
            WHERE link.collection_id = %(collection)s AND link.entity_id = wanted.id LIMIT %(most)s
        ) AS named) AS sentences
        FROM unnest(%(entities)s::bigint[]) AS wanted(id)
        """,
        {"collection": collection.id, "entities": list(entities), "most": most},
    )
    return {row.id: row.sentences for row in rows}


def _factor_columns(focus: Focus) -> str:
    columns = _NO_MEMORY_COLUMNS
    if focus.use_memory:
        perplexity = _GATED if focus.policy.gated else _UNGATED
        columns = _MEMORY_COLUMNS.format(**{name: perplexity.format(channel=name) for name in ("task", "time")})
    return f"{columns}, {_DAYS}" if focus.asked else columns


def _weight(focus: Focus) -> str:
    """What sentences are ordered by where all have one activation, see ``propagation.sentence_weights``."""
    if not focus.use_memory:
        return "semantic"
    task = "(task_similarity - semantic)" if focus.policy.learned_only else "task_similarity"
    return f"semantic * (1 + (1 - task_perplexity) * {task}) * (1 + (1 - time_perplexity) * time_similarity)"


def _factor_joins(focus: Focus) -> str:
    return (_MEMORY_JOINS if focus.use_memory else "") + (_TIME_JOIN if focus.asked else "")


def _candidates(focus: Focus, rows: Sequence[Any]) -> Candidates:
    ids = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2)
    numbers = np.array([row[2:] for row in rows], dtype=np.float64).reshape(len(rows), -1 if rows else 6)
    order = np.argsort(ids[:, 0])
    ids, numbers = ids[order], numbers[order]
    agreed = agreement(focus.asked, numbers[:, 6], numbers[:, 7]) if focus.asked and rows else np.zeros(len(rows))
    return Candidates(ids[:, 0], ids[:, 1], *np.column_stack([numbers[:, :6], agreed]).T)
