"""Learned weights of each model: a sum, and the term of every event in it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram.core.learning import caps as caps_of
from engram.core.ranking.weight_beliefs import PriorIdentity, WeightEvidence, build_empty_evidence
from engram.storage.carried_statements import CarriedStatement
from engram.storage.column_parameters import Numbers, decode_column, floats, integers
from engram.storage.database import Reader, Writer
from engram.storage.judge_days import format_day, on_day
from engram.storage.row_lookups import alias_rows, id_rows, join_by_index

Days = set[tuple[PriorIdentity, str, str]]
"""What is believed, judge and day (UTC), as 2026-05-01."""


@dataclass(frozen=True, slots=True)
class LearnedWeights:
    """The sum over ``events`` verdicts."""

    evidence: WeightEvidence
    events: int


@dataclass(frozen=True, slots=True)
class WeightTerm:
    """Term of one event in a model's weights.

    Attributes:
        judge, day: whose verdict it is, and of which day (UTC), as 2026-05-01.
        cap: the judge's verdicts of a day that count; None: all.
        contested: whether it goes against what other judges said; such a verdict does not count at all.
        noise: R of the verdict.
        surprise: in [0, 1], the probability that the prior gave to what the verdict denies.
    """

    event_id: int
    judge: str
    day: str
    cap: int | None
    evidence: WeightEvidence
    noise: float
    surprise: float
    contested: bool = False


def find(reader: Reader, collection_id: int, prior: PriorIdentity) -> LearnedWeights | None:
    """Return the weights learned from this prior; None if nothing was learned."""
    return _load_weights(reader, collection_id, prior, "")


def find_all(
    reader: Reader, collection_id: int, priors: Collection[PriorIdentity]
) -> dict[PriorIdentity, LearnedWeights]:
    """Return the weights learned from each of these priors, in one statement."""
    statement = build_query_of_all(priors)
    rows = reader.rows(statement.statement, {"collection": collection_id, **statement.parameters})
    return collect_weights([row._asdict() for row in rows], priors)


def build_query_of_all(priors: Collection[PriorIdentity]) -> CarriedStatement:
    """The statement whose rows ``collect_weights`` takes."""
    return CarriedStatement(
        """
        SELECT model, prior, information, precision, events FROM learned_weights
        WHERE collection_id = %(collection)s AND model = ANY(%(models)s) AND prior = ANY(%(priors)s)
        """,
        {"models": [prior.model for prior in priors], "priors": [prior.prior for prior in priors]},
    )


def collect_weights(
    rows: Sequence[Mapping[str, Any]], priors: Collection[PriorIdentity]
) -> dict[PriorIdentity, LearnedWeights]:
    """Return the learned weights in these rows, by prior."""
    learned = {
        PriorIdentity(row["model"], row["prior"]): _sum(row["information"], row["precision"], row["events"])
        for row in rows
    }
    return {prior: learned[prior] for prior in priors if prior in learned}


def add(writer: Writer, collection_id: int, prior: PriorIdentity, terms: Sequence[WeightTerm]) -> None:
    """Keep each term with its event, and add those that are within their judges' caps, in the given order."""
    size = len(terms[0].evidence.information)
    stored = _load_weights(writer, collection_id, prior, "FOR UPDATE") or _begin_sum(
        writer, collection_id, prior, size
    )
    total = stored.evidence
    counted = _count_terms(writer, collection_id, prior, terms)
    for term in terms:
        if counted[term.event_id]:
            total = total + term.evidence
    events = stored.events + sum(counted.values())
    replace(writer, collection_id, prior, LearnedWeights(total, events) if events else None)
    # All rows' numbers come in one array, from which each row cuts its own: unnest takes arrays of arrays apart to
    # the last number.
    writer.execute(
        """
        INSERT INTO weight_audit
            (collection_id, event_id, model, prior, observation_noise, surprise, information, precision, counted,
             contested)
        SELECT %(collection)s, new.event, %(model)s, %(prior)s, new.noise, new.surprise,
               (%(information)s::float8[])[(new.n - 1) * %(size)s + 1 : new.n * %(size)s],
               (%(precision)s::float8[])[(new.n - 1) * %(size)s * %(size)s + 1 : new.n * %(size)s * %(size)s],
               new.counted, new.contested
        FROM unnest(%(events)s::bigint[], %(noises)s::float8[], %(surprises)s::float8[], %(counted)s::boolean[],
                    %(contested)s::boolean[])
            WITH ORDINALITY AS new(event, noise, surprise, counted, contested, n)
        """,
        {
            **_prior_key(collection_id, prior),
            "size": size,
            "events": integers(term.event_id for term in terms),
            "noises": floats(term.noise for term in terms),
            "surprises": floats(term.surprise for term in terms),
            "information": Numbers(np.concatenate([term.evidence.information for term in terms])),
            "precision": Numbers(np.concatenate([term.evidence.precision.ravel() for term in terms])),
            "counted": Numbers(np.array([counted[term.event_id] for term in terms], dtype=np.bool_)),
            "contested": Numbers(np.array([term.contested for term in terms], dtype=np.bool_)),
        },
    )


