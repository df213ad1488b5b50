"""The tree planner against the oracle, through a real endpoint and the service's own rounds."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from engram.composition.container import Application, Servers
from engram.context.errors import InvalidRequestError
from engram.core.budget import Budget
from engram.services.auth.scope import Scope
from engram.wings.sessions.core import tree_search
from engram.wings.sessions.core.tree_search import Rollout, SearchLimits, TreeStep, settle
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services import auto_planner
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest
from engram.wings.sessions.services.session_views import SessionView
from engram.wings.sessions.services.tree_answer import is_decided, vote
from engram.wings.sessions.services.tree_branch import CONCLUDE, BranchState, list_possible_actions, load_thought
from engram.wings.sessions.services.tree_options import read_options
from engram_evaluation.harness import open_harness
from engram_evaluation.oracle_endpoint import Oracle
from engram_evaluation.oracle_server import ChatServer, Messages
from tests.support.constants import LLM_ATTEMPTS, set_constants
from tests.support.decomposed import FILM, MAKER, MOTHER, write_decomposed

WIDE = Budget(rounds=20, llm_calls=500, tokens=1_000_000, seconds=300.0, passages=100)


class Endpoint:
    """The oracle, which can be told to fail and counts what it is asked at the same time."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._lock = threading.Lock()
        self.calls = 0
        self.fails: Callable[[int, str], bool] = lambda number, system: False

    def __call__(self, messages: Messages) -> str:
        with self._lock:
            self.calls += 1
            number = self.calls
        if self.fails(number, messages[0]["content"]):
            raise LookupError("It is told to fail.")
        return self._oracle(messages)


@pytest.fixture(scope="module")
def endpoint() -> Endpoint:
    return Endpoint(Oracle(write_decomposed()))


@pytest.fixture(scope="module")
def reasoning(application: Application, addresses: Servers, endpoint: Endpoint) -> Iterator[Application]:
    """An application with the endpoint behind it."""
    with ExitStack() as stack:
        url = stack.enter_context(ChatServer(endpoint)).base_url
        settings = application.settings.model_copy(update={"llm_base_url": url})
        other = stack.enter_context(closing(Application(settings, addresses)))
        other.models.embedder, other.models.language = application.models.embedder, application.models.language
        set_constants(stack.enter_context(pytest.MonkeyPatch.context()), {LLM_ATTEMPTS: 1})
        yield other


@pytest.fixture(scope="module")
def scope(reasoning: Application) -> Scope:
    return open_harness(reasoning, write_decomposed("tree-tests"), lambda done, total: None).scope


@pytest.fixture
def run(reasoning: Application, scope: Scope, endpoint: Endpoint) -> Iterator[Callable[..., SessionView]]:
    def run_session(budget: Budget = WIDE, top_k: int = 1, **options: Any) -> SessionView:
        how = SessionRequest(top_k=top_k, arm={"memory": "off"}, stop="rounds", answer=True, options=options)
        new = NewSession(question=MOTHER, planner="tree", request=how, budget=budget)
        return sessions_of(reasoning).sessions.wait(scope, sessions_of(reasoning).sessions.start(scope, new))

    yield run_session
    endpoint.fails = lambda number, system: False


def thoughts(shown: SessionView) -> list[dict[str, Any]]:
    return [node["state"] for node in shown.stored.plan_state["tree"]["nodes"]]


def test_tree_finds_what_one_question_misses(run: Callable[..., SessionView]) -> None:
    shown = run(rollouts=6, together=2)
    assert shown.stored.status == "stopped"
    assert shown.stored.stop_reason == "answered"
    assert shown.stored.conclusion is not None
    assert shown.stored.conclusion["text"] == "Ida Ferrero"
    assert {one.text for one in shown.evidence} >= {FILM, MAKER}
    first, *others = (one.action for one in shown.rounds)
    assert first == "ask"
    assert set(others) == {"rollouts"}
    pool = {one.sentence_id for one in shown.evidence}
    assert pool.issuperset(shown.stored.conclusion["cites"])
    for note in shown.notes:
        assert pool.issuperset(note.cites)
    for one in shown.evidence:
        assert one.query in shown.rounds[one.round - 1].said["queries"]


