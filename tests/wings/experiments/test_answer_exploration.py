"""Answers that make room for what is untried, and what verdicts on it teach."""

from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.services.question.answer import Answer
from engram.services.question.query import Query
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.wings.experiments.storage import exploration_candidates
from tests.conftest import Ingest
from tests.support import state

QUESTION = "Which river flows past Warsaw, where Marie Curie was born?"
MORE_PASSAGES = [
    {"id": f"river-{number}", "text": f"River {number} flows past Warsaw. Boats go there in summer."}
    for number in range(12)
]


@pytest.fixture
def rivers(ingest: Ingest, curie: str) -> str:
    """The collection of five with a dozen passages more, so that there is something below the cut."""
    assert ingest(*MORE_PASSAGES)["created"] == len(MORE_PASSAGES)
    return curie


def explores(application: Application, collection: str, **setting: Any) -> None:
    application.corpus.collection_settings.configure(
        application.auth.access.scope(collection), {"exploration": {"share": 1.0, "seed": 1} | setting}
    )


def ask(application: Application, collection: str, unit: str | None = "user", **more: Any) -> Answer:
    query = Query(
        text=QUESTION, scope=application.auth.access.scope(collection), **({"top_k": 4} | more), unit=unit
    )
    return application.answers.question.serve(query)


def list_explored(answer: Answer) -> list[str]:
    return [hit.passage_id for hit in answer.passages if hit.explored]


def episode(application: Application, collection: str, answer: Answer) -> dict[str, Any]:
    rows = state.rows(application, collection, "episode")
    return next(row for row in rows if row["id"] == str(answer.query_id))


def test_exploration_is_off_by_default(application: Application, rivers: str) -> None:
    for _ in range(5):
        answer = ask(application, rivers)
        assert list_explored(answer) == []
        assert episode(application, rivers, answer)["explored"] is None


def test_queries_outside_serving_are_not_explored(application: Application, rivers: str) -> None:
    explores(application, rivers)
    assert (
        list_explored(
            application.answers.question.answer(
                Query(text=QUESTION, scope=application.auth.access.scope(rivers), top_k=4)
            )
        )
        == []
    )


@pytest.mark.parametrize(
    "arm",
    [
        {},
        {"memory": "off"},
        {"profile": "paper"},
        {"strategy": "dense"},
        {"strategy": "lexical"},
        {"strategy": "hybrid"},
    ],
    ids=str,
)
def test_the_last_positions_go_to_what_ranks_below(application: Application, rivers: str, arm: Any) -> None:
    plain = ask(application, rivers, **arm)
    longer = ask(application, rivers, top_k=30, **arm)
    explores(application, rivers, slots=2)
    answer = ask(application, rivers, **arm)
    assert [hit.explored for hit in answer.passages] == [False, False, True, True]
    names = [hit.passage_id for hit in answer.passages]
    assert names[:2] == [hit.passage_id for hit in plain.passages][:2]
    assert set(names[2:]).isdisjoint(hit.passage_id for hit in plain.passages)
    assert len(set(names)) == 4
    if arm != {"profile": "paper"}:  # which ranks no more passages than it wants and touches
        assert set(names[2:]) <= {hit.passage_id for hit in longer.passages}
    ids = state.passages(application, rivers)
    assert sorted(episode(application, rivers, answer)["explored"]) == sorted(ids[name] for name in names[2:])
    stored = application.answers.episodes.read(application.auth.access.scope(rivers), answer.query_id).answer[
        "passages"
    ]
    assert [hit["explored"] for hit in stored] == [False, False, True, True]


def test_exploration_never_takes_the_first_position(application: Application, rivers: str) -> None:
    first = ask(application, rivers, top_k=1).passages[0].passage_id
    explores(application, rivers, slots=10)
    assert [hit.explored for hit in ask(application, rivers, top_k=1).passages] == [False]
    shown = ask(application, rivers, top_k=3).passages
    assert [hit.explored for hit in shown] == [False, True, True]
    assert shown[0].passage_id == first


def test_an_answer_that_is_not_full_has_no_room_to_give(application: Application, curie: str) -> None:
    explores(application, curie, slots=2)
    assert list_explored(ask(application, curie, top_k=10)) == []


def test_the_share_of_queries_is_about_what_is_set(application: Application, rivers: str) -> None:
    explores(application, rivers, share=0.5, seed=None)
    seen = sum(bool(list_explored(ask(application, rivers, strategy="lexical"))) for _ in range(40))
    assert 5 <= seen <= 35  # outside in one run of a million
    explores(application, rivers, share=0.0)
    assert list_explored(ask(application, rivers)) == []


