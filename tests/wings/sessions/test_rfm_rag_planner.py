"""The planner "rfm-rag" with a model: the model is a program, the requests to it are real."""

from typing import Any

from engram.core.budget import Budget
from tests.wings.sessions.test_llm_planners import CHAIN, Asking, Model, asking, numbers, refuse, reply_kept

__all__ = ["asking"]

TRIPLES = {
    "triples": [
        {"subject": "Marie Curie", "relation": "place of birth", "object": "?1", "question": "Where was she born?"},
        {"subject": "?1", "relation": "lies on", "object": "?2", "question": "On which river does ?1 lie?"},
        {"subject": "?2", "relation": "flows into", "object": "?", "question": "Into which sea does ?2 flow?"},
    ]
}
KNOWN_VALUES = (("?1", "Warsaw", "born in Warsaw"), ("?2", "Vistula", "lies on the Vistula"))
NEVER_ENOUGH = {"threshold": 1.0, "top_k": 1}


def gaps(user: str) -> Any:
    """Settle what the pool states, and ask for the first thing that it does not."""
    settled = [
        {"mark": mark, "value": value, "cited": some}
        for mark, value, text in KNOWN_VALUES
        if (some := numbers(user, text))
    ]
    query = ("Marie Curie born", "Warsaw lies on river", "Vistula flows into")[len(settled)]
    return {"settled": settled, "sufficient": bool(numbers(user, "flows into")), "query": query}


def test_rounds_filter_and_go_after_the_gap_until_all_is_covered(asking: Asking) -> None:
    model = Model(triples=TRIPLES, kept=reply_kept, settled=gaps)
    session = asking(model, "rfm-rag", Budget(rounds=6), **NEVER_ENOUGH)
    queries = [query for one in session.rounds for query in one.said["queries"]]
    assert queries == [CHAIN, "Warsaw lies on river", "Vistula flows into"]
    assert session.stored.stop_reason == "covered"
    assert session.stored.covered == 1.0
    assert [note.text for note in session.notes] == [
        "Marie Curie place of birth: Warsaw",
        "Warsaw lies on: Vistula",
    ]
    texts = {one.text for one in session.evidence}
    assert "Marie Curie discovered polonium in 1898." not in texts  # it was filtered
    assert "The Vistula flows into the Baltic Sea." in texts
    shares = [one.said["coverage"] for one in session.rounds[1:]]
    assert shares == sorted(shares)


def test_r_feedback_ends_it_before_the_gap_is_looked_for(asking: Asking) -> None:
    model = Model(triples=TRIPLES, kept=reply_kept, settled=gaps)
    session = asking(model, "rfm-rag", top_k=1, threshold=0.01)
    assert (session.stored.stop_reason, len(session.rounds)) == ("sufficient", 1)
    assert model.asked == ["triples", "kept"]


def test_a_query_that_was_asked_is_not_asked_again(asking: Asking) -> None:
    same = {"settled": [], "sufficient": False, "query": CHAIN}
    model = Model(triples=TRIPLES, kept=reply_kept, settled=same)
    session = asking(model, "rfm-rag", Budget(rounds=6), **NEVER_ENOUGH)
    assert [one.said["queries"] for one in session.rounds] == [[CHAIN], ["Marie Curie place of birth"]]
    assert session.stored.stop_reason == "no_gap"


def test_rules_do_what_the_model_fails_and_nothing_is_filtered(asking: Asking) -> None:
    session = asking(refuse, "rfm-rag", Budget(rounds=2), threshold=1.0, top_k=1)
    assert {warning["type"] for warning in session.stored.warnings} == {"planned-by-rules", "sifted-by-rules"}
    first = [one.text for one in session.evidence if one.round == 1]
    assert first == ["Marie Curie was born in Warsaw in 1867.", "Marie Curie discovered polonium in 1898."]
    assert session.rounds[0].said["queries"] == [CHAIN]
