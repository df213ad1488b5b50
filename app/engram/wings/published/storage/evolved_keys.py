"""Evolution of a collection's passage keys: progress, base keys, and the evolved keys that serve.

``lock`` comes before all that writes what verdicts taught a collection's keys, here and in ``key_credits``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.storage.column_parameters import floats, integers, vectors
from engram.storage.corpus import current_vectors
from engram.storage.database import Reader, Writer
from engram.storage.half_vectors import unhalve
from engram.storage.row_lookups import WANTED_IDS, join_by_index

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EvolutionProgress:
    """Progress of a collection's batches (ERM, Eqs. 9-10).

    Attributes:
        batch_events: validated events in the batch that is not full yet.
        batch_gain: highest alignment gain in that batch, in [0, 2]; 0 while nothing in it helped.
        best_gain: highest ``batch_gain`` of any full batch since the last evolution, in [0, 2].
        stale_batches: full batches in a row that brought nothing better.
        waiting: validated events that no evolution took in yet.
        due: why an evolution is due, "saturated" or "pending"; None if none is.
    """

    batch_events: int
    batch_gain: float
    best_gain: float
    stale_batches: int
    waiting: int
    due: str | None


@dataclass(frozen=True, slots=True)
class Base:
    """A passage's base keys: unit vector (d,), and term -> frequency with their summed length."""

    vector: Vector
    frequencies: Mapping[str, float]
    length: float


@dataclass(frozen=True, slots=True)
class EvolvedKey:
    """A key to serve.

    Attributes:
        generation: the latest evolution that took in evidence for it.
        vector: unit length, (d,).
        units: ids of the units that compose it, best first.
        scores: of these units, parallel to them, above 0.
        increments: what the units add to the passage's term frequencies, by term.
    """

    passage_id: int
    generation: int
    vector: Vector
    units: Sequence[int]
    scores: Sequence[float]
    increments: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Posting:
    """A term of an evolved key, as it is searched; all numbers in single precision.

    Attributes:
        base, frequency: how often the base key and the evolved key have the term, base < frequency.
        length: of the passage, in terms.
    """

    term: str
    passage_id: int
    base: float
    frequency: float
    length: float


def lock(writer: Writer, collection_id: int) -> EvolutionProgress:
    """Be the only one to change the collection's key state until the transaction ends.

    Taken after sentences are locked: whoever learns comes from there.
    """
    parameters = {"collection": collection_id}
    writer.execute(
        "INSERT INTO key_evolution (collection_id) VALUES (%(collection)s) ON CONFLICT DO NOTHING", parameters
    )
    row = writer.row(
        """
        SELECT batch_events, batch_gain, best_gain, stale_batches, waiting, due FROM key_evolution
        WHERE collection_id = %(collection)s FOR UPDATE
        """,
        parameters,
    )
    return EvolutionProgress(**row._asdict())


def progress(reader: Reader, collection_id: int) -> EvolutionProgress:
    """Return the progress of the collection's batches."""
    row = reader.row(
        """
        SELECT batch_events, batch_gain, best_gain, stale_batches, waiting, due FROM key_evolution
        WHERE collection_id = %(collection)s
        """,
        {"collection": collection_id},
    )
    return EvolutionProgress(0, 0.0, 0.0, 0, 0, None) if row is None else EvolutionProgress(**row._asdict())


def set_progress(writer: Writer, collection_id: int, state: EvolutionProgress) -> None:
    """Write the state of a locked collection back."""
    writer.execute(
        """
        UPDATE key_evolution SET batch_events = %(events)s, batch_gain = %(gain)s, best_gain = %(best)s,
            stale_batches = %(stale)s, waiting = %(waiting)s, due = %(due)s
        WHERE collection_id = %(collection)s
        """,
        {
            "collection": collection_id,
            "events": state.batch_events,
            "gain": state.batch_gain,
            "best": state.best_gain,
            "stale": state.stale_batches,
            "waiting": state.waiting,
            "due": state.due,
        },
    )


