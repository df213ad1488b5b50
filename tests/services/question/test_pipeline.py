"""Queries by the settings of their collection: live, and in shadow."""

from uuid import UUID

from engram.composition.container import Application
from engram.services.question.query import Query
from tests.support import state

QUESTION = "Where was Marie Curie born?"


def teach(application: Application, collection: str, query_id: UUID) -> None:
    """A verdict in favour of a sentence about Warsaw."""
    sentence = state.sentences(application, collection, "warsaw")["Warsaw is the capital of Poland."]
    assert state.judge(application, collection, query_id, [sentence], wait=True).event.status == "applied"


def test_in_shadow_memory_is_learned_and_not_served(application: Application, curie: str) -> None:
    first = application.answers.question.serve(Query(text=QUESTION, scope=application.auth.access.scope(curie)))
    application.corpus.collection_settings.configure(application.auth.access.scope(curie), {"serving": "shadow"})
    teach(application, curie, first.query_id)
    assert state.rows(application, curie, "question_support")
    for caller_chose_arm in (True, False):
        answer = application.answers.question.serve(
            Query(
                text=QUESTION,
                scope=application.auth.access.scope(curie),
                memory="read",
                caller_chose_arm=caller_chose_arm,
            )
        )
        assert (answer.memory, answer.shadow, answer.arm) == ("off", True, None)
    stored = application.answers.episodes.read(application.auth.access.scope(curie), answer.query_id)
    assert stored.answer["memory"] == "off"
    assert stored.answer["shadow"] is True
    ours = application.answers.question.answer(
        Query(text=QUESTION, scope=application.auth.access.scope(curie), include=frozenset({"trace"}))
    )
    assert (ours.memory, ours.shadow) == ("read", False)
    assert ours.trace is not None
    assert ours.trace.recalled, "the service below sees what was learned"
    application.corpus.collection_settings.configure(application.auth.access.scope(curie), {"serving": "live"})
    lives = application.answers.question.serve(Query(text=QUESTION, scope=application.auth.access.scope(curie)))
    assert (lives.memory, lives.shadow) == ("read", False)


def test_shadow_answers_as_if_nothing_had_been_learned(application: Application, curie: str) -> None:
    before = application.answers.question.serve(
        Query(text=QUESTION, scope=application.auth.access.scope(curie), memory="off")
    )
    teach(application, curie, before.query_id)
    application.corpus.collection_settings.configure(application.auth.access.scope(curie), {"serving": "shadow"})
    after = application.answers.question.serve(
        Query(text=QUESTION, scope=application.auth.access.scope(curie), memory="read")
    )
    assert [hit.passage_id for hit in after.passages] == [hit.passage_id for hit in before.passages]
    assert [hit.score for hit in after.passages] == [hit.score for hit in before.passages]
