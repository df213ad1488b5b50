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
from app.storage.lookups import WANTED, each, wanted
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


_IN_SCOPE = each("passage p", "p.id = s.passage_id AND p.metadata @> %(metadata)s")

# Before the hub limit, or a filter would look only at a hub's first sentences.
_LINK_IN_SCOPE = each("sentence s", "s.id = l.sentence_id") + _IN_SCOPE

_GATED = "coalesce({channel}.perplexity, 1)"
# A row that no verdict has moved yet knows nothing, gated or not.
_UNGATED = "CASE WHEN {channel}.update_count > 0 THEN 0 ELSE 1 END"
_MEMORY_COLUMNS = """
    {task} AS task_perplexity, coalesce(-(task.vector <#> %(q)s), 0) AS task_similarity,
    {time} AS time_perplexity, coalesce(-(time.vector <#> %(q_time)s), 0) AS time_similarity
"""

_MEMORIES = each("sentence_memory task", "task.sentence_id = s.id AND task.channel = 'task'", outer=True) + each(
    "sentence_memory time", "time.sentence_id = s.id AND time.channel = 'time' AND %(timed)s", outer=True
)
_TIME = each("time_expression t", "t.id = s.time_expression_id", outer=True)

# The same for all sentences of a collection: joined, they cost a third less than looked up.
_ALL_IN_SCOPE = """
    JOIN passage p ON p.collection_id = s.collection_id AND p.id = s.passage_id AND p.metadata @> %(metadata)s
"""
_ALL_MEMORIES = """
    LEFT JOIN sentence_memory task ON task.collection_id = s.collection_id
        AND task.sentence_id = s.id AND task.channel = 'task'
    LEFT JOIN sentence_memory time ON %(timed)s AND time.collection_id = s.collection_id
        AND time.sentence_id = s.id AND time.channel = 'time'
"""

_DAYS = "t.starts_on - DATE '0001-01-01' + 1 AS starts, t.ends_on - DATE '0001-01-01' + 1 AS ends"

_ALL_TIMES = """
    LEFT JOIN time_expression t ON t.collection_id = s.collection_id AND t.id = s.time_expression_id
"""

_NO_MEMORY_COLUMNS = "1::float8, 0::float8, 1::float8, 0::float8"


_KEY = each("passage_key key", "key.passage_id = p.id", outer=True)
_PASSAGE_OF_KEY = each("passage p", "p.id = key.passage_id {scope}")

# NOT IN is answered from a hash table of ids, whatever the planner thinks of their number. Vectors are compared
# where they are read: to move them takes as long as all else takes.
_EXACT_EVOLVED = f"""
    SELECT p.id, -(p.embedding <#> %(key)s) AS similarity, p.title FROM passage p
    WHERE p.collection_id = %(collection)s {{scope}}
      AND p.id NOT IN (SELECT passage_id FROM passage_key WHERE collection_id = %(collection)s)
    UNION ALL
    SELECT p.id, -(key.vector <#> %(key)s), p.title FROM passage_key key {_PASSAGE_OF_KEY}
    WHERE key.collection_id = %(collection)s
    ORDER BY similarity DESC LIMIT %(limit)s
"""

# The few evolved keys exactly, the others by their index. A sub-select that finds no key, and not NOT EXISTS: that
# the planner would turn into a join, which keeps no order and so takes no vector index.
_INDEXED_EVOLVED = f"""
    WITH evolved AS (
        SELECT p.id, -(key.vector <#> %(key)s) AS similarity, p.title FROM passage_key key {_PASSAGE_OF_KEY}
        WHERE key.collection_id = %(collection)s ORDER BY similarity DESC LIMIT %(limit)s
    ), base AS (
        SELECT p.id, -(p.embedding <#> %(key)s) AS similarity, p.title FROM passage p
        WHERE p.collection_id = {{collection}} {{scope}}
          AND (SELECT key.passage_id FROM passage_key key
               WHERE key.collection_id = %(collection)s AND key.passage_id = p.id) IS NULL
        ORDER BY {{order}} LIMIT %(limit)s
    )
    SELECT * FROM base UNION ALL SELECT * FROM evolved ORDER BY similarity DESC LIMIT %(limit)s
"""


