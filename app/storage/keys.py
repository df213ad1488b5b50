"""What verdicts taught a collection's passage keys: units, credits, expansion memories, evolved keys.

Scores are never kept apart from their reasons: a (passage, unit) score is the sum of its events' credits, in the
order of the events' ids, so it does not depend on who applied what first. Memories and evolved keys are made from
those sums. ``lock`` comes before everything here that writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.storage.database import Reader, Writer

Vector = NDArray[np.float32]

CREDITS_AT_ONCE = 10_000
"""Credits that one statement writes: each checks three foreign keys."""


@dataclass(frozen=True, slots=True)
class Unit:
    """An expansion unit: its embedding has unit length, (d,); ``frequencies`` are its terms."""

    text_hash: bytes
    method: str
    text: str
    embedding: Vector
    frequencies: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a collection's batches have come (ERM, Eqs. 9-10).

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
class Evidence:
    """What an event with expansions amounts to; ``strength`` is the λ its gains were taken with."""

    event_id: int
    gate: str
    gain: float
    strength: float


@dataclass(frozen=True, slots=True)
class Credit:
    """What an event says of one (passage, unit): Δ and w of ERM, Eqs. 5-6."""

    event_id: int
    passage_id: int
    unit_id: int
    gain: float
    weight: float


@dataclass(frozen=True, slots=True)
class Scored:
    """A unit's standing with a passage; ``generation`` is the latest evolution that took in evidence for it."""

    passage_id: int
    unit_id: int
    score: float
    generation: int


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


def lock(writer: Writer, collection_id: int) -> Progress:
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
    return Progress(*row)


def progress(reader: Reader, collection_id: int) -> Progress:
    """How far the collection's batches have come."""
    row = reader.row(
        """
        SELECT batch_events, batch_gain, best_gain, stale_batches, waiting, due FROM key_evolution
        WHERE collection_id = %(collection)s
        """,
        {"collection": collection_id},
    )
    return Progress(0, 0.0, 0.0, 0, 0, None) if row is None else Progress(*row)


def set_progress(writer: Writer, collection_id: int, state: Progress) -> None:
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


def due(reader: Reader) -> list[int]:
    """Collections whose evolution is due."""
    return [row[0] for row in reader.rows("SELECT collection_id FROM key_evolution WHERE due IS NOT NULL")]


def stored_units(reader: Reader, collection_id: int, hashes: Sequence[bytes]) -> dict[bytes, Unit]:
    """Text hash -> unit, for those that are stored."""
    rows = reader.rows(
        """
        SELECT text_hash, method, text, embedding, terms, frequencies FROM expansion_unit
        WHERE collection_id = %(collection)s AND text_hash = ANY(%(hashes)s)
        """,
        {"collection": collection_id, "hashes": list(hashes)},
    )
    return {
        row[0]: Unit(row[0], row[1], row[2], row[3].to_numpy(), dict(zip(row[4], row[5], strict=True)))
        for row in rows
    }


def add_units(writer: Writer, collection_id: int, units: Sequence[Unit]) -> dict[bytes, int]:
    """Store units that are new; text hash -> unit, of all given."""
    for unit in sorted(units, key=lambda unit: unit.text_hash):
        writer.execute(
            """
            INSERT INTO expansion_unit (collection_id, text_hash, method, text, embedding, terms, frequencies)
            VALUES (%(collection)s, %(hash)s, %(method)s, %(text)s, %(embedding)s, %(terms)s,
                    %(frequencies)s::real[])
            ON CONFLICT DO NOTHING
            """,
            {
                "collection": collection_id,
                "hash": unit.text_hash,
                "method": unit.method,
                "text": unit.text,
                "embedding": unit.embedding,
                "terms": list(unit.frequencies),
                "frequencies": [float(frequency) for frequency in unit.frequencies.values()],
            },
        )
    rows = writer.rows(
        """
        SELECT text_hash, id FROM expansion_unit
        WHERE collection_id = %(collection)s AND text_hash = ANY(%(hashes)s)
        """,
        {"collection": collection_id, "hashes": [unit.text_hash for unit in units]},
    )
    return {row[0]: row[1] for row in rows}


