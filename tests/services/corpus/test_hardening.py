"""What once broke: oversized keys, replans, unlike entities, vanished passages, partial verdicts, filtered hubs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from engram.composition.container import Application, Servers
from engram.context.errors import UnavailableError
from engram.core.learning.states import AuditRows
from engram.providers.language import Language, PassageText, SentenceAnalysis
from engram.services.question.query import Query
from engram.services.verdict.learn import VerdictLearner
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.corpus.collection_lock import EXCLUSIVE, lock_row
from engram.storage.database import Database, Writer
from engram.storage.feedback_log import audit_rows
from engram.storage.question import passage_candidates
from tests.support import state
from tests.support.databases import application_on

Ingest = Callable[..., Mapping[str, Any]]


@pytest.mark.parametrize(
    "passage",
    [
        {"id": "dates", "text": "Founded in " + ", ".join(f"{1000 + n}" for n in range(1000)) + "."},
        {"id": "title", "title": "界" * 2000, "text": "A short text."},
        {"id": "names", "text": "It was " + "Alpha " * 800 + "again."},
    ],
    ids=lambda passage: passage["id"],
)
def test_overlong_names_and_dates_are_ingested_without_them(ingest: Ingest, passage: Mapping[str, Any]) -> None:
    job = ingest(passage)
    assert (job["status"], job["created"]) == ("succeeded", 1)


class DatingLanguage:
    """The application's language, except that it dates every sentence as it is told."""

    name = "dating"

    def __init__(self, language: Language, expression: str) -> None:
        self._language = language
        self._expression = expression

    def analyse_passages(self, passages: list[PassageText]) -> list[list[SentenceAnalysis]]:
        analyses = self._language.analyse_passages(passages)
        return [[replace(s, time_expression=self._expression) for s in sentences] for sentences in analyses]

    def analyse_question(self, text: str, language: str | None = None) -> Any:
        return self._language.analyse_question(text, language)


def test_a_kept_sentence_takes_its_new_time_expression(
    application: Application, addresses: Servers, ingest: Ingest, collection: str
) -> None:
    ingest({"id": "a", "text": "It opened in 1998. It stands near the river."})
    with application_on(addresses, application.settings, application) as dating:
        dating.models.language = DatingLanguage(application.models.language, "1998")
        state.stage_passages(dating, collection, {"id": "a", "text": "It stands near the river."})
        dating.jobs.runner.run_ready()
    with application.database.read() as reader:
        row = reader.row(
            """
            SELECT t.text FROM sentence s JOIN collection c ON c.id = s.collection_id
            JOIN time_expression t ON t.collection_id = s.collection_id AND t.id = s.time_expression_id
            WHERE c.name = %(name)s
            """,
            {"name": collection},
        )
    assert row.text == "1998"


@pytest.mark.parametrize("profile", [pytest.param("paper", marks=pytest.mark.wing("published")), "default"])
def test_dissimilar_entity_is_not_aligned(
    application: Application, ingest: Ingest, collection: str, profile: Any
) -> None:
    ingest({"id": "k", "text": "Not far from Kubernetes a strange thing was seen."})
    text = "Not far from which strange thing was Opera seen?"
    answer = application.answers.question.answer(
        Query(text=text, scope=application.auth.access.scope(collection), profile=profile)
    )
    assert [passage.passage_id for passage in answer.passages] == ["k"]