def _begin_sum(writer: Writer, collection_id: int, prior: PriorIdentity, size: int) -> LearnedWeights:
    """Its sum, made of nothing if nobody else made it meanwhile, and locked."""
    writer.execute(
        """
        INSERT INTO learned_weights (collection_id, model, prior, information, precision)
        VALUES (%(collection)s, %(model)s, %(prior)s, %(information)s, %(precision)s) ON CONFLICT DO NOTHING
        """,
        _prior_key(collection_id, prior) | _columns(build_empty_evidence(size)),
    )
    stored = _load_weights(writer, collection_id, prior, "FOR UPDATE")
    if stored is None:
        raise RuntimeError("a row that was just written is not there")
    return stored


def _count_terms(
    writer: Writer, collection_id: int, prior: PriorIdentity, terms: Sequence[WeightTerm]
) -> dict[int, bool]:
    """Event -> whether its term is within its judge's cap of the day. Its sum is locked."""
    own: dict[tuple[str, str], list[WeightTerm]] = {}
    for term in terms:
        own.setdefault((term.judge, term.day), []).append(term)
    caps = {
        judge_day: [caps_of.find_weight_limit(term.cap, contested=term.contested) for term in those]
        for judge_day, those in own.items()
    }
    # More than the highest cap makes no difference, so the count need not go through a whole day.
    most = [max((cap for cap in those if cap is not None), default=0) for those in caps.values()]
    rows = writer.rows(
        f"""
        SELECT asked.judge, asked.day, (
            SELECT count(*) FROM (
                SELECT FROM feedback_event event {join_by_index("weight_audit term", "term.event_id = event.id")}
                WHERE event.collection_id = %(collection)s AND event.judge = asked.judge
                  AND {on_day("asked.day")}
                  AND event.status = 'applied' AND term.model = %(model)s AND term.prior = %(prior)s
                  AND term.counted
                ORDER BY event.received_at LIMIT asked.most
            ) AS earlier
        ) AS before
        FROM unnest(%(judges)s::text[], %(days)s::text[], %(most)s::bigint[]) AS asked(judge, day, most)
        """,
        {
            **_prior_key(collection_id, prior),
            "judges": [judge for judge, _ in own],
            "days": [day for _, day in own],
            "most": most,
        },
    )
    counted: dict[int, bool] = {}
    for row in rows:
        judge_day = row.judge, row.day
        events = (term.event_id for term in own[judge_day])
        counted |= dict(zip(events, caps_of.select_within_limit(caps[judge_day], row.before), strict=True))
    return counted


def recount(writer: Writer, collection_id: int, prior: PriorIdentity, days: Collection[tuple[str, str]]) -> None:
    """Recompute which terms of these (judge, day) count. The caller holds the lock on the prior's sum."""
    for judge, day in sorted(days):
        rows = terms_of_day(writer, collection_id, prior, judge, day)
        counts = caps_of.select_within_limit([cap for _, cap, _ in rows])
        changed = [(event, counts[at]) for at, (event, _, counted) in enumerate(rows) if counts[at] != counted]
        writer.execute(
            f"""
            UPDATE weight_audit term SET counted = new.counted
            FROM {alias_rows("unnest(%(events)s::bigint[], %(counted)s::boolean[]) AS given(event_id, counted)")}
            WHERE term.collection_id = new.collection_id AND term.event_id = new.event_id
              AND term.model = %(model)s
            """,
            {
                **_prior_key(collection_id, prior),
                "events": [event for event, _ in changed],
                "counted": [counts for _, counts in changed],
            },
        )


def terms_of_day(
    reader: Reader, collection_id: int, prior: PriorIdentity, judge: str, day: str
) -> list[tuple[int, int | None, bool]]:
    """(event, cap, whether it counts) of a judge's terms of a day, in the order of application."""
    rows = reader.rows(
        f"""
        SELECT event.id, event.daily_weight_verdicts AS cap, term.contested, term.counted
        FROM feedback_event event {join_by_index("weight_audit term", "term.event_id = event.id")}
        WHERE event.collection_id = %(collection)s AND event.judge = %(judge)s
          AND {on_day("%(day)s")}
          AND event.status = 'applied' AND term.model = %(model)s AND term.prior = %(prior)s
        ORDER BY event.applied_sequence
        """,
        {**_prior_key(collection_id, prior), "judge": judge, "day": day},
    )
    return [(row.id, caps_of.find_weight_limit(row.cap, contested=row.contested), row.counted) for row in rows]


def _load_weights(reader: Reader, collection_id: int, prior: PriorIdentity, lock: str) -> LearnedWeights | None:
    row = reader.row(
        f"""
        SELECT array_send(information) AS information, array_send(precision) AS precision, events
        FROM learned_weights WHERE collection_id = %(collection)s AND model = %(model)s AND prior = %(prior)s {lock}
        """,
        _prior_key(collection_id, prior),
    )
    if row is None:
        return None
    return _sum(decode_column(row.information, np.float64), decode_column(row.precision, np.float64), row.events)


