"""Verdicts on their way into the log."""

from collections.abc import Sequence
from uuid import UUID

from engram.core.learning.logged_verdict import LoggedVerdict
from engram.storage.column_parameters import floats, integers
from engram.storage.corpus import collections
from engram.storage.corpus.collection_lock import SHARED_LOCK, row_lock
from engram.storage.corpus.collections import Collection
from engram.storage.database import READER_ROLE, Reader, Writer
from engram.storage.feedback_log.feedback_events import COLUMNS, VerdictEvent, build_event
from engram.storage.feedback_log.logged_verdicts import VERSION, roles
from engram.storage.question import episodes
from engram.storage.question.episodes import COLLAPSED_KEY, SUFFICIENCY
from engram.storage.row_lookups import NOT_DELETED


def append(writer: Writer, events: Sequence[VerdictEvent], *, check: bool) -> list[VerdictEvent | None]:
    """Append events, in one statement; of each itself as it is stored.

    None for one that cannot be appended: its principal used the key before, there is no such collection or episode,
    or, of several events, its collection is held by somebody who may delete it.
    Keys are taken in order, and the judged queries in theirs after all keys, so that whoever waits for one holds
    none but earlier ones. The first verdict on a query copies what verdicts on it go by.

    Args:
        check: whether to check here that all sentences in the verdicts exist, that none is of a duplicate that the
            answer left out, and that the principal sees all that the judged query found. An event that fails this
            cannot be appended.
    """
    if not writer.distributed:
        return _append(writer, events, "c.id", check=check)
    appended: list[VerdictEvent | None] = [None] * len(events)
    for collection in sorted({event.collection_id for event in events}):  # each on a node of its own
        places = [at for at, event in enumerate(events) if event.collection_id == collection]
        stored_here = _append(writer, [events[at] for at in places], "%(collection)s", check=check)
        for at, one in zip(places, stored_here, strict=True):
            appended[at] = one
    return appended


