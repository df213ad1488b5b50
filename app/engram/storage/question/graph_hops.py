"""Hops over the entity-sentence-passage graph: what entities lead to, vectors never leaving the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.propagation import ReachedSentences
from engram.core.text.temporal import agreement
from engram.storage.carried_statements import as_rows
from engram.storage.column_parameters import decode_column, floats, integers
from engram.storage.database import Reader
from engram.storage.half_vectors import HALVED_QUESTION
from engram.storage.question.query_focus import Focus
from engram.storage.row_lookups import WANTED_IDS, id_rows, join_by_index, join_once
from engram.storage.written_names import WRITTEN_NAME


@dataclass(frozen=True, slots=True)
class SelectedSentence:
    """A sentence that was selected; ``entities`` maps entity -> surface."""

    sentence_id: int
    passage_id: int
    external_id: str
    position: int
    text: str
    entities: dict[int, str]


DAYS = "t.starts_on - DATE '0001-01-01' + 1 AS starts, t.ends_on - DATE '0001-01-01' + 1 AS ends"
"""The days of a ``time_expression t``, numbered as Python's ordinals are."""

# Before the hub limit, or a filter would look only at a hub's first sentences.
_LINKED_SENTENCE = join_by_index("sentence s", "s.id = l.sentence_id")

_REACHED = "ARRAY(SELECT sentence_id FROM reached)"
_TIME = join_by_index("time_expression t", "t.id = s.time_expression_id", outer=True)

_SCOPE = """(
    SELECT p.id FROM passage p WHERE p.collection_id = %(collection)s AND {condition} OFFSET 0
) AS scope"""
_ALL_TIMES = """
    LEFT JOIN time_expression t ON t.collection_id = s.collection_id AND t.id = s.time_expression_id
"""


GIVEN_ENTITIES = "unnest(%(entities)s::bigint[], %(scores)s::float8[]) AS given(entity_id, score)"
_ACTIVE = "active AS MATERIALIZED (SELECT * FROM {given})"
_LINKED = """
    SELECT l.sentence_id FROM entity_sentence l {in_scope}
    WHERE l.collection_id = %(collection)s AND l.entity_id = active.entity_id
    ORDER BY l.sentence_id LIMIT %(hub_limit)s
"""

# The same in a large collection. Whether an entity is a hub is told by whether it has one sentence more. Its
# sentences are read once: a caller who sees few has many passed over.
_ACTIVE_NEAR = f"""
    active AS MATERIALIZED (
        SELECT given.*, found.sentences, cardinality(found.sentences) > %(hub)s AS hub
        FROM {{given}} CROSS JOIN LATERAL (SELECT ARRAY(
            SELECT l.sentence_id FROM entity_sentence l
            WHERE l.collection_id = %(collection)s AND l.entity_id = given.entity_id
            ORDER BY l.sentence_id LIMIT %(hub)s + 1
        ) AS sentences OFFSET 0) AS found
    ), nearby AS MATERIALIZED (
        SELECT l.entity_id, l.sentence_id
        FROM {{near}} {join_by_index("entity_sentence l", "l.passage_id = wanted.id")}
        WHERE (l.entity_id IN (SELECT entity_id FROM active WHERE hub)) IS TRUE
    )
"""
_LINKED_NEAR = """
    (SELECT l.sentence_id FROM unnest(active.sentences) AS l(sentence_id) {in_scope} WHERE NOT active.hub)
    UNION ALL
    (SELECT l.sentence_id FROM nearby l {in_scope} WHERE l.entity_id = active.entity_id
     ORDER BY l.sentence_id LIMIT %(hub_limit)s)
"""
HUB_THRESHOLD = 50
"""Sentences that name an entity, beyond which a large collection reads only those near to the question."""


def find_linked_sentences(
    reader: Reader,
    focus: Focus,
    activation: Mapping[int, float],
    recalled: Sequence[int],
    near: Sequence[int] | None = None,
) -> ReachedSentences:
    """One hop: the sentences that activated entities lead to, with their scalars (Eqs. 4-5).

    Each entity contributes at most ``hub_limit`` sentences and the hop keeps the ``candidate_limit`` most
    activated, before any vector is read. Recalled sentences join them with no activation of their own.

    Args:
        near: passages near the question, where the collection is large: an entity that more than
            ``HUB_THRESHOLD`` sentences name contributes those of these passages, not its oldest.
    """
    candidates = build_link_query(focus, GIVEN_ENTITIES, None if near is None else id_rows("near"))
    row = reader.row(build_reach_query(focus, candidates), build_hop_parameters(focus, activation, recalled, near))
    return read_reach(focus, row)


