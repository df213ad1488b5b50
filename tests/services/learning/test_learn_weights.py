"""What verdicts teach a collection about its ranking weights: which terms they add, once each, and to whom."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from engram.composition.container import Application, Servers
from engram.core.ranking import ranking_weights
from engram.core.ranking.passage_scores import FEATURES
from engram.core.ranking.ranking_weights import Prior, WeightEvidence, WeightObservation
from engram.providers.ranking_prior import RankingPriors
from engram.services.learning.incoming_verdict import NamedSentence, Verdict
from engram.services.learning.verdict_learning import LearningService
from engram.services.learning.weight_teaching import WeightTeaching
from engram.services.retrieval.answer import Answer
from engram.services.retrieval.query import Query
from engram.storage.learning.learned_weights import LearnedWeights
from engram_evaluation.commands.evaluate_command import build_variation
from engram_evaluation.learning_variations import Variation
from tests.conftest import Ingest
from tests.support import state

TOWNS = [f"Town{letter}" for letter in "abcdefghijkl"]
QUESTION = "Which river does Towna lie on?"


def town(name: str) -> Mapping[str, Any]:
    return {"id": name, "title": name, "text": f"{name} lies on the {name} River. {name} is old."}


@pytest.fixture
def towns(ingest: Ingest, collection: str) -> str:
    """A collection with twelve passages of two sentences each."""
    assert ingest(*map(town, TOWNS))["created"] == len(TOWNS)
    return collection


def add_episode(
    application: Application,
    name: str,
    activated: Sequence[int] = (),
    ranked: Sequence[str] = TOWNS,
    seed: int = 0,
    columns: int = len(FEATURES),
) -> UUID:
    """An episode that ranked these passages, with made-up features."""
    ids = state.passages(application, name)
    features = state.draw_features(len(ranked), seed)[:, :columns]
    return state.add_episode(
        application, name, QUESTION, activated, ranked=[ids[town] for town in ranked], features=features
    )


def list_first_sentences(application: Application, name: str, *named: str) -> list[int]:
    """The first sentence of each passage."""
    return [min(state.sentences(application, name, passage).values()) for passage in named]


def observe_expected(
    application: Application,
    supported: Sequence[str],
    among: Sequence[str] = TOWNS,
    seed: int = 0,
    noise: float = 0.5,
) -> WeightObservation:
    """What a verdict says that supports some of the passages it speaks of."""
    features = state.draw_features(len(TOWNS), seed).astype(np.float64)[[TOWNS.index(town) for town in among]]
    mask = np.array([town in supported for town in among])
    seen = ranking_weights.observe(
        ranking_weights.CandidateComparison(features, mask, noise), application.priors.encyclopedic.prior
    )
    assert seen is not None
    return seen


def load_evidence(application: Application, name: str) -> WeightEvidence:
    learned = state.load_weights(application, name)
    assert learned is not None
    return learned.evidence


def audit(application: Application, name: str) -> dict[int, dict[str, Any]]:
    return {row["event_id"]: row for row in state.weight_rows(application, name)}


def assert_same(found: WeightEvidence, wanted: WeightEvidence) -> None:
    assert_allclose(found.information, wanted.information, rtol=1e-12, atol=1e-12)
    assert_allclose(found.precision, wanted.precision, rtol=1e-12, atol=1e-12)


def sum_of_audit(application: Application, name: str) -> WeightEvidence:
    size = len(FEATURES)
    total = ranking_weights.build_empty_evidence(size)
    for row in audit(application, name).values():
        total += WeightEvidence(np.array(row["information"]), np.array(row["precision"]).reshape(size, size))
    return total


class TestOneVerdict:
    def test_it_adds_what_it_says_of_its_candidates(self, application: Application, towns: str) -> None:
        supporting = list_first_sentences(application, towns, "Townc", "Towne")
        receipt = state.judge(application, towns, add_episode(application, towns), supporting, wait=True)

        wanted = observe_expected(application, ["Townc", "Towne"])
        assert_array_equal(load_evidence(application, towns).information, wanted.evidence.information)
        assert_array_equal(load_evidence(application, towns).precision, wanted.evidence.precision)
        row = audit(application, towns)[receipt.event.id]
        assert row["prior"] == state.prior_of(application, towns).name
        assert row["observation_noise"] == 0.5
        assert row["surprise"] == wanted.surprise
        assert_same(sum_of_audit(application, towns), wanted.evidence)

    def test_an_unsure_judge_teaches_less(self, application: Application, towns: str) -> None:
        supporting = list_first_sentences(application, towns, "Townc")
        state.judge(application, towns, add_episode(application, towns), supporting, confidence=0.25, wait=True)

        assert_same(
            load_evidence(application, towns), observe_expected(application, ["Townc"], noise=0.5 / 0.25).evidence
        )

    def test_a_passage_is_supported_if_one_of_its_sentences_is(self, application: Application, towns: str) -> None:
        river, old = sorted(state.sentences(application, towns, "Townc").values())
        query_id = add_episode(application, towns, activated=[river, old])
        state.judge(application, towns, query_id, [old], rejected=[river], wait=True)

        assert_same(load_evidence(application, towns), observe_expected(application, ["Townc"]).evidence)

    def test_unranked_passage_adds_no_comparison(self, application: Application, towns: str) -> None:
        query_id = add_episode(application, towns, ranked=TOWNS[:8])
        everything = list_first_sentences(application, towns, "Townc", "Townk")  # the second one was not found
        state.judge(application, towns, query_id, everything, wait=True)

        assert_same(load_evidence(application, towns), observe_expected(application, ["Townc"], TOWNS[:8]).evidence)

    def test_a_deleted_passage_can_still_be_a_rival(self, application: Application, towns: str) -> None:
        event = state.judge(
            application,
            towns,
            add_episode(application, towns),
            list_first_sentences(application, towns, "Townc", "Towne"),
        ).event.id
        for gone in ("Towne", "Townl"):
            application.ingest.delete_passage(application.access.scope(towns), gone)
        application.learn.apply(state.collection_id(application, towns), [event])

        assert_same(load_evidence(application, towns), observe_expected(application, ["Townc"]).evidence)

    @pytest.mark.parametrize(
        "outcome", ["nothing", "only what was not ranked", "all that was ranked", "no features"]
    )
    def test_verdict_without_comparison_teaches_no_weights(
        self, application: Application, towns: str, outcome: str
    ) -> None:
        supporting: list[int] = []
        query_id = add_episode(application, towns, ranked=TOWNS[:6])
        if outcome == "only what was not ranked":
            supporting = list_first_sentences(application, towns, "Townl")
        elif outcome == "all that was ranked":
            supporting = list_first_sentences(application, towns, *TOWNS[:6])
        elif outcome == "no features":
            supporting = list_first_sentences(application, towns, "Townc")
            query_id = state.add_episode(application, towns, QUESTION, supporting)
        receipt = state.judge(application, towns, query_id, supporting, wait=True)

        assert receipt.event.status == "applied"
        assert state.load_weights(application, towns) is None
        assert audit(application, towns) == {}

    def test_features_of_another_version_are_passed_over(self, application: Application, towns: str) -> None:
        supporting = list_first_sentences(application, towns, "Townc")
        older = add_episode(application, towns, columns=3)
        events = [
            state.judge(application, towns, query_id, supporting).event.id
            for query_id in (older, add_episode(application, towns))
        ]
        assert application.learn.apply(state.collection_id(application, towns), events) == 2

        assert list(audit(application, towns)) == events[1:]
        assert_same(load_evidence(application, towns), observe_expected(application, ["Townc"]).evidence)


class TestPartialVerdicts:
    def test_they_compare_the_named_passages_only(self, application: Application, towns: str) -> None:
        named = TOWNS[2:8]
        everything = list_first_sentences(application, towns, *TOWNS)
        state.judge(
            application,
            towns,
            add_episode(application, towns, activated=everything),
            list_first_sentences(application, towns, named[0]),
            rejected=list_first_sentences(application, towns, *named[1:]),
            partial=True,
            wait=True,
        )

        only_named = observe_expected(application, named[:1], named).evidence
        assert_same(load_evidence(application, towns), only_named)
        assert (
            np.abs(only_named.information - observe_expected(application, named[:1]).evidence.information).max()
            > 1e-3
        )

    @pytest.mark.parametrize("rejected", [0, ranking_weights.SPARED_RIVALS])
    def test_too_few_rivals_teach_no_weights(self, application: Application, towns: str, rejected: int) -> None:
        query_id = add_episode(application, towns, activated=list_first_sentences(application, towns, *TOWNS))
        state.judge(
            application,
            towns,
            query_id,
            list_first_sentences(application, towns, "Towna"),
            rejected=list_first_sentences(application, towns, *TOWNS[1 : 1 + rejected]),
            partial=True,
            wait=True,
        )

        assert state.load_weights(application, towns) is None


class TestTermSums:
    def events(self, application: Application, name: str, count: int) -> list[int]:
        return [
            state.judge(
                application,
                name,
                add_episode(application, name, seed=number),
                list_first_sentences(application, name, *random.Random(number).sample(TOWNS, 2)),
            ).event.id
            for number in range(count)
        ]

    def sum_expected(self, application: Application, count: int) -> WeightEvidence:
        total = ranking_weights.build_empty_evidence(len(FEATURES))
        for number in range(count):
            total += observe_expected(application, random.Random(number).sample(TOWNS, 2), seed=number).evidence
        return total

    def test_verdicts_add_up_and_each_has_its_row(self, application: Application, towns: str) -> None:
        events = self.events(application, towns, 6)
        target = state.collection_id(application, towns)
        application.learn.apply(target, events[:1])
        application.learn.apply(target, events[1:])

        assert_same(load_evidence(application, towns), self.sum_expected(application, 6))
        assert_same(load_evidence(application, towns), sum_of_audit(application, towns))
        assert sorted(audit(application, towns)) == events
        learned = state.load_weights(application, towns)
        assert learned is not None
        assert learned.events == 6

    def test_one_event_counts_once_however_often_it_is_sent_or_applied(
        self, application: Application, towns: str
    ) -> None:
        query_id, supporting = add_episode(application, towns), list_first_sentences(application, towns, "Townc")
        for _ in range(3):
            receipt = state.judge(application, towns, query_id, supporting, key="once", wait=True)
        target = state.collection_id(application, towns)
        state.together(*[lambda: application.learn.apply(target, [receipt.event.id])] * 4)

        assert_same(load_evidence(application, towns), observe_expected(application, ["Townc"]).evidence)
        assert list(audit(application, towns)) == [receipt.event.id]

    def test_the_same_event_by_several_threads_counts_once(self, application: Application, towns: str) -> None:
        target = state.collection_id(application, towns)
        for event in self.events(application, towns, 4):
            state.together(*[lambda event=event: application.learn.apply(target, [event])] * 2)

        assert_same(load_evidence(application, towns), self.sum_expected(application, 4))

    def test_different_events_by_several_threads_add_up(self, application: Application, towns: str) -> None:
        target = state.collection_id(application, towns)
        events = self.events(application, towns, 24)

        def build_applier(mine: Sequence[int]) -> Callable[[], None]:
            return lambda: [application.learn.apply(target, [event]) for event in mine] and None

        state.together(*(build_applier(events[start::4]) for start in range(4)))

        assert set(state.event_statuses(application, towns).values()) == {"applied"}
        assert_same(load_evidence(application, towns), self.sum_expected(application, 24))
        assert_same(sum_of_audit(application, towns), self.sum_expected(application, 24))

    def test_a_verdict_can_be_taken_back_with_its_row(self, application: Application, towns: str) -> None:
        events = self.events(application, towns, 5)
        application.learn.apply(state.collection_id(application, towns), events)
        row, size = audit(application, towns)[events[-1]], len(FEATURES)
        whole, term = load_evidence(application, towns), np.array(row["precision"]).reshape(size, size)

        left = WeightEvidence(whole.information - np.array(row["information"]), whole.precision - term)
        assert_same(left, self.sum_expected(application, 4))

    def test_a_failed_batch_leaves_no_term(
        self, application: Application, towns: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (event,) = self.events(application, towns, 1)

        def fail(*_: object) -> None:
            raise RuntimeError("no power")

        with monkeypatch.context() as patch:
            patch.setattr("engram.storage.feedback_log.feedback_events.mark_applied", fail)
            assert application.learn.apply(state.collection_id(application, towns), [event]) == 0
        assert state.load_weights(application, towns) is None
        assert audit(application, towns) == {}

        assert application.learn.apply(state.collection_id(application, towns), [event]) == 1
        assert_same(load_evidence(application, towns), self.sum_expected(application, 1))


def scores(
    application: Application, name: str, text: str = "Which old town lies on a river?", **more: Any
) -> dict[str, float]:
    answer = application.ask.query(Query(text=text, scope=application.access.scope(name), top_k=len(TOWNS), **more))
    return {passage.passage_id: passage.score for passage in answer.passages}


def leave_only_weights(application: Application, name: str) -> None:
    """Take away what else verdicts taught."""
    with application.database.write() as writer:
        target = {"c": state.collection_id(application, name)}
        for table in ("sentence_memory", "question_support", "question"):
            writer.execute(f"DELETE FROM {table} WHERE collection_id = %(c)s", target)


class TestLearningJudges:
    def teach(self, application: Application, name: str, seed: int = 0) -> None:
        """Verdicts on made-up features and no sentence that a question is ranked by."""
        for number in range(3):
            supporting = list_first_sentences(application, name, "Townc")
            state.judge(
                application, name, add_episode(application, name, seed=seed + number), supporting, wait=True
            )
        leave_only_weights(application, name)

    def test_the_weights_of_one_collection_move_and_no_others(
        self, application: Application, towns: str, ingest: Ingest
    ) -> None:
        other = f"{towns}-other"
        ingest(*map(town, TOWNS), into=other)
        before = scores(application, towns), scores(application, other)
        self.teach(application, towns)

        assert state.load_weights(application, other) is None
        assert scores(application, other) == before[1]
        moved = scores(application, towns)
        assert max(abs(moved[name] - before[0][name]) for name in TOWNS) > 1e-3

    def test_without_memory_the_prior_ranks(self, application: Application, towns: str) -> None:
        before = scores(application, towns)
        assert scores(application, towns, memory="off") == before
        self.teach(application, towns)

        assert scores(application, towns, memory="off") == before
        assert scores(application, towns, memory="read") != before

    def test_passages_are_scored_by_the_learned_mean(self, application: Application, towns: str) -> None:
        self.teach(application, towns)
        names, features = application.retrieve.features(
            Query(text="Which old town lies on a river?", scope=application.access.scope(towns), top_k=len(TOWNS))
        )
        evidence = load_evidence(application, towns)
        mean = ranking_weights.compute_confident_means(
            state.prior_of(application, towns).prior, evidence.information, evidence.precision
        )

        found = scores(application, towns)
        assert {name: found[name] for name in names} == {
            name: pytest.approx(value, abs=1e-9) for name, value in zip(names, features @ mean, strict=True)
        }

    def test_sums_of_another_prior_are_not_mixed_with_these(
        self, application: Application, addresses: Servers, towns: str
    ) -> None:
        ours = state.prior_of(application, towns).prior
        turned = Prior(-ours.mean, 2.0 * ours.precision)
        other = replace(state.prior_of(application, towns), name="another", prior=turned)
        service = LearningService(
            application.database,
            application.noise,
            application.models.learning_rule,
            WeightTeaching(lambda _kind: other.priors),
            application.attribution,
            application.evolve,
            application.question_spreads,
            max_attempts=5,
        )
        first, second = (
            state.judge(
                application,
                towns,
                add_episode(application, towns),
                list_first_sentences(application, towns, "Townc"),
            ).event.id
            for _ in range(2)
        )
        target = state.collection_id(application, towns)
        before = scores(application, towns, memory="off")
        service.apply(target, [first])
        assert state.load_weights(application, towns) is None
        application.learn.apply(target, [second])

        assert_same(load_evidence(application, towns), observe_expected(application, ["Townc"]).evidence)
        theirs = state.load_weights(application, towns, "another")
        assert theirs is not None
        assert theirs.events == 1
        assert np.abs(theirs.evidence.information - load_evidence(application, towns).information).max() > 1e-3
        assert {event: row["prior"] for event, row in audit(application, towns).items()} == {
            first: "another",
            second: state.prior_of(application, towns).name,
        }
        leave_only_weights(application, towns)
        elsewhere = build_variation(application, addresses, Variation("x"))
        third = replace(state.prior_of(application, towns), name="a third")
        elsewhere.models.priors = RankingPriors(third, third)
        assert scores(elsewhere, towns) == before
        elsewhere.close()

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
        other, untouched = f"{towns}-other", scores(application, towns)
        ingest(*map(town, TOWNS), into=other)
        for name in (towns, other):
            self.teach(application, name)
        kept = load_evidence(application, other)
        application.forget.reset(application.access.scope(towns))

        assert state.snapshot(application, towns, state.WEIGHTS) == {table: [] for table in state.WEIGHTS}
        assert scores(application, towns) == untouched
        assert_same(load_evidence(application, other), kept)

    def test_a_deleted_collection_takes_them_along(self, application: Application, towns: str) -> None:
        self.teach(application, towns)
        target = {"c": state.collection_id(application, towns)}
        application.ingest.delete_collection(application.access.scope(towns))

        with application.database.read() as reader:
            for table in (*state.WEIGHTS, "episode"):
                assert reader.scalar(f"SELECT count(*) FROM {table} WHERE collection_id = %(c)s", target) == 0


class TestEpisodes:
    """What an episode keeps for verdicts on the ranking."""

    def ask(self, application: Application, name: str, **more: Any) -> tuple[Answer, dict[str, Any]]:
        answer = application.ask.query(Query(text=QUESTION, scope=application.access.scope(name), **more))
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
        stored = np.frombuffer(bytes.fromhex(kept["features"].removeprefix("\\x")), dtype="<f4")
        features = stored.reshape(len(kept["ranked"]), len(FEATURES)).astype(np.float64)
        ranked = features @ state.prior_of(application, towns).prior.mean
        assert (np.diff(ranked) <= 1e-5).all()
        assert ranked[:5] == pytest.approx([passage.score for passage in answer.passages], abs=1e-4)

    def test_paper_profile_stores_no_features_and_learns_no_weights(
        self, application: Application, towns: str
    ) -> None:
        answer, kept = self.ask(application, towns, profile="paper")
        assert (kept["ranked"], kept["features"]) == (None, None)
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
        assert (recalled["ranked"], recalled["features"]) == (None, None)
        state.judge(application, towns, again.query_id, supporting, wait=True)

        assert_same(load_evidence(application, towns), learned)
        assert list(audit(application, towns)) == [min(state.event_statuses(application, towns))]
        # What is not read has no say.
        unread, kept = self.ask(application, towns, memory="off")
        state.judge(application, towns, unread.query_id, supporting, wait=True)
        assert kept["ranked"]
        assert len(audit(application, towns)) == 2

    def test_a_verdict_on_a_real_episode_is_the_term_of_its_features(
        self, application: Application, towns: str
    ) -> None:
        answer, kept = self.ask(application, towns)
        stored = np.frombuffer(bytes.fromhex(kept["features"].removeprefix("\\x")), dtype="<f4")
        features = stored.reshape(len(kept["ranked"]), -1).astype(np.float64)
        passage = state.passages(application, towns)["Townk"]
        verdict = Verdict(
            query_id=answer.query_id,
            scope=application.access.scope(towns),
            supporting=[NamedSentence(passage_id="Townk", text="Townk lies on the Townk River.")],
        )
        application.feedback.accept(verdict, f"weights-{towns}", wait=True)

        seen = ranking_weights.observe(
            ranking_weights.CandidateComparison(features, np.array(kept["ranked"]) == passage, 0.5),
            state.prior_of(application, towns).prior,
        )
        assert seen is not None
        assert_same(load_evidence(application, towns), seen.evidence)
        assert isinstance(state.load_weights(application, towns), LearnedWeights)


SMELTERS = [
    "Arvika",
    "Brenta",
    "Corvo",
    "Delmar",
    "Elvira",
    "Fornax",
    "Galdo",
    "Hestia",
    "Ilmen",
    "Jarosz",
    "Kelso",
]
NAMESAKES = ("song", "novel", "ship", "opera", "horse", "film", "locomotive")


def test_verdicts_on_some_questions_help_another_one(
    application: Application, ingest: Ingest, collection: str
) -> None:
    """Here a page that is called like the thing asked for is not about it, whatever other corpora are like."""
    bodies = [
        {"id": f"{name} {kind}", "title": name, "text": f"{name} is a {kind} of the year {1900 + number}."}
        for name in SMELTERS
        for number, kind in enumerate(NAMESAKES)
    ]
    bodies += [{"id": f"{name} works", "text": f"At {name} the company refines zinc."} for name in SMELTERS]
    ingest(*bodies)
    *judged, other = SMELTERS

    def ask_about(name: str, memory: Any = "read") -> tuple[Answer, int]:
        query = Query(
            text=f"What does the smelter of {name} produce?",
            scope=application.access.scope(collection),
            memory=memory,
            top_k=20,
        )
        answer = application.ask.query(query)
        return answer, [passage.passage_id for passage in answer.passages].index(f"{name} works")

    _, before = ask_about(other)
    assert before >= len(NAMESAKES)
    for name in judged:
        answer, _ = ask_about(name, "off")  # questions of one mould recall each other, which teaches nothing
        supporting = list_first_sentences(application, collection, f"{name} works")
        state.judge(application, collection, answer.query_id, supporting, wait=True)
    leave_only_weights(application, collection)

    assert len(audit(application, collection)) == len(judged)
    assert ask_about(other)[1] < before
    assert ask_about(other, "off")[1] == before
