"""Beliefs of facts: groups of facts that bear on each other, read for a replay and stored after it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from engram.core.learning.judge_standing import FULL_WEIGHT, NEWCOMERS
from engram.storage.column_parameters import floats, integers
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, alias_rows, id_rows, join_by_index
from engram.wings.facts.core.beliefs import BeliefMove, Fact, FactStatement, Group, Kind
from engram.wings.facts.core.claims import Claim, Days
from engram.wings.facts.core.functional_predicates import FROM_THE_START
from engram.wings.facts.storage.fact_rows import choose_columns


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Key of a group; with the object if the predicate is not functional."""

    graph_id: int
    subject_id: int
    predicate: str
    object_id: int
    object_key: str
    functional: bool


def find_keys(reader: Reader, collection_id: int, fact_ids: Iterable[int]) -> set[GroupKey]:
    """Return the keys of the groups that these facts belong to."""
    is_functional = "coalesce(p.functional, f.predicate = ANY(%(functional)s::text[]))"
    ends = choose_columns(reader)
    rows = reader.rows(
        f"""
        SELECT DISTINCT f.graph_id, f.{ends.subject} AS subject_id, f.predicate, {is_functional} AS functional,
               CASE WHEN {is_functional} THEN 0 ELSE f.{ends.object} END AS object_id,
               CASE WHEN {is_functional} THEN '' ELSE f.object_key END AS object_key
        FROM {WANTED_IDS} {join_by_index("fact f", "f.id = wanted.id")}
        {join_by_index("fact_predicate p", "p.graph_id = f.graph_id AND p.predicate = f.predicate", outer=True)}
        """,
        {"collection": collection_id, "ids": sorted(set(fact_ids)), "functional": sorted(FROM_THE_START)},
    )
    return {GroupKey(**row._asdict()) for row in rows}


def groups(reader: Reader, collection_id: int, keys: Iterable[GroupKey]) -> list[Group]:
    """The facts of these groups, in id order, and all that was said of them, in its order; no empty group."""
    ordered_keys = list(keys)
    claims: dict[GroupKey, list[Claim]] = defaultdict(list)
    key_by_fact: dict[int, GroupKey] = {}
    for row in _members(reader, collection_id, ordered_keys):
        key = ordered_keys[row.n - 1]
        claims[key].append(Claim(row.id, _object(row), row.valid_from, row.valid_to))
        key_by_fact[row.id] = key
    words: dict[GroupKey, list[FactStatement]] = defaultdict(list)
    for word in sorted(
        [
            *_load_source_statements(reader, collection_id, key_by_fact),
            *_load_event_statements(reader, collection_id, key_by_fact),
        ],
        key=lambda word: word.sequence,
    ):
        words[key_by_fact[word.fact_id]].append(word)
    return [
        Group(sorted(rows, key=lambda claim: claim.fact_id), words[key], key.functional)
        for key, rows in claims.items()
    ]


def _members(reader: Reader, collection_id: int, keys: Sequence[GroupKey]) -> Sequence[Any]:
    ends = choose_columns(reader)
    member = f"f.id, f.{ends.object} AS object_id, f.object_key, f.object_kind, f.valid_from, f.valid_to"
    by_subject = f"f.{ends.subject} = key.subject_id AND f.predicate = key.predicate"
    return reader.rows(
        f"""
        WITH key AS MATERIALIZED (
            SELECT * FROM unnest(%(subjects)s::bigint[], %(predicates)s::text[], %(objects)s::bigint[],
                                 %(keys)s::text[], %(functional)s::boolean[])
                WITH ORDINALITY AS key(subject_id, predicate, object_id, object_key, functional, n)
        )
        SELECT key.n, {member} FROM key {join_by_index("fact f", by_subject)}
        WHERE key.functional OR (key.object_id = 0 AND f.object_key = key.object_key AND f.object_id = 0)
        UNION ALL
        SELECT key.n, {member} FROM key
        {join_by_index("fact f", f"f.{ends.object} = key.object_id AND {by_subject}")}
        WHERE NOT key.functional AND key.object_id <> 0
        """,
        {
            "collection": collection_id,
            "subjects": integers(key.subject_id for key in keys),
            "predicates": [key.predicate for key in keys],
            "objects": integers(key.object_id for key in keys),
            "keys": [key.object_key for key in keys],
            "functional": [key.functional for key in keys],
        },
    )


def object_key(kind: str, text: str, days: Days | None, normalised: str) -> str:
    """Return the key that equal objects share if they are no entities; for a date its days."""
    return normalised if kind != "date" or days is None else f"{days.start}/{days.end}"