def _sum(information: ArrayLike, precision: ArrayLike, events: int) -> LearnedWeights:
    vector = np.array(information, dtype=np.float64)
    return LearnedWeights(
        WeightEvidence(vector, np.array(precision, dtype=np.float64).reshape(len(vector), -1)), events
    )


def _prior_key(collection_id: int, prior: PriorIdentity) -> dict[str, object]:
    return {"collection": collection_id, "model": prior.model, "prior": prior.prior}


def _columns(evidence: WeightEvidence) -> dict[str, Numbers]:
    return {"information": Numbers(evidence.information), "precision": Numbers(evidence.precision.ravel())}


def withdraw(writer: Writer, collection_id: int, events: Sequence[int]) -> Days:
    """Remove the events' terms, which lets later ones of their judges count; whose sums and days change by it."""
    rows = writer.rows(
        f"""
        DELETE FROM weight_audit term
        USING {id_rows("events")} {join_by_index("feedback_event event", "event.id = wanted.id")}
        WHERE term.collection_id = wanted.collection_id AND term.event_id = wanted.id
        RETURNING term.model, term.prior, event.judge, event.received_at
        """,
        {"collection": collection_id, "events": list(events)},
    )
    return {(PriorIdentity(row.model, row.prior), row.judge, format_day(row.received_at)) for row in rows}


def contest(writer: Writer, collection_id: int, questions: Sequence[int], contested: Collection[int]) -> Days:
    """Mark the terms of the events ``contested`` among these questions' events, and no others, as contested."""
    rows = writer.rows(
        f"""
        UPDATE weight_audit term SET contested = term.event_id = ANY(%(contested)s)
        FROM {id_rows("questions")} {join_by_index("feedback_event event", "event.question_id = wanted.id")}
        WHERE term.collection_id = wanted.collection_id AND term.event_id = event.id
          AND term.contested <> (term.event_id = ANY(%(contested)s))
        RETURNING term.model, term.prior, event.judge, event.received_at
        """,
        {"collection": collection_id, "questions": list(questions), "contested": sorted(contested)},
    )
    return {(PriorIdentity(row.model, row.prior), row.judge, format_day(row.received_at)) for row in rows}


def settle(writer: Writer, collection_id: int, days: Days) -> list[PriorIdentity]:
    """Say anew which terms of these days count; whose sums change by it, in order, each locked."""
    changed = sorted({prior for prior, _, _ in days})
    for prior in changed:
        _load_weights(writer, collection_id, prior, "FOR UPDATE")
        recount(writer, collection_id, prior, {(judge, day) for owner, judge, day in days if owner == prior})
    return changed


def replace(writer: Writer, collection_id: int, prior: PriorIdentity, learned: LearnedWeights | None) -> None:
    """Make this its sum; None: nothing is learned from it any more."""
    parameters = _prior_key(collection_id, prior)
    if learned is None:
        writer.execute(
            """
            DELETE FROM learned_weights
            WHERE collection_id = %(collection)s AND model = %(model)s AND prior = %(prior)s
            """,
            parameters,
        )
        return
    # There may be no row: one goes with the last term that counts, and a term may come to count by a revocation.
    writer.execute(
        """
        INSERT INTO learned_weights (collection_id, model, prior, information, precision, events, updated_at)
        VALUES (%(collection)s, %(model)s, %(prior)s, %(information)s, %(precision)s, %(events)s, now())
        ON CONFLICT (collection_id, model, prior) DO UPDATE SET information = excluded.information,
            precision = excluded.precision, events = excluded.events, updated_at = excluded.updated_at
        """,
        parameters | _columns(learned.evidence) | {"events": learned.events},
    )


def list_confirmed_answers(
    reader: Reader, collection_id: int, prior: PriorIdentity, size: int, limit: int
) -> NDArray[np.float64]:
    """Features of the latest ``limit`` answers that a counted verdict called sufficient, (n, size).

    A term's precision is c x xᵀ / R with the first feature 1, so its first row is a multiple of the features x. The
    last number of its information is above 0 if the answer was enough (``sufficiency.build_counted_observation``).
    """
    rows = reader.rows(
        """
        SELECT array_send(audit.precision[1:%(size)s]) AS multiple
        FROM weight_audit audit
        WHERE audit.collection_id = %(collection)s AND audit.model = %(model)s AND audit.prior = %(prior)s
          AND audit.counted AND audit.information[%(size)s + 1] > 0
        ORDER BY audit.event_id DESC LIMIT %(limit)s
        """,
        {"collection": collection_id, "size": size, "limit": limit, **asdict(prior)},
    )
    multiples = np.array([decode_column(row.multiple, np.float64) for row in rows], dtype=np.float64)
    return np.asarray(multiples.reshape(-1, size) / multiples.reshape(-1, size)[:, :1])
