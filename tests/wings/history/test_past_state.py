"""A past moment in a collection of its own: to the last bit what the live one was then, which is left alone."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from engram.composition.container import Application
from engram.storage.database import observe_sql
from engram.storage.learning import judges
from engram.storage.learning.judges import JudgeSettings
from engram.wings.published.parts import published_of
from tests.conftest import CURIE, Ingest
from tests.support import state, undo
from tests.support.past import BERLIN, corpus, list_learned, list_meant, now, rebuild_past


@pytest.fixture(params=[False, True], ids=["whole", "in pages"])
def pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever is done at a time, the outcome is the same."""
    if request.param:
        for name, size in (("PASSAGES", 2), ("ROWS", 3), ("EVENTS", 3), ("CHUNK", 2)):
            monkeypatch.setattr(f"engram.wings.history.services.past_copy.{name}", size)
        monkeypatch.setattr("engram.wings.history.services.restored_verdicts.BATCH", 2)
    return


class TestStates:
    @pytest.mark.usefixtures("pages")
    def test_at_present_it_is_the_live_collection(self, application: Application, taught: str) -> None:
        until = now(application)
        past = rebuild_past(application, taught, until)
        undo.assert_same(corpus(application, past.collection), corpus(application, taught))
        live = list_learned(application, taught)
        undo.assert_same(list_learned(application, past.collection), live)
        assert all(live.values())
        assert {row["channel"] for row in live["sentence_memory"]} == {"task", "time"}
        assert past.events == 16
        assert past.events_restored == 0
        assert (past.passages_since, past.passages_updated, past.sentences_gone) == (0, 0, 0)
        assert (past.key_generation, past.key_generation_certain) == (1, True)
        assert past.learned["sentence_memory"] == len(live["sentence_memory"])

    def test_no_statement_looks_into_both_the_copy_and_its_source(
        self, application: Application, taught: str
    ) -> None:
        """They may lie on two nodes."""
        asked: list[str] = []
        with observe_sql(lambda _, statement, __: asked.append(statement)):
            rebuild_past(application, taught, now(application))
        into = {name: {one for one in asked if f"= %({name})s" in one} for name in ("source", "target")}
        assert all(into.values())
        assert into["source"] & into["target"] == set()

    def test_before_the_first_verdict_nothing_is_learned(self, application: Application, curie: str) -> None:
        until = now(application)
        undo.apply(application, curie, undo.stream(application, curie, 12, seed=7), 4)
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        past = rebuild_past(application, curie, until)
        undo.assert_same(corpus(application, past.collection), corpus(application, curie))
        assert not any(
            rows for table, rows in list_learned(application, past.collection).items() if table != "serves"
        )
        assert (past.events, past.key_generation, past.key_generation_certain) == (0, 0, True)

    @pytest.mark.parametrize("seed", [1, 2])
    def test_between_two_batches_it_is_what_the_first_left(
        self, application: Application, curie: str, seed: int
    ) -> None:
        events = undo.stream(application, curie, 24, seed)
        undo.apply(application, curie, events[:8], 8)
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        undo.apply(application, curie, events[8:12], 2)
        then, until = list_learned(application, curie), now(application)
        undo.apply(application, curie, events[12:20], 5)
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        undo.apply(application, curie, events[20:], 5)
        after = list_learned(application, curie)
        past = rebuild_past(application, curie, until)
        undo.assert_same(list_learned(application, past.collection), then)
        undo.assert_same(list_learned(application, curie), after)
        assert (past.events, past.key_generation, past.key_generation_certain) == (12, 1, True)

    @pytest.mark.usefixtures("pages")
    @pytest.mark.parametrize("revoked", [slice(None), slice(1, 9, 3)], ids=["all", "some"])
    def test_verdict_revoked_later_counts_in_the_past_state(
        self, application: Application, curie: str, revoked: slice
    ) -> None:
        events = undo.stream(application, curie, 24, seed=3)
        undo.apply(application, curie, events[:8], 8)
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        undo.apply(application, curie, events[8:14], 2)
        then, until = list_meant(application, curie), now(application)
        for event in events[:14][revoked]:
            application.learning.revocation.revoke(application.auth.access.scope(curie), event)
        undo.apply(application, curie, events[14:], 5)  # questions and units that went come back under other ids
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        past = rebuild_past(application, curie, until)
        undo.assert_same(list_meant(application, past.collection), then)
        assert (past.events, past.events_restored) == (14, len(events[:14][revoked]))

    def test_verdict_revoked_earlier_is_absent_from_the_past_state(
        self, application: Application, taught: str
    ) -> None:
        for event in state.list_applied_order(application, taught)[::3]:
            application.learning.revocation.revoke(application.auth.access.scope(taught), event)
        past = rebuild_past(application, taught, now(application))
        undo.assert_same(list_learned(application, past.collection), list_learned(application, taught))
        assert past.events == 16 - 6

    def test_caps_are_those_of_the_day(self, application: Application, curie: str) -> None:
        target = state.collection_id(application, curie)
        with application.database.write() as writer:
            for judge in undo.JUDGES:
                settings = JudgeSettings(share=0.6, contested=0.2, weight_verdicts=2)
                judges.put(writer, target, judge, settings)
        events = undo.stream(application, curie, 14, seed=9)
        undo.apply(application, curie, events, 4)
        then, until = list_meant(application, curie), now(application)
        assert {row["counted"] for row in then["weight_audit"]} == {True, False}
        with application.database.write() as writer:
            for judge in undo.JUDGES:
                judges.put(writer, target, judge, JudgeSettings(positive=3.0, weight_verdicts=0))
        for event in events[:7]:
            application.learning.revocation.revoke(application.auth.access.scope(curie), event)
        past = rebuild_past(application, curie, until)
        undo.assert_same(list_meant(application, past.collection), then)

    def test_verdicts_that_waited_are_not_in_it(self, application: Application, curie: str) -> None:
        events = undo.stream(application, curie, 6, seed=5)
        undo.apply(application, curie, events[:3])
        until = now(application)
        application.learning.revocation.revoke(application.auth.access.scope(curie), events[4])  # never applied
        undo.apply(application, curie, events[5:])
        past = rebuild_past(application, curie, until)
        assert sorted(state.event_statuses(application, past.collection).items()) == [
            (event, "applied") for event in events[:3]
        ]


