"""What verdicts teach a collection about when an answer is enough, and what it then says of answers."""

from typing import Any
from uuid import UUID

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from engram.composition.container import Application
from engram.core.ranking import sufficiency
from engram.core.ranking.withholding_level import LEAST_CONFIRMED, compute_level
from engram.services.question.answer import Answer
from engram.services.question.query import Query
from engram.services.question.sufficiency import WithholdingLevel
from tests.support import state, undo

PAPER = pytest.param({"profile": "paper"}, marks=pytest.mark.wing("published"))

QUESTION = "Into which sea flows the river of Marie Curie's birthplace?"
ANSWER = state.draw_answer(7)
CURIE = ("curie", "warsaw", "vistula", "polonium", "tokyo")


def add_episode(application: Application, name: str, ranked: tuple[str, ...] = CURIE) -> UUID:
    """An episode that ranked these passages, with made-up features."""
    ids = state.passages(application, name)
    return state.add_episode(
        application,
        name,
        QUESTION,
        [],
        ranked=[ids[passage] for passage in ranked],
        answer_features=ANSWER,
    )


def list_first_sentences(application: Application, name: str, *named: str) -> list[int]:
    return [min(state.sentences(application, name, passage).values()) for passage in named]


def query(application: Application, name: str, text: str = QUESTION, **more: Any) -> Answer:
    return application.answers.question.answer(Query(text=text, scope=application.auth.access.scope(name), **more))


@pytest.mark.parametrize(
    ("supported", "verdict", "complete"),
    [
        (("curie", "vistula"), {}, 1),
        (("curie",), {"confidence": 0.25}, 1),
        (("curie",), {"retrieval_success": False}, 0),
        (("curie",), {"partial": True}, 1),
        ((), {}, None),
    ],
)
def test_a_verdict_adds_what_it_says(
    application: Application, curie: str, supported: tuple[str, ...], verdict: dict[str, Any], complete: int | None
) -> None:
    supporting = list_first_sentences(application, curie, *supported)
    receipt = state.judge(application, curie, add_episode(application, curie), supporting, wait=True, **verdict)

    learned = state.load_weights(application, curie, model="sufficiency")
    rows = state.weight_rows(application, curie, "sufficiency")
    assert receipt.event.status == "applied"
    if complete is None:
        assert (learned, rows) == (None, [])
        return
    noise = 0.5 / verdict.get("confidence", 1.0)
    wanted = sufficiency.build_counted_observation(
        ANSWER.astype(np.float64), complete, state.prior_of(application, curie).sufficiency, noise
    )
    assert learned is not None
    assert_array_equal(learned.evidence.information, wanted.evidence.information)
    assert_array_equal(learned.evidence.precision, wanted.evidence.precision)
    ((prior, surprise),) = [(row["prior"], row["surprise"]) for row in rows]
    assert (prior, surprise) == (state.prior_of(application, curie).sufficiency_name, wanted.surprise)


def test_evidence_beyond_the_first_five_was_not_enough(application: Application, curie: str) -> None:
    five = ("warsaw", "vistula", "polonium", "tokyo", "curie")
    for ranked, enough in ((five, 1), (five[:4], 0)):
        state.judge(
            application,
            curie,
            add_episode(application, curie, ranked),
            list_first_sentences(application, curie, "curie"),
            wait=True,
        )
        wanted = sufficiency.build_counted_observation(
            ANSWER.astype(np.float64), enough, state.prior_of(application, curie).sufficiency, 0.5
        )
        told = [row["surprise"] for row in state.weight_rows(application, curie, "sufficiency")]
        assert wanted.surprise in told


def test_a_revoked_verdict_never_was(application: Application, curie: str) -> None:
    events = [
        state.judge(
            application,
            curie,
            add_episode(application, curie),
            list_first_sentences(application, curie, *supported),
            wait=True,
        ).event.id
        for supported in (("curie",), ("warsaw", "vistula"), ("tokyo",))
    ]
    before = state.snapshot(application, curie, state.WEIGHTS, state.INCIDENTAL)
    query_id = add_episode(application, curie, CURIE[1:])
    late = state.judge(
        application, curie, query_id, list_first_sentences(application, curie, "curie"), wait=True
    ).event.id
    assert len(state.weight_rows(application, curie, "sufficiency")) == len(events) + 1
    undo.assert_verified(application, curie)
    application.learning.revocation.revoke(application.auth.access.scope(curie), late)

    assert state.snapshot(application, curie, state.WEIGHTS, state.INCIDENTAL) == before
    undo.assert_verified(application, curie)


