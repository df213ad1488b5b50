"""Judges: noises of their own, and caps on what one of them may move in a day."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from engram.composition.container import Application
from tests.support import state, undo

QUESTION = "Where was Marie Curie born?"


def support(application: Application, name: str, sentence: int) -> dict[str, Any]:
    (row,) = [r for r in state.rows(application, name, "question_support") if r["sentence_id"] == sentence]
    return row


def memory(application: Application, name: str, sentence: int) -> dict[str, Any]:
    (row,) = [
        r for r in state.rows(application, name, "sentence_memory", undo.INCIDENTAL) if r["sentence_id"] == sentence
    ]
    return row


def say(
    application: Application,
    name: str,
    judge: str,
    sentence: int,
    target: int,
    times: int = 1,
    day: str | None = None,
) -> list[Any]:
    """One judge's word on one sentence, said and applied so often; what each changed."""
    query_id = state.add_episode(application, name, QUESTION, [])
    changes = []
    for _ in range(times):
        named: dict[str, Any] = {"supporting": [sentence]} if target else {"rejected": [sentence]}
        receipt = state.judge(application, name, query_id, judge=judge, partial=True, **named)
        if day:
            state.on_day(application, name, receipt.event.id, day)
        undo.apply(application, name, [receipt.event.id])
        changes.append(
            application.learning.verdicts.read(application.auth.access.scope(name), receipt.event.id).changes
        )
    return changes


@pytest.fixture
def born(application: Application, curie: str) -> int:
    return state.list_sentence_ids(application, curie)[0]


class TestJudgeNoise:
    @pytest.mark.wing("published")
    def test_a_judge_counts_by_its_own(self, application: Application, curie: str, born: int) -> None:
        application.learning.judges.set(application.auth.access.scope(curie), "noisy", positive=4.0)
        (changes,) = say(application, curie, "noisy", born, 1)
        assert {(row.channel, row.observation_noise, row.gain) for row in changes} == {
            ("task", 4.0, 0.2),
            ("recall", 4.0, 0.2),
        }
        (others,) = say(application, curie, "other", born, 1)
        assert {row.observation_noise for row in others} == {application.models.noise.positive}

    def test_a_verdict_keeps_the_constants_it_was_applied_with(
        self, application: Application, curie: str, born: int
    ) -> None:
        application.learning.judges.set(
            application.auth.access.scope(curie), "noisy", positive=4.0, share=0.5, weight_verdicts=7
        )
        say(application, curie, "noisy", born, 1)
        application.learning.judges.set(application.auth.access.scope(curie), "noisy", positive=9.0)
        undo.assert_verified(application, curie)
        (event,) = state.rows(application, curie, "feedback_event")
        assert {
            "observation_noise_positive": 4.0,
            "observation_noise_negative": application.models.noise.negative,
            "process_noise": application.models.noise.process,
            "daily_share": 0.5,
            "contested_share": application.models.noise.contested,
            "daily_weight_verdicts": 7,
        }.items() <= event.items()


class TestOneMemoryADay:
    @pytest.mark.wing("published")
    def test_a_repeated_message_does_not_take_over(self, application: Application, curie: str, born: int) -> None:
        application.learning.judges.set(application.auth.access.scope(curie), "loud", share=0.8)
        changes = say(application, curie, "loud", born, 1, times=6)
        gains = [row.gain for rows in changes for row in rows if row.channel == "recall"]
        assert gains[0] > gains[1] > 0
        assert gains[2:] == [0.0] * 4
        assert support(application, curie, born)["support"] == pytest.approx(0.8)
        still = memory(application, curie, born)
        say(application, curie, "loud", born, 1)
        now = memory(application, curie, born)
        assert (now["vector"], now["perplexity"]) == (still["vector"], still["perplexity"])
        assert now["update_count"] == still["update_count"] + 1
        undo.assert_verified(application, curie)

    def test_the_next_day_it_is_heard_again(self, application: Application, curie: str, born: int) -> None:
        application.learning.judges.set(application.auth.access.scope(curie), "loud", share=0.8)
        say(application, curie, "loud", born, 1, times=4, day="2026-05-01")
        before = support(application, curie, born)
        (late,) = say(application, curie, "loud", born, 1, day="2026-04-30")
        assert {row.gain for row in late} == {0.0}
        (fresh,) = say(application, curie, "loud", born, 1, day="2026-05-02")
        assert all(row.gain > 0 for row in fresh)
        assert support(application, curie, born)["support"] > before["support"]
        undo.assert_verified(application, curie)


