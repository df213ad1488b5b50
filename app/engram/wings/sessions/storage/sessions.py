"""Sessions, their rounds and their evidence pools: each round is written by one transaction, and only once.

Pools are kept as ids; read again, they hold the sentences that there still are. What was made of passages in words
(sub-questions, notes, a planner's state, an answer) goes when one of the passages that a session has read does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from engram.context.tenancy import ReaderNames
from engram.storage.column_parameters import integers
from engram.storage.corpus import collections
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import CLOCK, WANTED_IDS, join_by_index
from engram.wings.sessions.core.session import Round
from engram.wings.sessions.storage import session_erasure

SESSION_ROW = "collection_id = %(collection)s AND id = %(session)s"
SESSION_CHILDREN = "collection_id = %(collection)s AND session_id = %(session)s"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session without its rounds and its pool; JSON as it is kept."""

    id: UUID
    job_id: UUID | None
    principal: str
    caller: str | None
    trusted: bool
    llm_tokens: int | None
    readers: Mapping[str, Any] | None
    question: str
    planner: str
    asked: Mapping[str, Any]
    budget: Mapping[str, Any]
    status: str
    stop_reason: str | None
    rounds: int
    cost: Mapping[str, Any]
    ranked: Sequence[int]
    sufficiency: float | None
    covered: float | None
    notes: Sequence[Mapping[str, Any]]
    plan_state: Mapping[str, Any]
    conclusion: Mapping[str, Any] | None
    warnings: Sequence[Mapping[str, Any]]
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredEvidence:
    """A sentence of a pool, as the passage has it now."""

    sentence_id: int
    passage_id: int
    text: str
    round: int
    query: int | None
    gap: str | None
    score: float | None


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A sentence to put into a pool."""

    sentence_id: int
    passage_id: int
    round: int
    query: int | None
    gap: str | None
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundUpdate:
    """Changes of a session by a round; ``round`` is None where it only stops.

    Attributes:
        before: how many rounds there were when it began.
        reads: passages that it read.
        cost: of the whole session.
        stop_reason: None while the session goes on.
    """

    before: int
    round: Round | None
    evidence: Sequence[EvidenceRow]
    reads: Sequence[int]
    cost: Mapping[str, Any]
    ranked: Sequence[int]
    sufficiency: float | None
    covered: float | None
    notes: Sequence[Mapping[str, Any]]
    plan_state: Mapping[str, Any]
    conclusion: Mapping[str, Any] | None = None
    warnings: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    stop_reason: str | None = None


_COLUMNS = """
    id, job_id, principal, caller, trusted, llm_tokens, readers, question, planner, asked, budget, status,
    stop_reason, rounds, cost, ranked, sufficiency, covered, notes, plan_state, conclusion, warnings, created_at,
    updated_at, finished_at
