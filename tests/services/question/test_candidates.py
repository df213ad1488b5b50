"""Answers without near-duplicates: what stands for them, what fills their places, what verdicts on them teach."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.core.ranking.profiles import DEFAULT
from engram.services.question.answer import Answer
from engram.services.question.query import Query
from engram.services.question.search import RetrievalResult
from engram.services.verdict.verdict import NamedSentence, Verdict
from tests.conftest import CURIE, Ingest
from tests.support import state

QUESTION = "Where was Marie Curie born?"
FOOTER = "\n\nRetrieved from https://mirror.example.org"
WORDED_FOOTER = "\n\nPrinted on born Marie Curie carburettor trigonometry Marie Curie born zebra"
CHANGED_COPIES = {
    "curie": lambda text: text.replace(". ", ".\n\n"),
    "warsaw": str.upper,
    "tokyo": lambda text: text + FOOTER,
}


def copy(passage: Mapping[str, Any]) -> dict[str, Any]:
    change = CHANGED_COPIES.get(passage["id"], str)
    return {**passage, "id": f"{passage['id']}-copy", "text": change(passage["text"]), "metadata": {"copy": True}}


@pytest.fixture
def doubled(ingest: Ingest, curie: str) -> str:
    """The five linked passages and a copy of each."""
    assert ingest(*map(copy, CURIE))["created"] == len(CURIE)
    return curie


def query(application: Application, name: str, **more: Any) -> Query:
    given: dict[str, Any] = {"text": QUESTION, "top_k": 5} | more
    return Query(scope=application.auth.access.scope(name), **given)


def ask(application: Application, name: str, **more: Any) -> Answer:
    return application.answers.question.answer(query(application, name, **more))


def find(application: Application, name: str, **more: Any) -> RetrievalResult:
    return application.retrieval.retrieve.find(
        application.retrieval.retrieve.plan(query(application, name, **more))
    )


def strip_copy(passage: str) -> str:
    return passage.removesuffix("-copy")


ARMS: tuple[Any, ...] = (
    {},
    {"strategy": "dense"},
    {"strategy": "lexical", "text": "Marie Curie, Warsaw, Vistula, polonium, Tokyo"},
    {"strategy": "hybrid"},
    pytest.param({"profile": "paper", "collapse_duplicates": True}, marks=pytest.mark.wing("published")),
)


@pytest.mark.parametrize("arm", ARMS)
def test_each_text_is_shown_once_and_names_its_copy(
    application: Application, doubled: str, arm: dict[str, Any]
) -> None:
    answer = ask(application, doubled, **arm)
    assert sorted(strip_copy(hit.passage_id) for hit in answer.passages) == sorted(p["id"] for p in CURIE)
    for hit in answer.passages:
        [duplicate] = hit.duplicates
        assert {hit.passage_id, duplicate.passage_id} == {
            strip_copy(hit.passage_id),
            strip_copy(hit.passage_id) + "-copy",
        }
        assert duplicate.title == hit.title
        assert duplicate.metadata == ({} if hit.metadata else {"copy": True})
    assert answer.collapse_duplicates


@pytest.mark.parametrize(
    "arm",
    [
        pytest.param({"profile": "paper"}, marks=pytest.mark.wing("published")),
        {"collapse_duplicates": False},
        *({**one, "collapse_duplicates": False} for one in ARMS[1:4]),
    ],
)
def test_copies_are_shown_where_they_are_not_collapsed(
    application: Application, doubled: str, arm: dict[str, Any]
) -> None:
    answer = ask(application, doubled, **({"top_k": 10} | arm))
    assert len(answer.passages) == 10
    assert not any(hit.duplicates for hit in answer.passages)
    assert not answer.collapse_duplicates


def test_the_ranking_is_that_of_a_corpus_without_copies(
    application: Application, ingest: Ingest, doubled: str
) -> None:
    alone = f"single-{uuid4().hex}"
    ingest(*CURIE, into=alone)
    single, double = ask(application, alone), ask(application, doubled)
    assert [hit.passage_id for hit in single.passages] == [strip_copy(hit.passage_id) for hit in double.passages]


def test_copies_take_no_place_in_the_pool(application: Application, doubled: str) -> None:
    found = find(application, doubled)
    names = {one: name for name, one in state.passages(application, doubled).items()}
    pooled = [strip_copy(names[passage]) for passage in found.ranking.pooled]
    assert len(pooled) == len(set(pooled)) == 4
    assert len(found.ranking.candidates) == 5
    assert {strip_copy(names[one]) for one in found.ranking.stand_in_by_passage} == {
        passage["id"] for passage in CURIE
    }


def test_the_filter_comes_first(application: Application, doubled: str) -> None:
    answer = ask(application, doubled, filter={"copy": True})
    assert {hit.passage_id for hit in answer.passages} == {f"{passage['id']}-copy" for passage in CURIE}
    assert not any(hit.duplicates for hit in answer.passages)


def test_copies_found_by_words_and_by_meaning_do_not_keep_the_others_out(
    application: Application, ingest: Ingest, curie: str
) -> None:
    """One search finds half of the copies by each key; twice as wide, it finds the same ones by both."""
    half = DEFAULT.ranked_passages
    worded = {**CURIE[0], "text": CURIE[0]["text"] + WORDED_FOOTER}
    copies = [CURIE[0]] * (half - 1) + [worded] * half
    assert ingest(*({**text, "id": f"again-{n:03}"} for n, text in enumerate(copies)))["created"] == len(copies)
    answer = ask(application, curie)
    assert len({hit.text for hit in answer.passages}) == 5


def test_many_copies_do_not_keep_the_others_out(application: Application, ingest: Ingest, curie: str) -> None:
    assert ingest(*({**CURIE[0], "id": f"again-{n:03}"} for n in range(130)))["created"] == 130
    for arm in ({}, {"strategy": "dense"}):
        answer = ask(application, curie, **arm)
        texts = [hit.text for hit in answer.passages]
        assert len(set(texts)) == len(texts) == 5
        [first] = [hit for hit in answer.passages if hit.duplicates]
        assert len(first.duplicates) == 130


class TestVerdict:
    """A verdict that names the copy that is not shown."""

    def ask_doubled(self, application: Application, doubled: str) -> tuple[Answer, str, str]:
        answer = ask(application, doubled, include=frozenset({"sentences"}))
        hit = next(hit for hit in answer.passages if strip_copy(hit.passage_id) == "curie")
        return answer, hit.passage_id, hit.duplicates[0].passage_id

    def sentences(self, application: Application, name: str, passage: str) -> list[int]:
        rows = state.rows(application, name, "sentence")
        held = state.passages(application, name)[passage]
        return [row["id"] for row in sorted(rows, key=lambda row: row["position"]) if row["passage_id"] == held]

    def apply_verdict(self, application: Application, name: str, answer: Answer, **said: Any) -> Any:
        verdict = Verdict(
            query_id=answer.query_id, scope=application.auth.access.scope(name), judge="tester", **said
        )
        receipt = application.learning.verdicts.accept(verdict, str(uuid4()), wait=True)
        assert receipt.event.status == "applied"
        return application.learning.verdicts.read(application.auth.access.scope(name), receipt.event.id)

    def test_silence_about_a_copy_rejects_no_sentence(self, application: Application, doubled: str) -> None:
        answer, _, hidden = self.ask_doubled(application, doubled)
        [episode] = state.rows(application, doubled, "episode")
        assert episode["activated"]
        copies = {
            state.passages(application, doubled)[d.passage_id] for hit in answer.passages for d in hit.duplicates
        }
        held = {row["id"]: row["passage_id"] for row in state.rows(application, doubled, "sentence")}
        assert not copies & {held[sentence] for sentence in episode["activated"]}
        assert state.passages(application, doubled)[hidden] in copies

    @pytest.mark.parametrize("by", ["id", "text", "missed"])
    def test_support_of_a_copy_supports_the_shown_passage(
        self, application: Application, doubled: str, by: str
    ) -> None:
        answer, shown, hidden = self.ask_doubled(application, doubled)
        own, other = (self.sentences(application, doubled, passage) for passage in (shown, hidden))
        named = NamedSentence(other[0])
        if by == "text":
            named = NamedSentence(passage_id=hidden, text="Marie Curie was born in Warsaw in 1867.")
        said = {"missed": [named]} if by == "missed" else {"supporting": [named]}
        detail = self.apply_verdict(application, doubled, answer, **said)
        assert detail.event.verdict.supports == (own[0],)
        assert detail.event.verdict.missed == ()
        judged = {change.sentence_id: change.target for change in detail.changes if change.channel == "recall"}
        assert judged[own[0]] == 1
        # The other sentence of the passage is judged as if it had been named by its own id.
        assert not set(judged) & set(other)

    def test_both_ids_teach_the_same(self, application: Application, ingest: Ingest, doubled: str) -> None:
        learned = []
        for hidden_named in (False, True):
            name = f"taught-{uuid4().hex}"
            ingest(*CURIE, *map(copy, CURIE), into=name)
            answer, shown, hidden = self.ask_doubled(application, name)
            passage = hidden if hidden_named else shown
            self.apply_verdict(
                application,
                name,
                answer,
                supporting_passages=[passage],
                supporting=[NamedSentence(self.sentences(application, name, passage)[0])],
            )
            rows = state.rows(application, name, "learned_weights", ("collection_id",))
            learned.append([(row["model"], row["events"], row["precision"]) for row in rows])
        assert learned[0] == learned[1] != []

    def test_sentence_of_the_copy_alone_does_not_reject_the_shown_passage(
        self, application: Application, doubled: str
    ) -> None:
        answer = ask(application, doubled, include=frozenset({"sentences"}))
        hit = next(hit for hit in answer.passages if strip_copy(hit.passage_id) == "tokyo")
        assert hit.passage_id == "tokyo"  # equal but for the footer of the other, which is not about the question
        own, other = (self.sentences(application, doubled, passage) for passage in ("tokyo", "tokyo-copy"))
        assert len(other) == len(own) + 1
        detail = self.apply_verdict(application, doubled, answer, supporting=[NamedSentence(other[-1])])
        assert detail.event.verdict.supports == (other[-1],)
        assert detail.event.verdict.spared == tuple(own)
        assert not {change.sentence_id for change in detail.changes} & set(own)

    def test_rejection_of_a_copy_rejects_the_shown_passage(self, application: Application, doubled: str) -> None:
        answer, shown, hidden = self.ask_doubled(application, doubled)
        own, other = (self.sentences(application, doubled, passage) for passage in (shown, hidden))
        detail = self.apply_verdict(
            application, doubled, answer, rejected=[NamedSentence(other[1], examined=0.5)], partial=True
        )
        assert detail.event.verdict.rejects == (own[1],)
        assert detail.event.verdict.examinations == {own[1]: 0.5}


def test_a_trace_counts_the_duplicates_that_are_left_out(application: Application, doubled: str) -> None:
    answer = ask(application, doubled, include=frozenset({"trace"}))
    assert answer.trace is not None
    assert answer.trace.collapsed == 5
    without = ask(application, doubled, include=frozenset({"trace"}), collapse_duplicates=False)
    assert without.trace is not None
    assert without.trace.collapsed is None
