"""Workers killed with SIGKILL in the middle of jobs: another goes on where they were, and each job is done once."""

import signal
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from engram.composition.container import Application
from engram.core.budget import Budget
from engram.providers.llm import Llm
from engram.services.erasure import erasure_service
from engram.services.erasure.erasure_service import ErasureRequest
from engram.wings.agent.core.agent_turns import AgentTurn, format_turn
from engram.wings.agent.services.agent_memory import AgentMemory
from engram.wings.history.parts import history_of
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession, SessionService
from engram.wings.sessions.services.session_state import SessionRequest
from tests.conftest import CURIE
from tests.faults.conftest import Start, Working
from tests.support import state, undo
from tests.support.campaign import leave_to_campaign
from tests.support.constants import INGEST_BATCH, LEASE_SECONDS
from tests.support.jobs import make_due
from tests.support.openai_server import OpenAiServer
from tests.support.orphans import orphans
from tests.support.processes import eventually
from tests.support.simple_facts import asks_for_facts, reply_with_facts

SMALL_BATCHES = {INGEST_BATCH: "2"}
INCIDENTAL = ("collection_id", "id", "passage_id", "time_expression_id", "created_at", "updated_at", "text_since")
NEW_PASSAGES = [
    {"id": f"p{n}", "title": f"Bridge {n}", "text": f"Bridge {n} was opened by Ada Lund."} for n in range(6)
]
ANY_KIND = {"closed and not committed": ("engram.storage.jobs.job_claims:close", "after")}
INGEST = ANY_KIND | {
    "claimed and not begun": ("engram.services.jobs.job_runner:Runner.carry_out", "before"),
    "a batch written and not counted": ("engram.storage.jobs.job_claims:advance", "before", "2"),
    "a batch counted and not committed": ("engram.storage.jobs.job_claims:advance", "after", "2"),
    "between two batches": ("engram.storage.corpus.collections:lock_graph_in", "before", "3"),
}
REKEY = ANY_KIND | {
    "keys staged and not committed": ("engram.storage.maintenance.staged_keys:stage", "after", "2"),
    "between two batches": ("engram.storage.maintenance.staged_keys:list_unstaged", "before", "3"),
    "half of the keys in place": ("engram.storage.maintenance.staged_keys:put_in_place", "after", "2"),
}
REVOCATION = ANY_KIND | {
    "verdicts revoked and not counted": ("engram.storage.jobs.job_claims:advance", "before"),
    "a batch done": ("engram.storage.revocation.revocations:list_next", "before", "2"),
}
ERASURE = ANY_KIND | {
    "a batch erased and not counted": ("engram.storage.jobs.job_claims:advance", "before"),
    "between two batches": ("engram.storage.erasure.erased_log:list_events", "before", "2"),
    "a receipt written and not committed": ("engram.storage.erasure.person_traces:add_receipt", "after"),
}
REPLAY = ANY_KIND | {
    "half of it copied": ("engram.wings.history.storage.copied_log:copy_events", "after"),
    "all written and not committed": ("engram.wings.history.storage.collection_copies:describe", "after"),
    "made and not said so": ("engram.wings.history.services.past_state:PastService.make", "after"),
}
ORDINARY = {
    "a batch counted and not committed",
    "between two batches",
    "half of the keys in place",
    "a batch done",
    "all written and not committed",
}
"""A step inside a transaction, or one between two, of each kind of job."""
Killed = Callable[..., dict[str, Any]]


@pytest.fixture
def killed_and_made_good(application: Application, start: Start, working: Working) -> Killed:
    """Has a worker die at a job, and another do it; the job's row at the end."""

    def run(collection: str, job: UUID, *where: str, **settings: str) -> dict[str, Any]:
        env = {f"ENGRAM_{name.upper()}": value for name, value in settings.items()}
        dying = start("worker", *where, **SMALL_BATCHES, **env)
        assert dying.wait_for_end() == -signal.SIGKILL, dying.output
        left = row(application, collection, job)
        assert (left["status"], left["attempts"], left["error"]) == ("running", 0, None)
        make_due(application)
        with working({INGEST_BATCH: 2}, **settings):
            eventually(lambda: row(application, collection, job)["status"] not in {"running", "queued"})
        done = row(application, collection, job)
        assert (done["status"], done["error"], done["claimant"]) == ("succeeded", None, None)
        return done

    return run


def row(application: Application, collection: str, job: UUID) -> dict[str, Any]:
    (found,) = [row for row in state.rows(application, collection, "job") if row["id"] == str(job)]
    return found


def content(application: Application, collection: str) -> dict[str, list[Any]]:
    """The graph without the ids that sequences drew."""
    tables = ("passage", "sentence", "entity", "time_expression")
    graph = state.snapshot(application, collection, tables, INCIDENTAL)
    return {table: sorted(rows, key=str) for table, rows in graph.items()}


