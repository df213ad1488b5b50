"""Going by whether an answer is enough: hops that end, and answers that are withheld."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.core.ranking import sufficiency
from engram.core.ranking.weight_beliefs import WeightBelief
from engram.providers.ranking_prior import RankingPriors
from engram.services.question.query import Query
from engram.services.question.search import RetrievalResult, RetrievalService
from tests.support import state
from tests.support.strict_client import TestClient

PAPER = pytest.param({"profile": "paper"}, marks=pytest.mark.wing("published"))

CHAIN = "Into which sea flows the river of Marie Curie's birthplace?"

Believing = Callable[[float], RetrievalService]


@pytest.fixture
def believing(application: Application) -> Believing:
    """Retrieval by a prior that gives every answer the same probability, and stops at .8."""

    def build_service(probability: float) -> RetrievalService:
        weights = np.zeros(len(sufficiency.ANSWER_FEATURES))
        weights[0] = np.log(probability / (1 - probability))
        enough = WeightBelief(weights, np.eye(len(weights)))
        prior = replace(application.models.priors.general, sufficiency=enough, sufficiency_name="even")
        return RetrievalService(
            application.database,
            application.retrieval.planner,
            RankingPriors(prior, prior),
            application.retrieval.key_cache,
            application.retrieval.graph_cache,
            application.retrieval.question_spreads,
            threshold=0.8,
        )

    return build_service


def retrieve_chain(retrieve: RetrievalService, application: Application, name: str, **more: Any) -> RetrievalResult:
    query = Query(text=CHAIN, scope=application.auth.access.scope(name), memory="off", **more)
    return retrieve.find(retrieve.plan(query))


class TestChain:
    """Curie's passage names Warsaw, that of Warsaw the Vistula; a passage is titled after each."""

    def read_features(self, application: Application, name: str, question: str) -> dict[str, float]:
        query = Query(text=question, scope=application.auth.access.scope(name), memory="off")
        told = application.retrieval.retrieve.find(application.retrieval.retrieve.plan(query)).ranking.sufficiency
        assert told is not None
        return dict(zip(sufficiency.ANSWER_FEATURES, told.features.tolist(), strict=True))

    @pytest.mark.parametrize(
        ("question", "left_open", "compared"),
        [
            (CHAIN, 0.0, 0.0),
            ("Where was Marie Curie born?", 0.0, 0.0),
            ("What is the source of Tokyo's river?", 1.0, 0.0),  # Tokyo's passage leads to none of the others
            ("Which is larger, Warsaw or Tokyo?", 0.0, 1.0),
        ],
    )
    def test_what_the_first_five_lead_on_to_is_not_left_open(
        self, application: Application, curie: str, question: str, left_open: float, compared: float
    ) -> None:
        seen = self.read_features(application, curie, question)
        assert (seen["open"], seen["compared"], seen["rival"]) == (left_open, compared, 0.0)


class TestLearnedSufficiency:
    def test_hops_end_once_the_answer_is_likely_enough(
        self, application: Application, curie: str, believing: Believing
    ) -> None:
        stopped = retrieve_chain(believing(0.9), application, curie, stop_rule="learned")
        one = retrieve_chain(believing(0.9), application, curie, stop_rule="none", max_hops=1)
        assert stopped.walk.stop_reason == "sufficient"
        assert len(stopped.walk.hops) == 1
        assert stopped.shown_passages == one.shown_passages
        assert stopped.ranking.sufficiency is not None
        assert stopped.ranking.sufficiency.probability == pytest.approx(0.9)

    def test_hops_go_on_while_it_is_not(self, application: Application, curie: str, believing: Believing) -> None:
        going = retrieve_chain(believing(0.7), application, curie, stop_rule="learned")
        never = retrieve_chain(believing(0.7), application, curie, stop_rule="none")
        assert len(going.walk.hops) == len(never.walk.hops) > 1
        assert going.walk.stop_reason == never.walk.stop_reason
        assert going.shown_passages == never.shown_passages

    def test_an_episode_says_so(self, http: TestClient, curie: str) -> None:
        body = {"query": CHAIN, "collection": curie, "stop_rule": "learned"}
        answer = http.post("/query", json=body).raise_for_status().json()
        again = http.get(f"/queries/{answer['query_id']}", params={"collection": curie}).raise_for_status().json()
        assert (answer["stop_rule"], again["stop_rule"]) == ("learned", "learned")
        assert again["sufficiency"] == answer["sufficiency"]
        assert 0 <= answer["sufficiency"] <= 1
        assert not answer["insufficient"]