class TestContradictedJudges:
    def test_one_judge_does_not_undo_what_another_taught(
        self, application: Application, curie: str, born: int
    ) -> None:
        say(application, curie, "honest", born, 1)
        before = support(application, curie, born)["support"]
        say(application, curie, "hostile", born, 0, times=20)
        share = application.models.noise.contested
        assert support(application, curie, born)["support"] == pytest.approx(before * (1 - share))
        undo.assert_verified(application, curie)

    def test_other_questions_are_no_contradiction(self, application: Application, curie: str, born: int) -> None:
        say(application, curie, "honest", born, 1)
        query_id = state.add_episode(application, curie, "What flows into the Baltic Sea?", [])
        receipt = state.judge(application, curie, query_id, rejected=[born], judge="other", partial=True, wait=True)
        assert receipt.changes
        assert all(row.gain > application.models.noise.contested for row in receipt.changes)


class TestRankingVerdictCap:
    def give_weight_verdicts(
        self, application: Application, name: str, judge: str, count: int, days: Sequence[str] = ("2026-05-01",)
    ) -> list[int]:
        """Events that each teach the ranking something of their own."""
        passages = list(state.passages(application, name).values())
        everything = state.list_sentence_ids(application, name)
        events = []
        for number in range(count):
            query_id = state.add_episode(
                application,
                name,
                f"{QUESTION} {number}",
                everything[:2],
                ranked=passages,
                answer_features=state.draw_answer(number),
            )
            event = state.judge(application, name, query_id, everything[:1], judge=judge).event.id
            state.on_day(application, name, event, days[number % len(days)])
            events.append(event)
        return events

    def list_counted(self, application: Application, name: str) -> list[int]:
        """The events that teach weights."""
        return sorted(row["event_id"] for row in state.weight_rows(application, name) if row["counted"])

    @pytest.mark.parametrize("batch", [1, 3, 8])
    def test_so_many_verdicts_a_day_teach_it(self, application: Application, curie: str, batch: int) -> None:
        application.learning.judges.set(application.auth.access.scope(curie), "busy", weight_verdicts=2)
        days = ("2026-05-01", "2026-05-02")
        busy = self.give_weight_verdicts(application, curie, "busy", 8, days)
        undo.apply(application, curie, busy, batch)
        assert self.list_counted(application, curie) == busy[:4]
        learned = state.load_weights(application, curie)
        assert learned is not None
        assert learned.events == 4
        undo.assert_verified(application, curie)
        calm = self.give_weight_verdicts(application, curie, "calm", 3)
        undo.apply(application, curie, calm, batch)
        assert self.list_counted(application, curie) == [*busy[:4], *calm]

    def test_judge_without_weight_verdicts_teaches_no_weights(self, application: Application, curie: str) -> None:
        application.learning.judges.set(application.auth.access.scope(curie), "mute", weight_verdicts=0)
        undo.apply(application, curie, self.give_weight_verdicts(application, curie, "mute", 3))
        assert state.load_weights(application, curie) is None
        assert len(state.weight_rows(application, curie)) == 3
        undo.assert_verified(application, curie)

    def test_once_one_is_revoked_the_next_counts(self, application: Application, curie: str) -> None:
        application.learning.judges.set(application.auth.access.scope(curie), "busy", weight_verdicts=2)
        events = self.give_weight_verdicts(application, curie, "busy", 5)
        undo.apply(application, curie, events)
        application.learning.revocation.revoke(application.auth.access.scope(curie), events[0])
        assert self.list_counted(application, curie) == events[1:3]
        undo.assert_verified(application, curie)
        after = undo.list_learned(application, curie)
        undo.forgotten(application, curie)
        undo.apply(application, curie, events[1:])
        undo.assert_same(after, undo.list_learned(application, curie))

    def test_contested_verdict_teaches_no_weights(self, application: Application, curie: str) -> None:
        passages = list(state.passages(application, curie).values())
        first, second, *_ = everything = state.list_sentence_ids(application, curie)
        query_id = state.add_episode(
            application,
            curie,
            QUESTION,
            everything[:2],
            ranked=passages,
        )
        honest = state.judge(application, curie, query_id, [first], judge="honest").event.id
        hostile = state.judge(application, curie, query_id, [second], rejected=[first], judge="hostile").event.id
        agreeing = state.judge(application, curie, query_id, [first], judge="agreeing").event.id
        undo.apply(application, curie, [honest, hostile, agreeing])
        assert self.list_counted(application, curie) == [honest, agreeing]
        undo.assert_verified(application, curie)

        # Once nobody contradicts it, it counts.
        application.learning.revocation.revoke(application.auth.access.scope(curie), honest)
        application.learning.revocation.revoke(application.auth.access.scope(curie), agreeing)
        assert self.list_counted(application, curie) == [hostile]
        undo.assert_verified(application, curie)
        after = undo.list_learned(application, curie)
        undo.forgotten(application, curie)
        undo.apply(application, curie, [hostile])
        undo.assert_same(after, undo.list_learned(application, curie))

    def test_a_row_that_counts_though_it_must_not_is_found(self, application: Application, curie: str) -> None:
        application.learning.judges.set(application.auth.access.scope(curie), "busy", weight_verdicts=1)
        undo.apply(application, curie, self.give_weight_verdicts(application, curie, "busy", 2))
        with application.database.write() as writer:
            writer.execute(
                "UPDATE weight_audit SET counted = true WHERE collection_id = %(c)s",
                {"c": state.collection_id(application, curie)},
            )
        assert not application.revocation.verification.verify(application.auth.access.scope(curie)).clean


