"""A collection that moves to another database: all of it, once, from wherever a run stopped."""

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from engram.api.problems import problem_response
from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context import tenancy
from engram.context.errors import (
    CollectionMovedError,
    CollectionMovingError,
    ConfigurationError,
    ConflictError,
    EngramError,
    UnavailableError,
)
from engram.core.auth.access_keys import Grants
from engram.services.auth.scope import LOCAL
from engram.services.question.query import Query
from engram.storage import database as storage
from engram.storage.corpus.collections import LOCAL_TENANT
from engram.storage.tables import metadata
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_service import StatedFact
from engram.wings.upkeep.services.collection_move import CollectionMoveService, Place
from engram.wings.upkeep.storage import collection_moves
from tests.support import earlier, state, undo
from tests.support.command import Cli
from tests.support.databases import application_on, new_database, open_migrated
from tests.wings.sessions.test_session_feedback import run_session

NAME = earlier.COLLECTION
QUESTIONS = (earlier.QUESTION, "What did Marie Curie discover?", "Which river flows through Warsaw?")
TABLES = [table.name for table in metadata.sorted_tables if "collection_id" in table.columns]
SET = "reader_set_id"


ROWS_BY_HAND = (
    "INSERT INTO tuning_state (collection_id, last_number) SELECT id, 1 FROM collection",
    """
    INSERT INTO tuning_generation (collection_id, number, adapter, encoder_fingerprint, accepted, reason, figures,
                                   judged_count, question_count, verdict_count)
    SELECT id, 1, '\\x00ff', 'f', true, 'better', '{"recall": 0.1}', 1, 1, 1 FROM collection
    """,
    "INSERT INTO tuning_verdict SELECT collection_id, 1, min(id) FROM feedback_event GROUP BY 1",
    "INSERT INTO ingest_error SELECT collection_id, id, 1, 'bad' FROM job",
    "INSERT INTO fact_graph (collection_id, name) SELECT id, 'second' FROM collection",
)
EMPTY = {
    "erasure",
    "fact_predicate",
    "ingest_document",
    "pulled_score",
    "removed_passage",
    "staged_embedding",
    "staged_key",
}
"""Tables that have no rows where nothing is under way."""


@pytest.fixture(scope="module")
def filled(addresses: Servers, settings: Settings, application: Application) -> Iterator[list[str]]:
    """A database with a collection that holds something of everything, and another; nobody is connected to them."""
    with open_migrated(addresses) as here, open_migrated(addresses) as there:
        with application_on(here, settings, application) as one:
            earlier.fill(one)
            scope = one.auth.access.scope(NAME)
            stated = StatedFact(Triple("Marie Curie", "spouse", "Pierre Curie", 0, "entity", None, None, 1.0))
            facts_of(one).facts.state(scope, [stated], source="a page")
            run_session(one, scope, "Where was Marie Curie born?")
            told = read_by("ana", "one") | {"document": "letters"}
            state.stage_passages(one, NAME, told, key="readers", documents=["letters"])
            one.jobs.runner.run_ready()
            state.stage_passages(one, NAME, {"id": "waits", "text": "Bees fly."}, key="waits")
            for statement in ROWS_BY_HAND:
                write(one, statement)
        with application_on(there, settings, application) as other:
            for person in ("bo", "cy"):  # whose sets of readers have the ids that ana's has at the source
                state.stage_passages(other, "beside", read_by(person, person))
            other.jobs.runner.run_ready()
        yield [here.database_url, there.database_url]


@pytest.fixture
def both(
    filled: list[str], addresses: Servers, settings: Settings, application: Application
) -> Iterator[list[Application]]:
    """An application on a copy of each."""
    with ExitStack() as stack:
        urls = [stack.enter_context(new_database(url, copied=True)) for url in filled]
        yield [
            stack.enter_context(application_on(Servers(url, addresses.redis_url), settings, application))
            for url in urls
        ]