def build_hop_parameters(
    focus: Focus, activation: Mapping[int, float], recalled: Sequence[int], near: Sequence[int] | None
) -> dict[str, Any]:
    """The parameters of a statement with a ``build_link_query`` of ``GIVEN_ENTITIES`` in it."""
    parameters = {
        "entities": integers(activation),
        "scores": floats(activation.values()),
        "near": integers(near or ()),
    }
    return build_link_parameters(focus, recalled, **parameters)


def build_link_parameters(focus: Focus, recalled: Sequence[int], **more: Any) -> dict[str, Any]:
    """The parameters of a statement with ``build_link_query`` in it."""
    return focus.parameters(
        recalled=integers(recalled),
        hub=HUB_THRESHOLD,
        hub_limit=focus.limits.hub_limit,
        candidate_limit=focus.limits.candidate_limit,
        **more,
    )


def build_link_query(focus: Focus, entity_rows: str, near: str | None, *, candidates: str = "candidates") -> str:
    """Return the CTEs that end in ``candidates``: sentences linked to the entities.

    Args:
        candidates: name of this last one.
        entity_rows: rows ``given(entity_id, score)``.
        near: rows ``wanted(id)``, passages near the question, where hubs contribute sentences of those.
    """
    in_scope = _LINKED_SENTENCE + _build_scope_join(focus) if focus.is_narrowed else ""
    links = (_LINKED if near is None else _LINKED_NEAR).format(in_scope=in_scope)
    active = (_ACTIVE if near is None else _ACTIVE_NEAR).format(given=entity_rows, near=near)
    return f"""
        {active}, linked AS (
            SELECT link.sentence_id, sum(active.score) AS activation
            FROM active CROSS JOIN LATERAL ({links}) AS link
            GROUP BY link.sentence_id ORDER BY activation DESC, link.sentence_id LIMIT %(candidate_limit)s
        ), reached AS MATERIALIZED (
            SELECT sentence_id, activation FROM linked
            UNION ALL
            SELECT extra, 0 FROM unnest(%(recalled)s::bigint[]) AS extra
            WHERE NOT EXISTS (SELECT FROM linked WHERE sentence_id = extra)
        ), {candidates} AS MATERIALIZED (
            SELECT * FROM (
                SELECT s.id, s.passage_id, reached.activation, -(s.embedding <#> {HALVED_QUESTION}) AS semantic
                       {_select_days(focus)}
                FROM reached FULL JOIN {join_once("sentence s", "id", _REACHED)} ON s.id = reached.sentence_id
                {_join_times(focus)} {_build_scope_join(focus)}
                OFFSET 0
            ) AS found WHERE id IS NOT NULL
        )
    """


def find_all_sentences(
    reader: Reader,
    focus: Focus,
    passages: Sequence[int] | None,
    recalled: Sequence[int],
) -> ReachedSentences:
    """Candidates for a question without entities: every sentence with activation 1, the best by similarity.

    Args:
        passages: look only into these passages; None for the whole collection.
        recalled: sentences that are candidates in any case.
    """
    candidates = f"""
        {build_scan_query(focus, passages)}, candidates AS MATERIALIZED (
            (SELECT * FROM scanned ORDER BY semantic DESC, id LIMIT %(candidate_limit)s)
            UNION SELECT * FROM scanned WHERE id = ANY(%(recalled)s::bigint[])
        )
    """
    row = reader.row(build_reach_query(focus, candidates), build_scan_parameters(focus, passages, recalled))
    return read_reach(focus, row)


def build_scan_query(focus: Focus, passages: Sequence[int] | None) -> str:
    """Return the CTE ``scanned``: all sentences of the passages, or of the collection, with activation 1."""
    if passages is not None:
        source = f"{id_rows('passages')} {join_by_index('sentence s', 's.passage_id = wanted.id')}"
        source += f" {_build_scope_join(focus)} {_join_times(focus)}"
    elif focus.is_narrowed:  # how many sentences it leaves is not known, so the rest is looked up
        scope = _SCOPE.format(condition=focus.passage_condition)
        source = f"{scope} {join_by_index('sentence s', 's.passage_id = scope.id')} {_join_times(focus)}"
    else:
        source = f"sentence s {_ALL_TIMES if focus.intervals else ''} WHERE s.collection_id = %(collection)s"
    return f"""
        scanned AS (
            SELECT s.id, s.passage_id, 1::float8 AS activation, -(s.embedding <#> {HALVED_QUESTION}) AS semantic
                   {_select_days(focus)}
            FROM {source}
        )
    """


def build_scan_parameters(focus: Focus, passages: Sequence[int] | None, recalled: Sequence[int]) -> dict[str, Any]:
    """The parameters of a statement with ``build_scan_query`` in it."""
    return focus.parameters(
        passages=None if passages is None else integers(passages),
        recalled=integers(recalled),
        candidate_limit=focus.limits.candidate_limit,
    )