@pytest.mark.parametrize("seed", [1, 2])
def test_under_caps_too_it_is_as_if_revoked_verdicts_had_never_come(
    application: Application, curie: str, seed: int
) -> None:
    draw = random.Random(seed)
    application.learning.judges.set(
        application.auth.access.scope(curie), "careful", share=0.6, contested=0.05, weight_verdicts=3
    )
    application.learning.judges.set(
        application.auth.access.scope(curie), "careless", share=0.9, contested=0.3, weight_verdicts=2, negative=3.0
    )
    events = undo.stream(application, curie, 40, seed)
    for event in events:
        state.on_day(application, curie, event, draw.choice(["2026-05-01", "2026-05-02"]))
    undo.apply(application, curie, events, batch=draw.choice([1, 5, 40]))
    undo.assert_verified(application, curie)
    taken = draw.sample(events, 12)
    for event in taken:
        application.learning.revocation.revoke(application.auth.access.scope(curie), event)
    after = undo.list_learned(application, curie)
    undo.assert_verified(application, curie)

    undo.forgotten(application, curie)
    undo.apply(application, curie, [event for event in events if event not in taken])
    undo.assert_same(after, undo.list_learned(application, curie))
    assert any(row["gain"] == 0 for row in after["memory_audit"])
    assert not all(row["counted"] for row in after["weight_audit"])


class TestSettings:
    def test_judges_are_listed_with_their_verdicts(self, application: Application, curie: str, born: int) -> None:
        say(application, curie, "b", born, 1, times=2)
        (event,) = [row["id"] for row in state.rows(application, curie, "feedback_event")][:1]
        application.learning.revocation.revoke(application.auth.access.scope(curie), event)
        application.learning.judges.set(application.auth.access.scope(curie), "a", negative=2.0)
        say(application, curie, "c", born, 1)
        views = application.learning.judges.page(application.auth.access.scope(curie), "", 10)
        assert [(v.judge.name, v.judge.applied, v.judge.revoked) for v in views] == [
            ("a", 0, 0),
            ("b", 1, 1),
            ("c", 1, 0),
        ]
        assert [v.constants.negative for v in views] == [2.0, *[application.models.noise.negative] * 2]
        assert [
            v.judge.name for v in application.learning.judges.page(application.auth.access.scope(curie), "a", 1)
        ] == ["b"]