def test_the_tree_can_be_read_and_its_visits_add_up(run: Callable[..., SessionView]) -> None:
    shown = run(rollouts=6, together=3, combine="synthesis")
    tree = tree_search.from_data(json.loads(json.dumps(shown.stored.plan_state["tree"])), load_thought)
    assert tree.begun == 6
    assert tree.nodes[0].visits == 6 - tree.failed
    best = [tree.nodes[at].state for at in tree_search.path(tree, tree_search.ends(tree)[0].id)]
    assert best[-1].answer == "Ida Ferrero"
    assert best[-1].rating == 1.0
    assert all(node.depth <= 5 for node in tree.nodes)


def test_tree_ends_once_no_vote_can_change_the_answer(run: Callable[..., SessionView]) -> None:
    shown = run(rollouts=10, together=2)
    assert shown.stored.stop_reason == "answered"
    # Five votes of ten for one answer are enough, and two come at a time.
    assert shown.stored.plan_state["tree"]["begun"] == 6


def test_side_by_side_it_comes_out_as_one_after_the_other_would(run: Callable[..., SessionView]) -> None:
    one, other = (run(rollouts=5, together=4) for _ in range(2))
    assert one.stored.plan_state == other.stored.plan_state
    assert [line.text for line in one.evidence] == [line.text for line in other.evidence]


def test_without_calls_in_the_budget_it_goes_by_rules(run: Callable[..., SessionView], endpoint: Endpoint) -> None:
    before = endpoint.calls
    shown = run(Budget(rounds=3, llm_calls=0, tokens=1_000, seconds=300.0, passages=100))
    assert endpoint.calls == before
    assert shown.stored.status == "stopped"
    assert shown.evidence


@pytest.mark.parametrize("calls", [1, 2, 7, 9, 23])
def test_the_budget_of_calls_holds_also_side_by_side(
    run: Callable[..., SessionView], endpoint: Endpoint, calls: int
) -> None:
    before = endpoint.calls
    shown = run(Budget(rounds=20, llm_calls=calls, tokens=1_000_000, seconds=300.0, passages=100), together=4)
    assert endpoint.calls - before == shown.stored.cost["llm_calls"] <= calls
    assert shown.stored.status == "stopped"
    assert shown.stored.stop_reason in {"llm_calls", "answered", "no_gap"}
    if calls >= 23:
        assert shown.stored.conclusion is not None
        assert shown.stored.conclusion["text"] == "Ida Ferrero"


def test_budgets_of_rounds_and_passages_hold(run: Callable[..., SessionView]) -> None:
    few = run(Budget(rounds=2, llm_calls=500, tokens=1_000_000, seconds=300.0, passages=100))
    assert few.stored.cost["rounds"] == 2
    assert few.stored.plan_state["tree"]["begun"] == 3  # all that the root has to try
    narrow = run(Budget(rounds=9, llm_calls=500, tokens=1_000_000, seconds=300.0, passages=1))
    assert narrow.stored.cost["passages"] == 1


def test_failed_rollouts_do_not_stop_the_search(run: Callable[..., SessionView], endpoint: Endpoint) -> None:
    endpoint.fails = lambda number, system: number % 5 == 0
    shown = run(rollouts=8, together=2, combine="synthesis")
    tree = tree_search.from_data(shown.stored.plan_state["tree"], load_thought)
    assert tree.failed > 0
    assert tree.begun == 8
    assert tree.nodes[0].visits == 8 - tree.failed
    assert shown.stored.warnings
    assert shown.stored.conclusion is not None
    assert shown.stored.conclusion["text"] == "Ida Ferrero"
    assert not [node for node in tree.nodes if node.pending]


