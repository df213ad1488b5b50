"""A key to look at: what it is composed of and which verdicts are behind it, as the tables say."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from engram.core.learning.logged_verdict import Expansion
from engram.providers.language import terms
from engram.services.verdict.learn import VerdictLearner
from engram.services.verdict.receipt import Receipt
from engram.wings.published.core import evolution as core
from engram.wings.published.parts import published_of
from engram.wings.published.services.key_evolution import KeyEvolutionService
from engram.wings.published.services.key_view import EVENTS, TERMS, KeyView
from tests.support import state
from tests.support.encoder import HALF_PRECISION
from tests.support.evolving import QUESTION, RIVER, services, verdict

OTHER_QUESTION = "What do ships sail on to reach the capital?"
WATER = Expansion("facets", "longest rivers, waterways, ships, sailing to the capital")
UNRELATED = Expansion("facets", "stock exchange, quarterly earnings, tax law")


def teach(
    application: Application,
    name: str,
    expansions: Sequence[Expansion] = (RIVER, WATER),
    question: str = QUESTION,
    passages: Sequence[str] = ("vistula",),
    **more: Any,
) -> Receipt:
    """A verdict that says these passages helped as a whole, applied."""
    return verdict(application, name, passages, expansions, question, **more)


def view_key(application: Application, name: str, passage: str = "vistula", limit: int = 20) -> KeyView:
    return published_of(application).key_view.view(application.auth.access.scope(name), passage, limit)


def build_services(application: Application, **changes: Any) -> tuple[VerdictLearner, KeyEvolutionService]:
    """Services with other rules of composition."""
    return services(application, rules=replace(published_of(application).key_learning.rules, **changes))


def test_a_passage_that_no_verdict_named_has_its_base_key(application: Application, curie: str) -> None:
    teach(application, curie)
    published_of(application).evolve.evolve(application.auth.access.scope(curie))
    view = view_key(application, curie, "tokyo")
    assert (view.passage_id, view.collection, view.generation) == ("tokyo", curie, 1)
    assert (view.evolved, view.key_generation, view.key_building) == (False, None, "full")
    assert view.cosine == pytest.approx(1.0)
    assert view.displacement == 0.0
    assert (view.terms, view.term_count, view.units, view.unit_count) == ([], 0, [], 0)


def test_pending_units_are_shown_and_not_served(application: Application, curie: str) -> None:
    event = teach(application, curie).event
    view = view_key(application, curie)
    assert (view.generation, view.evolved, view.terms) == (0, False, [])
    assert {unit.text for unit in view.units} <= {RIVER.text, WATER.text}
    assert view.unit_count == len(view.units) > 0
    for unit in view.units:
        (source,) = unit.events
        assert (unit.in_key, unit.terms, unit.event_count) == (False, [], 1)
        assert (source.event_id, source.query_id, source.question) == (event.id, event.query_id, QUESTION)
        assert (source.judge, source.status, source.generation) == ("anonymous", "waiting", None)


def test_an_evolved_key_beside_its_base(application: Application, curie: str) -> None:
    teach(application, curie)
    teach(application, curie, [WATER], OTHER_QUESTION, judge="reader")
    published_of(application).evolve.evolve(application.auth.access.scope(curie))
    view = view_key(application, curie)
    (row,) = state.rows(application, curie, "passage_key")
    (base,) = [row for row in state.rows(application, curie, "passage") if row["external_id"] == "vistula"]
    keys = [np.array(text.strip("[]").split(","), dtype=float) for text in (base["embedding"], row["vector"])]
    assert (view.generation, view.evolved, view.key_generation) == (1, True, 1)
    assert view.cosine == pytest.approx(keys[0] @ keys[1], abs=HALF_PRECISION)
    assert view.displacement == pytest.approx(np.linalg.norm(keys[0] - keys[1]), abs=HALF_PRECISION)
    assert view.displacement_bound == core.compute_displacement_bound(
        published_of(application).key_learning.rules.strength
    )
    assert 0 < view.displacement <= view.displacement_bound
    assert [unit.unit_id for unit in view.units if unit.in_key] == row["units"]
    assert [unit.score for unit in view.units if unit.in_key] == row["scores"]
    assert {source.judge for unit in view.units for source in unit.events} == {"anonymous", "reader"}


def test_a_score_is_the_sum_over_the_verdicts_behind_it(application: Application, curie: str) -> None:
    teach(application, curie)
    published_of(application).evolve.evolve(application.auth.access.scope(curie))
    teach(application, curie, [WATER, UNRELATED], OTHER_QUESTION)
    view = view_key(application, curie)
    scores = [unit.score for unit in view.units]
    assert scores == sorted(scores, key=lambda score: -(score or 0))
    for unit in view.units:
        assert unit.score == pytest.approx(sum(source.gain * source.weight for source in unit.events))
    water = next(unit for unit in view.units if unit.text == WATER.text)
    assert [source.status for source in water.events] == ["waiting", "taken in"]
    assert [source.generation for source in water.events] == [None, 1]
    assert [source.question for source in water.events] == [OTHER_QUESTION, QUESTION]


def test_the_units_terms_add_up_to_those_of_the_key(application: Application, curie: str) -> None:
    teach(application, curie)
    published_of(application).evolve.evolve(application.auth.access.scope(curie))
    view = view_key(application, curie)
    served = {term.term: term.increment for term in view.terms}
    assert view.term_count == len(served) > 0
    assert list(served.values()) == sorted(served.values(), reverse=True)
    added: dict[str, float] = {}
    for unit in view.units:
        assert {term.term for term in unit.terms} == (set(terms(unit.text, "en")) if unit.in_key else set())
        for term in unit.terms:
            added[term.term] = added.get(term.term, 0.0) + term.increment
    assert added == pytest.approx(served, abs=1e-5)
    stored = {
        row["term"]: row["frequency"] - row["base"] for row in state.rows(application, curie, "evolved_posting")
    }
    assert served == pytest.approx(stored, abs=1e-5)


def test_rolled_back_units_are_marked(application: Application, curie: str) -> None:
    teach(application, curie)
    published_of(application).evolve.evolve(application.auth.access.scope(curie))
    teach(application, curie, [WATER], OTHER_QUESTION)
    published_of(application).evolve.evolve(application.auth.access.scope(curie))
    published_of(application).evolve.roll_back(application.auth.access.scope(curie), 1)
    view = view_key(application, curie)
    assert (view.generation, view.key_generation) == (1, 1)
    water = next(unit for unit in view.units if unit.text == WATER.text)
    assert [(source.status, source.generation) for source in water.events] == [("rolled back", 2), ("taken in", 1)]
    assert water.score == pytest.approx(water.events[1].gain * water.events[1].weight)
    published_of(application).evolve.roll_back(application.auth.access.scope(curie), 0)
    view = view_key(application, curie)
    assert (view.generation, view.evolved, view.units) == (0, False, [])
    published_of(application).evolve.roll_back(application.auth.access.scope(curie), 2)
    view = view_key(application, curie)
    assert {source.status for unit in view.units for source in unit.events} == {"taken in"}


def test_key_view_respects_its_limits(application: Application, curie: str) -> None:
    words = " ".join(f"river{letter}{other}" for letter in "abcdefghij" for other in "klmnopqrst")
    long = Expansion("facets", f"the longest river of its country: {words}")
    teach(application, curie, [RIVER, long])
    given = [teach(application, curie, [RIVER]).event.id for _ in range(EVENTS + 3)]
    published_of(application).evolve.evolve(application.auth.access.scope(curie))
    view = view_key(application, curie)
    river = next(unit for unit in view.units if unit.text == RIVER.text)
    assert river.event_count == len(given) + 1
    assert [source.event_id for source in river.events] == given[::-1][:EVENTS]
    wordy = next(unit for unit in view.units if unit.text == long.text)
    assert len(wordy.terms) == TERMS
    assert len(view.terms) == TERMS
    assert view.term_count > 100
    few = view_key(application, curie, limit=1)
    assert [unit.text for unit in few.units] == [RIVER.text]
    assert few.unit_count == view.unit_count == 2
    assert few.units[0].terms == river.terms


def test_a_unit_of_the_key_that_the_memory_let_go(application: Application, curie: str) -> None:
    learn, evolve = build_services(application, capacity=1, units=1)
    weak, strong = Expansion("facets", "water of a country"), Expansion("hyde", QUESTION)
    for expansion, then in (
        (weak, lambda: evolve.evolve(application.auth.access.scope(curie))),
        (strong, lambda: None),
    ):
        query_id = state.add_episode(application, curie, QUESTION, [])
        more: dict[str, Any] = {"supporting_passages": ("vistula",), "expansions": (expansion,)}
        event = state.judge(application, curie, query_id, partial=True, **more).event
        assert learn.apply(state.collection_id(application, curie), [event.id]) == 1
        then()
    best, gone = view_key(application, curie).units
    assert (best.text, best.in_key, best.terms) == (strong.text, False, [])
    assert (gone.text, gone.in_key, gone.score) == (weak.text, True, None)
    assert [source.status for source in gone.events] == ["taken in"]
    assert gone.terms


def test_the_bound_is_that_of_the_serving_generation(application: Application, curie: str) -> None:
    _, evolve = build_services(application, strength=0.2)
    teach(application, curie)
    evolve.evolve(application.auth.access.scope(curie))
    view = view_key(application, curie)
    assert view.displacement_bound == core.compute_displacement_bound(0.2)
    assert view.displacement <= view.displacement_bound + 1e-6


def test_missing_passage_has_no_key_view(application: Application, curie: str) -> None:
    with pytest.raises(NotFoundError, match="no passage 'nowhere'"):
        view_key(application, curie, "nowhere")


class TestEffect:
    """What one verdict's expansions came to."""

    def test_of_a_verdict_without_expansions_there_is_none(self, application: Application, curie: str) -> None:
        assert teach(application, curie, []).keys is None

    def test_of_a_verdict_that_validated_them(self, application: Application, curie: str) -> None:
        receipt = teach(application, curie, [RIVER, UNRELATED], passages=("vistula", "warsaw"))
        effect = receipt.keys
        assert effect is not None
        assert (effect.gate, effect.status, effect.generation) == ("retrieval", "waiting", None)
        assert effect.credit_count == len(effect.credits) == 4
        assert effect.gain == max(credit.gain for credit in effect.credits)
        assert {credit.passage_id for credit in effect.credits} == {"vistula", "warsaw"}
        counted = [credit.weight * credit.gain for credit in effect.credits]
        assert counted == sorted(counted, reverse=True)
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        later = application.learning.verdicts.read(application.auth.access.scope(curie), receipt.event.id).keys
        assert later == replace(effect, status="taken in", generation=1)
        published_of(application).evolve.roll_back(application.auth.access.scope(curie), 0)
        later = application.learning.verdicts.read(application.auth.access.scope(curie), receipt.event.id).keys
        assert later == replace(effect, status="rolled back", generation=1)

    def test_of_one_that_did_not(self, application: Application, curie: str) -> None:
        effect = teach(application, curie, retrieval_success=False).keys
        assert effect is not None
        assert (effect.gate, effect.gain, effect.status, effect.generation) == ("none", 0.0, None, None)
        assert (effect.credits, effect.credit_count) == ([], 0)

    def test_of_one_that_waits_to_be_applied(self, application: Application, curie: str) -> None:
        query_id = state.add_episode(application, curie, QUESTION, [])
        event = state.judge(application, curie, query_id, expansions=(RIVER,)).event
        assert application.learning.verdicts.read(application.auth.access.scope(curie), event.id).keys is None
