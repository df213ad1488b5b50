"""Erasure: what sessions made of a passage in words goes with the passage.

A sub-question may name what a passage said, and so may notes, a planner's state and an answer. None of that says
which passage it is from, so all of it goes from every session that has read one of the passages that go. What is
left are ids and numbers, and the session's own question, which is the caller's.

A sub-question that was judged is in the log and among the questions that verdicts taught as well. There its words
are replaced by words that say nothing, the same wherever the same question stands, so that the log still leads to
all that was learned: vectors and supports stay.

What says of which passages they may be made is the session. So the words go with the session as well (see
``forget_sessions``), and a copy of a past moment, which has no sessions, is without them from the start.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID, uuid4

from engram.core.learning.states import question_hash
from engram.storage.corpus import collections
from engram.storage.corpus.current_vectors import renew_question_version
from engram.storage.database import Writer
from engram.storage.erasure.erased_log import Selection
from engram.storage.row_lookups import CLOCK, WANTED_IDS, alias_rows, id_rows, join_by_index


def forget_passages(writer: Writer, collection_id: int, passages: Sequence[int]) -> int:
    """Erase what sessions made of these passages in words; of how many sessions. Those that run stop.

    To be called while the collection's graph is locked. A round that is in hand meanwhile is not kept.
    """
    rows = writer.rows(
        f"""
        SELECT DISTINCT read.session_id FROM {WANTED_IDS}
        {join_by_index("session_passage read", "read.passage_id = wanted.id")}
        ORDER BY 1
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    touched = [row.session_id for row in rows]
    if touched:
        collections.lock_learning(writer, collection_id, exclusive=True)
        owned = _blank(writer, collection_id, touched, passages)
        _unname(writer, collection_id, owned)
        _forget_asked_rounds(writer, collection_id, touched)
    return len(touched)


def forget_sessions(writer: Writer, collection_id: int, sessions: Sequence[UUID]) -> None:
    """Erase the words of these sessions' sub-questions, since nothing will say any more what they were made of."""
    collections.lock_learning(writer, collection_id, exclusive=True)
    _unname(writer, collection_id, _episodes(writer, collection_id, sessions))
    _forget_asked_rounds(writer, collection_id, sessions)


def erase_sessions(writer: Writer, collection_id: int, selection: Selection) -> int:
    """Remove the sessions that an erasure selects, with the words of their sub-questions; how many."""
    selected = {
        "query": """id IN (SELECT session_id FROM session_round round
                           WHERE round.collection_id = %(collection)s AND round.episodes && %(queries)s::uuid[])""",
        "judge": "false",
        "principal": "principal = %(name)s",
        "span": selection.during("created_at"),
    }[selection.kind]
    parameters = selection.parameters(collection_id)
    rows = writer.rows(
        f"SELECT id FROM session WHERE collection_id = %(collection)s AND {selected} ORDER BY id", parameters
    )
    ids = [row.id for row in rows]
    if ids:
        forget_sessions(writer, collection_id, ids)
        writer.execute(
            "DELETE FROM session WHERE collection_id = %(collection)s AND id = ANY(%(ids)s::uuid[])",
            parameters | {"ids": ids},
        )
    return len(ids)


def forget_in_copy(writer: Writer, source: int, target: int) -> None:
    """Erase the words of the source's sub-questions in a copy of its log that nobody sees yet."""
    rows = writer.rows("SELECT id FROM session WHERE collection_id = %(source)s", {"source": source})
    _unname(writer, target, _episodes(writer, source, [row.id for row in rows]))


def _episodes(writer: Writer, collection_id: int, sessions: Sequence[UUID]) -> dict[UUID, str]:
    """The episodes of these sessions' rounds, each with its session's own question."""
    rows = writer.rows(
        f"""
        SELECT round.episodes, s.question FROM {id_rows("ids", "uuid")}
        {join_by_index("session s", "s.id = wanted.id")}
        {join_by_index("session_round round", "round.session_id = wanted.id")}
        """,
        {"collection": collection_id, "ids": list(sessions)},
    )
    return {episode: row.question for row in rows for episode in row.episodes}