class TestKeys:
    def test_past_state_copies_no_due_evolution(self, application: Application, taught: str) -> None:
        target = {"c": state.collection_id(application, taught)}
        with application.database.write() as writer:
            writer.execute("UPDATE key_evolution SET due = 'pending' WHERE collection_id = %(c)s", target)
        past = rebuild_past(application, taught, now(application))
        with application.database.write() as writer:
            writer.execute("UPDATE key_evolution SET due = NULL WHERE collection_id = %(c)s", target)
        assert published_of(application).evolve.load_standing(
            application.auth.access.scope(past.collection)
        ) == replace(
            published_of(application).evolve.load_standing(application.auth.access.scope(taught)),
            collection=past.collection,
        )
        published_of(application).evolve.evolve(application.auth.access.scope(past.collection))
        published_of(application).evolve.evolve(application.auth.access.scope(taught))
        assert (
            list_learned(application, past.collection)["passage_key"]
            == list_learned(application, taught)["passage_key"]
        )

    def test_the_generation_that_served_is_told_by_what_came_after(
        self, application: Application, curie: str
    ) -> None:
        events = undo.stream(application, curie, 30, seed=8)
        moments, states = [], []

        def note() -> None:
            moments.append(now(application))
            states.append(list_learned(application, curie))

        for start in (0, 10):
            undo.apply(application, curie, events[start : start + 10], 5)
            published_of(application).evolve.evolve(application.auth.access.scope(curie))
            note()
        published_of(application).evolve.roll_back(application.auth.access.scope(curie), 1)
        note()
        undo.apply(application, curie, events[20:], 5)
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        note()
        pasts = [
            rebuild_past(application, curie, moment, into=f"{curie}-{at}") for at, moment in enumerate(moments)
        ]
        # Between the second evolution and the third, which went on from the first, there was a rollback.
        assert [(past.key_generation, past.key_generation_certain) for past in pasts] == [
            (1, True), (1, False), (1, False), (3, True),
        ]  # fmt: skip
        for at in (0, 2, 3):
            undo.assert_same(list_learned(application, pasts[at].collection), states[at])

    def test_a_rollback_that_nothing_came_after_serves(self, application: Application, taught: str) -> None:
        published_of(application).evolve.roll_back(application.auth.access.scope(taught), 0)
        past = rebuild_past(application, taught, now(application))
        undo.assert_same(list_learned(application, past.collection), list_learned(application, taught))
        assert (past.key_generation, past.key_generation_certain) == (0, False)