def _object(row: Any) -> object:
    if row.object_id:
        return row.object_id
    if row.object_kind == "date":
        start, separator, end = row.object_key.partition("/")
        if separator and start.isdigit() and end.isdigit():
            return Days(int(start), int(end))
    return row.object_key


def _load_source_statements(reader: Reader, collection_id: int, fact_ids: Iterable[int]) -> list[FactStatement]:
    """Load the sources of these facts, withdrawn ones too, as statements; in no order."""
    rows = reader.rows(
        f"""
        SELECT s.fact_id, s.sequence, s.passage_id, said.source, s.learned_at, s.observation_noise_positive,
               s.observation_noise_negative, s.process_noise, left_by.sequence AS withdrawn,
               left_by.received_at AS withdrawn_at
        FROM {WANTED_IDS} {join_by_index("fact_source s", "s.fact_id = wanted.id")}
        {join_by_index("fact_event left_by", "left_by.id = s.withdrawn_by", outer=True)}
        {join_by_index("fact_statement said", "said.id = s.statement_id")}
        """,
        {"collection": collection_id, "ids": list(fact_ids)},
    )
    return [
        FactStatement(
            sequence=row.sequence,
            fact_id=row.fact_id,
            kind="source",
            who=f"source {row.source}" if row.passage_id is None else f"passage {row.passage_id}",
            day=_day(row.learned_at),
            at=row.learned_at,
            positive=row.observation_noise_positive,
            negative=row.observation_noise_negative,
            process_noise=row.process_noise,
            withdrawn=row.withdrawn,
            withdrawn_at=row.withdrawn_at,
        )
        for row in rows
    ]


def _load_event_statements(reader: Reader, collection_id: int, fact_ids: Iterable[int]) -> list[FactStatement]:
    """Load the applied events on these facts as statements; in no order.

    Whoever sees some passages only is not told what a judge wrote.
    """
    rows = reader.rows(
        f"""
        SELECT e.* FROM {WANTED_IDS}
        {join_by_index("fact_event e", "e.fact_id = wanted.id")} WHERE e.status = 'applied'
        """,
        {"collection": collection_id, "ids": list(fact_ids)},
    )
    return [
        FactStatement(
            sequence=row.sequence,
            fact_id=row.fact_id,
            kind=cast(Kind, row.kind),
            who=NEWCOMERS if row.standing < FULL_WEIGHT else row.judge,
            day=_day(row.received_at),
            at=row.received_at,
            positive=row.observation_noise_positive,
            negative=row.observation_noise_negative,
            process_noise=row.process_noise,
            share=row.daily_share,
            contested_share=row.contested_share,
            other=row.other_id,
            until=row.valid_until,
            reason=row.reason if reader.reader_sets is None else "closed",
        )
        for row in rows
    ]


def list_moments(groups: Iterable[Group]) -> dict[int, datetime]:
    """List when each thing was said of groups, or withdrawn, by its sequence."""
    words = [word for group in groups for word in group.words]
    moments = {word.sequence: word.at for word in words}
    return moments | {word.withdrawn: word.withdrawn_at for word in words if word.withdrawn and word.withdrawn_at}


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()