def _append(writer: Writer, events: Sequence[VerdictEvent], own: str, *, check: bool) -> list[VerdictEvent | None]:
    """Append events as ``append`` does; ``own`` is the SQL expression for an event's collection."""
    verdicts = [event.verdict for event in events]
    named = [
        (at, sentence)
        for at, verdict in enumerate(verdicts if check else [], start=1)
        for sentence in sorted({*verdict.supports, *verdict.rejects})
    ]
    rows = writer.rows(
        f"""
        WITH c AS MATERIALIZED ( -- before any row in it, as collections.lock_against_deletion says
            SELECT id FROM collection WHERE id = ANY(%(collections)s) AND {NOT_DELETED} ORDER BY id
            {row_lock(writer, SHARED_LOCK, wait=len(events) == 1)}
        ), new AS MATERIALIZED ( -- of several with one key the first
            SELECT DISTINCT ON (c.id, given.principal, given.key) c.id AS collection_id, given.*
            FROM unnest(%(collections)s::bigint[], %(queries)s::uuid[], %(keys)s::text[], %(hashes)s::bytea[],
                        %(judges)s::text[], %(principals)s::text[], %(trusted)s::boolean[], %(partial)s::boolean[],
                        %(found)s::boolean[], %(right)s::boolean[], %(scores)s::float8[],
                        %(confidences)s::float8[], %(spared)s::text[], %(on_session)s::boolean[],
                        %(ratings)s::text[], %(reasons)s::text[])
                WITH ORDINALITY AS given(collection, query, key, hash, judge, principal, trusted, partial,
                                         retrieval_success, generation_success, generation_score, confidence,
                                         spared, on_session, rating, reason, n)
            JOIN c ON c.id = given.collection
            CROSS JOIN LATERAL (
                SELECT e.created_at, e.answer -> '{COLLAPSED_KEY}' AS collapsed FROM episode e
                WHERE e.collection_id = {own} AND e.id = given.query
                  AND (%(checked)s OR e.principal = given.principal OR current_user <> '{READER_ROLE}') OFFSET 0
            ) AS asked
            WHERE NOT EXISTS (
                  SELECT FROM unnest(%(places)s::bigint[], %(sentences)s::bigint[]) AS named(n, id)
                  WHERE named.n = given.n
                    AND (SELECT s.id FROM sentence s WHERE s.collection_id = {own} AND s.id = named.id
                         AND (s.revised_at IS NULL OR asked.created_at >= ALL (s.revised_at))) IS NULL
              )
              AND NOT EXISTS (
                  SELECT FROM unnest(%(places)s::bigint[], %(sentences)s::bigint[]) AS named(n, id)
                  WHERE named.n = given.n
                    AND asked.collapsed ? (SELECT s.passage_id::text FROM sentence s
                                           WHERE s.collection_id = {own} AND s.id = named.id)
              )
            ORDER BY c.id, given.principal, given.key, given.n
        ), event AS (
            INSERT INTO feedback_event
                (collection_id, query_id, idempotency_key, body_hash, judge, principal, trusted, version, partial,
                 retrieval_success, generation_success, generation_score, confidence, spared, on_session, rating,
                 reason)
            SELECT collection_id, query, key, hash, judge, principal, trusted, %(version)s, partial,
                   retrieval_success, generation_success, generation_score, confidence, spared::bigint[],
                   on_session, rating, reason
            FROM new ORDER BY collection_id, principal, key
            ON CONFLICT (collection_id, principal, idempotency_key) DO NOTHING
            RETURNING {COLUMNS}
        ), copied AS (
            INSERT INTO judged_query
                (collection_id, id, question, embedding, time_constraint, time_embedding, profile, filter,
                 activated, answered_at, ranked, answer_features, sufficiency, reranker, reranked, space, principal)
            SELECT asked.collection_id, e.id, e.question, e.embedding, e.time_constraint, e.time_embedding,
                   e.profile, e.filter, e.activated, e.created_at, e.ranked, e.answer_features,
                   (e.answer ->> '{SUFFICIENCY}')::float8, e.reranker, e.reranked, e.space, e.principal
            FROM (SELECT DISTINCT collection_id, query_id FROM event) AS asked
            CROSS JOIN LATERAL (
                SELECT * FROM episode WHERE collection_id = asked.collection_id AND id = asked.query_id OFFSET 0
            ) AS e
            WHERE (SELECT judged.id FROM judged_query judged
                   WHERE judged.collection_id = asked.collection_id AND judged.id = asked.query_id) IS NULL
            ORDER BY asked.collection_id, e.id
            ON CONFLICT (collection_id, id) DO NOTHING
        ), accepted AS (
            SELECT event.collection_id, event.id, new.n FROM event
            JOIN new ON new.collection_id = event.collection_id AND new.principal = event.principal
                    AND new.key = event.idempotency_key
        ), naming AS (
            INSERT INTO verdict_sentence (collection_id, event_id, sentence_id, role, examined)
            SELECT accepted.collection_id, accepted.id, said.sentence, said.role, nullif(said.examined, 1)
            FROM accepted
            JOIN unnest(%(said_by)s::bigint[], %(said_of)s::bigint[], %(said)s::text[], %(examined)s::float8[])
                AS said(n, sentence, role, examined) USING (n)
        ), helping AS (
            INSERT INTO verdict_passage (collection_id, event_id, passage_id)
            SELECT accepted.collection_id, accepted.id, helped.passage FROM accepted
            JOIN unnest(%(helped_by)s::bigint[], %(helped)s::bigint[]) AS helped(n, passage) USING (n)
        ), bringing AS (
            INSERT INTO verdict_expansion (collection_id, event_id, place, method, text)
            SELECT accepted.collection_id, accepted.id, brought.place, brought.method, brought.text FROM accepted
            JOIN unnest(%(brought_by)s::bigint[], %(brought_at)s::bigint[], %(methods)s::text[],
                        %(texts)s::text[]) AS brought(n, place, method, text) USING (n)
        )
        SELECT * FROM event
        """,
        {
            "version": VERSION,
            "collection": events[0].collection_id,
            "collections": integers(event.collection_id for event in events),
            "queries": [event.query_id for event in events],
            "keys": [event.idempotency_key for event in events],
            "hashes": [event.body_hash for event in events],
            "judges": [event.judge for event in events],
            "principals": [event.principal for event in events],
            "trusted": [event.trusted for event in events],
            "partial": [verdict.partial for verdict in verdicts],
            "found": [verdict.retrieval_success for verdict in verdicts],
            "right": [verdict.generation_success for verdict in verdicts],
            "scores": [verdict.generation_score for verdict in verdicts],
            "confidences": floats(verdict.confidence for verdict in verdicts),
            "spared": [f"{{{','.join(map(str, verdict.spared))}}}" for verdict in verdicts],
            "on_session": [verdict.on_session for verdict in verdicts],
            "ratings": [verdict.rating for verdict in verdicts],
            "reasons": [verdict.reason for verdict in verdicts],
            "checked": not check,
            "places": integers(at for at, _ in named),
            "sentences": integers(sentence for _, sentence in named),
        }
        | _children(verdicts),
    )
    accepted = {(row.collection_id, row.principal, row.idempotency_key): build_event(row) for row in rows}
    # Of several with one key one was stored, and the others will meet it.
    return [accepted.pop((one.collection_id, one.principal, one.idempotency_key), None) for one in events]