def exact_entities(reader: Reader, collection: Collection, names: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Normalised name -> (entity, surface) for the names that an entity bears; a cosine of 1 by definition."""
    rows = reader.rows(
        f"SELECT e.name, e.id, e.surface FROM {wanted('names', 'text')} {each('entity e', 'e.name = wanted.id')}",
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
        statement = _INDEXED_EVOLVED.format(scope=scope, collection=near.collection, order=near.order)
    rows = reader.rows(statement, focus.parameters(limit=limit))
    return {row.id: Keyed(row.similarity, row.title) for row in rows}


def keyed_passages(reader: Reader, focus: Focus, passages: Sequence[int]) -> dict[int, Keyed]:
    """The given passages, as near as their keys are."""
    vector, key = ("coalesce(key.vector, p.embedding)", _KEY) if focus.evolved else ("p.embedding", "")
    rows = reader.rows(
        f"""
        SELECT p.id, -({vector} <#> %(key)s) AS similarity, p.title
        FROM {WANTED} {each("passage p", "p.id = wanted.id")} {key}
        """,
        focus.parameters(ids=list(passages)),
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
        FROM {WANTED} {each("sentence s", "s.passage_id = wanted.id")}
        {each("time_expression t", "t.id = s.time_expression_id")}
        """,
        {"collection": focus.collection.id, "ids": list(passages)},
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
        FROM reached {each("sentence s", "s.id = reached.sentence_id")}
        {_IN_SCOPE if focus.metadata else ""} {_factors(focus, _MEMORIES, _TIME)}
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
    if passages is None:
        found = f"sentence s {_ALL_IN_SCOPE if focus.metadata else ''} {_factors(focus, _ALL_MEMORIES, _ALL_TIMES)}"
        found += " WHERE s.collection_id = %(collection)s"
    else:
        found = f"{wanted('passages')} {each('sentence s', 's.passage_id = wanted.id')}"
        found += f" {_IN_SCOPE if focus.metadata else ''} {_factors(focus, _MEMORIES, _TIME)}"
    statement = f"""
        WITH weighed AS (
            SELECT s.id, s.passage_id, 1::float8 AS activation, -(s.embedding <#> %(q)s) AS semantic,
                   {_factor_columns(focus)}
            FROM {found}
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
        f"""
        SELECT s.id, s.passage_id, p.external_id, s.position, s.text, named.ids, named.surfaces
        FROM {WANTED} {each("sentence s", "s.id = wanted.id")} {each("passage p", "p.id = s.passage_id")}
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(e.id ORDER BY e.id), '{{}}') AS ids,
                   coalesce(array_agg(e.surface ORDER BY e.id), '{{}}') AS surfaces
            FROM entity_sentence link {each("entity e", "e.id = link.entity_id")}
            WHERE link.collection_id = %(collection)s AND link.sentence_id = s.id
        ) AS named
        ORDER BY s.id
        """,
        {"collection": collection.id, "ids": list(sentences)},
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


def _factors(focus: Focus, memories: str, times: str) -> str:
    return (memories if focus.use_memory else "") + (times if focus.asked else "")


def _candidates(focus: Focus, rows: Sequence[Any]) -> Candidates:
    ids = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2)
    numbers = np.array([row[2:] for row in rows], dtype=np.float64).reshape(len(rows), -1 if rows else 6)
    order = np.argsort(ids[:, 0])
    ids, numbers = ids[order], numbers[order]
    agreed = agreement(focus.asked, numbers[:, 6], numbers[:, 7]) if focus.asked and rows else np.zeros(len(rows))
    return Candidates(ids[:, 0], ids[:, 1], *np.column_stack([numbers[:, :6], agreed]).T)
