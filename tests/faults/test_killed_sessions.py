"""Workers killed in the middle of sessions with a language model: another goes on where they were."""

import signal
from collections.abc import Iterator

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.core.budget import Budget
from engram.services.auth.scope import Scope
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest
from engram_evaluation.harness import open_harness
from engram_evaluation.oracle_endpoint import Oracle
from engram_evaluation.oracle_server import ChatServer
from tests.conftest import Heavy
from tests.faults.conftest import Start, Working
from tests.support.decomposed import MOTHER, write_decomposed
from tests.support.jobs import make_due
from tests.support.processes import eventually

BUDGET = Budget(rounds=4, llm_calls=200, tokens=1_000_000, seconds=300.0, passages=100)
AFTER_WRITE = ("engram.wings.sessions.storage.sessions:write_round", "after", "2")
BETWEEN_ROUNDS = ("engram.wings.sessions.services.session_runner:load", "before", "3")


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """A model that replies to the same prompt the same, whoever asks: the oracle, without errors."""
    with ChatServer(Oracle(write_decomposed())) as server:
        yield server.base_url


@pytest.fixture(scope="module")
def reasoning(settings: Settings, places: Servers, heavy: Heavy, model: str) -> Iterator[Application]:
    """An application with that model."""
    app = Application(settings.model_copy(update={"llm_base_url": model}), places)
    app.models.embedder, app.models.language = heavy
    yield app
    app.close()


@pytest.fixture(scope="module")
def scope(application: Application) -> Scope:
    return open_harness(application, write_decomposed("killed-sessions"), lambda done, total: None).scope


@pytest.mark.parametrize(
    ("planner", "where"),
    [
        pytest.param("socratic", AFTER_WRITE, marks=pytest.mark.campaign),
        ("tree", AFTER_WRITE),
        ("auto", BETWEEN_ROUNDS),
    ],
)
def test_a_round_that_was_lost_is_made_again_and_the_others_are_not(
    reasoning: Application,
    start: Start,
    working: Working,
    model: str,
    scope: Scope,
    planner: str,
    where: tuple[str, ...],
) -> None:
    sessions = sessions_of(reasoning).sessions
    options = {"rollouts": 8, "together": 2} if planner == "tree" else None
    asked = SessionRequest(top_k=1, arm={"memory": "off"}, threshold=1.0, answer=True, options=options)
    new = NewSession(question=MOTHER, planner=planner, request=asked, budget=BUDGET)
    whole = sessions.wait(scope, sessions.start(scope, new))
    session = sessions.start(scope, new)
    settings = {"ENGRAM_LLM_BASE_URL": model}
    dying = start("worker", *where, **settings)
    assert dying.wait_for_end() == -signal.SIGKILL, dying.output
    left = sessions.read(scope, session)
    assert len(left.rounds) == (1 if where == AFTER_WRITE else 2)

    make_due(reasoning)
    with working(llm_base_url=model):
        eventually(lambda: sessions.read(scope, session).stored.status == "stopped")

    read = sessions.read(scope, session)
    assert read.rounds[: len(left.rounds)] == left.rounds
    assert [(one.number, one.action, one.said["queries"]) for one in read.rounds] == [
        (one.number, one.action, one.said["queries"]) for one in whole.rounds
    ]
    assert [one.sentence_id for one in read.evidence] == [one.sentence_id for one in whole.evidence]
    assert read.stored.plan_state == whole.stored.plan_state
    assert read.stored.conclusion == whole.stored.conclusion
    assert read.stored.conclusion is not None