def _children(verdicts: Sequence[LoggedVerdict]) -> dict[str, object]:
    """Return the verdicts' named rows and expansions as columns, each with its verdict's number from 1 on."""
    sentence_rows = [(n, *word) for n, verdict in enumerate(verdicts, start=1) for word in roles(verdict).items()]
    probable = [verdict.probabilities for verdict in verdicts]
    helped = [(n, passage) for n, verdict in enumerate(verdicts, start=1) for passage in verdict.passages]
    brought = [(n, *unit) for n, verdict in enumerate(verdicts, start=1) for unit in enumerate(verdict.expansions)]
    return {
        "said_by": integers(n for n, _, _ in sentence_rows),
        "said_of": integers(sentence for _, sentence, _ in sentence_rows),
        "said": [role for _, _, role in sentence_rows],
        "examined": floats(probable[n - 1].get(sentence, 1.0) for n, sentence, _ in sentence_rows),
        "helped_by": integers(n for n, _ in helped),
        "helped": integers(passage for _, passage in helped),
        "brought_by": integers(n for n, _, _ in brought),
        "brought_at": integers(place for _, place, _ in brought),
        "methods": [expansion.method for _, _, expansion in brought],
        "texts": [expansion.text for _, _, expansion in brought],
    }


def find_first(
    reader: Reader, collection: Collection, principal: str, key: str, query_id: UUID
) -> VerdictEvent | None:
    """The event first accepted under this Idempotency-Key; None for a new key, and the query can be judged.

    Raises:
        GoneError: the collection is gone.
        NotFoundError: the key is new, and there is no such query.
    """
    row = reader.row(
        f"""
        SELECT event.*,
               (SELECT e.id FROM episode e WHERE e.collection_id = %(collection)s AND e.id = %(episode)s)
                   IS NOT NULL AS has_episode
        FROM collection c LEFT JOIN LATERAL (
            SELECT {COLUMNS} FROM feedback_event
            WHERE collection_id = %(collection)s AND principal = %(principal)s AND idempotency_key = %(key)s
            OFFSET 0
        ) AS event ON true
        WHERE c.id = %(collection)s AND {NOT_DELETED}
        """,
        {"collection": collection.id, "principal": principal, "key": key, "episode": query_id},
    )
    if row is None:
        raise collections.build_gone_error(collection.name)
    if row.id is not None:
        return build_event(row)
    if not row.has_episode:
        raise episodes.build_missing_error(query_id)
    return None


def find_by_key(reader: Reader, collection_id: int, principal: str, key: str) -> VerdictEvent | None:
    """The event accepted under this Idempotency-Key of the principal, or None."""
    row = reader.row(
        f"""
        SELECT {COLUMNS} FROM feedback_event
        WHERE collection_id = %(collection)s AND principal = %(principal)s AND idempotency_key = %(key)s
        """,
        {"collection": collection_id, "principal": principal, "key": key},
    )
    return None if row is None else build_event(row)