def store(
    writer: Writer,
    collection_id: int,
    facts: Mapping[int, Fact],
    moves: Sequence[BeliefMove],
    at: Mapping[int, datetime],
) -> None:
    """Put what a replay came to in the place of what was stored.

    Args:
        at: sequence -> when it was said.
    """
    states = list(facts.values())
    writer.execute(
        f"""
        UPDATE fact SET belief = new.belief, perplexity = new.perplexity, observations = new.observations,
            held_until = new.held_until, closed_at = new.closed_at, closed_reason = new.closed_reason,
            superseded_by = new.superseded_by
        FROM {
            alias_rows(
                "unnest(%(ids)s::bigint[], %(beliefs)s::float8[], %(perplexities)s::float8[],"
                " %(observations)s::int[], %(held)s::int[], %(closed)s::timestamptz[],"
                " %(reasons)s::text[], %(superseded)s::bigint[])"
                " AS row(id, belief, perplexity, observations, held_until, closed_at, closed_reason, superseded_by)"
            )
        }
        WHERE fact.collection_id = new.collection_id AND fact.id = new.id
        """,
        {
            "collection": collection_id,
            "ids": integers(fact.fact_id for fact in states),
            "beliefs": floats(fact.belief for fact in states),
            "perplexities": floats(fact.perplexity for fact in states),
            "observations": [fact.observations for fact in states],
            "held": [fact.held_until for fact in states],
            "closed": [fact.closed_at for fact in states],
            "reasons": [fact.closed_reason for fact in states],
            "superseded": [fact.superseded_by for fact in states],
        },
    )
    writer.execute(
        f"""
        DELETE FROM fact_audit a USING {WANTED_IDS}
        WHERE a.collection_id = wanted.collection_id AND a.fact_id = wanted.id
        """,
        {"collection": collection_id, "ids": list(facts)},
    )
    writer.execute(
        """
        INSERT INTO fact_audit (collection_id, fact_id, sequence, target, observation_noise, gain, residual,
                                perplexity_before, perplexity_after, belief, at)
        SELECT %(collection)s, row.* FROM unnest(
            %(facts)s::bigint[], %(sequences)s::bigint[], %(targets)s::int[], %(noises)s::float8[],
            %(gains)s::float8[], %(residuals)s::float8[], %(before)s::float8[], %(after)s::float8[],
            %(beliefs)s::float8[], %(at)s::timestamptz[]
        ) AS row
        """,
        {
            "collection": collection_id,
            "facts": integers(move.fact_id for move in moves),
            "sequences": integers(move.sequence for move in moves),
            "targets": [move.target for move in moves],
            "noises": floats(move.observation_noise for move in moves),
            "gains": floats(move.gain for move in moves),
            "residuals": floats(move.residual for move in moves),
            "before": floats(move.perplexity_before for move in moves),
            "after": floats(move.perplexity_after for move in moves),
            "beliefs": floats(move.belief for move in moves),
            "at": [at[move.sequence] for move in moves],
        },
    )


def load_beliefs(reader: Reader, collection_id: int, fact_ids: Iterable[int]) -> dict[int, Fact]:
    """Return the stored beliefs of facts."""
    rows = reader.rows(
        f"""
        SELECT f.id AS fact_id, f.belief, f.perplexity, f.observations, f.held_until, f.closed_at, f.closed_reason,
               f.superseded_by
        FROM {WANTED_IDS} {join_by_index("fact f", "f.id = wanted.id")}
        """,
        {"collection": collection_id, "ids": list(fact_ids)},
    )
    return {row.fact_id: Fact(**row._asdict()) for row in rows}


def load_moves(reader: Reader, collection_id: int, fact_ids: Iterable[int]) -> dict[tuple[int, int], BeliefMove]:
    """(Fact, sequence) -> the audit as it is stored."""
    rows = reader.rows(
        f"""
        SELECT a.fact_id, a.sequence, a.target, a.observation_noise, a.gain, a.residual, a.perplexity_before,
               a.perplexity_after, a.belief
        FROM {WANTED_IDS} {join_by_index("fact_audit a", "a.fact_id = wanted.id")}
        """,
        {"collection": collection_id, "ids": list(fact_ids)},
    )
    return {(row.fact_id, row.sequence): BeliefMove(**row._asdict()) for row in rows}


def list_next(reader: Reader, collection_id: int, after: int, limit: int) -> list[int]:
    """The next facts in id order."""
    rows = reader.rows(
        """
        SELECT id FROM fact WHERE collection_id = %(collection)s AND id > %(after)s ORDER BY id LIMIT %(limit)s
        """,
        {"collection": collection_id, "after": after, "limit": limit},
    )
    return [row.id for row in rows]


def list_by_predicate(reader: Reader, collection_id: int, graph_id: int, predicates: Iterable[str]) -> list[int]:
    """All facts of these predicates."""
    rows = reader.rows(
        f"""
        SELECT f.id FROM {id_rows("predicates", "text")}
        {join_by_index("fact f", "f.graph_id = %(graph)s AND f.predicate = wanted.id")} ORDER BY f.id
        """,
        {"collection": collection_id, "graph": graph_id, "predicates": list(predicates)},
    )
    return [row.id for row in rows]


def find_without_source(reader: Reader, collection_id: int, fact_ids: Iterable[int]) -> set[int]:
    """Return the facts without a source."""
    rows = reader.rows(
        f"""
        SELECT f.id FROM {WANTED_IDS} {join_by_index("fact f", "f.id = wanted.id")}
        WHERE (SELECT held.id FROM fact_source held
               WHERE held.collection_id = %(collection)s AND held.fact_id = f.id LIMIT 1) IS NULL
        """,
        {"collection": collection_id, "ids": list(fact_ids)},
    )
    return {row.id for row in rows}
