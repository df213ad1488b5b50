"""How often verdicts and passages go to the database: as often for many as for one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.core.learning.logged_verdict import Expansion
from engram.wings.published.parts import published_of
from tests.api.conftest import Variant
from tests.support import state
from tests.support.constants import INGEST_BATCH, set_constants
from tests.support.statements import Sent, record_statements
from tests.support.strict_client import TestClient

UNITS = [
    {"method": "hyde", "text": "The longest river flows past the capital into the sea."},
    {"method": "facet", "text": "capital, Poland"},
]

LOCKED = [
    *["SELECT"] * 4,  # the collection, kept; learning; the events; what their verdicts say
    "SELECT",  # judges
    *["INSERT", "SELECT"],  # questions
    *["SELECT", "SELECT"],  # sentences, and their revisions
]
MEMORIES_LOCKED = ["INSERT", "WITH"]
WRITTEN = [
    "WITH",  # supports
    "SELECT",  # the passages of what is judged
    *["UPDATE", "INSERT"],  # when judged questions are sampled anew, which is now
    "INSERT",  # supports, written
    "INSERT",  # the audit
]
MEMORIES_WRITTEN = ["UPDATE", "INSERT"]  # memories, and their audit
CREDITED = [
    *["INSERT", "SELECT"],  # keys, locked
    *["SELECT", "SELECT"],  # the sentences' passages; the collection
    *["SELECT", "SELECT"],  # what the widened questions find; base keys, locked
    *["INSERT", "SELECT"],  # units
    *["INSERT", "INSERT", "WITH", "UPDATE"],  # evidence, credits, memories, progress
]
# Of a model: its weights, locked; the judges' days; the sum; its terms.
TEACHING_STATEMENTS = ["SELECT", "SELECT", "INSERT", "INSERT"]
MARKED = ["UPDATE"]


def list_applied(application: Application) -> list[str]:
    """What applying a verdict sends, without what weights and keys learn."""
    if "published" not in application.wing_services:
        return [*LOCKED, *WRITTEN]
    return [*LOCKED, *MEMORIES_LOCKED, *WRITTEN, *MEMORIES_WRITTEN]


def record_verdict(http: TestClient, query_id: object, collection: str, **body: Any) -> Sent:
    """What one verdict sends."""
    body = {"query_id": str(query_id), "collection": collection} | body
    with record_statements() as sent:
        http.post("/feedback", json=body, headers={"Idempotency-Key": uuid4().hex}).raise_for_status()
    return sent


class TestOneVerdict:
    def test_ids_are_checked_and_stored_by_one_statement(
        self, http: TestClient, application: Application, curie: str
    ) -> None:
        ids = state.list_sentence_ids(application, curie)
        for some in (ids[:1], ids):
            query_id = state.add_episode(application, curie, "Which river?", ids)
            assert record_verdict(http, query_id, curie, supporting=some, expansions=UNITS).connections == [
                ["WITH"]
            ]

    def test_quotes_and_passages_are_looked_up_together(
        self, http: TestClient, application: Application, curie: str
    ) -> None:
        quotes = [
            {"passage_id": passage, "text": next(iter(state.sentences(application, curie, passage)))}
            for passage in ("vistula", "warsaw", "polonium")
        ]
        looked = []
        for count in (1, 3):
            query_id = state.add_episode(application, curie, "Which river?", [])
            passages = ["tokyo", "curie", "vistula"][:count]
            body = {"supporting": quotes[:count], "supporting_passages": passages}
            *looks, stored = record_verdict(http, query_id, curie, **body).connections
            assert stored == ["WITH"]
            looked.append(looks)
        assert looked[0] == looked[1] == [["SELECT"] * len(statements) for statements in looked[0]]

    def test_one_that_waits_is_applied_in_one_transaction(
        self, http: TestClient, application: Application, curie: str
    ) -> None:
        ids = state.list_sentence_ids(application, curie)
        query_id = state.add_episode(application, curie, "Which river?", ids)
        sent = record_verdict(http, query_id, curie, supporting=ids[:2], wait=True)
        assert sent.written == [[*list_applied(application), *MARKED]]


Given = Callable[[int], Sequence[int]]


class TestABatchOfVerdicts:
    @pytest.fixture(params=["memories", "weights", pytest.param("keys", marks=pytest.mark.wing("published"))])
    def given(self, request: pytest.FixtureRequest, application: Application, curie: str) -> tuple[str, Given]:
        """What the verdicts teach, and a way to have so many of them wait."""
        ids = state.list_sentence_ids(application, curie)
        passages = list(state.passages(application, curie).values())
        ranking: Mapping[str, Any] = {"ranked": passages}
        more: Mapping[str, Any] = {"expansions": [Expansion(**unit) for unit in UNITS]}
        teaches: str = request.param

        def wait(count: int) -> list[int]:
            said = {"weights": {}, "memories": {}, "keys": more}[teaches]
            return [
                state.judge(
                    application,
                    curie,
                    state.add_episode(
                        application,
                        curie,
                        f"Which river, {count} {place}?",
                        ids,
                        **(ranking if teaches == "weights" else {}),
                    ),
                    [ids[place % len(ids)]],
                    judge=f"judge {place}",
                    **said,
                ).event.id
                for place in range(count)
            ]

        return teaches, wait

    def test_is_applied_by_as_many_statements_as_one_verdict(
        self, application: Application, curie: str, given: tuple[str, Given]
    ) -> None:
        teaches, wait = given
        target = state.collection_id(application, curie)
        application.learning.learner.apply(target, wait(1))  # after which there is a sum of weights to add to
        applied = list_applied(application)
        expected = {
            "memories": [*applied, *MARKED],
            "weights": [*applied, *TEACHING_STATEMENTS, *MARKED],
            "keys": [*applied, *CREDITED, *MARKED],
        }[teaches]
        totals = []
        for count in (1, 2, 7):
            events = wait(count)
            with record_statements() as sent:
                assert application.learning.learner.apply(target, events) == count
            assert sent.written == [expected], count
            totals.append(sent.statements)
        assert len(set(totals)) == 1


PLANNED = 1 + 1 + 3 + 2 + 1
"""A claim, the documents of the job, the lines of the first batch, what is stored of them, the next lines: none."""
INGEST_STATEMENTS = 28
"""One has judged questions sampled anew if a sentence that goes supports one."""
MEASURED = 6
"""The sample of titles and the latest queries, which tell the kind of the corpus; two locks, whether it has learned
weights, and its record."""
FIRST_MEASURED = 6
"""The collection and a sample of the waiting titles, once for a new collection; the same four."""
END_STATEMENTS = 4
"""One looks for documents whose dates and versions are to be read."""
NAMING_STATEMENTS = 1 + 2 + 1
"""Where names wait, the first of them and their embeddings, the next: there are none."""


def lines(count: int, said: str = "", **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{place}",
            "title": f"Mister Number{place}",
            "text": f"Number{place} lived in Warsaw in 18{place + 10}. {said} He met Curie{place}.",
        }
        | more
        for place in range(count)
    ]


def record_ingest(application: Application, collection: str, passages: Sequence[Mapping[str, Any]]) -> Sent:
    state.stage_passages(application, collection, *passages)
    with record_statements() as sent:
        application.jobs.runner.run_ready()
    return sent


class TestIngest:
    def test_new_passages_take_as_many_statements_as_one(self, application: Application, collection: str) -> None:
        for count in (1, 9):
            sent = record_ingest(application, f"{collection}-{count}", lines(count))
            assert sum(len(words) == INGEST_STATEMENTS for words in sent.written) == 1, count
            measured = FIRST_MEASURED + MEASURED
            assert sent.statements == PLANNED + INGEST_STATEMENTS + measured + END_STATEMENTS + NAMING_STATEMENTS

    @pytest.mark.parametrize(
        "change",
        [{}, {"metadata": {"read": True}}, {"said": "He read."}, {"title": None}],
        ids=["nothing", "metadata", "text", "title"],
    )
    def test_changed_passages_take_as_many_statements_as_one(
        self, application: Application, collection: str, change: Mapping[str, Any]
    ) -> None:
        sent = []
        for count in (1, 9):
            into = f"{collection}-{count}"
            record_ingest(application, into, lines(count))
            sent.append(record_ingest(application, into, lines(count, **change)))
        assert sent[0].statements == sent[1].statements
        assert list(map(sorted, sent[0].written)) == list(map(sorted, sent[1].written))

    @pytest.mark.wing("published")
    def test_passages_with_evolved_keys_take_as_many_statements_as_one(
        self, application: Application, collection: str
    ) -> None:
        sent = []
        for count in (1, 5):
            into = f"{collection}-{count}"
            record_ingest(application, into, lines(count))
            scope = application.auth.access.scope(into)
            query_id = state.add_episode(application, into, "Who lived in Warsaw?", [])
            units = (Expansion("hyde", "Number lived in Warsaw and met Curie."), Expansion("facet", "Warsaw"))
            named = tuple(passage["id"] for passage in lines(count))
            state.judge(
                application,
                into,
                query_id,
                wait=True,
                partial=True,
                supporting_passages=named,
                expansions=units,
                retrieval_success=True,
            )
            assert published_of(application).evolve.evolve(scope) is not None
            assert len(state.rows(application, into, "passage_key")) == count
            sent.append(record_ingest(application, into, lines(count, "He read.")))
        assert sent[0].statements == sent[1].statements

    def test_each_batch_takes_as_many_as_the_first(
        self, application: Application, variant: Variant, collection: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        set_constants(monkeypatch, {INGEST_BATCH: 4})
        by_four = variant()
        state.stage_passages(application, collection, *lines(8))
        with record_statements() as sent:
            by_four.jobs.runner.run_ready()
        assert [len(words) for words in sent.written if "DELETE" in words] == [INGEST_STATEMENTS, INGEST_STATEMENTS]