def list_due(reader: Reader) -> list[int]:
    """Collections whose evolution is due."""
    rows = reader.rows("SELECT collection_id FROM key_evolution WHERE due IS NOT NULL")
    return [row.collection_id for row in rows]


def note_behind(writer: Writer, collection_id: int) -> None:
    """Note that a verdict was applied that taught nothing."""
    writer.execute(
        """
        INSERT INTO key_evolution AS held (collection_id, behind) VALUES (%(collection)s, true)
        ON CONFLICT (collection_id) DO UPDATE SET behind = true WHERE NOT held.behind
        """,
        {"collection": collection_id},
    )


def clear_behind(writer: Writer, collection_id: int) -> None:
    """Note that all applied verdicts taught memories and keys, under ``lock``."""
    writer.execute(
        "UPDATE key_evolution SET behind = false WHERE collection_id = %(collection)s",
        {"collection": collection_id},
    )


def list_behind(reader: Reader) -> list[int]:
    """Collections that learn, and have not learned of all verdicts."""
    rows = reader.rows(
        """
        SELECT key.collection_id FROM key_evolution key JOIN collection ON collection.id = key.collection_id
        WHERE key.behind AND coalesce((collection.published->>'learn')::boolean, true)
        """
    )
    return [row.collection_id for row in rows]


def lock_bases(writer: Writer, collection_id: int, passages: Sequence[int]) -> dict[int, Vector]:
    """Passage -> dense base key, unit length, (d,); those that exist are kept from deletion, locked in id order."""
    return _load_vectors(writer, collection_id, passages, "FOR KEY SHARE OF p")