def test_a_seed_makes_draws_repeatable(application: Application, rivers: str) -> None:
    explores(application, rivers, slots=1)
    draws = {unit: list_explored(ask(application, rivers, unit, strategy="lexical")) for unit in "abcdefghijkl"}
    assert len({tuple(drawn) for drawn in draws.values()}) > 1
    # What was drawn counts as touched from then on, and lexical search activates nothing: back to where it began.
    with application.database.write() as writer:
        writer.execute("UPDATE episode SET explored = NULL")
    again = {unit: list_explored(ask(application, rivers, unit, strategy="lexical")) for unit in "a"}
    assert again["a"] == draws["a"]


def test_explored_passage_shows_a_sentence_that_a_judge_can_name(application: Application, rivers: str) -> None:
    explores(application, rivers, slots=3)
    for strategy in ("graph", "dense"):
        for hit in ask(application, rivers, strategy=strategy).passages:
            if hit.explored:
                texts = [sentence.text for sentence in hit.sentences]
                assert texts
                assert texts == sorted(texts, key=hit.text.index)
    shown = [hit for hit in ask(application, rivers, strategy="dense").passages if hit.explored]
    for hit in shown:
        [sentence] = hit.sentences  # dense search selects none, so it is the nearest alone
        stored = state.sentences(application, rivers, hit.passage_id)
        question, *rows = application.models.embedder.embed([QUESTION, *stored])
        assert sentence.text == max(zip(stored, rows, strict=True), key=lambda pair: pair[1] @ question)[0]
        assert (sentence.score, sentence.hops) == (None, [])


def test_explored_sentences_are_not_rejected_by_silence(application: Application, rivers: str) -> None:
    plain = ask(application, rivers)
    usual = set(episode(application, rivers, plain)["activated"])
    before = [hit.passage_id for hit in plain.passages]
    explores(application, rivers, slots=3)
    for number in range(30):  # what is drawn differs from user to user
        answer = ask(application, rivers, f"user {number}")
        shown = [hit.passage_id for hit in answer.passages]
        activated = set(episode(application, rivers, answer)["activated"])
        spared = set(list_explored(answer)) | (set(before) - set(shown))
        sentences = {s for name in spared for s in state.sentences(application, rivers, name).values()}
        if usual & sentences:
            break
    assert usual & sentences, "the walk came upon some of them"
    assert activated == usual - sentences
    verdict = Verdict(query_id=answer.query_id, scope=application.auth.access.scope(rivers), judge="j")
    changes = application.learning.verdicts.accept(verdict, str(uuid4()), wait=True).changes
    assert changes is not None
    assert {change.sentence_id for change in changes} == activated


def test_a_verdict_on_what_was_explored_teaches(application: Application, rivers: str) -> None:
    explores(application, rivers, slots=2)
    answer = ask(application, rivers, memory="off")
    named = next(hit for hit in answer.passages if hit.explored).sentences[0].sentence_id
    verdict = Verdict(
        query_id=answer.query_id,
        scope=application.auth.access.scope(rivers),
        supporting=[NamedSentence(named)],
        judge="j",
    )
    changes = application.learning.verdicts.accept(verdict, str(uuid4()), wait=True).changes
    assert changes is not None
    assert {(c.channel, c.target) for c in changes if c.sentence_id == named} >= {("task", 1), ("recall", 1)}


def test_the_ranking_is_judged_by_what_was_seen(application: Application, rivers: str) -> None:
    plain = ask(application, rivers, memory="off")
    explores(application, rivers, slots=2)
    answer = ask(application, rivers, memory="off")
    ids = state.passages(application, rivers)
    ranked = episode(application, rivers, answer)["ranked"]
    shown = {ids[hit.passage_id] for hit in answer.passages}
    displaced = {ids[hit.passage_id] for hit in plain.passages} - shown
    assert shown <= set(ranked)
    assert displaced
    assert displaced.isdisjoint(ranked)


def test_verdicts_and_answers_count_as_touches(application: Application, rivers: str) -> None:
    identity, ids = state.collection_id(application, rivers), state.passages(application, rivers)

    def touches() -> dict[str, int]:
        with application.database.read() as reader:
            found = exploration_candidates.touches(reader, identity, list(ids.values()))
        return {name: found[passage] for name, passage in ids.items() if passage in found}

    assert touches() == {}
    sentences = list(state.sentences(application, rivers, "tokyo").values())
    first = state.add_episode(application, rivers, "Who?", sentences)
    assert touches() == {"tokyo": 1}, "one answer, however many of its sentences"
    state.add_episode(application, rivers, "Who?", sentences[:1])
    assert touches() == {"tokyo": 2}
    verdict = Verdict(
        query_id=first,
        scope=application.auth.access.scope(rivers),
        rejected=[NamedSentence(sentences[0])],
        partial=True,
        judge="j",
    )
    application.learning.verdicts.accept(verdict, str(uuid4()), wait=True)
    assert touches() == {"tokyo": 3}
    explores(application, rivers, slots=1)
    answer = ask(application, rivers, strategy="lexical")
    assert touches() == {"tokyo": 3} | dict.fromkeys(list_explored(answer), 1)