class TestWithheldPassages:
    def test_answer_below_min_sufficiency_shows_no_passages(
        self, application: Application, curie: str, believing: Believing
    ) -> None:
        for least, withheld in ((0.71, True), (0.69, False), (0.0, False)):
            result = retrieve_chain(believing(0.7), application, curie, min_sufficiency=least)
            assert result.shown.withheld == withheld
            assert bool(result.shown_passages) != withheld
            assert result.ranking.ordered

    def test_insufficient_answer_is_marked_and_unseen_passages_are_not_learned(
        self, application: Application, http: TestClient, curie: str
    ) -> None:
        body = {"query": CHAIN, "collection": curie, "min_sufficiency": 1.0, "include": ["trace"]}
        answer = http.post("/query", json=body).raise_for_status().json()
        assert answer["passages"] == []
        assert answer["insufficient"] is True
        assert 0 < answer["sufficiency"] < 1
        assert answer["trace"]["sufficiency"]["probability"] == answer["sufficiency"]
        again = http.get(f"/queries/{answer['query_id']}", params={"collection": curie}).raise_for_status().json()
        assert again["insufficient"] is True
        (kept,) = state.rows(application, curie, "episode")
        assert (kept["activated"], kept["shown"]) == ([], [])
        assert (kept["ranked"], kept["best_features"], kept["answer_features"]) == (None, None, None)

    def test_a_verdict_may_still_name_what_there_is(self, application: Application, curie: str) -> None:
        query = Query(text=CHAIN, scope=application.auth.access.scope(curie), min_sufficiency=1.0)
        answer = application.answers.question.answer(query)
        missed = list(state.sentences(application, curie, "vistula").values())
        receipt = state.judge(application, curie, answer.query_id, missed=missed, wait=True)
        assert receipt.event.status == "applied"
        assert {row["target"] for row in state.rows(application, curie, "memory_audit")} == {1}
        assert state.load_weights(application, curie, model="sufficiency") is None

    def test_answer_shows_the_level_that_engram_chose(self, http: TestClient, curie: str) -> None:
        body = {"query": CHAIN, "collection": curie, "min_sufficiency": "auto"}
        answer = http.post("/query", json=body).raise_for_status().json()
        assert answer["sufficiency_level"]["source"] == "prior"
        assert answer["sufficiency_level"]["confirmed"] == 0
        assert answer["insufficient"] == (answer["sufficiency"] < answer["sufficiency_level"]["value"])
        again = http.get(f"/queries/{answer['query_id']}", params={"collection": curie}).raise_for_status().json()
        assert again["sufficiency_level"] == answer["sufficiency_level"]
        plain = http.post("/query", json=body | {"min_sufficiency": 0.5}).raise_for_status().json()
        assert plain["sufficiency_level"] is None

    def test_answer_shows_the_level_and_withholds_nothing_for_it(self, http: TestClient, curie: str) -> None:
        body = {"query": "Which bees swim in Ireland?", "collection": curie}
        withheld = http.post("/query", json=body | {"min_sufficiency": "auto"}).raise_for_status().json()
        shown = http.post("/query", json=body | {"include": ["sufficiency_level"]}).raise_for_status().json()
        assert [one["insufficient"] for one in (withheld, shown)] == [True, False]
        assert shown["sufficiency_level"] == withheld["sufficiency_level"]
        assert shown["passages"]

    @pytest.mark.parametrize("least", [-0.1, 1.1, "high", True])
    def test_it_is_a_probability(self, http: TestClient, curie: str, least: object) -> None:
        answer = http.post("/query", json={"query": CHAIN, "collection": curie, "min_sufficiency": least})
        assert answer.status_code == 422


@pytest.mark.parametrize("asked", [{"stop_rule": "learned"}, {"min_sufficiency": 0.5}])
@pytest.mark.parametrize("arm", [PAPER, {"strategy": "dense"}])
def test_sufficiency_options_need_a_profile_with_sufficiency(
    application: Application, curie: str, asked: dict[str, Any], arm: dict[str, Any]
) -> None:
    query = Query(text=CHAIN, scope=application.auth.access.scope(curie), **asked, **arm)
    with pytest.raises(InvalidRequestError, match=r"goe?s? with"):
        application.answers.question.answer(query)


@pytest.mark.wing("experiments")
def test_min_sufficiency_is_refused_with_an_arm_without_sufficiency(
    application: Application, http: TestClient, curie: str
) -> None:
    arms = [{"name": "ours", "percent": 0}, {"name": "theirs", "percent": 100, "profile": "paper"}]
    http.patch(f"/collections/{curie}", json={"experiment": {"arms": arms}}).raise_for_status()
    body = {"query": CHAIN, "collection": curie}
    assert http.post("/query", json=body).raise_for_status().json()["arm"] == "theirs"
    for asked in ({"stop_rule": "learned"}, {"min_sufficiency": 0.0}):
        answer = http.post("/query", json=body | asked).raise_for_status().json()
        assert (answer["arm"], answer["profile"]) == (None, "default")