def read_by(person: str, passage: str) -> dict[str, Any]:
    return {"id": passage, "text": f"{person} keeps a secret.", "readers": [f"user:{person}"]}


def mover(both: Sequence[Application]) -> CollectionMoveService:
    places = (Place(each.database, each.revocation.verification) for each in both)
    return CollectionMoveService(*places, index_memory_mb=64)


def hold(services: Application) -> dict[str, list[dict[str, Any]]]:
    """All rows of the collection but the ids of sets of readers."""
    rows = state.snapshot(services, NAME, TABLES, ("collection_id", SET))
    return rows | {"reader_set": [row | {"id": None} for row in rows["reader_set"]]}


def answer(services: Application) -> list[list[tuple[str, float]]]:
    scope = services.auth.access.scope(NAME)
    answers = [services.answers.question.serve(Query(text=text, scope=scope)) for text in QUESTIONS]
    return [[(passage.passage_id, passage.score) for passage in one.passages] for one in answers]


def see(services: Application, person: str) -> set[str]:
    names = tenancy.ReaderNames((f"user:{person}",))
    with tenancy.restrict_to(LOCAL_TENANT, names), services.database.read() as reader:
        rows = reader.rows("SELECT external_id FROM passage WHERE reader_set_id IS NOT NULL")
    return {row.external_id for row in rows}


def test_every_row_moves_and_the_source_tells_where(both: list[Application]) -> None:
    one, other = both
    answers, rows = answer(one), hold(one)
    assert {table for table, held in rows.items() if not held} == EMPTY
    told: list[tuple[str, int, int]] = []
    report = mover(both).move(
        NAME, "local", forward_to="https://b.example", progress=lambda *said: told.append(said)
    )

    assert hold(other) == rows
    assert report.rows == {table: len(held) for table, held in rows.items()}
    assert report.verified > 0
    assert {stage for stage, _, _ in told} == {"tables closed", "tables read", "tables opened"}
    undo.assert_verified(other, NAME)
    assert answer(other) == answers
    assert [see(other, person) for person in ("ana", "bo", "cy")] == [{"one"}, {"bo"}, {"cy"}]
    (pending,) = [event for event, status in state.event_statuses(other, NAME).items() if status == "pending"]
    target = other.auth.access.scope(NAME).collection
    assert other.learning.learner.apply(target.id, [pending]) == 1
    assert other.jobs.runner.run_ready() >= 1
    assert "waits" in state.passages(other, NAME)
    undo.apply(other, NAME, undo.stream(other, NAME, 3, seed=8))  # new rows get ids that nothing has
    undo.assert_verified(other, NAME)

    with pytest.raises(CollectionMovedError, match=r"moved to https://b\.example") as moved:
        one.auth.access.scope(NAME)
    assert problem_response(moved.value).status_code == 421
    assert moved.value.extra == {"moved_to": "https://b.example"}
    assert one.maintenance.removal.run() == 1
    with one.database.read() as reader:
        left = [table for table in TABLES if reader.scalar(f"SELECT EXISTS (SELECT FROM {table})")]
        assert left == []
        assert reader.scalar("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'moving%%'") == 0
    assert mover(both).move(NAME, "local").rows == {}  # again, it does nothing
    assert mover([other, one]).move(NAME, "local").rows["passage"] == len(state.passages(one, NAME))  # and back


class KilledError(BaseException):
    """No error that anybody catches."""