"""


def add(
    writer: Writer,
    collection_id: int,
    session: UUID,
    *,
    job: UUID | None,
    principal: str,
    caller: str | None,
    trusted: bool,
    llm_tokens: int | None,
    readers: ReaderNames | None,
    question: str,
    planner: str,
    request: Mapping[str, Any],
    budget: Mapping[str, Any],
) -> None:
    """Begin a session; without a job it waits for rounds that are asked for, and counts as stopped."""
    writer.execute(
        f"""
        INSERT INTO session
            (collection_id, id, job_id, principal, caller, trusted, llm_tokens, readers, question, planner, asked,
             budget, status, finished_at)
        SELECT %(collection)s, %(session)s, %(job)s, %(principal)s, %(caller)s, %(trusted)s, %(llm_tokens)s,
                %(readers)s::jsonb, %(question)s, %(planner)s, %(asked)s, %(budget)s,
                CASE WHEN %(job)s::uuid IS NULL THEN 'stopped' ELSE 'running' END,
                CASE WHEN %(job)s::uuid IS NULL THEN clock.moment END
        FROM {CLOCK}
        """,
        {
            "collection": collection_id,
            "session": session,
            "job": job,
            "principal": principal,
            "caller": caller,
            "trusted": trusted,
            "llm_tokens": llm_tokens,
            "readers": _format_readers(readers),
            "question": question,
            "planner": planner,
            "asked": Jsonb(dict(request)),
            "budget": Jsonb(dict(budget)),
        },
    )


def find(reader: Reader, collection_id: int, session: UUID) -> StoredSession | None:
    """The session, or None."""
    row = reader.row(
        f"SELECT {_COLUMNS} FROM session WHERE {SESSION_ROW}", {"collection": collection_id, "session": session}
    )
    return None if row is None else StoredSession(**row._asdict())


def rounds(reader: Reader, collection_id: int, session: UUID) -> list[Round]:
    """Its rounds in order."""
    rows = reader.rows(
        f"""
        SELECT number, action, said, episodes, curated, sufficiency, covered, cost, warnings, created_at
        FROM session_round WHERE {SESSION_CHILDREN} ORDER BY number
        """,
        {"collection": collection_id, "session": session},
    )
    return [Round(**row._asdict()) for row in rows]


def evidence(reader: Reader, collection_id: int, session: UUID) -> list[StoredEvidence]:
    """Its pool in the order in which sentences came, of those that there still are."""
    rows = reader.rows(
        f"""
        SELECT e.sentence_id, e.passage_id, s.text, e.round, e.query, e.gap, e.score
        FROM (SELECT * FROM session_evidence WHERE {SESSION_CHILDREN} OFFSET 0) AS e
        {join_by_index("sentence s", "s.id = e.sentence_id")} ORDER BY e.place
        """,
        {"collection": collection_id, "session": session},
    )
    return [StoredEvidence(**row._asdict()) for row in rows]


def list_read(reader: Reader, collection_id: int, session: UUID, rounds: int) -> list[int]:
    """The passages that its first so many rounds read, of those that there still are and that the reader sees."""
    rows = reader.rows(
        f"""
        SELECT p.id FROM (
            SELECT * FROM session_passage WHERE {SESSION_CHILDREN} AND round <= %(rounds)s OFFSET 0
        ) AS e {join_by_index("passage p", "p.id = e.passage_id")}
        """,
        {"collection": collection_id, "session": session, "rounds": rounds},
    )
    return [row.id for row in rows]


def _format_readers(readers: ReaderNames | None) -> Jsonb | None:
    return None if readers is None else Jsonb(asdict(readers))


def write_round(writer: Writer, collection_id: int, session: UUID, written: RoundUpdate) -> bool:
    """Write a round, or a stop without one; False, and nothing is to be kept, unless the session is as it was
    before.

    It is not if somebody else wrote the round, or if it was cancelled or deleted meanwhile.
    """
    updated = writer.execute(
        f"""
        UPDATE session SET rounds = rounds + %(more)s, cost = %(cost)s, ranked = %(ranked)s,
            sufficiency = %(sufficiency)s, covered = %(covered)s, notes = %(notes)s, plan_state = %(plan_state)s,
            conclusion = coalesce(%(conclusion)s::jsonb, conclusion), warnings = %(warnings)s,
            stop_reason = %(stop_reason)s,
            status = CASE WHEN %(stop_reason)s::text IS NULL THEN status ELSE 'stopped' END,
            finished_at = CASE WHEN %(stop_reason)s::text IS NULL THEN NULL ELSE clock.moment END,
            updated_at = now()
        FROM {CLOCK} WHERE {SESSION_ROW} AND rounds = %(before)s AND status = 'running'
        """,
        {
            "collection": collection_id,
            "session": session,
            "before": written.before,
            "more": int(written.round is not None),
            "cost": Jsonb(dict(written.cost)),
            "ranked": integers(written.ranked),
            "sufficiency": written.sufficiency,
            "covered": written.covered,
            "notes": Jsonb(list(written.notes)),
            "plan_state": Jsonb(dict(written.plan_state)),
            "conclusion": None if written.conclusion is None else Jsonb(dict(written.conclusion)),
            "warnings": Jsonb(list(written.warnings)),
            "stop_reason": written.stop_reason,
        },
    )
    if not updated:
        return False
    if written.round is not None:
        _add_round(writer, collection_id, session, written.round)
    if written.reads:
        number = written.before + 1
        writer.execute(
            """
            INSERT INTO session_passage (collection_id, session_id, passage_id, round)
            SELECT %(collection)s, %(session)s, id, %(round)s FROM unnest(%(ids)s::bigint[]) AS id
            ON CONFLICT DO NOTHING
            """,
            {
                "collection": collection_id,
                "session": session,
                "round": number,
                "ids": integers(dict.fromkeys(written.reads)),
            },
        )
    if written.evidence:
        _add_evidence(writer, collection_id, session, written.evidence)
    return True


def _add_round(writer: Writer, collection_id: int, session: UUID, added: Round) -> None:
    writer.execute(
        """
        INSERT INTO session_round
            (collection_id, session_id, number, action, said, episodes, curated, sufficiency, covered, cost,
             warnings)
        VALUES (%(collection)s, %(session)s, %(number)s, %(action)s, %(said)s, %(episodes)s, %(curated)s,
                %(sufficiency)s, %(covered)s, %(cost)s, %(warnings)s)
        """,
        {
            "collection": collection_id,
            "session": session,
            "number": added.number,
            "action": added.action,
            "said": Jsonb(dict(added.said)),
            "episodes": list(added.episodes),
            "curated": Jsonb(dict(added.curated)),
            "sufficiency": added.sufficiency,
            "covered": added.covered,
            "cost": Jsonb(dict(added.cost)),
            "warnings": Jsonb(list(added.warnings)),
        },
    )


def _add_evidence(writer: Writer, collection_id: int, session: UUID, evidence: Sequence[EvidenceRow]) -> None:
    writer.execute(
        f"""
        INSERT INTO session_evidence
            (collection_id, session_id, sentence_id, passage_id, place, round, query, gap, score)
        SELECT %(collection)s, %(session)s, row.sentence, row.passage, row.at + (
            SELECT coalesce(max(place), 0) FROM session_evidence WHERE {SESSION_CHILDREN}
        ), row.round, row.query, row.gap, row.score
        FROM unnest(%(sentences)s::bigint[], %(passages)s::bigint[], %(rounds)s::smallint[],
                    %(queries)s::smallint[], %(gaps)s::text[], %(scores)s::real[])
            WITH ORDINALITY AS row(sentence, passage, round, query, gap, score, at)
        ON CONFLICT DO NOTHING
        """,
        {
            "collection": collection_id,
            "session": session,
            "sentences": [one.sentence_id for one in evidence],
            "passages": [one.passage_id for one in evidence],
            "rounds": [one.round for one in evidence],
            "queries": [one.query for one in evidence],
            "gaps": [one.gap for one in evidence],
            "scores": [one.score for one in evidence],
        },
    )


def lock_if_unchanged(
    writer: Writer, collection_id: int, passages: Sequence[int], sentences: Sequence[int]
) -> bool:
    """Whether all of these are still there, the passages as they were; until the transaction ends they stay so.

    What a round made of a passage that was deleted or changed meanwhile must not be written.
    """
    locked_passages = writer.rows(
        f"""
        SELECT p.id FROM passage p JOIN {WANTED_IDS} ON p.collection_id = wanted.collection_id AND p.id = wanted.id
        ORDER BY p.id FOR SHARE OF p
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    row = writer.scalar(
        f"SELECT count(*) FROM {WANTED_IDS} {join_by_index('sentence s', 's.id = wanted.id')}",
        {"collection": collection_id, "ids": list(sentences)},
    )
    return len(locked_passages) == len(set(passages)) and row == len(set(sentences))