def test_an_endpoint_that_always_fails_ends_the_session_without_an_answer(
    run: Callable[..., SessionView], endpoint: Endpoint
) -> None:
    endpoint.fails = lambda number, system: True
    shown = run(rollouts=3)
    assert shown.stored.status == "stopped"
    assert shown.stored.stop_reason == "no_gap"
    assert shown.stored.conclusion is None
    # Rules do the rounds, as they do for other planners.
    assert [one.action for one in shown.rounds][:2] == ["ask", "fill"]
    assert {one.text for one in shown.evidence} >= {FILM, MAKER}
    assert {warning["type"] for warning in shown.stored.warnings} >= {"sifted-by-rules", "planned-by-rules"}


def test_a_tree_goes_on_once_the_endpoint_is_back(run: Callable[..., SessionView], endpoint: Endpoint) -> None:
    began = endpoint.calls
    endpoint.fails = lambda number, system: number - began <= 4
    shown = run(rollouts=6, together=2)
    assert {"ask", "fill", "rollouts"} >= {one.action for one in shown.rounds}
    assert shown.stored.conclusion is not None
    assert shown.stored.conclusion["text"] == "Ida Ferrero"


def test_unrated_answer_is_returned(run: Callable[..., SessionView], endpoint: Endpoint) -> None:
    endpoint.fails = lambda number, system: '"rating"' in system
    shown = run(rollouts=4)
    assert shown.stored.conclusion is not None
    assert shown.stored.conclusion["text"] == "Ida Ferrero"


def test_a_session_that_stopped_can_be_asked_for_another_wave(
    run: Callable[..., SessionView], reasoning: Application, scope: Scope
) -> None:
    shown = run(rollouts=2, together=2)
    before = shown.stored.plan_state["tree"]["begun"]
    sessions_of(reasoning).sessions.go_on(scope, shown.stored.id)
    after = sessions_of(reasoning).sessions.wait(scope, shown.stored.id)
    assert after.stored.plan_state["tree"]["begun"] > before
    assert after.stored.status == "stopped"


def test_auto_goes_on_by_a_tree_where_one_query_is_not_enough_and_the_budget_has_room(
    reasoning: Application, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_planner, "NEAR_PROBABILITY", 1.1)  # nothing is near enough
    how = SessionRequest(top_k=1, arm={"memory": "off"}, stop="rounds", answer=True, options={"rollouts": 3})
    new = NewSession(question=MOTHER, planner="auto", request=how, budget=WIDE)
    shown = sessions_of(reasoning).sessions.wait(scope, sessions_of(reasoning).sessions.start(scope, new))
    assert shown.stored.plan_state["planner"] == "tree"
    assert "tree" in shown.stored.plan_state["of"]
    assert [one.said["queries"] for one in shown.rounds].count([MOTHER]) == 1
    assert shown.stored.conclusion is not None
    assert shown.stored.conclusion["text"] == "Ida Ferrero"


def test_parts_of_memory_management_can_be_left_out(run: Callable[..., SessionView]) -> None:
    whole = run(rollouts=3, top_k=3)
    unsifted = run(rollouts=3, top_k=3, without=["consolidation"])
    unnoted = run(rollouts=3, top_k=3, without=["update"])
    assert len(unsifted.evidence) > len(whole.evidence)
    assert whole.notes
    assert not unnoted.notes


def test_several_answers_can_be_settled_by_the_model(run: Callable[..., SessionView], endpoint: Endpoint) -> None:
    asked: list[str] = []
    endpoint.fails = lambda number, system: bool(asked.append(system))
    shown = run(rollouts=4, combine="synthesis")
    assert shown.stored.conclusion is not None
    assert shown.stored.conclusion["text"] == "Ida Ferrero"
    # All candidates said the same, so there was nothing to settle.
    assert not any("candidate" in system for system in asked)


def build_tree(*said: tuple[str, float]) -> tree_search.Tree[BranchState]:
    """A tree with these conclusions and their ratings."""
    limits = SearchLimits(depth=2, width=5, rollouts=9)
    tree = tree_search.plant(BranchState(), tuple("abcde"[: len(said)]), limits)
    for answer, rating in said:
        begun = tree_search.claim(tree, limits, 0)
        assert begun is not None
        tree, claimed = begun
        thought = BranchState(CONCLUDE, MOTHER, answer, (1,), rating=rating)
        tree = settle(tree, claimed, Rollout((TreeStep(claimed.action, thought),), rating), limits)
    return tree