def test_a_move_that_stops_anywhere_goes_on(both: list[Application]) -> None:
    one, other = both
    rows, dice, runs = hold(one), random.Random(5), 0
    while True:
        left = dice.randint(5, 220)

        def kill(*_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise KilledError

        try:
            with storage.observe_sql(kill):
                mover(both).move(NAME, "local")
            break
        except KilledError:
            runs += 1
    assert runs >= 5
    assert hold(other) == rows
    undo.assert_verified(other, NAME)
    with pytest.raises(CollectionMovedError):
        one.auth.access.scope(NAME)


def stop_move(both: list[Application], monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the move with the collection hidden in both databases."""
    with monkeypatch.context() as patch:
        patch.setattr(collection_moves, "record_copied", raising)
        with pytest.raises(UnavailableError, match="killed"):
            mover(both).move(NAME, "local")


def raising(*_: object) -> None:
    raise UnavailableError("killed")


def test_nobody_writes_meanwhile_and_a_move_can_be_given_up(
    both: list[Application], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = both
    answers, scope = answer(one), one.auth.access.scope(NAME)
    query = state.rows(one, NAME, "judged_query")[0]["id"]
    stop_move(both, monkeypatch)

    late = [
        lambda: one.auth.access.scope(NAME),
        lambda: other.auth.access.scope(NAME),
        lambda: state.stage_passages(one, NAME, {"id": "late", "text": "Too late."}),
        lambda: one.answers.question.serve(Query(text=earlier.QUESTION, scope=scope)),
        lambda: write(one, "UPDATE question_support SET support = 0"),
        lambda: write(one, "DELETE FROM episode"),
    ]
    for act in late:
        with pytest.raises(CollectionMovingError) as moving:
            act()
        assert problem_response(moving.value).headers["Retry-After"] == "5"
    stranger = replace(LOCAL, grants=Grants({}))
    with pytest.raises(EngramError, match="There is no collection"):
        one.auth.access.scope(NAME, stranger)
    for services in both:
        with services.database.read() as reader:
            assert collection_moves.list_open(reader) == [NAME]
        assert services.jobs.runner.run_ready() == 0  # the job that waits is claimed on neither side
        assert services.maintenance.removal.run() == 0
    state.stage_passages(one, "another", {"id": "bees", "text": "Bees fly."})
    assert one.jobs.runner.run_ready() == 1

    mover(both).give_up(NAME, "local")
    assert other.maintenance.removal.run() == 1
    assert answer(one) == answers
    state.judge(one, NAME, query, state.list_sentence_ids(one, NAME)[:1], wait=True)
    undo.assert_verified(one, NAME)
    with pytest.raises(ConflictError):
        mover(both).give_up(NAME, "local")


def write(services: Application, statement: str) -> None:
    with services.database.write() as writer:
        writer.execute(statement)


def test_what_cannot_move_is_refused_and_serves_on(both: list[Application]) -> None:
    one, other = both
    refusals = [
        ("SELECT 1", one, "is where the collection is"),
        ("CREATE TABLE novel (collection_id bigint)", other, "Nobody knows how to move the rows of novel"),
        ("DROP TABLE novel; UPDATE question_support SET support = 7", other, "does not follow from its log"),
        ("UPDATE alembic_version SET version_num = 'later'", other, "has another schema"),
    ]
    for statement, target, problem in refusals:
        with one.database.write() as writer:
            for part in statement.split(";"):
                writer.execute(part)
        with pytest.raises(ConfigurationError, match=problem):
            mover([one, target]).move(NAME, "local")
        assert answer(one)


def test_command_moves_and_gives_up(both: list[Application], cli: Cli) -> None:
    one, other = both
    there = {"DATABASE_URL": one.addresses.database_url, "REDIS_URL": one.addresses.redis_url}
    command = ("collection", "move", "-c", NAME, "--to", other.addresses.database_url)
    refused = cli(*command, "--give-up", **there)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "There is no move of 'earlier' that could be given up." in refused.stderr
    moved = cli(*command, "--json", **there)
    assert moved.returncode == 0, moved.stderr
    assert json.loads(moved.stdout)["moved"]["rows"]["passage"] == len(state.passages(other, NAME))


def test_every_table_with_rows_of_collections_is_moved(application: Application) -> None:
    with application.database.read() as reader:
        assert [table.name for table in collection_moves.list_tables(reader)] == TABLES
