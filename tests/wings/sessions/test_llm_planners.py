"""Planners with a language model: the model is a program, the requests to it are real."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from engram.core.budget import Budget
from engram.wings.sessions.llm.session_prompts import VERSION
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest
from engram.wings.sessions.services.session_views import SessionView
from tests.support.modelled import ModelApplications
from tests.support.openai_server import Handler, Reply

CHAIN = "Into which sea does the river that the birthplace of Marie Curie lies on flow?"
RULES = ["ask", "fill"]


class Model:
    """Answers by what is asked of it: ``replies`` has for each use of the model what it says, or how."""

    USES = ("triples", "settled", "kept", "notes", "answerable", "queries", "cited", "sufficient")

    def __init__(self, **replies: Any) -> None:
        self.replies = replies
        self.asked: list[str] = []

    def __call__(self, request: dict[str, Any]) -> str | Reply:
        system, user = (request["messages"][at]["content"] for at in (0, 1))
        use = next(name for name in self.USES if f'{{"{name}"' in system or f', "{name}":' in system)
        self.asked.append(use)
        said = self.replies.get(use)
        if callable(said):
            said = said(user)
        if isinstance(said, list) and said and isinstance(said[0], dict):
            said = said.pop(0) if len(said) > 1 else said[0]
        return said if isinstance(said, str | Reply) else json.dumps(said)


def numbers(user: str, *words: str) -> list[int]:
    """Numbers of the sentences of the evidence that have one of the words."""
    found = re.findall(r"^\[(\d+)\] (.*)$", user, re.MULTILINE)
    return [int(number) for number, text in found if any(word in text for word in words)]


def reply_kept(user: str) -> Any:
    return {"kept": numbers(user, "born in Warsaw", "lies on the Vistula", "flows into"), "contradictions": []}


def reply_notes(user: str) -> Any:
    texts = ("born in Warsaw", "lies on the Vistula", "flows into")
    return {"notes": [{"text": text, "cited": some} for text in texts if (some := numbers(user, text))]}


def reply_answer(user: str) -> Any:
    return {"answer": "the Baltic Sea", "cited": numbers(user, "flows into"), "sufficient": True}


STEPS = [
    {"answerable": False, "sub_question": "Where was Marie Curie born?"},
    {"answerable": False, "sub_question": "On which river does Warsaw lie?"},
    {"answerable": True, "sub_question": ""},
]
SOCRATIC: dict[str, Any] = {
    "queries": lambda user: {"queries": [re.search(r"<question>\n(.*?)\n", user)[1]]},  # type: ignore[index]
    "kept": reply_kept,
    "notes": reply_notes,
    "cited": reply_answer,
}
Asking = Callable[..., SessionView]


def refuse(_request: dict[str, Any]) -> Reply:
    """An endpoint that is there and answers nothing: what it refuses is no completion."""
    return Reply("no", status=400)


@pytest.fixture
def asking(modelled: ModelApplications, curie: str) -> Asking:
    """Does a session by a model."""

    def run(handler: Handler, planner: str, budget: Budget | None = None, **asked: Any) -> SessionView:
        services = modelled.application(handler)
        scope = services.auth.access.scope(curie)
        how = SessionRequest(**{"top_k": 2, "threshold": 1.0} | asked)
        new = NewSession(question=CHAIN, planner=planner, request=how, budget=budget or Budget())
        shown = sessions_of(services).sessions.wait(scope, sessions_of(services).sessions.start(scope, new))
        completed = [one for one in modelled.server.requests if handler is not refuse]
        assert shown.stored.cost["llm_calls"] == len(completed)
        return shown

    return run


def test_socratic_asks_until_the_notes_answer(asking: Asking) -> None:
    model = Model(answerable=[dict(step) for step in STEPS], **SOCRATIC)
    session = asking(model, "socratic", answer=True)

    assert (session.stored.status, session.stored.stop_reason) == ("stopped", "answered")
    assert [one.said["sub_question"] for one in session.rounds] == [step["sub_question"] for step in STEPS[:2]]
    first, second = session.rounds
    assert first.said["queries"] == [CHAIN, "Where was Marie Curie born?"]
    assert second.said["queries"] == ["On which river does Warsaw lie?"]
    assert first.said["prompts"] == VERSION
    assert [one.text for one in session.notes] == ["born in Warsaw", "lies on the Vistula", "flows into"]
    by_id = {one.sentence_id: one.text for one in session.evidence}
    for note in session.notes:
        assert note.text in by_id[note.cites[0]]
    assert session.stored.conclusion is not None
    assert session.stored.conclusion["text"] == "the Baltic Sea"
    assert [by_id[one] for one in session.stored.conclusion["cites"]] == ["The Vistula flows into the Baltic Sea."]
    assert session.stored.warnings == []
    one_round = ["answerable", "queries", "kept", "cited", "notes"]
    assert model.asked == [*one_round, *one_round, "answerable", "cited"]
    assert session.stored.cost["prompt_tokens"] > session.stored.cost["completion_tokens"] > 0


def test_pool_goes_after_what_the_model_says_is_missing(asking: Asking) -> None:
    triples = [
        {"subject": "Marie Curie", "relation": "place of birth", "object": "?1", "question": "Where was she born?"},
        {"subject": "?1", "relation": "river", "object": "?2", "question": "On which river does ?1 lie?"},
        {"subject": "?2", "relation": "flows into", "object": "?", "question": "Into which sea does ?2 flow?"},
    ]

    def gaps(user: str) -> Any:
        settled = [
            {"mark": mark, "value": value, "cited": some}
            for mark, value, text in (("?1", "Warsaw", "born in Warsaw"), ("?2", "Vistula", "lies on the Vistula"))
            if (some := numbers(user, text))
        ]
        return {"settled": settled, "sufficient": len(settled) == 2, "query": "On which river does Warsaw lie?"}

    model = Model(triples={"triples": triples}, kept=reply_kept, settled=gaps)
    session = asking(model, "pool")
    assert session.stored.stop_reason == "answered"
    assert session.rounds[-1].said["queries"] == ["On which river does Warsaw lie?"] or len(session.rounds) == 1
    assert {one["value"] for one in session.stored.plan_state["bindings"]} == {"Warsaw", "Vistula"}
    assert [one["subject"] for one in session.stored.plan_state["triples"]] == ["Marie Curie", "?1", "?2"]
    assert {note.kind for note in session.notes} == {"binding"}
    holding = {one.passage_id for one in session.evidence}
    assert {one.passage_id for one in session.passages[: len(holding)]} == holding


def test_a_value_that_no_cited_sentence_states_stays_open(asking: Asking) -> None:
    triples = [{"subject": "Marie Curie", "relation": "place of birth", "object": "?1", "question": "Where?"}]
    triples += [{"subject": "?1", "relation": "river", "object": "?", "question": "Which river?"}]
    gaps = {"settled": [{"mark": "?1", "value": "Paris", "cited": [1]}], "sufficient": True, "query": ""}
    session = asking(Model(triples={"triples": triples}, kept=reply_kept, settled=gaps), "pool")
    assert session.stored.plan_state["bindings"] == []


@pytest.mark.parametrize("broken", ["not json", {"kept": [99]}, None])
@pytest.mark.parametrize("planner", ["pool", "socratic"])
def test_broken_model_reply_falls_back_to_rules_with_a_warning(asking: Asking, planner: str, broken: Any) -> None:
    model = refuse if broken is None else Model(**dict.fromkeys(Model.USES, broken))
    session = asking(model, planner)
    assert (session.stored.status, session.stored.stop_reason) == ("stopped", "found")
    assert [one.said["queries"] for one in session.rounds] == [
        [CHAIN],
        ["into which sea does the river that Warsaw lies on flow"],
    ]
    assert {warning["type"] for warning in session.stored.warnings} <= {"planned-by-rules", "sifted-by-rules"}
    assert session.stored.warnings
    assert {one.passage_id for one in session.passages} == {"curie", "warsaw", "vistula"}


def test_a_name_that_nothing_read_names_is_not_searched_for(asking: Asking) -> None:
    steps = [dict(STEPS[0]), dict(STEPS[2])]
    replies = SOCRATIC | {"queries": {"queries": ["Where was Ignatius Zanzifar born?", "Marie Curie birthplace"]}}
    session = asking(Model(answerable=steps, **replies), "socratic")
    assert session.rounds[0].said["queries"] == [CHAIN, "Marie Curie birthplace"]
    (warning,) = session.stored.warnings
    assert warning["type"] == "planned-by-rules"
    assert "Ignatius Zanzifar" in warning["detail"]


def test_contradictions_are_named_and_stay(asking: Asking) -> None:
    def reply_sifted(user: str) -> Any:
        sides = numbers(user, "born in Warsaw", "flows into")
        found = [{"cited": sides, "about": "where it is", "borne_by": sides[:1]}] if len(sides) > 1 else []
        return {"kept": [], "contradictions": found}

    steps = [dict(step) for step in STEPS]
    session = asking(
        Model(answerable=steps, **SOCRATIC | {"kept": reply_sifted, "notes": {"notes": []}}), "socratic", top_k=5
    )
    named = [note for note in session.notes if note.kind == "contradiction"]
    assert named
    assert named[0].text.startswith("where it is (the better founded: [")
    assert len(named[0].cites) == 2


@pytest.mark.parametrize(("budget", "reason"), [({"llm_calls": 3}, "llm_calls"), ({"tokens": 700}, "tokens")])
def test_budgets_of_the_model_hold(asking: Asking, budget: dict[str, int], reason: str) -> None:
    steps = [dict(STEPS[0])]
    session = asking(Model(answerable=steps, **SOCRATIC), "socratic", Budget(rounds=9, **budget), stop="rounds")
    assert session.stored.stop_reason == reason
    cost = session.stored.cost
    assert cost["llm_calls"] <= budget.get("llm_calls", 99)
    assert cost["rounds"] == 1
    assert "noted-by-rules" in {warning["type"] for warning in session.stored.warnings}


@pytest.mark.parametrize("planner", ["pool", "socratic", "tree", "agent"])
def test_a_hanging_endpoint_leaves_time_for_what_rules_find(
    modelled: ModelApplications, curie: str, planner: str
) -> None:
    services = modelled.application(lambda _: Reply("{}", delay_seconds=60.0), attempts=3)
    scope = services.auth.access.scope(curie)
    new = NewSession(
        question=CHAIN,
        planner=planner,
        request=SessionRequest(top_k=3, threshold=1.0, answer=True),
        budget=Budget(seconds=1.0),
    )
    session = sessions_of(services).sessions.wait(scope, sessions_of(services).sessions.start(scope, new))
    assert session.stored.status == "stopped"
    assert session.passages
    details = [warning["detail"] for warning in session.stored.warnings]
    assert any(re.search(r"did not answer within 0\.\d+ s \(1 try\)", detail) for detail in details), details
    assert session.stored.cost["seconds"] < 30.0  # the timeout of a single try


def test_a_session_whose_time_is_spent_before_its_first_query_still_makes_it(
    modelled: ModelApplications, curie: str
) -> None:
    services = modelled.application(lambda _: Reply("{}", delay_seconds=60.0))
    scope = services.auth.access.scope(curie)
    new = NewSession(
        question=CHAIN, planner="socratic", request=SessionRequest(top_k=3), budget=Budget(seconds=0.001)
    )
    session = sessions_of(services).sessions.wait(scope, sessions_of(services).sessions.start(scope, new))
    assert session.stored.stop_reason == "seconds"
    assert session.passages
    assert session.stored.warnings


def test_no_calls_leave_it_to_the_rules(asking: Asking) -> None:
    session = asking(Model(), "socratic", Budget(llm_calls=0))
    assert ([one.action for one in session.rounds], session.stored.cost["llm_calls"]) == (RULES, 0)


def test_the_model_may_say_that_the_pool_answers(asking: Asking) -> None:
    session = asking(Model(sufficient={"sufficient": True}), "pool", Budget(llm_calls=9), stop="llm")
    assert session.stored.stop_reason == "answered"
    assert len(session.rounds) == 1


def test_auto_takes_the_planner_that_the_first_round_calls_for(asking: Asking) -> None:
    session = asking(Model(answerable=dict(STEPS[2]), **SOCRATIC), "auto", threshold=1.0)
    assert session.rounds[0].action == "ask"
    assert session.stored.plan_state.get("planner") in {"pool", "socratic"}
    near = session.rounds[0].sufficiency is not None and session.rounds[0].sufficiency >= 0.6
    assert session.stored.plan_state["planner"] == ("pool" if near else "socratic")