@pytest.mark.parametrize(
    ("said", "winner"),
    [
        # Two ways to write one name are one answer, and its best rated wording is given.
        ([("Czerny", 0.4), ("Ludwig van Beethoven", 0.6), ("Carl Czerny", 0.5)], "Carl Czerny"),
        ([("Carl Czerny", 0.5), ("Ludwig van Beethoven", 0.6), ("Czerny", 0.4)], "Carl Czerny"),
        ([("the Tagus", 0.4), ("Douro", 0.6), ("Tagus", 0.4)], "the Tagus"),
        ([("C. Czerny", 0.4), ("Ludwig van Beethoven", 0.6), ("Carl Czerny", 0.5)], "Carl Czerny"),
        # "Bach" may be either of two, so it votes for neither against the other.
        ([("Bach", 0.6), ("Johann Bach", 0.5), ("Carl Bach", 0.5)], "Bach"),
        # A longer answer that says something else is another answer.
        ([("1809", 0.4), ("1810", 0.6), ("between 1809 and 1815", 0.3)], "1810"),
        ([("Paris", 0.4), ("Lyon", 0.6), ("not Paris", 0.5)], "Lyon"),
    ],
)
def test_ways_to_write_one_name_are_one_answer(said: list[tuple[str, float]], winner: str) -> None:
    chosen = vote(build_tree(*said))
    assert chosen is not None
    assert chosen.answer == winner


def test_the_vote_goes_by_ratings_and_not_by_wording() -> None:
    limits = SearchLimits(depth=2, rollouts=9)
    tree = tree_search.plant(BranchState(), ("a", "b", "c"), limits)
    said = [("Ida Ferrero", 0.4), ("ida  ferrero.", 0.3), ("Ana Bellotti", 0.6)]
    for answer, rating in said:
        begun = tree_search.claim(tree, limits, 0)
        assert begun is not None
        tree, claimed = begun
        thought = BranchState(CONCLUDE, MOTHER, answer, (1,), rating=rating)
        tree = settle(tree, claimed, Rollout((TreeStep(claimed.action, thought),), rating), limits)
    chosen = vote(tree)
    assert chosen is not None
    assert (chosen.answer, chosen.rating) == ("Ida Ferrero", 0.4)
    assert vote(tree_search.plant(BranchState(), (), limits)) is None
    # 0.7 for one and 0.6 for the other: a single vote of up to 1 could turn that, and without one it stands.
    assert not is_decided(tree, 4)
    assert is_decided(tree, 3)
    assert not is_decided(tree_search.plant(BranchState(), (), limits), 0)


def test_actions_suit_where_a_branch_stands() -> None:
    limits = SearchLimits(depth=4)
    root = BranchState()
    assert list_possible_actions([root], 0, limits)[0] == "decompose"
    assert list_possible_actions([root, BranchState("redirect", "q", pending="p")], 1, limits) == (
        "decompose",
        "conclude",
    )
    assert list_possible_actions([root, BranchState("decompose", "q")], 1, limits)[0] == "redirect"
    assert "refine" in list_possible_actions([root, BranchState("decompose", "q", "a", (1,))], 1, limits)
    settled = BranchState("decompose", "q", "a", (1,), settled=True)
    assert "consolidate" in list_possible_actions([root, settled, settled], 2, limits)
    assert list_possible_actions([root, settled], 3, limits) == ("conclude",)
    assert list_possible_actions([root, BranchState("conclude", "q", "a")], 1, limits) == ()


@pytest.mark.parametrize(
    "wrong", [{"depth": 0}, {"rollouts": "ten"}, {"nonsense": 1}, {"combine": "shout"}, {"exploration": -1.0}]
)
def test_options_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="options"):
        read_options(wrong)