@pytest.mark.parametrize("step", leave_to_campaign(INGEST, ordinary=ORDINARY & INGEST.keys()))
def test_killed_while_it_ingests(
    application: Application, collection: str, killed_and_made_good: Killed, step: str
) -> None:
    job = state.stage_passages(application, collection, *NEW_PASSAGES)
    done = killed_and_made_good(collection, job, *INGEST[step])
    assert (done["created"], done["updated"], done["unchanged"]) == (len(NEW_PASSAGES), 0, 0)
    assert state.counts(application, collection) == state.true_counts(application, collection)
    assert orphans(application, collection) == {}

    straight = f"{collection}-straight"
    state.stage_passages(application, straight, *NEW_PASSAGES)
    application.jobs.runner.run_ready()
    without = [dict(entry, embedding=None) for entry in content(application, straight)["passage"]]
    assert [dict(entry, embedding=None) for entry in content(application, collection)["passage"]] == without
    assert state.counts(application, collection) == state.counts(application, straight)


@pytest.mark.parametrize("step", leave_to_campaign(REKEY, ordinary=ORDINARY & REKEY.keys()))
def test_killed_while_it_makes_keys_anew(
    application: Application, curie: str, killed_and_made_good: Killed, step: str
) -> None:
    job = application.corpus.rekey.request(application.auth.access.scope(curie), "title")
    done = killed_and_made_good(curie, job, *REKEY[step])
    assert (done["received"], done["updated"], done["unchanged"]) == (len(CURIE), len(CURIE), 0)
    assert application.auth.access.scope(curie).collection.key_building == "title"
    assert state.rows(application, curie, "staged_key") == []
    assert orphans(application, curie) == {}


@pytest.mark.parametrize("step", leave_to_campaign(REVOCATION, ordinary=ORDINARY & REVOCATION.keys()))
def test_killed_while_it_revokes(
    application: Application, curie: str, killed_and_made_good: Killed, step: str
) -> None:
    events = undo.stream(application, curie, 12, seed=71)
    undo.apply(application, curie, events, 12)
    job = application.learning.revocation.request(application.auth.access.scope(curie))
    done = killed_and_made_good(curie, job, *REVOCATION[step])
    assert (done["received"], done["updated"], done["unchanged"]) == (12, 12, 0)
    assert set(state.event_statuses(application, curie).values()) == {"revoked"}
    assert orphans(application, curie) == {}
    undo.assert_verified(application, curie)


@pytest.mark.parametrize("step", leave_to_campaign(ERASURE, ordinary=ORDINARY & ERASURE.keys()))
def test_killed_while_it_erases(
    application: Application, curie: str, killed_and_made_good: Killed, step: str
) -> None:
    scope, erased = application.auth.access.scope(curie), "careless"
    undo.apply(application, curie, undo.stream(application, curie, 230, seed=73), 50)
    judged = [row["id"] for row in state.rows(application, curie, "feedback_event") if row["judge"] == erased]
    assert len(judged) > erasure_service.BATCH
    others = set(state.event_statuses(application, curie)) - set(judged)
    request = ErasureRequest.build("judge", name=erased)
    job = application.revocation.erasure.request(scope, request)
    done = killed_and_made_good(curie, job, *ERASURE[step])
    assert done["updated"] == len(judged)
    assert state.event_statuses(application, curie) == dict.fromkeys(others, "applied")
    assert erased not in {row["name"] for row in state.rows(application, curie, "judge")}
    assert erased not in str(state.rows(application, curie, "job"))
    (receipt,) = application.revocation.erasure.list_receipts(scope)
    assert (receipt.id, receipt.removed["feedback_event"]) == (job, len(judged))
    assert orphans(application, curie) == {}
    undo.assert_verified(application, curie)


@pytest.mark.parametrize("step", leave_to_campaign(REPLAY, ordinary=ORDINARY & REPLAY.keys()))
def test_killed_while_it_brings_back_the_past(
    application: Application, curie: str, killed_and_made_good: Killed, step: str
) -> None:
    undo.apply(application, curie, undo.stream(application, curie, 8, seed=72), 8)
    past = f"{curie}-past"
    job = history_of(application).past.request(application.auth.access.scope(curie), datetime.now(UTC), past)
    done = killed_and_made_good(curie, job, *REPLAY[step])
    assert (done["result"]["collection"], done["result"]["events"]) == (past, 8)
    assert orphans(application, past) == {}
    undo.assert_verified(application, past)


