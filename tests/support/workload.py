"""Everything that a collection is asked, by the calls that the API, workers and commands make."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from engram.composition.container import Application
from engram.core.budget import Budget
from engram.core.learning.logged_verdict import Expansion
from engram.services.answers.passage_context import ContextPart
from engram.services.auth.scope import Scope
from engram.services.question.query import ExplorationPart, Query
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.wings.experiments.parts import ExperimentServices
from engram.wings.published.parts import published_of
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest
from engram.wings.tuning.parts import tuning_of
from engram.wings.tuning.services import training_input
from engram.wings.why.parts import why_of
from tests.conftest import CURIE
from tests.support import evolving, past, state, undo
from tests.support.tuned import finish_jobs

QUESTIONS = ("Where was Marie Curie born?", "What happened in 1898?", "what flows into the sea?")
"""One that names something, one that names a time, one that names nothing."""
UNITS = (Expansion("facet", "river, capital, Poland"),)
ALL_PARTS = frozenset({"trace", "entities", "sentences"})
FILTER = {"part": 1}
OPERATORS = {"part": {"$gte": 1}, "day": {"$not": {"$gt": "2026-05-01"}}}
EVENTS = 12


def run(application: Application, name: str) -> None:
    """Make a collection, do with it all that can be done, and delete it."""
    _ingest(application, name, *CURIE[:3], *(dict(passage) | {"metadata": FILTER} for passage in CURIE[3:]))
    scope = application.auth.access.scope(name)
    _ask(application, scope)
    application.corpus.kinds.run()
    _give_verdicts(application, scope)
    application.wing(ExperimentServices).lift.lift(scope, since=None, before=None, baseline=None)
    events = undo.stream(application, name, EVENTS, seed=1)
    half = EVENTS // 2
    for some in (events[:half], events[half:]):
        application.learning.learner.apply(scope.collection.id, some)
    evolving.evolve(application, scope)
    scope = application.auth.access.scope(name)
    _ask(application, scope)
    _look(application, scope, events)
    _tune(application, scope)
    _go_in_rounds(application, scope)
    _change(application, scope)
    _undo(application, scope, events)
    application.corpus.ingest.delete_collection(scope)


def _ingest(application: Application, name: str, *passages: Mapping[str, Any]) -> None:
    state.stage_passages(application, name, *passages, key=uuid4().hex)
    application.jobs.runner.run_ready()


def _ask(application: Application, scope: Scope) -> None:
    for text in QUESTIONS:
        one = Query(text=text, scope=scope)
        for profile in ("paper", "default"):
            for memory in ("off", "read"):
                for narrowed in (None, FILTER, OPERATORS):
                    application.answers.question.answer(
                        replace(one, profile=profile, memory=memory, filter=narrowed)
                    )
        for strategy in ("graph", "dense", "lexical", "hybrid"):
            wide = replace(one, strategy=strategy, expansions=UNITS, include=ALL_PARTS)
            application.answers.question.answer(wide)
            application.answers.question.answer(replace(wide, filter=FILTER))
        application.answers.question.answer(one.with_part(ExplorationPart(2, 7, 50)))
        application.wing(ExperimentServices).compare.compare(one, replace(one, memory="off"))
        published_of(application).expand.expand(scope, text, ["prf"], 3)
        application.retrieval.dense.search(scope, text, 5)


def _give_verdicts(application: Application, scope: Scope) -> None:
    """By ids, by passages and in the words of a passage; repeated, awaited, and several at once."""
    name = scope.collection.name
    answer = application.answers.question.answer(Query(text=QUESTIONS[0], scope=scope))
    passage = answer.passages[0]
    sentence = passage.sentences[0]
    by_id = Verdict(query_id=answer.query_id, scope=scope, supporting=(NamedSentence(sentence.sentence_id),))
    by_words = Verdict(
        query_id=answer.query_id,
        scope=scope,
        supporting=(NamedSentence(passage_id=passage.passage_id, text=sentence.text),),
        supporting_passages=("warsaw",),
        expansions=UNITS,
        retrieval_success=True,
    )
    for wait in (False, True):
        for verdict in (by_id, by_id, by_words, by_words):
            application.learning.verdicts.accept(verdict, f"{name} {wait} {verdict is by_id}", wait=wait)
    for accepted in [application.learning.log.store_soon(by_id, uuid4().hex) for _ in range(4)]:
        accepted.result()
    application.learning.learner.apply_overdue(0.0, 100)
    for learns in (False, True):
        application.corpus.collection_settings.configure(scope, {"published": {"learn": learns}})
        application.learning.verdicts.accept(by_words, f"{name} keys {learns}", wait=True)
        published_of(application).sweep()


def _go_in_rounds(application: Application, scope: Scope) -> None:
    """Sessions that end by themselves, by their caller and before their time; one is judged, and then erased."""
    sessions = sessions_of(application).sessions
    chain = "Into which sea does the river that the birthplace of Marie Curie lies on flow?"
    how = SessionRequest(top_k=2, threshold=1.0, learn=True)
    ended = sessions.start(scope, NewSession(question=chain, planner="pool", request=how, budget=Budget(rounds=9)))
    read = sessions.wait(scope, ended)
    sessions.progress(scope, ended, 1)
    sentence = read.evidence[0].sentence_id
    sessions.go_on(scope, ended, "Which sea is in the north?", [NamedSentence(sentence)])
    sessions.wait(scope, ended)
    verdict = Verdict(
        query_id=ended, scope=scope, supporting=[NamedSentence(one.sentence_id) for one in read.evidence]
    )
    sessions_of(application).teacher.judge(sessions.state(scope, ended), verdict, uuid4().hex, wait=True)
    sessions.cancel(scope, sessions.start(scope, NewSession(question=chain)))
    held = {one.passage_id for one in read.passages}
    changed = next(passage for passage in CURIE if passage["id"] in held)
    _ingest(application, scope.collection.name, dict(changed) | {"text": "Something else was said of it."})
    _ingest(application, scope.collection.name, changed)


def _tune(application: Application, scope: Scope) -> None:
    tuning = tuning_of(application).tuning
    tuning.request(scope)
    with patch.object(training_input, "MOST_PASSAGES", 50):  # what is learned is of no interest here
        finish_jobs(application)
    tuning.sweep(lambda: False)
    for number in (0, 1):
        tuning.change(scope, serving=number)
    tuning.load_standing(scope)
    application.answers.question.answer(Query(text=QUESTIONS[0], scope=scope))
    application.revocation.verification.verify(scope)


def _look(application: Application, scope: Scope, events: Sequence[int]) -> None:
    name = scope.collection.name
    for status in (None, "applied"):
        stored = application.learning.verdict_listing.page(scope, status=status, after=0, limit=10)
    application.learning.verdict_listing.page(scope, status=None, after=0, limit=10, query=stored[0].event.query_id)
    for event in events[:3]:
        application.learning.verdicts.read(scope, event)
    application.answers.episodes.read(scope, stored[0].event.query_id)
    sentences = state.list_sentence_ids(application, name)
    why_of(application).explain.memories(scope, sentences)
    why_of(application).gaps.find(scope, 30, 10)
    application.answers.question.answer(Query(text="Where is Warsw?", scope=scope))
    application.answers.suggestions.suggest(scope, "Wa", 10)
    for by in (None, "topic"):
        application.corpus.counts.count(scope, {"topic": "cities"}, by, 10)
    around = Query(text=QUESTIONS[0], scope=scope, include=frozenset({"sentences"})).with_part(
        ContextPart(1, 1, section=False, characters=1_000)
    )
    answer = application.answers.question.answer(around)
    numbered = [replace(hit, passage_id=f"{hit.passage_id}#{at}") for at, hit in enumerate(answer.passages)]
    application.answers.context.add(around, replace(answer, passages=numbered))
    for sentence in sentences[:3]:
        why_of(application).explain.sentence(scope, sentence, "Warsaw", after=0, limit=10)
    for passage in ("warsaw", "curie", "tokyo"):
        published_of(application).key_view.view(scope, passage, 10)
        application.corpus.ingest.passage(scope, passage)
    published_of(application).evolve.load_standing(scope)
    published_of(application).evolve.generations(scope, None, 10)
    application.learning.judges.page(scope, "", 10)
    application.jobs.jobs.page(scope, None, 10)
    application.corpus.ingest.collections(None, 10)
    application.learning.parked.retry_all(scope)
    application.learning.parked.retry_all(scope, "careless")
    application.revocation.verification.verify(scope)
    application.maintenance.health.readiness()


def _change(application: Application, scope: Scope) -> None:
    changed = dict(CURIE[1]) | {"text": "Warsaw lies on the Vistula. Warsaw was destroyed in 1944."}
    _ingest(application, scope.collection.name, changed, CURIE[0])
    application.corpus.ingest.delete_passage(scope, "tokyo")
    application.corpus.rekey.request(scope, "title")
    application.jobs.runner.run_ready()
    for generation in (0, 1):
        published_of(application).evolve.roll_back(scope, generation)


def _undo(application: Application, scope: Scope, events: Sequence[int]) -> None:
    name = scope.collection.name
    moment = past.now(application)
    application.learning.revocation.revoke(scope, events[0])
    application.learning.revocation.request(scope, judge="careless")
    application.jobs.runner.run_ready()
    application.revocation.verification.verify(scope)
    past.rebuild_past(application, name, moment, f"{name}-past")
    copy = application.auth.access.scope(f"{name}-past")
    application.answers.question.answer(Query(text=QUESTIONS[0], scope=copy))
    application.corpus.ingest.delete_collection(copy)
    application.revocation.learning_reset.reset(scope)