class TestAutomaticLevel:
    """``min_sufficiency`` "auto" goes by the answers that verdicts confirmed."""

    def confirm(self, application: Application, name: str, count: int) -> list[int]:
        """Confirm answers with drawn features; their events."""
        passages, events = state.passages(application, name), []
        for seed in range(count):
            episode = state.add_episode(
                application,
                name,
                QUESTION,
                [],
                ranked=[passages[passage] for passage in CURIE],
                answer_features=state.draw_answer(seed),
            )
            supporting = list_first_sentences(application, name, "curie")
            judge = f"user {seed}"
            receipt = state.judge(application, name, episode, supporting, judge=judge, wait=True)
            events.append(receipt.event.id)
        return events

    def test_few_confirmed_answers_leave_the_level_of_the_prior(self, application: Application, curie: str) -> None:
        prior = state.prior_of(application, curie)
        for count in (0, LEAST_CONFIRMED - 1):
            self.confirm(application, curie, count)
            level = query(application, curie, min_sufficiency="auto").sufficiency_level
            assert level == WithholdingLevel(prior.sufficiency_level, "prior", count)

    def test_confirmed_answers_pull_the_level_to_their_lowest_tenth(
        self, application: Application, curie: str
    ) -> None:
        events = self.confirm(application, curie, LEAST_CONFIRMED + 1)
        application.learning.revocation.revoke(application.auth.access.scope(curie), events[-1])
        answer = query(application, curie, min_sufficiency="auto", include=frozenset({"trace"}))
        assert answer.trace is not None
        assert answer.trace.sufficiency is not None
        features = answer.trace.sufficiency.features
        weights = np.array([features[name].weight for name in sufficiency.ANSWER_FEATURES])
        rows = [state.draw_answer(seed).astype(np.float64) for seed in range(LEAST_CONFIRMED)]
        expected = compute_level(state.prior_of(application, curie).sufficiency_level, np.array(rows) @ weights)

        level = answer.sufficiency_level
        assert level is not None
        assert (level.source, level.confirmed) == ("verdicts", LEAST_CONFIRMED)
        assert level.value == pytest.approx(expected)
        assert answer.insufficient == ((answer.sufficiency or 0.0) < level.value)
        kept = application.answers.episodes.read(application.auth.access.scope(curie), answer.query_id)
        assert kept.answer["sufficiency_level"]["value"] == level.value
        without = query(application, curie, min_sufficiency="auto", memory="off").sufficiency_level
        assert without is not None
        assert (without.source, without.confirmed) == ("prior", 0)


class TestRealAnswers:
    def test_it_says_what_the_prior_says_of_its_features(self, application: Application, curie: str) -> None:
        answer = query(application, curie, include=frozenset({"trace"}))
        assert answer.trace is not None
        told = answer.trace.sufficiency
        assert told is not None
        values = np.array([told.features[name].value for name in sufficiency.ANSWER_FEATURES])
        weights = np.array([told.features[name].weight for name in sufficiency.ANSWER_FEATURES])

        assert_array_equal(weights, state.prior_of(application, curie).sufficiency.mean)
        assert answer.sufficiency == told.probability == told.model == sufficiency.probability(values, weights)
        assert (told.vouched, told.events) == (0.0, 0)
        (kept,) = state.rows(application, curie, "episode")
        stored = np.frombuffer(bytes.fromhex(kept["answer_features"].removeprefix("\\x")), dtype="<f4")
        assert_array_equal(stored, values.astype(np.float32))
        again = application.answers.episodes.read(application.auth.access.scope(curie), answer.query_id)
        assert again.answer["sufficiency"] == answer.sufficiency
        assert again.trace.sufficiency.probability == told.probability

    def test_verdict_changes_the_next_sufficiency(self, application: Application, curie: str) -> None:
        first = query(application, curie, include=frozenset({"trace"}))
        supporting = list_first_sentences(application, curie, "curie", "warsaw", "vistula")
        state.judge(application, curie, first.query_id, supporting, wait=True)
        with application.database.write() as writer:  # of all that it taught leave only the weights
            for table in ("sentence_memory", "question_support"):
                writer.execute(
                    f"DELETE FROM {table} WHERE collection_id = %(c)s",
                    {"c": state.collection_id(application, curie)},
                )
        learned = state.load_weights(application, curie, model="sufficiency")
        assert learned is not None
        prior = state.prior_of(application, curie).sufficiency
        weights = sufficiency.compute_learned_mean(prior, learned.evidence)
        again = query(application, curie, include=frozenset({"trace"}))
        assert again.trace is not None
        assert again.trace.sufficiency is not None

        told = again.trace.sufficiency
        assert_allclose([told.features[name].weight for name in sufficiency.ANSWER_FEATURES], weights)
        assert told.events == 1
        values = np.array([told.features[name].value for name in sufficiency.ANSWER_FEATURES])
        assert told.model == pytest.approx(sufficiency.probability(values, weights), abs=1e-12)
        assert query(application, curie, memory="off").sufficiency == first.sufficiency

    def test_supported_answer_gains_sufficiency(self, application: Application, curie: str) -> None:
        first = query(application, curie)
        supporting = list_first_sentences(application, curie, "curie", "warsaw", "vistula")
        state.judge(application, curie, first.query_id, supporting, wait=True)
        again = query(application, curie, include=frozenset({"trace"}))

        assert again.trace is not None
        assert again.trace.sufficiency is not None
        assert again.trace.sufficiency.vouched > 0.5
        assert (
            again.sufficiency
            == again.trace.sufficiency.remembered
            > max(again.trace.sufficiency.vouched, first.sufficiency or 1.0)
        )
        kept = {row["id"]: row["answer_features"] for row in state.rows(application, curie, "episode")}
        assert kept[str(again.query_id)] is None  # recall had a say in what was shown
        assert kept[str(first.query_id)] is not None

    @pytest.mark.parametrize("arm", [PAPER, {"strategy": "dense"}, {"strategy": "hybrid"}])
    def test_unranked_profile_has_no_sufficiency(
        self, application: Application, curie: str, arm: dict[str, Any]
    ) -> None:
        answer = query(application, curie, include=frozenset({"trace"}), **arm)
        assert answer.trace is not None
        assert (answer.sufficiency, answer.trace.sufficiency) == (None, None)
        (kept,) = state.rows(application, curie, "episode")
        assert kept["answer_features"] is None

    def test_an_answer_without_candidates_is_not_enough(self, application: Application, curie: str) -> None:
        answer = query(application, curie, filter={"there is": "none"}, include=frozenset({"trace"}))
        assert (answer.passages, answer.sufficiency) == ([], 0.0)
        assert answer.trace is not None
        assert answer.trace.sufficiency is not None
        assert answer.trace.sufficiency.features == {}
