"""Erasures: nothing of the person is found, and what is learned follows from the verdicts that are left."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest
import structlog

from engram.api.erasure.schemas import ErasureOut
from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.core.learning.logged_verdict import Expansion
from engram.services.auth.scope import LOCAL, Scope
from engram.services.erasure.erasure_service import ErasureRequest, read_receipts
from engram.services.question.query import Query
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.database import Database
from tests.conftest import ingest_passages
from tests.support import state, undo

PERSON = "zelda.quux@example.org"
WORDS = "Xylophonist"
QUESTION = f"Where was Marie Curie born, asks {WORDS}?"


def find_anywhere(database: Database, text: str) -> dict[str, int]:
    """Table -> its rows that have the text in any column, of all tables there are."""
    with database.read() as reader:
        tables = reader.rows(
            """
            SELECT relname AS name FROM pg_class
            WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
            """
        )
        counts = {
            table.name: reader.scalar(
                f'SELECT count(*) FROM "{table.name}" AS held WHERE held::text ILIKE %(text)s',
                {"text": f"%{text}%"},
            )
            for table in tables
        }
    return {table: count for table, count in counts.items() if count}


@pytest.fixture
def person(application: Application, curie: str) -> Scope:
    """A principal who asked, judged under the same name, and brought an expansion."""
    scope = application.auth.access.scope(curie, replace(LOCAL, name=PERSON))
    answer = application.answers.question.answer(Query(text=QUESTION, scope=scope, filter={"kind": {"$ne": WORDS}}))
    helped = list(state.sentences(application, curie, "curie").values())
    verdict = Verdict(
        query_id=answer.query_id,
        scope=scope,
        judge=PERSON,
        supporting=tuple(NamedSentence(sentence_id=one) for one in helped[:2]),
        expansions=(Expansion("keywords", f"{WORDS} birthplace"),),
    )
    application.learning.verdicts.accept(verdict, f"key-{PERSON}", wait=True)
    return scope


def test_a_person_is_erased_from_each_collection_that_a_joint_question_was_kept_in(
    application: Application, curie: str
) -> None:
    names = (curie, f"{curie}-paris")
    ingest_passages(application, names[1], {"id": "louvre", "text": "The Louvre is in Paris."})
    asker = replace(LOCAL, name=PERSON)
    scopes = [application.auth.access.scope(name, asker) for name in names]
    joint = application.answers.joint.serve([Query(text=QUESTION, scope=scope) for scope in scopes])
    erase(application, curie, kind="query", queries=(joint.answers[0].query_id,))
    assert [len(state.rows(application, name, "episode")) for name in names] == [0, 1]
    for name in names:
        erase(application, name, kind="principal", name=PERSON)
    assert find_anywhere(application.database, WORDS) == find_anywhere(application.database, PERSON) == {}


def judge_as_another(application: Application, curie: str) -> None:
    query = Query(text="Which city lies on the Vistula?", scope=application.auth.access.scope(curie))
    answer = application.answers.question.answer(query)
    helped = list(state.sentences(application, curie, "warsaw").values())
    state.judge(application, curie, answer.query_id, helped, wait=True)


def erase(application: Application, collection: str, **request: Any) -> UUID:
    scope = application.auth.access.scope(collection)
    job = application.revocation.erasure.request(scope, ErasureRequest.build(**request))
    application.jobs.runner.run_ready()
    done = application.jobs.jobs.job(scope, job)
    assert (done.status, done.error) == ("succeeded", None)
    return job


def list_requests(application: Application, collection: str) -> Iterator[tuple[str, dict[str, Any]]]:
    query = state.rows(application, collection, "episode")[0]["id"]
    now = datetime.now(UTC)
    yield "query", {"queries": (query,)}
    yield "principal", {"name": PERSON}
    yield "span", {"since": now - timedelta(hours=1), "before": now + timedelta(hours=1)}


@pytest.mark.wing("published")
@pytest.mark.parametrize(
    ("kind", "anonymise"), [("query", False), ("query", True), ("principal", False), ("span", True)]
)
def test_nothing_of_the_person_is_found(
    application: Application, curie: str, person: Scope, kind: Any, anonymise: bool
) -> None:
    assert set(find_anywhere(application.database, WORDS)) >= {"judged_query", "question", "verdict_expansion"}
    before = state.list_learned(application, curie)
    assert before["question_support"]
    request = dict(list_requests(application, curie))[kind]
    job = erase(application, curie, kind=kind, anonymise=anonymise, **request)

    assert find_anywhere(application.database, WORDS) == {}
    assert find_anywhere(application.database, PERSON) == {}
    undo.assert_verified(application, curie)
    left = state.event_statuses(application, curie)
    undo.apply(application, curie, list(left))
    undo.assert_verified(application, curie)
    after = state.list_learned(application, curie)
    assert set(left.values()) == ({"pending"} if anonymise else set())
    assert bool(after["question_support"]) is anonymise
    assert bool(after["sentence_memory"]) is (anonymise and "published" in application.wing_services)
    assert find_anywhere(application.database, WORDS) == {}

    receipt = application.revocation.erasure.list_receipts(application.auth.access.scope(curie))[0]
    assert (receipt.id, receipt.kind, receipt.anonymised) == (job, kind, anonymise)
    assert receipt.removed["episode"] == 1
    assert receipt.removed["feedback_event"] == 1


def test_others_verdicts_on_an_erased_question_go_with_it(
    application: Application, curie: str, person: Scope
) -> None:
    query = state.rows(application, curie, "episode")[0]["id"]
    helped = list(state.sentences(application, curie, "curie").values())
    state.judge(application, curie, query, helped[:1], wait=True)
    assert len(state.rows(application, curie, "feedback_event")) == 2
    erase(application, curie, kind="principal", name=PERSON)
    assert state.rows(application, curie, "feedback_event") == []
    assert state.list_learned(application, curie)["question_support"] == []
    undo.assert_verified(application, curie)


def test_no_log_line_has_a_question(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie, replace(LOCAL, name=PERSON))
    [born, *_] = state.sentences(application, curie, "curie").values()
    with structlog.testing.capture_logs() as lines:
        judge_with(application, scope, supporting=(NamedSentence(sentence_id=born),))
        erase(application, curie, kind="principal", name=PERSON)
    assert {"query", "feedback accepted", "erased"} <= {line["event"] for line in lines}
    assert PERSON in str(lines)
    assert WORDS not in str(lines)


def judge_with(application: Application, scope: Scope, **verdict: Any) -> None:
    """Have the person judge a question of theirs."""
    answer = application.answers.question.answer(Query(text=QUESTION, scope=scope))
    application.learning.verdicts.accept(
        Verdict(query_id=answer.query_id, scope=scope, judge=PERSON, **verdict), str(answer.query_id), wait=True
    )


def test_an_anonymous_question_is_the_mean_of_what_its_verdict_supports(
    application: Application, curie: str
) -> None:
    scope = application.auth.access.scope(curie, replace(LOCAL, name=PERSON))
    [born, *_] = state.sentences(application, curie, "curie").values()
    [rejected, *_] = state.sentences(application, curie, "tokyo").values()
    [river, *_] = state.sentences(application, curie, "warsaw").values()
    judge_with(
        application,
        scope,
        supporting=(NamedSentence(sentence_id=born), NamedSentence(sentence_id=river)),
        rejected=(NamedSentence(sentence_id=rejected),),
    )
    erase(application, curie, kind="principal", name=PERSON, anonymise=True)
    vectors = {row["id"]: row["embedding"] for row in state.rows(application, curie, "sentence")}
    mean = np.mean([json.loads(vectors[one]) for one in (born, river)], axis=0)
    [judged] = state.rows(application, curie, "judged_query")
    assert np.allclose(json.loads(judged["embedding"]), mean / np.linalg.norm(mean), atol=1e-5)


def test_a_verdict_without_a_supported_sentence_that_is_left_is_erased(
    application: Application, curie: str
) -> None:
    scope = application.auth.access.scope(curie, replace(LOCAL, name=PERSON))
    [river, *_] = state.sentences(application, curie, "warsaw").values()
    [born, *_] = state.sentences(application, curie, "curie").values()
    judge_with(application, scope, supporting=(NamedSentence(sentence_id=river),))
    judge_with(application, scope, rejected=(NamedSentence(sentence_id=born),))
    application.corpus.ingest.delete_passage(scope, "warsaw")
    erase(application, curie, kind="principal", name=PERSON, anonymise=True)
    assert state.rows(application, curie, "feedback_event") == []
    assert state.rows(application, curie, "judged_query") == []
    undo.assert_verified(application, curie)


def test_others_keep_what_they_taught(application: Application, curie: str, person: Scope) -> None:
    judge_as_another(application, curie)
    questions = {row["text"] for row in state.rows(application, curie, "question")}
    erase(application, curie, kind="judge", name=PERSON)
    assert {row["text"] for row in state.rows(application, curie, "question")} == {
        text for text in questions if WORDS not in text
    }
    assert PERSON not in {row["judge"] for row in state.rows(application, curie, "feedback_event")}
    undo.assert_verified(application, curie)
    # The principal asked the question, which stays until the principal is erased.
    assert [table for table in find_anywhere(application.database, WORDS) if not table.startswith("episode")] == []
    erase(application, curie, kind="principal", name=PERSON)
    assert find_anywhere(application.database, WORDS) == {}


def test_an_export_has_what_an_erasure_removes(application: Application, curie: str, person: Scope) -> None:
    rows = list(application.revocation.export.list_rows(LOCAL.tenant, PERSON))
    by_table: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_table.setdefault(row["table"], []).append(row)
    assert set(by_table) >= {"episode", "judged_query", "feedback_event", "verdict_sentence", "verdict_expansion"}
    assert [row["question"] for row in by_table["episode"]] == [QUESTION]
    assert [row["judge"] for row in by_table["feedback_event"]] == [PERSON]
    assert [row["text"] for row in by_table["verdict_expansion"]] == [f"{WORDS} birthplace"]
    assert not any("embedding" in row for row in rows)
    erase(application, curie, kind="principal", name=PERSON)
    assert list(application.revocation.export.list_rows(LOCAL.tenant, PERSON)) == []


def test_an_old_backup_is_erased_again(application: Application, curie: str, person: Scope) -> None:
    erase(application, curie, kind="principal", name=PERSON)
    scope = application.auth.access.scope(curie)
    receipts = application.revocation.erasure.list_receipts(scope)
    assert PERSON not in repr(receipts)
    shown = json.loads(json.dumps([ErasureOut.from_service(one).model_dump(mode="json") for one in receipts]))
    assert read_receipts(shown) == receipts
    again = replace(person)
    application.answers.question.answer(Query(text=QUESTION, scope=again))
    assert find_anywhere(application.database, WORDS)
    assert len(application.revocation.erasure.repeat(scope, receipts)) == 1
    application.jobs.runner.run_ready()
    assert find_anywhere(application.database, WORDS) == {}


def test_a_span_has_bounds() -> None:
    with pytest.raises(InvalidRequestError, match="Say the span"):
        ErasureRequest.build("span")
    moment = datetime(2026, 5, 1, tzinfo=UTC)
    with pytest.raises(InvalidRequestError, match="must come before"):
        ErasureRequest.build("span", since=moment, before=moment)