# Of the sentences that are ``chosen``: whom they name, and how they read.
_LINKS = f"""
    link AS MATERIALIZED (
        SELECT l.sentence_id, l.entity_id FROM chosen
        {join_by_index("entity_sentence l", "l.sentence_id = chosen.id")}
    ), named AS MATERIALIZED (
        SELECT e.id, {WRITTEN_NAME} AS surface, (SELECT count(*) FROM (
            SELECT FROM entity_sentence l
            WHERE l.collection_id = %(collection)s AND l.entity_id = e.id LIMIT %(hub_limit)s
        ) AS counted) AS sentences
        FROM (SELECT DISTINCT entity_id AS id FROM link) AS wanted {join_by_index("entity e", "e.id = wanted.id")}
    )
"""
_TEXTS = f"""
    SELECT s.id AS sentence_id, s.passage_id, p.external_id, s.position, s.text
    FROM chosen {join_by_index("sentence s", "s.id = chosen.id")}
    {join_by_index("passage p", "p.id = s.passage_id")}
    ORDER BY s.id
"""
_NAMED = """
    SELECT link.sentence_id, named.id, named.surface, named.sentences
    FROM link JOIN named ON named.id = link.entity_id ORDER BY named.id
"""
_READ = f"{as_rows(_TEXTS)} AS texts, {as_rows(_NAMED)} AS links"


def build_reach_query(
    focus: Focus, candidates: str, *, before: str = "", besides: str = "", more: Sequence[str] = ()
) -> str:
    """Build SQL for all ``candidates``, each column one binary array.

    Args:
        before: tables that these are made from, each with a comma after it.
        besides: more columns of the row, each with a comma before it.
        more: further columns of the candidates.
    """
    own = _columns(focus) | {name: name for name in more}
    columns = (f"array_send(array_agg({value})) AS {name}" for name, value in own.items())
    return f"""
        WITH {before} {candidates}
        SELECT columns.* {besides} FROM (SELECT {", ".join(columns)} FROM candidates) AS columns
    """


def load_sentences(
    reader: Reader, collection_id: int, sentences: Sequence[int], most: int
) -> tuple[dict[int, SelectedSentence], dict[int, int]]:
    """Load text, passage and entities of sentences; and entity -> sentences that name it, at most ``most``."""
    row = reader.row(
        f"WITH chosen AS MATERIALIZED (SELECT wanted.id FROM {WANTED_IDS}), {_LINKS} SELECT {_READ}",
        {"collection": collection_id, "ids": integers(sentences), "hub_limit": most},
    )
    links = row.links or ()
    selected = {text["sentence_id"]: SelectedSentence(**text, entities={}) for text in row.texts or ()}
    for link in links:
        if link["sentence_id"] in selected:
            selected[link["sentence_id"]].entities[link["id"]] = link["surface"]
    counts = {link["id"]: link["sentences"] for link in links if link["sentence_id"] in selected}
    return selected, counts


def _build_scope_join(focus: Focus) -> str:
    """The join of sentences to their passages, if only some of these may be found."""
    if not focus.is_narrowed:
        return ""
    return join_by_index("passage p", f"p.id = s.passage_id AND {focus.passage_condition}")


def _select_days(focus: Focus) -> str:
    """The columns of the days that a sentence speaks of, if the question names some."""
    return f", {DAYS}" if focus.intervals else ""


def _join_times(focus: Focus) -> str:
    """The join of few sentences to these days."""
    return _TIME if focus.intervals else ""


def _columns(focus: Focus) -> dict[str, str]:
    """Return the columns of a candidate, by name, and their SQL."""
    days = {name: f"coalesce({name}::float8, 'NaN')" for name in ("starts", "ends")} if focus.intervals else {}
    return {name: name for name in ("id", "passage_id", "activation", "semantic")} | days


def read_reach(focus: Focus, row: Any) -> ReachedSentences:
    """Read the sentences of the one row of a ``build_reach_query`` statement, in id order."""
    ids = decode_column(row.id, np.int64)
    order = np.argsort(ids)

    def column(name: str) -> NDArray[np.float64]:
        return decode_column(getattr(row, name), np.float64)[order]

    agreed = np.zeros(len(ids))
    if focus.intervals and len(ids):
        agreed = agreement(focus.intervals, column("starts"), column("ends"))
    return ReachedSentences(
        sentence_ids=ids[order],
        passage_ids=decode_column(row.passage_id, np.int64)[order],
        activation=column("activation"),
        semantic=column("semantic"),
        agreement=agreed,
    )
