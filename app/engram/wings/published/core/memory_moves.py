"""Moves of sentence memories along the questions of verdicts (GAM-RAG, Eqs. 10-13)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from engram.core.learning.caps import Ids
from engram.core.learning.observations import Observations, Wave, move_states
from engram.core.learning.states import AUDITED, CHANNELS, AuditRows, Vector
from engram.core.learning.steps import BatchObservations
from engram.wings.published.core.memory_filter import MemoryUpdate, normalise_directions, update_memories
from engram.wings.published.core.memory_states import MemoryRows

NO_PLACE = -1
ChannelDirections = Mapping[str, Vector]
"""Channel -> vector that an event moves its memories along, (d,); a channel without one is left alone."""
MemoryRule = Callable[[BatchObservations, Sequence[ChannelDirections], MemoryRows], tuple[MemoryRows, AuditRows]]
"""Rule by which events move memories: ``move_along_questions``, or another one to compare it with."""


class Directions(NamedTuple):
    """Directions along which observations move memories.

    Attributes:
        vectors: k vectors, (d,) each, none of them zero.
        rows: place in ``vectors`` of each observation, (n,).
    """

    vectors: Sequence[Vector]
    rows: Ids


def move_along_questions(
    judged: BatchObservations, directions: Sequence[ChannelDirections], memories: MemoryRows
) -> tuple[MemoryRows, AuditRows]:
    """Move the memories of judged sentences.

    Args:
        judged: the judgements of the batch.
        directions: of each of its events.
        memories: of the judged sentences, each channel that an event may move.

    Returns:
        The states after the last event that moved them, in the order given, and a row for each state and event.

    Raises:
        ValueError: a value is out of its range.
    """
    return move_memories(memories, *observe_memories(judged.observations, directions, memories))


def move_memories(
    memories: MemoryRows, observations: Observations, directions: Directions
) -> tuple[MemoryRows, AuditRows]:
    """Move memories by observations.

    Returns:
        The moved memories, in the order of ``observations.observed_states``, and a row for each observation.

    Raises:
        ValueError: a value is out of its range.
    """
    if not len(observations):
        return MemoryRows.from_rows([]), AuditRows.build_empty()
    states, budgets = observations.states, observations.build_budgets(memories)
    vectors, perplexities = memories.vectors.copy(), memories.perplexities.copy()
    along = normalise_directions(np.stack(directions.vectors))

    def update(places: Ids, wave: Wave) -> MemoryUpdate:
        after = update_memories(
            vectors[states[places]],
            wave.perplexities,
            along[directions.rows[places]],
            wave.targets,
            wave.noise,
            wave.process_noise,
            most=wave.most,
        )
        vectors[states[places]] = after.vectors
        return after

    audit = move_states(observations, budgets, perplexities, update)
    rows = observations.observed_states
    return MemoryRows(
        sentence_ids=memories.sentence_ids[rows],
        channels=memories.channels[rows],
        vectors=vectors[rows],
        perplexities=perplexities[rows],
        update_counts=memories.update_counts[rows] + np.bincount(states)[rows],
        days=budgets.days(rows),
        remaining_shares=budgets.list_remaining_shares(rows),
    ), audit


def observe_memories(
    judged: Observations, directions: Sequence[ChannelDirections], memories: MemoryRows
) -> tuple[Observations, Directions]:
    """Build the observations of memories: see ``move_along_questions``.

    Args:
        judged: a row for each event and sentence.
    """
    places: tuple[dict[int, int], ...] = tuple({} for _ in CHANNELS)
    for at, (sentence, channel) in enumerate(
        zip(memories.sentence_ids.tolist(), memories.channels.tolist(), strict=True)
    ):
        places[channel][sentence] = at
    vectors: list[Vector] = []
    rows_judged, states, channels, rows = list[Ids](), list[Ids](), list[Ids](), list[Ids]()
    for channel, there in zip(CHANNELS, places, strict=True):
        row_of = np.full(len(directions), NO_PLACE)
        for at, own in enumerate(directions):
            if channel in own:
                row_of[at] = len(vectors)
                vectors.append(own[channel])
        place = _ids(there.get(sentence, NO_PLACE) for sentence in judged.sentence_ids.tolist())
        row = row_of[judged.event_places]
        moving = np.flatnonzero((place != NO_PLACE) & (row != NO_PLACE))
        rows_judged.append(moving)
        states.append(place[moving])
        channels.append(np.full(len(moving), AUDITED.index(channel)))
        rows.append(row[moving])
    moving_rows = np.concatenate(rows_judged)
    observed = replace(judged.select(moving_rows), states=np.concatenate(states), channels=np.concatenate(channels))
    return observed, Directions(vectors, np.concatenate(rows))


def _ids(values: Iterable[int]) -> Ids:
    return np.fromiter(values, np.int64)
