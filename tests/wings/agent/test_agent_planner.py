"""The planner "agent": the model is a program, the requests to it are real, and so is the graph it keeps."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.core.budget import Budget
from engram.wings.agent.core.agent_turns import AgentTurn, format_turn
from engram.wings.agent.llm import agent_prompts
from engram.wings.agent.parts import AgentServices
from engram.wings.agent.services.agent_memory import AgentMemory
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_search import FactPattern
from engram.wings.facts.services.fact_service import PassageGoneError, StatedFact
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest
from engram.wings.sessions.services.session_views import SessionView
from tests.conftest import CURIE
from tests.support import undo
from tests.support.doubts import list_doubted_facts
from tests.support.modelled import ModelApplications
from tests.support.openai_server import Handler, Reply
from tests.support.simple_facts import asks_for_facts, read_part, reply_with_facts

QUESTION = "Into which sea does the river that the birthplace of Marie Curie lies on flow?"
IN_ORDER = [str(passage["id"]) for passage in CURIE]
BUDGET = Budget(rounds=24)


class Agent:
    """Keeps what has to do with the rivers of Poland, searches once, and answers."""

    def __init__(self, *first: str | Reply) -> None:
        self.first = list(first)
        self.users: list[str] = []

    def __call__(self, request: dict[str, Any]) -> str | Reply:
        system, user = (str(request["messages"][at]["content"]) for at in (0, 1))
        if asks_for_facts(system):
            return reply_with_facts(user)
        if '"remove"' in system:
            return json.dumps({"remove": [int(one) for one in re.findall(r"\[(\d+)\] .*Paris", user)], "add": []})
        self.users.append(user)
        assert "response_format" not in request
        if self.first:
            return self.first.pop(0)
        document, memory = read_part(user, "document_obs"), read_part(user, "memory_obs")
        if document:
            kept = document.partition("\n")[2] if re.search("Curie|Warsaw|Vistula", document) else "None"
            return format_turn(AgentTurn("insert", kept, "What does it say of rivers?"))
        if "Search results" not in memory:
            return format_turn(AgentTurn("search", "Vistula flows into", "Where does it flow?"))
        sea = re.search(r"flows into: ([\w ]+) \[(\d+)\]", memory)
        assert sea is not None, memory
        return format_turn(AgentTurn("answer", sea[1], "That is settled.", (int(sea[2]),)))


Asking = Callable[..., SessionView]


@pytest.fixture
def asking(modelled: ModelApplications, curie: str) -> Asking:
    """Does a session by a model."""

    def run(handler: Handler, budget: Budget = BUDGET, **options: Any) -> SessionView:
        services = modelled.application(handler)
        scope = services.auth.access.scope(curie)
        how = SessionRequest(top_k=5, threshold=1.0, options={"documents": IN_ORDER} | options)
        new = NewSession(question=QUESTION, planner="agent", request=how, budget=budget)
        return sessions_of(services).sessions.wait(scope, sessions_of(services).sessions.start(scope, new))

    return run


def texts(shown: SessionView) -> dict[int, str]:
    return {one.sentence_id: one.text for one in shown.evidence}


def test_documents_go_by_and_what_was_kept_answers(asking: Asking) -> None:
    agent = Agent()
    session = asking(agent)

    assert (session.stored.status, session.stored.stop_reason) == ("stopped", "answered")
    acts = [one.action for one in session.rounds]
    assert acts == ["insert", "insert", "insert", "skip", "skip", "search", "answer"]
    conclusion = session.stored.conclusion
    assert conclusion is not None
    assert (conclusion["text"], conclusion["sufficient"]) == ("Baltic Sea", True)
    assert [texts(session)[one] for one in conclusion["cites"]] == ["The Vistula flows into the Baltic Sea."]
    # One action a turn, and two requests for the facts of a text; every fact has a sentence of the pool.
    assert session.stored.cost["rounds"] == len(agent.users)
    assert session.stored.cost["llm_calls"] == len(agent.users) + 2 * acts.count("insert")
    memory = AgentMemory.from_json(session.stored.plan_state)
    assert {source.key for source in memory.sources} == set(texts(session))
    assert all(fact.sources for fact in memory.facts)
    assert {note.text for note in session.notes} >= {"Vistula | flows into: Baltic Sea"}
    assert all(set(note.cites) <= set(texts(session)) for note in session.notes)
    # Documents come in the order given, the memory is empty at first, and the last turn shows what was found.
    assert [read_part(user, "document_obs").partition("\n")[0] for user in agent.users[:2]] == [
        "Marie Curie",
        "Warsaw",
    ]
    assert "Memory:\n(empty)" in agent.users[0]
    assert re.search(r"place of birth: Warsaw [^,]*\[1\]", agent.users[1]), agent.users[1]
    assert "Search results:\nVistula | flows into: Baltic Sea" in agent.users[-1]
    assert session.rounds[0].said["prompts"] == agent_prompts.VERSION
    assert session.stored.warnings == []


def test_documents_are_those_of_a_retrieval_if_none_are_given(asking: Asking) -> None:
    session = asking(Agent(), documents=[])
    assert session.stored.conclusion is not None
    assert session.stored.conclusion["text"] == "Baltic Sea"
    assert session.rounds[0].said["queries"] == [QUESTION]
    assert session.rounds[0].episodes
    assert len(session.passages) == len(CURIE)


def test_malformed_turn_is_retried_once_and_then_lets_the_document_go_by(asking: Asking) -> None:
    two = "<think>Both.</think><memory_insert>None</memory_insert><answer>Oslo</answer>"
    agent = Agent(two, "no", two, format_turn(AgentTurn("insert", "None", "Nothing yet.")))
    session = asking(agent)

    first, second = session.rounds[:2]
    assert (first.action, [warning["type"] for warning in first.warnings]) == ("skip", ["not-read"])
    assert "there are 2 actions" in json.dumps(agent.users) or first.cost["llm_calls"] == 2
    assert (second.action, second.warnings) == ("skip", [])
    assert second.cost["llm_calls"] == 2
    assert session.stored.conclusion is not None
    assert session.stored.conclusion["text"] == "Baltic Sea"


def test_an_endpoint_that_is_dead_loses_no_session(asking: Asking) -> None:
    session = asking(lambda _: Reply("no", status=400))

    assert (session.stored.status, session.stored.stop_reason) == ("stopped", "no_gap")
    assert [one.action for one in session.rounds][:3] == ["skip", "skip", "skip"]
    assert texts(session) == {}
    assert session.stored.conclusion is None
    assert {warning["type"] for warning in session.stored.warnings} == {"not-read", "not-answered"}


def test_the_last_turn_of_a_budget_leaves_only_an_answer(asking: Asking) -> None:
    for budget in (Budget(rounds=3), Budget(rounds=24, llm_calls=4)):
        agent = Agent(
            *[format_turn(AgentTurn("insert", "None", "No."))] * 2,
            format_turn(AgentTurn("answer", "a sea", "Enough.")),
        )
        session = asking(agent, budget)
        assert [one.action for one in session.rounds] == ["skip", "skip", "answer"]
        assert "You may choose <answer>." in agent.users[-1]
        assert session.stored.conclusion == {"text": "a sea", "sufficient": False, "cites": []}


PARIS = "Marie Curie was born in Paris."
WARSAW = "Marie Curie was born in Warsaw."
BIRTHS = (
    {"id": "other", "title": "Marie Curie", "text": PARIS},
    {"id": "home", "title": "Marie Curie", "text": WARSAW},
)


def build_correcting_agent(act: str) -> Agent:
    turns = [
        AgentTurn("insert", PARIS, "Born."),
        AgentTurn(act, WARSAW, "Not in Paris."),
    ]  # type: ignore[arg-type]
    return Agent(*map(format_turn, turns), format_turn(AgentTurn("answer", "Warsaw", "That settles it.")))


@pytest.mark.parametrize("insert_only", [False, True])
def test_an_update_doubts_and_removes_nothing(asking: Asking, ingest: Any, insert_only: bool) -> None:
    ingest(*BIRTHS)
    given = {"documents": ["other", "home"], "insert_only": insert_only}
    session = asking(build_correcting_agent("insert" if insert_only else "update"), **given)

    memory = AgentMemory.from_json(session.stored.plan_state)
    places = {fact.object: place for place, fact in enumerate(memory.facts) if fact.predicate == "place of birth"}
    beliefs = {name: memory.believed[place].belief for name, place in places.items()}
    assert set(places) == {"Paris", "Warsaw"}
    contradictions = [note.text for note in session.notes if note.kind == "contradiction"]
    if insert_only:
        assert beliefs["Paris"] == pytest.approx(0.5, abs=0.01)  # two sources, one each
        assert contradictions == []
    else:
        assert beliefs["Paris"] < 0.4 < beliefs["Warsaw"]
        assert len(contradictions) == 1
        assert "Paris (doubted)" in memory.search("Where was Marie Curie born?").text.text
    assert PARIS in texts(session).values()


def test_the_graph_can_be_kept_as_one_of_the_collection(
    asking: Asking, application: Application, ingest: Any, curie: str
) -> None:
    ingest(*BIRTHS)
    session = asking(build_correcting_agent("update"), documents=["other", "home"], graph="births")

    scope = application.auth.access.scope(curie)
    wanted = FactPattern(question="Where was Marie Curie born?", graph="births")
    found = facts_of(application).fact_search.search(scope, wanted)
    beliefs = {fact.object: found.beliefs[key] for key, fact in found.facts.items()}
    assert beliefs["Paris"] < 0.4 < beliefs["Warsaw"]
    assert {source.text for source in found.citations} <= set(texts(session).values())
    assert (
        facts_of(application).fact_search.search(scope, FactPattern(question="Where was Marie Curie born?")).facts
        == {}
    )
    # Whoever takes the job over does it again, and nothing comes of it.
    state = sessions_of(application).sessions.state(scope, session.stored.id)
    publisher = application.wing(AgentServices).publisher
    assert publisher.publish(scope, state, "births") == len(AgentMemory.from_json(state.plan_state).facts)
    again = facts_of(application).fact_search.search(scope, wanted)
    assert again.beliefs == found.beliefs
    undo.assert_verified(application, curie)


def test_a_deleted_passage_takes_along_what_was_published_from_it(
    asking: Asking, application: Application, ingest: Any, curie: str
) -> None:
    ingest(*BIRTHS)
    session = asking(build_correcting_agent("update"), documents=["other", "home"], graph="births")
    scope = application.auth.access.scope(curie)
    facts_of(application).graph_merges.merge(scope, "births", judge="editor", key="k")
    publisher = application.wing(AgentServices).publisher
    before = sessions_of(application).sessions.state(scope, session.stored.id)
    born = FactPattern(subject="Marie Curie", predicate="place of birth", graph="births")

    def find_facts(wanted: FactPattern) -> dict[str, str]:
        found = facts_of(application).fact_search.search(scope, wanted)
        cited = zip(found.facts.values(), found.citations, strict=True)
        return {fact.object: source.text for fact, source in cited}

    def statements() -> set[str]:
        kept = "SELECT text FROM fact_statement WHERE collection_id = %(id)s"
        with application.database.read() as reader:
            return {row.text for row in reader.rows(kept, {"id": scope.collection.id})}

    warsaw = find_facts(born)["Warsaw"]
    assert find_facts(born)["Paris"] == PARIS
    application.corpus.ingest.delete_passage(scope, "home")
    assert find_facts(born) == find_facts(replace(born, graph=None)) == {"Paris": PARIS}
    assert statements() == {PARIS}
    undo.assert_verified(application, curie)
    # A worker that read the session before the passage went finds nothing of it to state, nor one just after.
    assert publisher.publish(scope, before, "births") == 1
    stated = [StatedFact(Triple("Marie Curie", "place of birth", "Warsaw", 0, "entity", None, None, 1.0), warsaw)]
    gone = next(one.passage_id for one in before.pool if one.text == warsaw)
    with pytest.raises(PassageGoneError):
        facts_of(application).facts.state(scope, stated, source="home", passage_id=gone, graph_name="births")
    assert find_facts(born) == {"Paris": PARIS}
    application.corpus.ingest.delete_passage(scope, "other")
    assert find_facts(born) == {}
    assert statements() == set()
    undo.assert_verified(application, curie)


def test_insert_only_offers_no_update(asking: Asking) -> None:
    agent = Agent(format_turn(AgentTurn("update", "Marie Curie was born in Warsaw in 1867.", "So.")))
    session = asking(agent, insert_only=True)
    assert "memory_update" not in agent.users[0]
    assert session.rounds[0].cost["llm_calls"] == 4  # the turn again, and two requests for facts
    assert "update" not in {one.action for one in session.rounds}


def test_fact_without_a_document_sentence_is_dropped(asking: Asking) -> None:
    agent = Agent(
        format_turn(AgentTurn("insert", "Ada Lovelace invented the Analytical Engine in London.", "I know that."))
    )
    session = asking(agent)
    first = session.rounds[0]
    assert first.said["facts"] == []
    assert "The document does not say" in agent.users[1]
    assert not any("Lovelace" in text for text in texts(session).values())


def test_facts_can_be_read_and_corrected_by_the_model(asking: Asking, ingest: Any) -> None:
    ingest(*BIRTHS)

    class CorrectingAgent(Agent):
        def __call__(self, request: dict[str, Any]) -> str | Reply:
            system, user = (str(request["messages"][at]["content"]) for at in (0, 1))
            if '"entities"' in system:
                return json.dumps({"entities": ["Marie Curie", "Warsaw", "Paris"]})
            if '"sentence"' in system:
                (number, name) = (1, "Paris" if "Paris." in read_part(user, "evidence") else "Warsaw")
                fact = {"subject": "Marie Curie", "relation": "native of", "object": name, "sentence": number}
                return json.dumps({"facts": [fact]})
            if '"remove"' in system:
                assert "[1] Marie Curie | native of | Paris" in user
                return json.dumps({"remove": [1], "add": []})
            return super().__call__(request)

    turns = build_correcting_agent("update").first
    session = asking(CorrectingAgent(*turns), documents=["other", "home"])
    memory = AgentMemory.from_json(session.stored.plan_state)
    assert [memory.line(place) for place in range(2)] == [
        "Marie Curie | native of: Paris",
        "Marie Curie | native of: Warsaw",
    ]
    assert list_doubted_facts(memory) == [0]
    assert [one.cost["llm_calls"] for one in session.rounds] == [3, 4, 1]


def test_options_are_checked_at_the_start(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    for wrong in ({"documents": 3}, {"insert_only": 1}):
        with pytest.raises(InvalidRequestError, match=r"options\."):
            sessions_of(application).sessions.start(
                scope, NewSession(question=QUESTION, planner="agent", request=SessionRequest(options=wrong))
            )