def embeddings(reader: Reader, collection_id: int, units: Sequence[int]) -> dict[int, Vector]:
    """Unit -> embedding, unit length, (d,)."""
    rows = reader.rows(
        "SELECT id, embedding FROM expansion_unit WHERE collection_id = %(collection)s AND id = ANY(%(ids)s)",
        {"collection": collection_id, "ids": list(units)},
    )
    return {row[0]: row[1].to_numpy() for row in rows}


def frequencies(reader: Reader, collection_id: int, units: Sequence[int]) -> dict[int, dict[str, float]]:
    """Unit -> term -> how often the unit has it."""
    rows = reader.rows(
        """
        SELECT id, terms, frequencies FROM expansion_unit
        WHERE collection_id = %(collection)s AND id = ANY(%(ids)s)
        """,
        {"collection": collection_id, "ids": list(units)},
    )
    return {row[0]: dict(zip(row[1], row[2], strict=True)) for row in rows}


def lock_bases(writer: Writer, collection_id: int, passages: Sequence[int]) -> dict[int, Vector]:
    """Passage -> dense base key, unit length, (d,); those that exist are kept from deletion, locked in id order."""
    return _dense(writer, collection_id, passages, "FOR KEY SHARE")


def _dense(reader: Reader, collection_id: int, passages: Sequence[int], lock: str = "") -> dict[int, Vector]:
    rows = reader.rows(
        f"""
        SELECT id, embedding FROM passage WHERE collection_id = %(collection)s AND id = ANY(%(ids)s)
        ORDER BY id {lock}
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    return {row[0]: row[1].to_numpy() for row in rows}


def add_evidence(
    writer: Writer, collection_id: int, evidence: Sequence[Evidence], credits: Sequence[Credit]
) -> None:
    """Write what events amount to, in the transaction that applies them."""
    writer.execute(
        """
        INSERT INTO key_evidence (collection_id, event_id, gate, gain, strength)
        SELECT %(collection)s, row.* FROM unnest(
            %(events)s::bigint[], %(gates)s::text[], %(gains)s::float8[], %(strengths)s::float8[]
        ) AS row
        """,
        {
            "collection": collection_id,
            "events": [row.event_id for row in evidence],
            "gates": [row.gate for row in evidence],
            "gains": [row.gain for row in evidence],
            "strengths": [row.strength for row in evidence],
        },
    )
    _write_credits(writer, collection_id, credits)


def replace_credits(writer: Writer, collection_id: int, passages: Sequence[int], credits: Sequence[Credit]) -> None:
    """Put these credits in the place of all that the passages had."""
    writer.execute(
        "DELETE FROM key_credit WHERE collection_id = %(collection)s AND passage_id = ANY(%(ids)s)",
        {"collection": collection_id, "ids": list(passages)},
    )
    _write_credits(writer, collection_id, credits)


def _write_credits(writer: Writer, collection_id: int, credits: Sequence[Credit]) -> None:
    for at in range(0, len(credits), CREDITS_AT_ONCE):
        _write_some_credits(writer, collection_id, credits[at : at + CREDITS_AT_ONCE])


def _write_some_credits(writer: Writer, collection_id: int, credits: Sequence[Credit]) -> None:
    writer.execute(
        """
        INSERT INTO key_credit (collection_id, event_id, passage_id, unit_id, gain, weight)
        SELECT %(collection)s, row.* FROM unnest(
            %(events)s::bigint[], %(passages)s::bigint[], %(units)s::bigint[], %(gains)s::float8[],
            %(weights)s::float8[]
        ) AS row
        """,
        {
            "collection": collection_id,
            "events": [row.event_id for row in credits],
            "passages": [row.passage_id for row in credits],
            "units": [row.unit_id for row in credits],
            "gains": [row.gain for row in credits],
            "weights": [row.weight for row in credits],
        },
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """What a credit is computed from: the event's question (d,) and its λ beside the pair itself."""

    event_id: int
    passage_id: int
    unit_id: int
    strength: float
    question: Vector


def pairs(reader: Reader, collection_id: int, passages: Sequence[int]) -> list[Pair]:
    """Every pair that events credited or weighed and found wanting, by event, passage and unit."""
    rows = reader.rows(
        """
        SELECT credit.event_id, credit.passage_id, credit.unit_id, evidence.strength, episode.embedding
        FROM key_credit credit
        JOIN key_evidence evidence ON evidence.collection_id = credit.collection_id
            AND evidence.event_id = credit.event_id
        JOIN feedback_event event ON event.collection_id = credit.collection_id AND event.id = credit.event_id
        JOIN episode ON episode.collection_id = event.collection_id AND episode.id = event.episode_id
        WHERE credit.collection_id = %(collection)s AND credit.passage_id = ANY(%(ids)s)
        ORDER BY credit.event_id, credit.passage_id, credit.unit_id
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    return [Pair(row[0], row[1], row[2], row[3], row[4].to_numpy()) for row in rows]


# Evidence that counts: it waits for an evolution, or one that is not rolled back took it in.
_COUNTED = """
    FROM key_credit credit
    JOIN key_evidence evidence ON evidence.collection_id = credit.collection_id
        AND evidence.event_id = credit.event_id
    LEFT JOIN key_generation generation ON generation.collection_id = evidence.collection_id
        AND generation.number = evidence.generation
    WHERE credit.collection_id = %(collection)s AND credit.passage_id = ANY(%(passages)s) AND credit.weight > 0
"""
_SCORE = "sum(credit.weight * credit.gain ORDER BY credit.event_id)"


def refresh_memory(
    writer: Writer, collection_id: int, passages: Sequence[int], capacity: int, units: Sequence[int] | None = None
) -> None:
    """Make the passages' memories their ``capacity`` best units, by evidence that was taken in or waits.

    Args:
        units: only these units' scores can have changed, and they can only have risen; None: anything can.
            Then what a memory let go stays below what it holds, so nothing else needs to be summed up.
    """
    writer.execute(
        f"""
        WITH scored AS (
            SELECT credit.passage_id, credit.unit_id, {_SCORE} AS score {_COUNTED}
              AND (evidence.generation IS NULL OR generation.active)
              AND (%(units)s::bigint[] IS NULL OR credit.unit_id = ANY(%(units)s))
            GROUP BY credit.passage_id, credit.unit_id
            UNION ALL
            SELECT passage_id, unit_id, score FROM expansion_memory
            WHERE collection_id = %(collection)s AND passage_id = ANY(%(passages)s)
              AND NOT unit_id = ANY(%(units)s)
        ), best AS MATERIALIZED (
            SELECT passage_id, unit_id, score FROM (
                SELECT scored.*, row_number() OVER (
                    PARTITION BY scored.passage_id ORDER BY scored.score DESC, unit.text_hash
                ) AS place
                FROM scored JOIN expansion_unit unit
                  ON unit.collection_id = %(collection)s AND unit.id = scored.unit_id
            ) AS ranked WHERE place <= %(capacity)s
        ), evicted AS (
            DELETE FROM expansion_memory held
            WHERE held.collection_id = %(collection)s AND held.passage_id = ANY(%(passages)s)
              AND NOT EXISTS (
                  SELECT FROM best WHERE best.passage_id = held.passage_id AND best.unit_id = held.unit_id
              )
        )
        INSERT INTO expansion_memory AS held (collection_id, passage_id, unit_id, score)
        SELECT %(collection)s, best.* FROM best ORDER BY passage_id, unit_id
        ON CONFLICT (collection_id, passage_id, unit_id) DO UPDATE SET score = excluded.score
        WHERE held.score <> excluded.score
        """,
        {
            "collection": collection_id,
            "passages": list(passages),
            "capacity": capacity,
            "units": None if units is None else list(units),
        },
    )


def memory(reader: Reader, collection_id: int, passages: Sequence[int]) -> list[tuple[int, int, float]]:
    """(passage, unit, score) of expansion memories, best first."""
    rows = reader.rows(
        """
        SELECT held.passage_id, held.unit_id, held.score FROM expansion_memory held
        JOIN expansion_unit unit ON unit.collection_id = held.collection_id AND unit.id = held.unit_id
        WHERE held.collection_id = %(collection)s AND held.passage_id = ANY(%(ids)s)
        ORDER BY held.passage_id, held.score DESC, unit.text_hash
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    return [(row[0], row[1], row[2]) for row in rows]


def standing(reader: Reader, collection_id: int, passages: Sequence[int], limit: int) -> list[Scored]:
    """The passages' ``limit`` best units by evidence that evolutions took in, by passage, best first."""
    rows = reader.rows(
        f"""
        SELECT passage_id, unit_id, score, generation FROM (
            SELECT scored.*, row_number() OVER (
                PARTITION BY scored.passage_id ORDER BY scored.score DESC, unit.text_hash
            ) AS place
            FROM (
                SELECT credit.passage_id, credit.unit_id, {_SCORE} AS score,
                       max(max(evidence.generation)) OVER (PARTITION BY credit.passage_id) AS generation
                {_COUNTED} AND generation.active
                GROUP BY credit.passage_id, credit.unit_id
            ) AS scored
            JOIN expansion_unit unit ON unit.collection_id = %(collection)s AND unit.id = scored.unit_id
        ) AS ranked WHERE place <= %(limit)s ORDER BY passage_id, place
        """,
        {"collection": collection_id, "passages": list(passages), "limit": limit},
    )
    return [Scored(*row) for row in rows]


def best(reader: Reader, collection_id: int, passages: Sequence[int], limit: int) -> list[tuple[int, int, float]]:
    """(passage, unit, score) of the passages' ``limit`` best units by all evidence that counts, best first.

    What ``refresh_memory`` makes expansion memories.
    """
    rows = reader.rows(
        f"""
        SELECT passage_id, unit_id, score FROM (
            SELECT scored.*, row_number() OVER (
                PARTITION BY scored.passage_id ORDER BY scored.score DESC, unit.text_hash
            ) AS place
            FROM (
                SELECT credit.passage_id, credit.unit_id, {_SCORE} AS score {_COUNTED}
                  AND (evidence.generation IS NULL OR generation.active)
                GROUP BY credit.passage_id, credit.unit_id
            ) AS scored
            JOIN expansion_unit unit ON unit.collection_id = %(collection)s AND unit.id = scored.unit_id
        ) AS ranked WHERE place <= %(limit)s ORDER BY passage_id, place
        """,
        {"collection": collection_id, "passages": list(passages), "limit": limit},
    )
    return [(row[0], row[1], row[2]) for row in rows]


def waiting_passages(reader: Reader, collection_id: int) -> list[int]:
    """Passages that evidence waits for, in id order."""
    rows = reader.rows(
        """
        SELECT DISTINCT credit.passage_id FROM key_evidence evidence
        JOIN key_credit credit ON credit.collection_id = evidence.collection_id
            AND credit.event_id = evidence.event_id
        WHERE evidence.collection_id = %(collection)s AND evidence.generation IS NULL AND credit.weight > 0
        ORDER BY credit.passage_id
        """,
        {"collection": collection_id},
    )
    return [row[0] for row in rows]


def evolved_passages(reader: Reader, collection_id: int) -> list[int]:
    """Passages that have an evolved key."""
    rows = reader.rows(
        "SELECT passage_id FROM passage_key WHERE collection_id = %(collection)s", {"collection": collection_id}
    )
    return [row[0] for row in rows]


def lock_base_keys(writer: Writer, collection_id: int, passages: Sequence[int]) -> dict[int, Base]:
    """Passage -> its base keys, dense and lexical; see ``lock_bases``."""
    return _with_terms(writer, collection_id, lock_bases(writer, collection_id, passages))


def base_keys(reader: Reader, collection_id: int, passages: Sequence[int]) -> dict[int, Base]:
    """As ``lock_base_keys``, but to look at."""
    return _with_terms(reader, collection_id, _dense(reader, collection_id, passages))


def _with_terms(reader: Reader, collection_id: int, vectors: Mapping[int, Vector]) -> dict[int, Base]:
    rows = reader.rows(
        """
        SELECT held.passage_id, held.length, term.term, posting.frequency
        FROM lexical_passage held
        CROSS JOIN LATERAL unnest(held.term_ids) AS holding(term_id)
        JOIN lexical_term term ON term.collection_id = held.collection_id AND term.id = holding.term_id
        JOIN lexical_posting posting ON posting.collection_id = held.collection_id
            AND posting.term_id = holding.term_id AND posting.passage_id = held.passage_id
        WHERE held.collection_id = %(collection)s AND held.passage_id = ANY(%(ids)s)
        """,
        {"collection": collection_id, "ids": list(vectors)},
    )
    terms: dict[int, dict[str, float]] = {passage: {} for passage in vectors}
    lengths = dict.fromkeys(vectors, 0.0)
    for passage, length, term, frequency in rows:
        if passage in vectors:
            terms[passage][term] = frequency
            lengths[passage] = length
    return {passage: Base(vectors[passage], terms[passage], lengths[passage]) for passage in vectors}


def replace_keys(
    writer: Writer,
    collection_id: int,
    passages: Sequence[int],
    keys: Sequence[EvolvedKey],
    bases: Mapping[int, Base],
) -> None:
    """Make these the evolved keys of the passages; those given none have their base keys again."""
    parameters = {"collection": collection_id, "ids": sorted(passages)}
    writer.execute(
        """
        DELETE FROM passage_key WHERE collection_id = %(collection)s AND passage_id = ANY(%(ids)s)
          AND NOT passage_id = ANY(%(kept)s)
        """,
        parameters | {"kept": [key.passage_id for key in keys]},
    )
    for key in sorted(keys, key=lambda key: key.passage_id):
        writer.execute(
            """
            INSERT INTO passage_key AS held (collection_id, passage_id, generation, vector, units, scores)
            VALUES (%(collection)s, %(passage)s, %(generation)s, %(vector)s, %(units)s, %(scores)s)
            ON CONFLICT (collection_id, passage_id) DO UPDATE SET generation = excluded.generation,
                vector = excluded.vector, units = excluded.units, scores = excluded.scores, updated_at = now()
            """,
            {
                "collection": collection_id,
                "passage": key.passage_id,
                "generation": key.generation,
                "vector": key.vector,
                "units": list(key.units),
                "scores": list(key.scores),
            },
        )
    writer.execute(
        "DELETE FROM evolved_posting WHERE collection_id = %(collection)s AND passage_id = ANY(%(ids)s)",
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


def postings(key: EvolvedKey, base: Base) -> list[Posting]:
    """What an evolved key adds to the lexical search; terms that single precision sees unchanged are left out."""
    length = float(np.float32(base.length))
    raised = []
    for term, increment in key.increments.items():
        held = base.frequencies.get(term, 0.0)
        posting = Posting(
            term, key.passage_id, float(np.float32(held)), float(np.float32(held + increment)), length
        )
        if posting.frequency > posting.base:
            raised.append(posting)
    return raised