def test_a_passage_may_vanish_while_its_query_runs(
    application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = passage_candidates.find

    def find_after_delete(*arguments: Any) -> Any:
        if not deleted:
            deleted.append(True)
            application.corpus.ingest.delete_passage(application.auth.access.scope(curie), "curie")
        return find(*arguments)

    deleted: list[bool] = []
    monkeypatch.setattr(passage_candidates, "find", find_after_delete)
    answer = application.answers.question.answer(
        Query(text="Where was Marie Curie born?", scope=application.auth.access.scope(curie))
    )
    assert deleted
    assert "curie" in {passage.passage_id for passage in answer.passages}, "all is read of one moment"
    again = application.answers.question.answer(
        Query(text="Where was Marie Curie born?", scope=application.auth.access.scope(curie))
    )
    assert "curie" not in {passage.passage_id for passage in again.passages}


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        ({"partial": True}, "max_hops"),
        ({"retrieval_success": False}, "max_hops"),
        ({}, "sufficient"),
    ],
)
def test_only_a_verdict_on_all_evidence_ends_the_hops(
    application: Application, curie: str, verdict: dict[str, Any], reason: str
) -> None:
    ask = Query(
        text="Into which sea flows the river of Marie Curie's birthplace?",
        scope=application.auth.access.scope(curie),
    )
    first = application.answers.question.answer(ask)
    supporting = [NamedSentence(passage_id="curie", text="Marie Curie was born in Warsaw in 1867.")]
    application.learning.verdicts.accept(
        Verdict(
            query_id=first.query_id, scope=application.auth.access.scope(curie), supporting=supporting, **verdict
        ),
        "k",
        wait=True,
    )
    assert application.answers.question.answer(ask).stop_reason == reason


def test_a_filter_sees_past_the_limit_of_a_hub(
    application: Application, addresses: Servers, ingest: Ingest, collection: str
) -> None:
    ingest(
        *(
            {"id": f"p{n}", "text": f"Warsaw saw event number {n}.", "metadata": {"n": n}, "title": "Warsaw"}
            for n in range(8)
        )
    )
    with application_on(addresses, application.settings, application) as services:
        services.models.limits = replace(services.models.limits, hub_limit=3)
        scope = services.auth.access.scope(collection)
        answer = services.answers.question.answer(Query(text="What did Warsaw see?", scope=scope, filter={"n": 7}))
    assert [sentence.text for passage in answer.passages for sentence in passage.sentences] == [
        "Warsaw saw event number 7."
    ]


def test_a_letter_names_no_sentence(application: Application, curie: str) -> None:
    answer = application.answers.question.answer(
        Query(text="Where was Marie Curie born?", scope=application.auth.access.scope(curie))
    )
    verdict = Verdict(
        query_id=answer.query_id,
        scope=application.auth.access.scope(curie),
        supporting=[NamedSentence(passage_id="curie", text="a")],
    )
    with pytest.raises(Exception, match="has no sentence 'a'"):
        application.learning.verdicts.accept(verdict, "letter")


@pytest.fixture
def hasty(application: Application, addresses: Servers) -> Iterator[VerdictLearner]:
    """Learning on connections whose statements have little time."""
    database = Database(addresses.database_url, pool_size=2, statement_timeout_seconds=1.0)
    yield replace(application.learning.learner, database=database, max_attempts=2)
    database.close()


class TestTimeouts:
    def test_waiting_for_somebody_counts_as_no_try(
        self, application: Application, curie: str, hasty: VerdictLearner
    ) -> None:
        query_id = state.add_episode(application, curie, "Where was Marie Curie born?", [])
        event = state.judge(application, curie, query_id, state.list_sentence_ids(application, curie)[:1]).event.id
        target = state.collection_id(application, curie)
        with application.database.write() as writer:
            lock_row(writer, target, EXCLUSIVE)
            with pytest.raises(UnavailableError):
                hasty.apply(target, [event])
        (row,) = state.rows(application, curie, "feedback_event")
        assert (row["status"], row["attempts"]) == ("pending", 0)

    def test_slow_event_is_parked_and_blocks_no_others(
        self, application: Application, curie: str, hasty: VerdictLearner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sentences = state.list_sentence_ids(application, curie)
        events = [
            state.judge(
                application,
                curie,
                state.add_episode(application, curie, question, []),
                sentences[:1],
            ).event.id
            for question in ("Where was Marie Curie born?", "What is the capital of Japan?")
        ]
        target = state.collection_id(application, curie)
        record = audit_rows.record

        def record_slowly(writer: Writer, collection_id: int, rows: AuditRows) -> None:
            record(writer, collection_id, rows)
            if any(row.event_id == events[0] for row in rows):
                writer.row("SELECT pg_sleep(5)")

        monkeypatch.setattr(audit_rows, "record", record_slowly)
        assert hasty.apply(target, events) == 1
        assert state.event_statuses(application, curie) == {events[0]: "pending", events[1]: "applied"}
        assert hasty.apply(target, events[:1]) == 0
        assert state.event_statuses(application, curie)[events[0]] == "parked"