class TestCorpus:
    def test_passages_that_came_since_are_not_in_it(
        self, application: Application, taught: str, ingest: Ingest
    ) -> None:
        then, knew, until = corpus(application, taught), list_learned(application, taught), now(application)
        assert ingest(BERLIN, {"id": "empty", "title": None, "text": "..."})["created"] == 2
        berlin = state.sentences(application, taught, "berlin")
        asked = state.add_episode(application, taught, "Where is Berlin?", list(berlin.values()))
        state.judge(application, taught, asked, list(berlin.values())[:1], wait=True)
        past = rebuild_past(application, taught, until)
        undo.assert_same(corpus(application, past.collection), then)
        undo.assert_same(list_learned(application, past.collection), knew)
        assert state.counts(application, past.collection) == state.true_counts(application, past.collection)
        assert (past.passages, past.passages_since, past.passages_updated) == (5, 2, 0)

    def test_passages_that_changed_since_are_as_they_are_now(
        self, application: Application, taught: str, ingest: Ingest
    ) -> None:
        until = now(application)
        changed = CURIE[0] | {"text": "Marie Curie was born in Warsaw in 1867. Marie Curie died in 1934."}
        assert ingest(changed)["updated"] == 1
        application.corpus.ingest.delete_passage(application.auth.access.scope(taught), "tokyo")
        past = rebuild_past(application, taught, until)
        undo.assert_same(corpus(application, past.collection), corpus(application, taught))
        assert (past.passages, past.passages_since, past.passages_updated) == (4, 0, 1)
        assert past.sentences_gone == 3  # one that changed, two that were deleted
        undo.assert_same(list_learned(application, past.collection), list_learned(application, taught))

    def test_a_time_memory_is_of_the_expression_that_it_began_as(
        self, application: Application, curie: str, ingest: Ingest
    ) -> None:
        born = state.sentences(application, curie, "curie")["Marie Curie was born in Warsaw in 1867."]
        asked = state.add_episode(application, curie, "Who was born in 1867?", [born], "1867")
        state.judge(application, curie, asked, [born], wait=True)
        with application.database.write() as writer:  # as a later analysis might read it
            writer.execute(
                """
                UPDATE sentence SET time_expression_id = (
                    SELECT id FROM time_expression WHERE collection_id = %(c)s AND text LIKE '%%1898%%'
                ) WHERE collection_id = %(c)s AND id = %(s)s
                """,
                {"c": state.collection_id(application, curie), "s": born},
            )
        past = rebuild_past(application, curie, now(application))
        undo.assert_same(list_learned(application, past.collection), list_learned(application, curie))
        undo.assert_same(corpus(application, past.collection), corpus(application, curie))


def test_a_past_moment_is_the_same_with_and_without_answered_queries(application: Application, curie: str) -> None:
    events = undo.stream(application, curie, 20, seed=23)
    undo.apply(application, curie, events[:10], 10)
    published_of(application).evolve.evolve(application.auth.access.scope(curie))
    undo.apply(application, curie, events[10:16], 3)
    then, until = list_meant(application, curie), now(application)
    for event in events[2:16:5]:
        application.learning.revocation.revoke(application.auth.access.scope(curie), event)
    undo.apply(application, curie, events[16:])
    with_them = rebuild_past(application, curie, until, f"{curie}-with")
    undo.delete_episodes(application, curie)
    without = rebuild_past(application, curie, until, f"{curie}-without")
    assert without.events_restored == len(events[2:16:5])
    undo.assert_same(list_learned(application, without.collection), list_learned(application, with_them.collection))
    undo.assert_same(list_meant(application, without.collection), then)