def _blank(writer: Writer, collection_id: int, touched: Sequence[UUID], passages: Sequence[int]) -> dict[UUID, str]:
    """Leave ids and numbers of the sessions; the episodes of their rounds, each with its session's own question."""
    parameters = {"collection": collection_id, "ids": list(touched), "passages": list(passages)}
    owned = writer.rows(
        f"""
        UPDATE session
        SET notes = '[]', plan_state = '{{}}', conclusion = NULL, warnings = '[]', updated_at = now(),
            ranked = ARRAY(SELECT passage FROM unnest(ranked) WITH ORDINALITY AS kept(passage, place)
                           WHERE passage <> ALL(%(passages)s::bigint[]) ORDER BY place),
            stop_reason = CASE WHEN status = 'running' THEN 'erased' ELSE stop_reason END,
            finished_at = CASE WHEN status = 'running' THEN clock.moment ELSE finished_at END,
            status = CASE WHEN status = 'running' THEN 'stopped' ELSE status END
        FROM {CLOCK}
        WHERE session.collection_id = %(collection)s AND session.id = ANY(%(ids)s::uuid[])
        RETURNING session.id, session.question
        """,
        parameters,
    )
    writer.execute(
        """
        UPDATE session_evidence SET gap = NULL
        WHERE collection_id = %(collection)s AND session_id = ANY(%(ids)s::uuid[]) AND gap IS NOT NULL
        """,
        parameters,
    )
    writer.execute(
        """
        DELETE FROM session_evidence held
        WHERE held.collection_id = %(collection)s AND held.session_id = ANY(%(ids)s::uuid[])
          AND held.passage_id = ANY(%(passages)s::bigint[]) AND NOT EXISTS (
            SELECT FROM sentence s WHERE s.collection_id = held.collection_id AND s.id = held.sentence_id
          )
        """,
        parameters,
    )
    rows = writer.rows(
        """
        UPDATE session_round SET said = '{"erased": true}', warnings = '[]'
        WHERE collection_id = %(collection)s AND session_id = ANY(%(ids)s::uuid[]) RETURNING session_id, episodes
        """,
        parameters,
    )
    question = {row.id: row.question for row in owned}
    return {episode: question[row.session_id] for row in rows for episode in row.episodes}


def _forget_asked_rounds(writer: Writer, collection_id: int, sessions: Sequence[UUID]) -> None:
    """Erase the sub-questions that a caller gave to rounds of these sessions, which the rounds' jobs hold."""
    writer.execute(
        """
        UPDATE job SET payload = payload || '{"round": {"erased": true}}'
        WHERE collection_id = %(collection)s AND payload -> 'round' IS NOT NULL
          AND payload ->> 'session' = ANY(%(sessions)s::text[])
        """,
        {"collection": collection_id, "sessions": [str(one) for one in sessions]},
    )


def _unname(writer: Writer, collection_id: int, owned: Mapping[UUID, str]) -> None:
    """Replace the words of sub-questions in their episodes, in the log and among the questions that were taught."""
    rows = writer.rows(
        f"""
        SELECT e.id, e.question FROM {id_rows("ids", "uuid")} {join_by_index("episode e", "e.id = wanted.id")}
        UNION ALL
        SELECT j.id, j.question FROM {id_rows("ids", "uuid")} {join_by_index("judged_query j", "j.id = wanted.id")}
        """,
        {"collection": collection_id, "ids": list(owned)},
    )
    renamed = {row.id: row.question for row in rows if row.question != owned[row.id]}
    words = {question_hash(text): f"An erased sub-question ({uuid4().hex})" for text in set(renamed.values())}
    if not words:
        return
    taught = writer.rows(
        f"""
        SELECT q.id, q.text_hash FROM {id_rows("ids", "bytea")}
        {join_by_index("question q", "q.text_hash = wanted.id")}
        """,
        {"collection": collection_id, "ids": list(words)},
    )
    equal_rows = writer.rows(
        f"""
        SELECT DISTINCT event.query_id, event.question_id FROM {WANTED_IDS}
        {join_by_index("feedback_event event", "event.question_id = wanted.id")}
        """,
        {"collection": collection_id, "ids": [row.id for row in taught]},
    )
    by_question = {row.id: words[bytes(row.text_hash)] for row in taught}
    fresh = {key: words[question_hash(text)] for key, text in renamed.items()}
    fresh |= {row.query_id: by_question[row.question_id] for row in equal_rows}
    new = alias_rows("unnest(%(ids)s::uuid[], %(texts)s::text[]) AS given(id, question)")
    parameters = {"collection": collection_id, "ids": sorted(fresh), "texts": [fresh[key] for key in sorted(fresh)]}
    # A trace says which names the question mentioned, as it wrote them, and which time.
    unsaid = """, trace = trace || '{"entities": [], "time_constraint": null}'"""
    for table, more in (("episode", unsaid), ("judged_query", "")):
        writer.execute(
            f"""
            UPDATE {table} held SET question = new.question, time_constraint = NULL {more} FROM {new}
            WHERE held.collection_id = new.collection_id AND held.id = new.id
            """,
            parameters,
        )
    renew_question_version(writer, collection_id)
    columns = "unnest(%(ids)s::bigint[], %(texts)s::text[], %(hashes)s::bytea[]) AS given(id, text, text_hash)"
    writer.execute(
        f"""
        UPDATE question held SET text = new.text, text_hash = new.text_hash
        FROM {alias_rows(columns)}
        WHERE held.collection_id = new.collection_id AND held.id = new.id
        """,
        {
            "collection": collection_id,
            "ids": list(by_question),
            "texts": list(by_question.values()),
            "hashes": [question_hash(text) for text in by_question.values()],
        },
    )
