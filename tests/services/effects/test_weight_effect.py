"""What verdicts add to a collection's learned weights: which terms, once each, and to whom."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from engram.composition.container import Application, Servers
from engram.core.ranking import sufficiency
from engram.core.ranking.passage_scores import PASSAGE_FEATURES
from engram.core.ranking.weight_beliefs import WeightBelief, WeightEvidence
from engram.providers.ranking_prior import RankingPriors
from engram.services.effects.weight_effect import WeightEffect
from engram.services.question.answer import Answer
from engram.services.question.query import Query
from engram_evaluation.commands.evaluate_command import build_variation
from engram_evaluation.learning_variations import Variation
from tests.conftest import Ingest
from tests.support import state

TOWNS = [f"Town{letter}" for letter in "abcdefghijkl"]
SHOWN = TOWNS[: sufficiency.EVIDENCE_PASSAGES]
QUESTION = "Which river does Towna lie on?"


def town(name: str) -> Mapping[str, Any]:
    return {"id": name, "title": name, "text": f"{name} lies on the {name} River. {name} is old."}


@pytest.fixture
def towns(ingest: Ingest, collection: str) -> str:
    """A collection with twelve passages of two sentences each."""
    assert ingest(*map(town, TOWNS))["created"] == len(TOWNS)
    return collection


def add_episode(application: Application, name: str, seed: int = 0, features: int | None = None) -> UUID:
    """An episode that ranked the towns in order, with made-up features of the answer."""
    ids = state.passages(application, name)
    return state.add_episode(
        application,
        name,
        QUESTION,
        [],
        ranked=[ids[town] for town in TOWNS],
        answer_features=state.draw_answer(seed)[:features],
    )


def list_first_sentences(application: Application, name: str, *named: str) -> list[int]:
    """The first sentence of each passage."""
    return [min(state.sentences(application, name, passage).values()) for passage in named]


def observe_expected(application: Application, seed: int = 0, noise: float = 0.5) -> WeightEvidence:
    """What a verdict says that supports some of the passages shown."""
    prior = application.models.priors.encyclopedic.sufficiency
    return sufficiency.build_counted_observation(
        state.draw_answer(seed).astype(np.float64), 1, prior, noise
    ).evidence


def sum_expected(application: Application, count: int) -> WeightEvidence:
    total = observe_expected(application)
    for seed in range(1, count):
        total += observe_expected(application, seed)
    return total


def load_evidence(application: Application, name: str) -> WeightEvidence:
    learned = state.load_weights(application, name)
    assert learned is not None
    return learned.evidence


def audit(application: Application, name: str) -> dict[int, dict[str, Any]]:
    return {row["event_id"]: row for row in state.weight_rows(application, name)}


def assert_same(found: WeightEvidence, wanted: WeightEvidence) -> None:
    assert_allclose(found.information, wanted.information, rtol=1e-12, atol=1e-12)
    assert_allclose(found.precision, wanted.precision, rtol=1e-12, atol=1e-12)


def read_term(row: Mapping[str, Any]) -> WeightEvidence:
    information = np.array(row["information"])
    return WeightEvidence(information, np.array(row["precision"]).reshape(len(information), -1))


def sum_of_audit(application: Application, name: str) -> WeightEvidence:
    first, *others = (read_term(row) for row in audit(application, name).values())
    for term in others:
        first += term
    return first


def judge_some(application: Application, name: str, count: int) -> list[int]:
    """Accept verdicts that support two of the passages shown; their events."""
    return [
        state.judge(
            application,
            name,
            add_episode(application, name, seed),
            list_first_sentences(application, name, *random.Random(seed).sample(SHOWN, 2)),
        ).event.id
        for seed in range(count)
    ]


class TestTermSums:
    def test_verdicts_add_up_and_each_has_its_row(self, application: Application, towns: str) -> None:
        events = judge_some(application, towns, 6)
        target = state.collection_id(application, towns)
        application.learning.learner.apply(target, events[:1])
        application.learning.learner.apply(target, events[1:])

        assert_same(load_evidence(application, towns), sum_expected(application, 6))
        assert_same(load_evidence(application, towns), sum_of_audit(application, towns))
        assert sorted(audit(application, towns)) == events
        learned = state.load_weights(application, towns)
        assert learned is not None
        assert learned.events == 6

    def test_a_failed_batch_leaves_no_term(
        self, application: Application, towns: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (event,) = judge_some(application, towns, 1)

        def fail(*_: object) -> None:
            raise RuntimeError("no power")

        with monkeypatch.context() as patch:
            patch.setattr("engram.storage.feedback_log.feedback_events.mark_applied", fail)
            assert application.learning.learner.apply(state.collection_id(application, towns), [event]) == 0
        assert state.load_weights(application, towns) is None
        assert audit(application, towns) == {}

        assert application.learning.learner.apply(state.collection_id(application, towns), [event]) == 1
        assert_same(load_evidence(application, towns), sum_expected(application, 1))

    def test_features_of_another_version_are_passed_over(self, application: Application, towns: str) -> None:
        supporting = list_first_sentences(application, towns, "Townc")
        older = add_episode(application, towns, features=3)
        events = [
            state.judge(application, towns, query_id, supporting).event.id
            for query_id in (older, add_episode(application, towns))
        ]
        assert application.learning.learner.apply(state.collection_id(application, towns), events) == 2

        assert list(audit(application, towns)) == events[1:]
        assert_same(load_evidence(application, towns), observe_expected(application))


def estimate_sufficiency(application: Application, name: str, **more: Any) -> float:
    query = Query(text="Which old town lies on a river?", scope=application.auth.access.scope(name), **more)
    probability = application.answers.question.answer(query).sufficiency
    assert probability is not None
    return probability


def list_scores(application: Application, name: str, **more: Any) -> list[tuple[str, float]]:
    query = Query(text="Which old town lies on a river?", scope=application.auth.access.scope(name), **more)
    return [(passage.passage_id, passage.score) for passage in application.answers.question.answer(query).passages]


class TestCollections:
    def teach(self, application: Application, name: str) -> None:
        """Verdicts on made-up features and no sentence that a question is answered by."""
        application.learning.learner.apply(state.collection_id(application, name), judge_some(application, name, 3))
        with application.database.write() as writer:
            target = {"c": state.collection_id(application, name)}
            for table in ("sentence_memory", "question_support", "question"):
                writer.execute(f"DELETE FROM {table} WHERE collection_id = %(c)s", target)

    def test_the_weights_of_one_collection_move_and_no_others(
        self, application: Application, towns: str, ingest: Ingest
    ) -> None:
        other = f"{towns}-other"
        ingest(*map(town, TOWNS), into=other)
        before = estimate_sufficiency(application, towns), estimate_sufficiency(application, other)
        scores = list_scores(application, towns)
        self.teach(application, towns)
        denied = add_episode(application, towns, 99)
        state.judge(application, towns, denied, rating="down", reason="missing", wait=True)

        assert state.load_weights(application, other) is None
        assert estimate_sufficiency(application, other) == before[1]
        assert estimate_sufficiency(application, towns, memory="off") == before[0]
        assert estimate_sufficiency(application, towns) != before[0]
        assert list_scores(application, towns) == scores, "no verdict moves how passages are ranked"

    @pytest.mark.wing("published")
    def test_sums_of_another_prior_are_not_mixed_with_these(
        self, application: Application, addresses: Servers, towns: str
    ) -> None:
        ours = state.prior_of(application, towns)
        turned = WeightBelief(-ours.sufficiency.mean, 2.0 * ours.sufficiency.precision)
        other = replace(ours, sufficiency_name="another", sufficiency=turned)
        *others, _ = application.learning.learner.effects
        weights = WeightEffect(lambda _kind: other.priors)
        service = replace(application.learning.learner, effects=[*others, lambda *_: weights])
        supporting = list_first_sentences(application, towns, "Townc")
        first, second = (
            state.judge(application, towns, add_episode(application, towns), supporting).event.id for _ in range(2)
        )
        target = state.collection_id(application, towns)
        before = estimate_sufficiency(application, towns, memory="off")
        service.apply(target, [first])
        assert state.load_weights(application, towns) is None
        application.learning.learner.apply(target, [second])

        assert_same(load_evidence(application, towns), observe_expected(application))
        theirs = state.load_weights(application, towns, "another")
        assert theirs is not None
        assert theirs.events == 1
        assert np.abs(theirs.evidence.information - load_evidence(application, towns).information).max() > 1e-3
        assert {event: row["prior"] for event, row in audit(application, towns).items()} == {
            first: "another",
            second: ours.sufficiency_name,
        }
        elsewhere = build_variation(application, addresses, Variation("x"))
        third = replace(ours, sufficiency_name="a third")
        elsewhere.models.priors = RankingPriors(third, third)
        query = Query(text="Is Townl older than its river?", scope=application.auth.access.scope(towns))
        assert elsewhere.answers.question.answer(query).sufficiency == pytest.approx(
            application.answers.question.answer(replace(query, memory="off")).sufficiency
        )
        assert estimate_sufficiency(application, towns, memory="off") == before
        elsewhere.close()

    @pytest.mark.wing("published")
    def test_frozen_weights_do_not_move(self, application: Application, addresses: Servers, towns: str) -> None:
        services = build_variation(application, addresses, Variation("x", frozen=frozenset({"weights"})))
        supporting = list_first_sentences(services, towns, "Townc")
        receipt = state.judge(services, towns, add_episode(services, towns), supporting, wait=True)
        services.close()

        assert receipt.changes
        assert state.load_weights(application, towns) is None

    def test_forgetting_forgets_the_weights_of_one_collection(
        self, application: Application, towns: str, ingest: Ingest
    ) -> None:
        other, untouched = f"{towns}-other", estimate_sufficiency(application, towns)
        ingest(*map(town, TOWNS), into=other)
        for name in (towns, other):
            self.teach(application, name)
        kept = load_evidence(application, other)
        application.revocation.learning_reset.reset(application.auth.access.scope(towns))

        assert state.snapshot(application, towns, state.WEIGHTS) == {table: [] for table in state.WEIGHTS}
        assert estimate_sufficiency(application, towns) == untouched
        assert_same(load_evidence(application, other), kept)


class TestEpisodes:
    """What an episode keeps of its candidates."""

    def ask(self, application: Application, name: str, **more: Any) -> tuple[Answer, dict[str, Any]]:
        answer = application.answers.question.answer(
            Query(text=QUESTION, scope=application.auth.access.scope(name), **more)
        )
        found = state.rows(application, name, "episode")
        return answer, next(row for row in found if row["id"] == str(answer.query_id))

    @pytest.mark.parametrize("memory", ["off", "read"])
    def test_every_candidate_is_kept_best_first_shown_or_not(
        self, application: Application, towns: str, memory: str
    ) -> None:
        answer, kept = self.ask(application, towns, memory=memory)
        ids = state.passages(application, towns)

        assert len(answer.passages) == 5
        assert [ids[passage.passage_id] for passage in answer.passages] == kept["ranked"][:5]
        assert sorted(kept["ranked"]) == sorted(ids.values())
        best = np.frombuffer(bytes.fromhex(kept["best_features"].removeprefix("\\x")), dtype="<f4")
        assert len(best) == len(PASSAGE_FEATURES)
        score = best.astype(np.float64) @ state.prior_of(application, towns).prior.mean
        assert score == pytest.approx(answer.passages[0].score, abs=1e-4)

    @pytest.mark.wing("published")
    def test_paper_profile_keeps_no_candidates_and_learns_no_weights(
        self, application: Application, towns: str
    ) -> None:
        answer, kept = self.ask(application, towns, profile="paper")
        assert (kept["ranked"], kept["best_features"]) == (None, None)
        state.judge(
            application, towns, answer.query_id, list_first_sentences(application, towns, "Towna"), wait=True
        )

        assert state.load_weights(application, towns) is None

    def test_ranking_with_recall_teaches_no_weights(self, application: Application, towns: str) -> None:
        supporting = list_first_sentences(application, towns, "Townc")
        first, kept = self.ask(application, towns)
        assert kept["ranked"]
        state.judge(application, towns, first.query_id, supporting, wait=True)
        learned = load_evidence(application, towns)
        again, recalled = self.ask(application, towns)
        assert (recalled["ranked"], recalled["best_features"]) == (None, None)
        state.judge(application, towns, again.query_id, supporting, wait=True)

        assert_array_equal(load_evidence(application, towns).information, learned.information)
        assert list(audit(application, towns)) == [min(state.event_statuses(application, towns))]
        # What is not read has no say.
        unread, kept = self.ask(application, towns, memory="off")
        state.judge(application, towns, unread.query_id, supporting, wait=True)
        assert kept["ranked"]
        assert len(audit(application, towns)) == 2