def go_on(writer: Writer, collection_id: int, session: UUID, job: UUID, readers: ReaderNames | None) -> bool:
    """Have a session that stopped run again, by this job, for these readers; False unless it stopped."""
    return (
        writer.execute(
            f"""
            UPDATE session SET status = 'running', job_id = %(job)s, stop_reason = NULL, finished_at = NULL,
                updated_at = now(), readers = %(readers)s::jsonb
            WHERE {SESSION_ROW} AND status = 'stopped'
            """,
            {"collection": collection_id, "session": session, "job": job, "readers": _format_readers(readers)},
        )
        > 0
    )


def delete_all(writer: Writer, collection_id: int) -> int:
    """Remove all sessions of a collection, with their rounds and pools; how many."""
    return writer.execute("DELETE FROM session WHERE collection_id = %(collection)s", {"collection": collection_id})


def find_related_queries(reader: Reader, collection_id: int, queries: Sequence[UUID]) -> list[UUID]:
    """Find all queries of the sessions that some of these belong to."""
    rows = reader.rows(
        """
        SELECT DISTINCT unnest(related.episodes) AS id FROM session_round round
        JOIN session_round related
          ON related.collection_id = round.collection_id AND related.session_id = round.session_id
        WHERE round.collection_id = %(collection)s AND round.episodes && %(queries)s::uuid[]
        """,
        {"collection": collection_id, "queries": list(queries)},
    )
    return [row.id for row in rows]


def delete_ended(writer: Writer, moment: datetime, limit: int) -> int:
    """Remove sessions that ended before the moment, at most ``limit``, with their rounds and pools; how many.

    With them go the words of their sub-questions, wherever these stand: see ``session_erasure``.
    """
    rows = writer.rows(
        """
        SELECT collection_id, id FROM session WHERE finished_at < %(moment)s
        ORDER BY collection_id, id LIMIT %(limit)s
        """,
        {"moment": moment, "limit": limit},
    )
    for collection, session_rows in groupby(rows, lambda row: row.collection_id):
        ended = [row.id for row in session_rows]
        if collections.lock_against_deletion(writer, collection):
            session_erasure.forget_sessions(writer, collection, ended)
            writer.execute(
                "DELETE FROM session WHERE collection_id = %(collection)s AND id = ANY(%(ids)s::uuid[])",
                {"collection": collection, "ids": ended},
            )
    return len(rows)


def end(writer: Writer, collection_id: int, session: UUID, status: str) -> bool:
    """End a session that runs, cancelled or failed; False unless it runs."""
    return (
        writer.execute(
            f"""
            UPDATE session
            SET status = %(status)s, stop_reason = %(status)s, finished_at = now(), updated_at = now()
            WHERE {SESSION_ROW} AND status = 'running'
            """,
            {"collection": collection_id, "session": session, "status": status},
        )
        > 0
    )