def _load_vectors(reader: Reader, collection_id: int, passages: Sequence[int], lock: str = "") -> dict[int, Vector]:
    rows = reader.rows(
        f"""
        SELECT p.id, {unhalve("p.embedding")} AS embedding FROM {WANTED_IDS} JOIN passage p
          ON p.collection_id = wanted.collection_id AND p.id = wanted.id
        ORDER BY p.id {lock}
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    return {row.id: row.embedding.to_numpy() for row in rows}


def list_evolved_passages(reader: Reader, collection_id: int) -> list[int]:
    """Passages that have an evolved key."""
    rows = reader.rows(
        "SELECT passage_id FROM passage_key WHERE collection_id = %(collection)s", {"collection": collection_id}
    )
    return [row.passage_id for row in rows]


def lock_base_keys(writer: Writer, collection_id: int, passages: Sequence[int]) -> dict[int, Base]:
    """Passage -> its base keys, dense and lexical; see ``lock_bases``."""
    return _add_terms(writer, collection_id, lock_bases(writer, collection_id, passages))


def base_keys(reader: Reader, collection_id: int, passages: Sequence[int]) -> dict[int, Base]:
    """Read base keys without locking them."""
    return _add_terms(reader, collection_id, _load_vectors(reader, collection_id, passages))


def _add_terms(reader: Reader, collection_id: int, vectors: Mapping[int, Vector]) -> dict[int, Base]:
    """Look up the terms of the passages, and return their base keys with the vectors."""
    in_passage = "posting.term_id = term.id AND posting.passage_id = held.passage_id"
    rows = reader.rows(
        f"""
        SELECT held.passage_id, held.length, term.term, posting.frequency
        FROM {WANTED_IDS} {join_by_index("lexical_passage held", "held.passage_id = wanted.id")}
        CROSS JOIN LATERAL unnest(held.term_ids) AS holding(term_id)
        {join_by_index("lexical_term term", "term.id = holding.term_id")}
        {join_by_index("lexical_posting posting", in_passage)}
        """,
        {"collection": collection_id, "ids": list(vectors)},
    )
    terms: dict[int, dict[str, float]] = {passage: {} for passage in vectors}
    lengths = dict.fromkeys(vectors, 0.0)
    for row in rows:
        terms[row.passage_id][row.term] = row.frequency
        lengths[row.passage_id] = row.length
    return {passage: Base(vectors[passage], terms[passage], lengths[passage]) for passage in vectors}


def replace_keys(
    writer: Writer,
    collection_id: int,
    passages: Sequence[int],
    keys: Sequence[EvolvedKey],
    bases: Mapping[int, Base],
) -> None:
    """Make these the evolved keys of the passages; those given none have their base keys again."""
    current_vectors.renew_evolved_version(writer, collection_id)
    parameters = {"collection": collection_id, "ids": sorted(passages)}
    writer.execute(
        f"""
        DELETE FROM passage_key key USING {WANTED_IDS}
        WHERE key.collection_id = wanted.collection_id AND key.passage_id = wanted.id
          AND NOT key.passage_id = ANY(%(kept)s)
        """,
        parameters | {"kept": [key.passage_id for key in keys]},
    )
    if keys:
        _put_keys(writer, collection_id, keys)
    writer.execute(
        f"""
        DELETE FROM evolved_posting posting USING {WANTED_IDS}
        WHERE posting.collection_id = wanted.collection_id AND posting.passage_id = wanted.id
        """,
        parameters,
    )
    added = [posting for key in keys for posting in postings(key, bases[key.passage_id])]
    writer.execute(
        """
        INSERT INTO evolved_posting (collection_id, term, passage_id, base, frequency, length)
        SELECT %(collection)s, row.* FROM unnest(
            %(terms)s::text[], %(passages)s::bigint[], %(bases)s::real[], %(frequencies)s::real[],
            %(lengths)s::real[]
        ) AS row(term, passage_id, base, frequency, length)
        ORDER BY row.term, row.passage_id
        """,
        {
            "collection": collection_id,
            "terms": [row.term for row in added],
            "passages": [row.passage_id for row in added],
            "bases": [row.base for row in added],
            "frequencies": [row.frequency for row in added],
            "lengths": [row.length for row in added],
        },
    )


def _put_keys(writer: Writer, collection_id: int, keys: Sequence[EvolvedKey]) -> None:
    # All keys' units come in one array, from which each row cuts its own: unnest takes arrays of arrays apart.
    ends = np.cumsum([len(key.units) for key in keys])
    writer.execute(
        """
        INSERT INTO passage_key AS held (collection_id, passage_id, generation, vector, units, scores, updated_at)
        SELECT %(collection)s, new.passage, new.generation, new.vector,
               (%(units)s::bigint[])[new.start + 1 : new.stop], (%(scores)s::float8[])[new.start + 1 : new.stop],
               now()
        FROM unnest(%(passages)s::bigint[], %(generations)s::bigint[], %(vectors)s::vector[], %(starts)s::bigint[],
                    %(stops)s::bigint[]) AS new(passage, generation, vector, start, stop)
        ORDER BY new.passage
        ON CONFLICT (collection_id, passage_id) DO UPDATE SET generation = excluded.generation,
            vector = excluded.vector, units = excluded.units, scores = excluded.scores,
            updated_at = excluded.updated_at
        """,
        {
            "collection": collection_id,
            "passages": integers(key.passage_id for key in keys),
            "generations": integers(key.generation for key in keys),
            "vectors": vectors([key.vector for key in keys]),
            "units": integers(unit for key in keys for unit in key.units),
            "scores": floats(score for key in keys for score in key.scores),
            "starts": integers([0, *ends[:-1]]),
            "stops": integers(ends),
        },
    )


def postings(key: EvolvedKey, base: Base) -> list[Posting]:
    """Return the lexical postings that an evolved key adds, without those that vanish in single precision."""
    length = float(np.float32(base.length))
    raised = []
    for term, increment in key.increments.items():
        frequency = base.frequencies.get(term, 0.0)
        posting = Posting(
            term, key.passage_id, float(np.float32(frequency)), float(np.float32(frequency + increment)), length
        )
        if posting.frequency > posting.base:
            raised.append(posting)
    return raised
