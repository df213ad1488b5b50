"""Hops over the entity-sentence-passage graph: what entities lead to, vectors never leaving the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.core.propagation import Candidates
from app.core.temporal import agreement
from app.storage.corpus.collections import Collection
from app.storage.database import Reader
from app.storage.lookups import WANTED, each, wanted
from app.storage.retrieval.focus import Focus, GraphLimits


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence that was selected; ``entities`` maps entity -> surface."""

    sentence_id: int
    passage_id: int
    external_id: str
    position: int
    text: str
    entities: dict[int, str]


DAYS = "t.starts_on - DATE '0001-01-01' + 1 AS starts, t.ends_on - DATE '0001-01-01' + 1 AS ends"
"""The days of a ``time_expression t``, numbered as Python's ordinals are."""

_IN_SCOPE = each("passage p", "p.id = s.passage_id AND p.metadata @> %(metadata)s")

# Before the hub limit, or a filter would look only at a hub's first sentences.
_LINK_IN_SCOPE = each("sentence s", "s.id = l.sentence_id") + _IN_SCOPE

_GATED = "coalesce({channel}.perplexity, 1)"
# A row that no verdict has moved yet knows nothing, gated or not.
_UNGATED = "CASE WHEN {channel}.update_count > 0 THEN 0 ELSE 1 END"
_VECTORS = {"task": "q", "time": "q_time"}
"""Channel -> the parameter that its memories are compared with."""

_TIME = each("time_expression t", "t.id = s.time_expression_id", outer=True)

_SCOPE = """(
    SELECT p.id FROM passage p WHERE p.collection_id = %(collection)s AND p.metadata @> %(metadata)s OFFSET 0
) AS scope"""
_ALL_MEMORY = """
    LEFT JOIN sentence_memory {channel} ON {channel}.collection_id = s.collection_id
        AND {channel}.sentence_id = s.id AND {channel}.channel = '{channel}'
"""
_ALL_TIMES = """
    LEFT JOIN time_expression t ON t.collection_id = s.collection_id AND t.id = s.time_expression_id
"""


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
        {_IN_SCOPE if focus.metadata else ""} {_factors(focus)}
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
    if passages is not None:
        found = f"{wanted('passages')} {each('sentence s', 's.passage_id = wanted.id')}"
        found += f" {_IN_SCOPE if focus.metadata else ''} {_factors(focus)}"
    elif focus.metadata:  # how many sentences it leaves is not known, so the rest is looked up
        found = f"{_SCOPE} {each('sentence s', 's.passage_id = scope.id')} {_factors(focus)}"
    else:
        found = f"sentence s {_all_factors(focus)} WHERE s.collection_id = %(collection)s"
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


def evidence(
    reader: Reader, collection: Collection, sentences: Sequence[int], most: int
) -> tuple[dict[int, Evidence], dict[int, int]]:
    """The given sentences as they can be read; and entity -> how many sentences name it, counted up to ``most``."""
    rows = reader.rows(
        f"""
        WITH link AS MATERIALIZED (
            SELECT l.sentence_id, l.entity_id
            FROM {WANTED} {each("entity_sentence l", "l.sentence_id = wanted.id")}
        ), named AS MATERIALIZED (
            SELECT e.id, e.surface, (SELECT count(*) FROM (
                SELECT FROM entity_sentence l
                WHERE l.collection_id = %(collection)s AND l.entity_id = e.id LIMIT %(most)s
            ) AS counted) AS sentences
            FROM (SELECT DISTINCT entity_id AS id FROM link) AS wanted {each("entity e", "e.id = wanted.id")}
        )
        SELECT s.id, s.passage_id, p.external_id, s.position, s.text, its.entities, its.surfaces, its.counts
        FROM {WANTED} {each("sentence s", "s.id = wanted.id")} {each("passage p", "p.id = s.passage_id")}
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(named.id ORDER BY named.id), '{{}}') AS entities,
                   coalesce(array_agg(named.surface ORDER BY named.id), '{{}}') AS surfaces,
                   coalesce(array_agg(named.sentences ORDER BY named.id), '{{}}') AS counts
            FROM link JOIN named ON named.id = link.entity_id WHERE link.sentence_id = s.id
        ) AS its
        ORDER BY s.id
        """,
        {"collection": collection.id, "ids": list(sentences), "most": most},
    )
    found = {
        row.id: Evidence(
            row.id,
            row.passage_id,
            row.external_id,
            row.position,
            row.text,
            dict(zip(row.entities, row.surfaces, strict=True)),
        )
        for row in rows
    }
    counts = {entity: count for row in rows for entity, count in zip(row.entities, row.counts, strict=True)}
    return found, counts


def _channels(focus: Focus) -> tuple[str, ...]:
    """The channels whose memories have a say."""
    if not focus.use_memory:
        return ()
    return ("task",) if focus.time_vector is None else ("task", "time")


def _factor_columns(focus: Focus) -> str:
    """Perplexity and similarity of each channel, as if nothing were known where it has no say; and the days."""
    columns = []
    for channel, vector in _VECTORS.items():
        perplexity, similarity = "1::float8", "0::float8"
        if channel in _channels(focus):
            perplexity = (_GATED if focus.policy.gated else _UNGATED).format(channel=channel)
            similarity = f"coalesce(-({channel}.vector <#> %({vector})s), 0)"
        columns.append(f"{perplexity} AS {channel}_perplexity, {similarity} AS {channel}_similarity")
    return ", ".join([*columns, *([DAYS] if focus.asked else [])])


def _weight(focus: Focus) -> str:
    """What sentences are ordered by where all have one activation, see ``propagation.sentence_weights``."""
    if not focus.use_memory:
        return "semantic"
    task = "(task_similarity - semantic)" if focus.policy.learned_only else "task_similarity"
    return f"semantic * (1 + (1 - task_perplexity) * {task}) * (1 + (1 - time_perplexity) * time_similarity)"


def _factors(focus: Focus) -> str:
    """What the factors of a few sentences are read from."""
    memories = (
        each(f"sentence_memory {one}", f"{one}.sentence_id = s.id AND {one}.channel = '{one}'", outer=True)
        for one in _channels(focus)
    )
    return "".join([*memories, *([_TIME] if focus.asked else [])])


def _all_factors(focus: Focus) -> str:
    """What the factors of all sentences of a collection are read from: joined, they cost a third less."""
    memories = (_ALL_MEMORY.format(channel=channel) for channel in _channels(focus))
    return "".join([*memories, *([_ALL_TIMES] if focus.asked else [])])


def _candidates(focus: Focus, rows: Sequence[Any]) -> Candidates:
    ids = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2)
    numbers = np.array([row[2:] for row in rows], dtype=np.float64).reshape(len(rows), -1 if rows else 6)
    order = np.argsort(ids[:, 0])
    ids, numbers = ids[order], numbers[order]
    agreed = agreement(focus.asked, numbers[:, 6], numbers[:, 7]) if focus.asked and rows else np.zeros(len(rows))
    return Candidates(ids[:, 0], ids[:, 1], *np.column_stack([numbers[:, :6], agreed]).T)