def test_two_workers_do_each_job_once_also_when_one_is_killed(
    application: Application, collection: str, start: Start
) -> None:
    """One collection has many jobs, others one each; the worker that is killed has some in hand."""
    names = [collection, *(f"{collection}-{n}" for n in range(3))]
    # Long enough for workers on a busy machine; the jobs of the dead one wait for as long.
    settings = SMALL_BATCHES | {LEASE_SECONDS: "5"}
    workers = [start("worker", **settings) for _ in range(2)]
    dying = start("worker", "engram.storage.jobs.job_claims:advance", "after", "3", **settings)
    for worker in (*workers, dying):
        worker.ready()
    jobs: Mapping[str, list[UUID]] = {
        name: [
            state.stage_passages(application, name, *NEW_PASSAGES, {"id": "own", "text": f"It is {n}."})
            for n in range(count)
        ]
        for name, count in zip(names, (8, 1, 1, 1), strict=True)
    }
    revoking = application.learning.revocation.request(application.auth.access.scope(collection))
    assert dying.wait_for_end() == -signal.SIGKILL, dying.output

    def statuses() -> set[str]:
        return {row["status"] for name in names for row in state.rows(application, name, "job")}

    eventually(lambda: statuses() == {"succeeded"})
    for worker in workers:
        worker.terminate()
    assert [worker.wait_for_end() for worker in workers] == [0, 0]

    output = "".join(process.output for process in (*workers, dying))
    everything = [*(job for ids in jobs.values() for job in ids), revoking]
    finished = [line for line in output.splitlines() if "job finished" in line]
    assert [sum(str(job) in line for line in finished) for job in everything] == [1] * len(everything)
    assert "taken over" not in output
    for name in names:
        ingests = [row for row in state.rows(application, name, "job") if row["kind"] == "ingest"]
        assert {row["created"] + row["updated"] + row["unchanged"] for row in ingests} == {len(NEW_PASSAGES) + 1}
        assert sum(row["created"] for row in ingests) == len(NEW_PASSAGES) + 1
        assert state.counts(application, name) == state.true_counts(application, name)
        assert orphans(application, name) == {}
    # The later of two jobs with the same passage wins.
    (own,) = [row for row in state.rows(application, collection, "passage") if row["external_id"] == "own"]
    assert own["text"] == "It is 7."


SESSION = {
    "a round written and not committed": ("engram.wings.sessions.storage.sessions:write_round", "after"),
    "between two rounds": ("engram.wings.sessions.services.session_runner:load", "before", "2"),
}


@pytest.mark.parametrize("step", leave_to_campaign(SESSION, ordinary=("between two rounds",)))
def test_killed_in_the_middle_of_a_session(
    application: Application, curie: str, killed_and_made_good: Killed, step: str
) -> None:
    scope = application.auth.access.scope(curie)
    question = "Into which sea does the river that the birthplace of Marie Curie lies on flow?"
    new = NewSession(question=question, planner="pool", request=SessionRequest(top_k=2, threshold=1.0))
    session = sessions_of(application).sessions.start(scope, new)
    done = killed_and_made_good(curie, session, *SESSION[step])

    read = sessions_of(application).sessions.read(scope, session)
    assert (read.stored.status, read.stored.stop_reason) == ("stopped", "found")
    assert [one.number for one in read.rounds] == [1, 2]
    assert (done["created"], done["result"]) == (2, {"stop_reason": "found"})
    assert read.stored.cost["rounds"] == 2
    assert read.stored.cost["passages"] == len(read.passages) == 3
    straight = sessions_of(application).sessions.start(scope, new)
    once = sessions_of(application).sessions.wait(scope, straight)
    assert [one.sentence_id for one in read.evidence] == [one.sentence_id for one in once.evidence]
    assert [one.said for one in read.rounds] == [one.said for one in once.rounds]


def test_killed_between_the_turns_of_an_agent(
    application: Application, curie: str, killed_and_made_good: Killed
) -> None:
    """The graph that it keeps is as it was when the last turn was written, and no turn is taken twice."""
    users: list[str] = []

    def agent(request: dict[str, Any]) -> str:
        system, user = (str(message["content"]) for message in request["messages"][:2])
        if asks_for_facts(system):
            return reply_with_facts(user)
        users.append(user)
        document = user.partition("<document_obs>\n")[2].partition("\n</document_obs>")[0].partition("\n")[2]
        act = AgentTurn("insert", document) if document else AgentTurn("answer", "the Baltic Sea")
        return format_turn(act)

    scope = application.auth.access.scope(curie)
    asked = SessionRequest(options={"documents": ["curie", "warsaw", "vistula"]})
    new = NewSession(question="Where does it flow?", planner="agent", request=asked, budget=Budget(rounds=9))
    with OpenAiServer(agent) as server, Llm(base_url=server.base_url, api_key=None, model="test") as llm:
        services = sessions_of(application)
        sessions = SessionService(
            services.database, application.models.encoder, application.jobs.runner, services.session_planners, llm
        )
        session = sessions.start(scope, new)
        step = ("engram.wings.sessions.services.session_runner:load", "before", "3")
        killed_and_made_good(curie, session, *step, llm_base_url=server.base_url)
    read = sessions_of(application).sessions.read(scope, session)
    assert [one.action for one in read.rounds] == ["insert", "insert", "insert", "answer"]
    assert len(users) == 4
    assert [user.count("place of birth: Warsaw") for user in users] == [0, 1, 1, 1]
    memory = AgentMemory.from_json(read.stored.plan_state)
    assert memory.line(0).startswith("Marie Curie | ")
    assert len(memory.remarks) == len({(one.fact, one.source) for one in memory.remarks})
    assert {source.key for source in memory.sources} == {one.sentence_id for one in read.evidence}
