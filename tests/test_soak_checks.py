"""What a soak checks can fail: each thing that is lost, doubled or shown to the wrong person is named."""

import json
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engram.composition.container import Application
from engram.services.question.query import Query
from tests.conftest import CURIE
from tests.support import state

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MODULES = ("actors", "asking", "ledger", "row_checks", "verdict_checks")
ANA, BO = ("group:a", "user:ana"), ("user:bo",)


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """The modules of the soak by their names."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield SimpleNamespace(**{name: import_module(f"soak.{name}") for name in MODULES})
    for name in [name for name in sys.modules if name.partition(".")[0] in {"soak", "running"}]:
        del sys.modules[name]


CHANGES = [(None, 1.0, 2.0), (["group:a"], 10.0, 12.0), ([], 20.0, 22.0), (["user:bo"], 30.0, float("inf"))]
"""Readers of a passage, and when each change began and was confirmed."""


@pytest.mark.parametrize(
    ("names", "began", "ended", "hidden"),
    [
        (ANA, 0.5, 0.7, True),  # nobody had put it in
        (BO, 3.0, 9.0, False),
        (BO, 9.0, 11.0, False),  # the change was under way
        (BO, 11.0, 13.0, False),  # asked before it was confirmed
        (BO, 12.0, 13.0, True),
        (ANA, 13.0, 19.0, False),
        (ANA, 21.0, 23.0, False),
        (ANA, 22.0, 29.0, True),
        (ANA, 31.0, 32.0, True),
        (BO, 29.0, 31.0, False),
        (BO, 25.0, 29.0, True),  # answered before anybody asked for that change
        (BO, 99.0, 99.5, False),  # never confirmed, and may hold
    ],
)
def test_a_passage_is_hidden_if_no_list_that_could_hold_names_the_person(
    soak: SimpleNamespace, names: Sequence[str], began: float, ended: float, hidden: bool
) -> None:
    ledger = soak.ledger.Ledger()
    for readers, asked, confirmed in CHANGES:
        change = ledger.begin("pay.txt", readers)
        change.began, change.ended = asked, confirmed
    found = ledger.find_hidden(["pay.txt#2", "stable"], names, began, ended)
    assert found == (["pay.txt#2"] if hidden else [])


def test_passages_that_an_answer_leaves_out_as_duplicates_are_shown_too(soak: SimpleNamespace) -> None:
    hits = [
        {"passage_id": "one", "duplicates": [{"passage_id": "two"}]},
        {"passage_id": "three", "duplicates": None},
    ]
    assert soak.asking.list_shown({"passages": hits}) == ["one", "two", "three"]


RIGHT = [("a", "A first text.", None), ("b.txt#1", "B  second\ntext.", ["user:bo"])]
WANTED = {"a": ("A first text.", None), "b.txt": ("B second text.", ("user:bo",))}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (RIGHT, ""),
        (RIGHT[:1], "1 are lost, such as b.txt"),
        ([*RIGHT, ("b.txt#2", "B second text.", ["user:bo"])], "1 are there more than once, such as b.txt"),
        ([*RIGHT, ("c", "C", None)], "1 that were removed, or never put in, are there, such as c"),
        (
            [RIGHT[0], ("b.txt#1", "B an earlier text.", ["user:bo"])],
            "1 have another text than the newest, such as b.txt",
        ),
        ([RIGHT[0], ("b.txt#1", "B second text.", None)], "1 have other readers, such as b.txt"),
        ([("a", "A first text.", []), RIGHT[1]], "1 have other readers, such as a"),
    ],
)
def test_passages_that_are_not_as_they_were_put_in_are_named(
    soak: SimpleNamespace, found: Sequence[tuple[str, str, Any]], said: str
) -> None:
    assert soak.row_checks.find_differences(WANTED, found) == ([said] if said else [])


@pytest.fixture
def judged(
    soak: SimpleNamespace, application: Application, collection: str, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """A collection with two verdicts, and what a soak knows of it; ``find`` says what is wrong."""
    monkeypatch.setattr(soak.verdict_checks, "COLLECTION", collection)
    state.stage_passages(application, collection, *CURIE)
    application.jobs.runner.run_ready()
    scope = application.auth.access.scope(collection)
    query = application.answers.question.serve(Query(text="Where was Marie Curie born?", scope=scope))
    sentences = state.list_sentence_ids(application, collection)
    sent, results = [], []
    for number, sentence in enumerate(sentences[:2]):
        state.judge(application, collection, query.query_id, [sentence], key=f"k{number}", wait=True, partial=True)
        body = {"query_id": str(query.query_id), "supporting": [sentence], "rejected": [], "complete": False}
        sent.append({"key": f"k{number}", "body": body})
        results.append(
            {"key": f"k{number}", "status": 200, "feedback_id": max(state.event_statuses(application, collection))}
        )
    rows, log = soak.verdict_checks.Rows(application), Path("no log")
    texts = {row["external_id"]: row["text"] for row in state.rows(application, collection, "passage")}
    leaver = soak.actors.Leaver(collection)

    def find() -> list[str]:
        return [
            *soak.verdict_checks.check(rows, sent, results, log),
            *soak.row_checks.check_passages(rows, soak.ledger.Ledger(), texts),
            *soak.row_checks.check_queries(rows, [str(query.query_id)]),
            *soak.row_checks.check_erased(rows, [leaver]),
            *soak.row_checks.check_jobs(rows),
        ]

    assert find() == []
    return find


SPOILT = {
    "lost verdict": (
        "DELETE FROM feedback_event WHERE collection_id = %(c)s AND idempotency_key = 'k1'",
        "1 events are stored and 2 keys",
    ),
    "doubled verdict": (
        "UPDATE question_support SET update_count = update_count + 1 WHERE collection_id = %(c)s",
        "do not count the verdicts on them",
    ),
    "parked verdict": (
        "UPDATE feedback_event SET status = 'parked' WHERE collection_id = %(c)s AND idempotency_key = 'k1'",
        "1 events are parked",
    ),
    "doubled passage": (
        """
        INSERT INTO passage (collection_id, external_id, text, language, content_hash, embedding)
        SELECT collection_id, external_id || '#2', text, language, content_hash, embedding FROM passage
        WHERE collection_id = %(c)s ORDER BY id LIMIT 1
        """,
        "are there more than once",
    ),
    "lost passage": (
        "UPDATE passage SET external_id = 'moved ' || external_id WHERE collection_id = %(c)s",
        "are lost",
    ),
    "lost query": ("DELETE FROM episode WHERE collection_id = %(c)s", "1 of 1 answered queries are gone"),
    "remembered person": (
        "UPDATE judged_query SET principal = %(leaver)s WHERE collection_id = %(c)s",
        "1 rows of judged_query.principal are of persons who were erased",
    ),
    "failed job": ("UPDATE job SET status = 'failed' WHERE collection_id = %(c)s", "1 jobs: ingest failed"),
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_what_is_spoilt_in_the_database_is_named(
    soak: SimpleNamespace, application: Application, collection: str, judged: Any, spoilt: str
) -> None:
    statement, said = SPOILT[spoilt]
    leaver = soak.actors.Leaver(collection).principal
    with application.database.write() as writer:
        writer.execute(statement, {"c": state.collection_id(application, collection), "leaver": leaver})
    assert any(said in line for line in judged()), json.dumps(judged())
