"""Hops that weigh sentences by their memories (GAM-RAG, Eq. 4), vectors never leaving the database."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engram.core.ranking.propagation import ChannelMemories, ReachedSentences
from engram.storage.column_parameters import decode_column
from engram.storage.database import Reader
from engram.storage.question import graph_hops
from engram.storage.question.query_focus import Focus
from engram.storage.row_lookups import id_rows, join_by_index, join_once

_VECTORS = {"task": "q", "time": "q_time"}
"""Channel -> the parameter that its memories are compared with."""
_GATED = "coalesce({channel}.perplexity, 1)"
# For the evaluation: full weight, whatever the certainty, once a verdict has moved the row.
_UNGATED = "(CASE WHEN {channel}.update_count > 0 THEN 0 ELSE 1 END)::float8"
_OF_ALL = """
    LEFT JOIN sentence_memory {channel} ON {channel}.collection_id = %(collection)s
        AND {channel}.sentence_id = scanned.id AND {channel}.channel = '{channel}'
"""


def find_linked_sentences(
    reader: Reader,
    focus: Focus,
    activation: Mapping[int, float],
    recalled: Sequence[int],
    near: Sequence[int] | None = None,
) -> ReachedSentences:
    """Make a hop as ``graph_hops.find_linked_sentences`` does, with memories if these may be read."""
    if not focus.use_memory:
        return graph_hops.find_linked_sentences(reader, focus, activation, recalled, near)
    links = graph_hops.build_link_query(
        focus, graph_hops.GIVEN_ENTITIES, None if near is None else id_rows("near"), candidates="found"
    )
    joins = (
        "FULL JOIN "
        + join_once(
            f"sentence_memory {channel}",
            "sentence_id",
            "ARRAY(SELECT id FROM found)",
            condition=f"{channel}.channel = '{channel}'",
        )
        + f" ON {channel}.sentence_id = found.id"
        for channel in _channels(focus)
    )
    candidates = f"""
        {links}, candidates AS MATERIALIZED (
            SELECT found.*, {_select_memories(focus)} FROM found {" ".join(joins)}
        )
    """
    parameters = graph_hops.build_hop_parameters(focus, activation, recalled, near)
    return _read_reach(focus, reader.row(_build_query(focus, candidates), parameters | _give_time(focus)))


def find_all_sentences(
    reader: Reader, focus: Focus, passages: Sequence[int] | None, recalled: Sequence[int]
) -> ReachedSentences:
    """Find candidates as ``graph_hops.find_all_sentences`` does, by weight (Eq. 4) if memories may be read."""
    if not focus.use_memory:
        return graph_hops.find_all_sentences(reader, focus, passages, recalled)
    if passages is None and not focus.is_narrowed:
        joins = [_OF_ALL.format(channel=channel) for channel in _channels(focus)]
    else:
        joins = [
            join_by_index(
                f"sentence_memory {channel}",
                f"{channel}.sentence_id = scanned.id AND {channel}.channel = '{channel}'",
                outer=True,
            )
            for channel in _channels(focus)
        ]
    weight = " * ".join(
        ["semantic", *(f"(1 + (1 - {one}_perplexity) * {one}_similarity)" for one in _channels(focus))]
    )
    candidates = f"""
        {graph_hops.build_scan_query(focus, passages)}, weighed AS (
            SELECT scanned.*, {_select_memories(focus)} FROM scanned {" ".join(joins)}
        ), candidates AS MATERIALIZED (
            (SELECT * FROM weighed ORDER BY {weight} DESC, id LIMIT %(candidate_limit)s)
            UNION SELECT * FROM weighed WHERE id = ANY(%(recalled)s::bigint[])
        )
    """
    parameters = graph_hops.build_scan_parameters(focus, passages, recalled)
    return _read_reach(focus, reader.row(_build_query(focus, candidates), parameters | _give_time(focus)))


def _channels(focus: Focus) -> tuple[str, ...]:
    """The channels whose memories have a say."""
    return ("task",) if focus.time_vector is None else ("task", "time")


def _select_memories(focus: Focus) -> str:
    """Perplexity and similarity of each channel, as if nothing were known where no verdict touched it."""
    perplexity = _GATED if focus.policy.gated else _UNGATED
    return ", ".join(
        f"{perplexity.format(channel=channel)} AS {channel}_perplexity, "
        f"coalesce(-({channel}.vector <#> %({_VECTORS[channel]})s), 0) AS {channel}_similarity"
        for channel in _channels(focus)
    )


def _columns(focus: Focus) -> list[str]:
    return [f"{channel}_{of}" for channel in _channels(focus) for of in ("perplexity", "similarity")]


def _build_query(focus: Focus, candidates: str) -> str:
    return graph_hops.build_reach_query(focus, candidates, more=_columns(focus))


def _give_time(focus: Focus) -> dict[str, Any]:
    """The parameter that time memories are compared with."""
    return {"q_time": focus.time_vector}


def _read_reach(focus: Focus, row: Any) -> ReachedSentences:
    order = np.argsort(decode_column(row.id, np.int64))
    values = {name: decode_column(getattr(row, name), np.float64)[order] for name in _columns(focus)}
    memories = {
        channel: ChannelMemories(values[f"{channel}_perplexity"], values[f"{channel}_similarity"])
        for channel in _channels(focus)
    }
    return replace(graph_hops.read_reach(focus, row), memories=memories)
