"""What verdicts taught a collection about its ranking weights: a sum, and the term of every event in it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.core.belief import Evidence, no_evidence
from app.storage.database import Reader, Writer


@dataclass(frozen=True, slots=True)
class Learned:
    """The sum over ``events`` verdicts."""

    evidence: Evidence
    events: int


@dataclass(frozen=True, slots=True)
class WeightTerm:
    """What one event added.

    Attributes:
        noise: R of the verdict.
        surprise: in [0, 1], the probability that the prior gave to a rival of the supported passages.
    """

    event_id: int
    evidence: Evidence
    noise: float
    surprise: float


def find(reader: Reader, collection_id: int, prior: str) -> Learned | None:
    """What the collection learned from this prior on; None if nothing yet."""
    return _learned(reader, collection_id, prior, "")


def add(writer: Writer, collection_id: int, prior: str, terms: Sequence[WeightTerm]) -> None:
    """Add the terms, in the given order, and keep each with its event."""
    parameters = {"collection": collection_id, "prior": prior}
    nothing = no_evidence(len(terms[0].evidence.information))
    writer.execute(
        """
        INSERT INTO ranking_belief (collection_id, prior, information, precision)
        VALUES (%(collection)s, %(prior)s, %(information)s, %(precision)s) ON CONFLICT DO NOTHING
        """,
        parameters | _columns(nothing),
    )
    known = _learned(writer, collection_id, prior, "FOR UPDATE")
    if known is None:
        raise RuntimeError("a row that was just written is not there")
    total = known.evidence
    for term in terms:
        total = total + term.evidence
    writer.execute(
        """
        UPDATE ranking_belief SET information = %(information)s, precision = %(precision)s,
            events = events + %(events)s, updated_at = now()
        WHERE collection_id = %(collection)s AND prior = %(prior)s
        """,
        parameters | _columns(total) | {"events": len(terms)},
    )
    for term in terms:
        writer.execute(
            """
            INSERT INTO ranking_audit
                (collection_id, event_id, prior, observation_noise, surprise, information, precision)
            VALUES (%(collection)s, %(event)s, %(prior)s, %(noise)s, %(surprise)s, %(information)s, %(precision)s)
            """,
            parameters
            | _columns(term.evidence)
            | {"event": term.event_id, "noise": term.noise, "surprise": term.surprise},
        )


def _learned(reader: Reader, collection_id: int, prior: str, lock: str) -> Learned | None:
    row = reader.row(
        f"""
        SELECT information, precision, events FROM ranking_belief
        WHERE collection_id = %(collection)s AND prior = %(prior)s {lock}
        """,
        {"collection": collection_id, "prior": prior},
    )
    if row is None:
        return None
    information = np.array(row.information, dtype=np.float64)
    precision = np.array(row.precision, dtype=np.float64).reshape(len(information), -1)
    return Learned(Evidence(information, precision), row.events)


def _columns(evidence: Evidence) -> dict[str, list[float]]:
    return {"information": evidence.information.tolist(), "precision": evidence.precision.ravel().tolist()}


def withdraw(writer: Writer, collection_id: int, events: Sequence[int]) -> list[str]:
    """Remove the events' terms; the priors whose sums they were part of, in order, each locked."""
    rows = writer.rows(
        """
        DELETE FROM ranking_audit WHERE collection_id = %(collection)s AND event_id = ANY(%(events)s)
        RETURNING prior
        """,
        {"collection": collection_id, "events": list(events)},
    )
    priors = sorted({row[0] for row in rows})
    for prior in priors:
        _learned(writer, collection_id, prior, "FOR UPDATE")
    return priors


def replace(writer: Writer, collection_id: int, prior: str, learned: Learned | None) -> None:
    """Make this the prior's sum; None: nothing is learned from it any more."""
    parameters = {"collection": collection_id, "prior": prior}
    if learned is None:
        writer.execute(
            "DELETE FROM ranking_belief WHERE collection_id = %(collection)s AND prior = %(prior)s", parameters
        )
        return
    writer.execute(
        """
        UPDATE ranking_belief SET information = %(information)s, precision = %(precision)s, events = %(events)s,
            updated_at = now()
        WHERE collection_id = %(collection)s AND prior = %(prior)s
        """,
        parameters | _columns(learned.evidence) | {"events": learned.events},
    )
