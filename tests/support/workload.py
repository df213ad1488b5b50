"""Everything that a collection is asked, once or a few times, by the calls that the API, workers and commands make."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import psycopg

from app.composition import Application
from app.services.learning.verdict import Expansion, Named, Verdict
from app.services.retrieval.plan import Exploring, as_asked
from app.services.retrieval.query import Query
from tests.conftest import CURIE
from tests.support import past, state, undo

QUESTIONS = (
    "Where was Marie Curie born?",
    "What is the capital of the country that polonium is named after?",
    "What happened in 1898?",
    "what flows into the sea?",
)
UNITS = (Expansion("facet", "river, capital, Poland"),)
EVENTS = 12


def run(application: Application, name: str = "fresh") -> None:
    """Make the collection, and do with it all that can be done."""
    _ingest(application, name)
    _ask(application, name)
    _give_verdicts(application, name)
    application.lift.lift(application.access.scope(name), since=None, before=None, baseline=None)
    target = state.collection_id(application, name)
    events = undo.stream(application, name, EVENTS, seed=1)
    application.learn.apply(target, events[: EVENTS // 2])
    application.learn.apply(target, events[EVENTS // 2 :])
    application.evolve.evolve(application.access.scope(name))
    _ask(application, name)
    _look(application, name, events)
    _change(application, name)
    _undo(application, name, events)
    application.ingest.delete_collection(application.access.scope(name))


def _ingest(application: Application, name: str, passages: Sequence[Any] = CURIE) -> None:
    state.staged(application, name, *passages, key=uuid4().hex)
    application.index.run_ready_jobs()


def _ask(application: Application, name: str) -> None:
    everything = frozenset({"trace", "entities", "sentences"})
    scope = application.access.scope(name)
    for text in QUESTIONS:
        for profile in ("paper", "default"):
            for memory in ("off", "read"):
                for metadata in (None, {"part": 1}, {}):
                    application.ask.query(
                        Query(text=text, scope=scope, profile=profile, memory=memory, metadata=metadata)
                    )
        for strategy in ("dense", "lexical", "hybrid", "graph"):
            for metadata in (None, {"part": 1}):
                application.ask.query(
                    Query(
                        text=text, scope=scope, strategy=strategy, metadata=metadata, expansions=UNITS,
                        include=everything,
                    )
                )  # fmt: skip
        application.dense.search(application.access.scope(name), text, 5)
        query = Query(text=text, scope=scope, include=everything)
        application.ask.query(query, replace(as_asked(query), exploring=Exploring(2, 7)))
        application.expand.expand(application.access.scope(name), text, ["prf"], 3)
    one = Query(text=QUESTIONS[0], scope=application.access.scope(name))
    application.compare.compare(one, Query(text=QUESTIONS[0], scope=application.access.scope(name), memory="off"))
    application.serving.query(one)


def _give_verdicts(application: Application, name: str) -> None:
    """As they come over HTTP: by ids, by passages, in the words of a passage, again under a key, and awaited."""
    answer = application.ask.query(Query(text=QUESTIONS[0], scope=application.access.scope(name)))
    sentence = answer.passages[0].sentences[0]
    by_id = Verdict(query_id=answer.query_id, collection=name, supporting=(Named(sentence.sentence_id),))
    by_words = Verdict(
        query_id=answer.query_id,
        collection=name,
        supporting=(Named(passage_id=answer.passages[0].passage_id, text=sentence.text),),
        supporting_passages=("warsaw",),
        expansions=UNITS,
        retrieval_success=True,
    )
    for verdict in (by_id, by_words):
        for wait in (False, True):
            for _ in range(2):
                application.feedback.accept(verdict, f"{name} {wait} {verdict is by_id}", wait=wait)
    waiting = [application.intake.submit(by_id, uuid4().hex) for _ in range(4)]
    for accepted in waiting:
        accepted.result()
    application.learn.apply_overdue(0.0, 100)
    application.evolve.run_due()


def _look(application: Application, name: str, events: Sequence[int]) -> None:
    passages = application.feedback.page(name, status=None, after=0, limit=10)
    application.feedback.page(name, status="applied", after=0, limit=10)
    for event in events[:3]:
        application.feedback.event(name, event)
    application.ask.episode(application.access.scope(name), passages[0].query_id)
    sentences = state.all_sentences(application, name)
    application.explain.memories(application.access.scope(name), sentences)
    for sentence in sentences[:3]:
        application.explain.sentence(application.access.scope(name), sentence, "Warsaw", after=0, limit=10)
    for external_id in ("warsaw", "curie", "tokyo"):
        application.key_view.view(application.access.scope(name), external_id, 10)
        application.ingest.passage(application.access.scope(name), external_id)
    application.evolve.standing(application.access.scope(name))
    application.evolve.generations(application.access.scope(name), None, 10)
    application.judges.page(application.access.scope(name), "", 10)
    application.ingest.collections(None, 10)
    application.feedback.retry_all(name)
    application.feedback.retry_all(name, "careless")
    application.verify.verify(application.access.scope(name))
    application.health.readiness()


def _change(application: Application, name: str) -> None:
    changed = [dict(CURIE[1]) | {"text": "Warsaw lies on the Vistula. Warsaw was destroyed in 1944."}, CURIE[0]]
    _ingest(application, name, changed)
    application.ingest.delete_passage(application.access.scope(name), "tokyo")
    application.ingest.rekey(application.access.scope(name), "title")
    application.index.run_ready_jobs()
    application.evolve.roll_back(application.access.scope(name), 0)
    application.evolve.roll_back(application.access.scope(name), 1)


def _undo(application: Application, name: str, events: Sequence[int]) -> None:
    moment = past.now(application)
    application.revoke.revoke(application.access.scope(name), events[0])
    application.revoke.request(application.access.scope(name), judge="careless")
    application.revoke.run_ready_jobs()
    application.verify.verify(application.access.scope(name))
    application.past.replay(application.access.scope(name), moment, f"{name}-past")
    application.verify.verify(application.access.scope(f"{name}-past"))
    _ask(application, f"{name}-past")
    application.ingest.delete_collection(application.access.scope(f"{name}-past"))
    application.forget.reset(application.access.scope(name))


def misinform(connection: "psycopg.Connection[Any]", how: str) -> None:
    """Give the planner statistics that say nothing of a collection that is yet to come.

    Args:
        how: "known": of the large collection; "none": none; "empty": of when there was nothing; "gone": of tables
            whose pages held no row; "tiny": that each collection has a row or two.
    """
    tables = connection.execute(
        "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    ).fetchall()
    for (table,) in tables:
        connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    kept = "relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')"
    if how in ("known", "tiny"):
        connection.execute("ANALYZE")
    if how not in ("known", "tiny"):
        connection.execute(
            """
            DELETE FROM pg_statistic USING pg_class t
            WHERE t.oid = starelid AND t.relnamespace = 'public'::regnamespace
            """
        )
    if how == "none":
        connection.execute(f"UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE {kept}")
    if how == "empty":
        connection.execute(f"UPDATE pg_class SET reltuples = 0, relpages = 0 WHERE {kept}")
    if how == "gone":
        connection.execute(f"UPDATE pg_class SET reltuples = 0, relpages = 1000 WHERE {kept}")
    if how == "tiny":
        connection.execute(
            """
            UPDATE pg_statistic SET stadistinct = -1, stakind1 = 0, stakind2 = 0, stakind3 = 0,
                stanumbers1 = NULL, stanumbers3 = NULL, stavalues1 = NULL, stavalues2 = NULL
            FROM pg_attribute a
            WHERE a.attrelid = starelid AND a.attnum = staattnum AND a.attname = 'collection_id'
            """
        )
