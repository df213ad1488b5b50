"""Strategies beside the walk: what they rank by, what they leave alone, and questions that come with expansions."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.core.learning.logged_verdict import Expansion
from engram.core.passage_keys.query_vector import expand_query
from engram.providers.language import terms
from engram.services.question.answer import Answer
from engram.services.question.query import Query, Strategy
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.corpus import collections, lexical_index
from tests.conftest import CURIE, Ingest
from tests.support import state
from tests.support.keys import evolve, statements

QUESTION = "Where was Marie Curie born?"
PLAIN_STRATEGIES: list[Strategy] = ["dense", "lexical", "hybrid"]
UNITS = [Expansion("hyde", "The capital of Japan lies on a bay."), Expansion("prf", "radioactive, polonium")]


def ask(application: Application, name: str, strategy: Strategy, text: str = QUESTION, **more: Any) -> Answer:
    return application.answers.question.answer(
        Query(text=text, scope=application.auth.access.scope(name), strategy=strategy, **more)
    )


def map_scores(answer: Answer) -> dict[str, float]:
    """External id -> score, best first."""
    return {passage.passage_id: passage.score for passage in answer.passages}


def rank_by_cosine(application: Application, question: str = QUESTION, *units: str) -> dict[str, float]:
    """The passages of ``curie`` by cosine, computed here."""
    texts = [f"{passage['title']}. {passage['text']}" for passage in CURIE]
    vectors = application.models.embedder.embed([question, *units, *texts])
    asked = expand_query(vectors[0], vectors[1 : 1 + len(units)]) if units else vectors[0]
    cosines = dict(zip([str(passage["id"]) for passage in CURIE], vectors[1 + len(units) :] @ asked, strict=True))
    return dict(sorted(cosines.items(), key=lambda pair: -pair[1]))


def rank_by_words(application: Application, name: str, weights: dict[str, float]) -> dict[str, float]:
    """The collection's passages by BM25."""
    names = {identity: key for key, identity in state.passages(application, name).items()}
    with application.database.read() as reader:
        statement = lexical_index.build_word_search(evolved=False)
        found = lexical_index.search(reader, collections.find(reader, name), weights, 100, statement)
    return {names[passage]: score for passage, score in found.items()}


def episode_row(application: Application, name: str, answer: Answer) -> dict[str, Any]:
    return next(row for row in state.rows(application, name, "episode") if row["id"] == str(answer.query_id))


class TestStrategies:
    def test_dense_ranks_by_cosine(self, application: Application, curie: str) -> None:
        answer = ask(application, curie, "dense")
        expected = rank_by_cosine(application)
        assert list(map_scores(answer)) == list(expected)
        assert map_scores(answer) == pytest.approx(expected, abs=1e-4)

    def test_lexical_ranks_by_bm25(self, application: Application, curie: str) -> None:
        answer = ask(application, curie, "lexical", "Warsaw, the capital of Poland")
        expected = rank_by_words(application, curie, {"warsaw": 1.0, "capit": 1.0, "poland": 1.0})
        assert list(map_scores(answer)) == list(expected)
        assert {"warsaw", "tokyo", "polonium", "curie"} == expected.keys()

    def test_a_question_that_shares_no_word_finds_nothing_lexically(
        self, application: Application, curie: str
    ) -> None:
        for text in ("of the", "mermaids"):
            assert ask(application, curie, "lexical", text).passages == []
            assert len(ask(application, curie, "hybrid", text).passages) == len(CURIE)

    def test_hybrid_fuses_ranks(self, application: Application, curie: str) -> None:
        text = "the Baltic Sea at the capital"
        near, matching = (
            {key: rank for rank, key in enumerate(map_scores(ask(application, curie, one, text, top_k=5)), start=1)}
            for one in ("dense", "lexical")
        )
        assert set(matching) < set(near)
        answer = map_scores(ask(application, curie, "hybrid", text))
        assert answer == pytest.approx(
            {key: 1 / (60 + near[key]) + (1 / (60 + matching[key]) if key in matching else 0) for key in near}
        )
        assert list(answer.values()) == sorted(answer.values(), reverse=True)

    def test_hybrid_reads_each_ranking_deeper_than_it_shows(self, application: Application, curie: str) -> None:
        """What both rankings have second is before what only one of them has first."""
        words = {"born": (0.0, 9.0), "mari": (0.0, 9.0), "curi": (0.0, 9.0)}
        evolve(application, curie, {"tokyo": application.models.embedder.embed([QUESTION])[0]}, {"vistula": words})
        assert list(map_scores(ask(application, curie, "dense")))[:2] == ["tokyo", "curie"]
        assert list(map_scores(ask(application, curie, "lexical")))[:2] == ["vistula", "curie"]

        assert map_scores(ask(application, curie, "hybrid", top_k=1)) == pytest.approx({"curie": 1 / 62 + 1 / 62})

    @pytest.mark.parametrize("strategy", PLAIN_STRATEGIES)
    def test_no_hop_is_made_and_nothing_recalled(
        self, application: Application, curie: str, strategy: Strategy
    ) -> None:
        taught = application.answers.question.answer(
            Query(text=QUESTION, scope=application.auth.access.scope(curie))
        )
        support = [NamedSentence(passage_id="tokyo", text="Tokyo lies on Tokyo Bay.")]
        application.learning.verdicts.accept(
            Verdict(query_id=taught.query_id, scope=application.auth.access.scope(curie), missed=support),
            "k",
            wait=True,
        )
        with statements() as sent:
            ask(application, curie, strategy)
        answer = ask(application, curie, strategy, include=frozenset({"trace", "entities"}))
        assert (answer.hops, answer.stop_reason, answer.stop_rule) == (0, "no_hops", "none")
        assert (answer.strategy, answer.expanded, answer.entities) == (strategy, False, [])
        assert answer.trace is not None
        assert (answer.trace.hops, answer.trace.recalled, answer.trace.entities) == ([], [], [])
        assert all(passage.sentences == [] for passage in answer.passages)
        for table in ("question", "sentence", "entity", "sentence_memory", "learned_weights"):
            assert not [statement for statement in sent if f" {table} " in statement], table

    @pytest.mark.parametrize("strategy", PLAIN_STRATEGIES)
    def test_a_filter_top_k_and_sentences_are_respected(
        self, application: Application, ingest: Ingest, collection: str, strategy: Strategy
    ) -> None:
        ingest(
            *(
                {"id": f"p{n}", "text": f"Warsaw saw event {n}. It rained.", "metadata": {"n": n % 3}}
                for n in range(9)
            ),
            into=collection,
        )
        answer = ask(
            application,
            collection,
            strategy,
            "What did Warsaw see?",
            top_k=2,
            filter={"n": 1},
            include=frozenset({"sentences"}),
        )
        assert len(answer.passages) == 2
        for passage in answer.passages:
            assert passage.metadata == {"n": 1}
            assert [sentence.text for sentence in passage.sentences][1:] == ["It rained."]
            assert all(sentence.score is None and sentence.hops == [] for sentence in passage.sentences)

    @pytest.mark.parametrize("bound", [{"max_hops": 1}, {"stop_rule": "none"}, {"stop_rule": "llm"}])
    @pytest.mark.parametrize("strategy", PLAIN_STRATEGIES)
    def test_hops_that_are_not_made_cannot_be_bounded(
        self, application: Application, curie: str, strategy: Strategy, bound: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidRequestError, match=f"'{strategy}' makes no hops"):
            ask(application, curie, strategy, **bound)
        assert state.rows(application, curie, "episode") == []

    @pytest.mark.parametrize("strategy", PLAIN_STRATEGIES)
    def test_verdicts_teach_what_they_name(self, application: Application, curie: str, strategy: Strategy) -> None:
        answer = ask(application, curie, strategy, time_constraint="in 1867")
        row = episode_row(application, curie, answer)
        assert (row["strategy"], row["activated"], row["ranked"]) == (strategy, [], None)
        (question,) = application.models.embedder.embed([QUESTION])
        np.testing.assert_allclose(np.array(json.loads(row["embedding"])), question, atol=1e-6)
        assert row["time_constraint"] == "in 1867"

        born = state.sentences(application, curie, "curie")["Marie Curie was born in Warsaw in 1867."]
        receipt = state.judge(application, curie, answer.query_id, [born], wait=True)

        assert receipt.event.status == "applied"
        assert receipt.changes is not None
        assert {change.sentence_id for change in receipt.changes if change.channel == "recall"} == {born}


class TestEvolvedKeys:
    @pytest.fixture
    def evolved(self, application: Application, curie: str) -> str:
        """``curie``, in which evolution has brought Tokyo's key to the question."""
        question = application.models.embedder.embed([QUESTION])[0]
        words = {"born": (0.0, 9.0), "mari": (0.0, 9.0), "curi": (0.0, 9.0)}
        evolve(application, curie, {"tokyo": question}, {"tokyo": words})
        return curie

    @pytest.mark.parametrize("strategy", PLAIN_STRATEGIES)
    def test_they_serve_where_memory_is_read(
        self, application: Application, evolved: str, strategy: Strategy
    ) -> None:
        read, off = (map_scores(ask(application, evolved, strategy, memory=memory)) for memory in ("read", "off"))
        assert list(read)[:2] == ["tokyo", "curie"]
        with application.database.write() as writer:
            writer.execute("UPDATE collection SET key_generation = 0 WHERE name = %(n)s", {"n": evolved})
        assert next(iter(off)) == "curie"
        assert off == map_scores(ask(application, evolved, strategy))

    @pytest.mark.wing("published")
    def test_they_serve_a_walk_of_profile_paper_as_well(self, application: Application, evolved: str) -> None:
        read, off = (
            map_scores(ask(application, evolved, "graph", profile="paper", memory=memory))
            for memory in ("read", "off")
        )
        assert read["tokyo"] > off["tokyo"]

    def test_profile_default_walks_by_base_keys(self, application: Application, evolved: str) -> None:
        query = Query(text=QUESTION, scope=application.auth.access.scope(evolved), memory="read")
        names, features = application.retrieval.retrieve.features(query)
        similarity, words = features[names.index("tokyo")][:2]
        assert similarity == pytest.approx(rank_by_cosine(application)["tokyo"], abs=1e-4)
        assert words == 0

    def test_a_collection_without_any_is_asked_the_same(self, application: Application, curie: str) -> None:
        ask(application, curie, "dense")  # from now on its words are known to be there
        for strategy in (*PLAIN_STRATEGIES, "graph"):
            sent = {}
            for memory in ("off", "read"):
                with statements() as sent[memory]:
                    ask(application, curie, strategy, memory=memory, collapse_duplicates=False)
            keyed = [
                [statement for statement in sent[memory] if " passage p" in statement or "posting" in statement]
                for memory in ("off", "read")
            ]
            assert keyed[0]
            if strategy != "graph":
                assert sent["off"] == sent["read"]
            assert not [s for s in sent["read"] if re.search(r"\b(passage_key|evolved_posting)\b", s)]


class TestExpansions:
    def test_dense_search_uses_the_question_and_its_units(self, application: Application, curie: str) -> None:
        answer = ask(application, curie, "dense", expansions=UNITS)
        expected = rank_by_cosine(application, QUESTION, *(unit.text for unit in UNITS))
        assert list(map_scores(answer)) == list(expected)
        assert map_scores(answer) == pytest.approx(expected, abs=1e-4)
        assert list(expected) != list(rank_by_cosine(application))
        assert answer.expanded

    def test_lexical_search_has_the_units_terms(self, application: Application, curie: str) -> None:
        answer = ask(application, curie, "lexical", expansions=UNITS)
        # The question's three terms weigh 3, and so do the units: 4 terms and 2 share 1.5 each.
        weights = {"mari": 1.0, "curi": 1.0, "born": 1.0}
        weights |= dict.fromkeys(terms("capital Japan lies bay", "en"), 1.5 / 4) | dict.fromkeys(
            terms("radioactive polonium", "en"), 1.5 / 2
        )
        assert map_scores(answer) == pytest.approx(rank_by_words(application, curie, weights), rel=1e-6)
        assert {"tokyo", "polonium"} <= map_scores(answer).keys()

    @pytest.mark.wing("published")
    def test_a_walk_ranks_by_expanded_keys_and_reaches_by_the_question(
        self, application: Application, curie: str
    ) -> None:
        include = frozenset({"trace"})
        plain, widened = (
            ask(application, curie, "graph", profile="paper", include=include, expansions=units)
            for units in ([], UNITS)
        )
        assert plain.trace is not None
        assert widened.trace is not None
        # What passages are ranked by is the widened question's.
        assert (plain.trace.lexical_terms, widened.trace.lexical_terms) == (3, 9)
        ranked = {"passages": plain.trace.passages, "lexical_terms": 3}
        assert replace(widened.trace, **ranked) == plain.trace
        near, asked = (
            rank_by_cosine(application, QUESTION, *(unit.text for unit in UNITS)),
            rank_by_cosine(application),
        )
        for passage, score in map_scores(widened).items():
            difference = 0.01 * (near[passage] - asked[passage])  # α sim(p, Q) of Eq. 8
            assert score - map_scores(plain)[passage] == pytest.approx(difference, abs=1e-5)

    def test_features_are_those_of_expanded_keys_and_teach_no_weights(
        self, application: Application, curie: str
    ) -> None:
        answer = ask(application, curie, "graph", expansions=UNITS)
        assert episode_row(application, curie, answer)["ranked"] is None
        assert episode_row(application, curie, ask(application, curie, "graph"))["ranked"] is not None
        names, features = application.retrieval.retrieve.features(
            Query(text=QUESTION, scope=application.auth.access.scope(curie), expansions=UNITS)
        )
        expected = rank_by_cosine(application, QUESTION, *(unit.text for unit in UNITS))
        assert dict(zip(names, features[:, 0], strict=True)) == pytest.approx(expected, abs=1e-4)

    @pytest.mark.parametrize("strategy", [*PLAIN_STRATEGIES, "graph"])
    def test_the_episode_keeps_them_and_the_questions_own_vector(
        self, application: Application, curie: str, strategy: Strategy
    ) -> None:
        answer = ask(application, curie, strategy, expansions=UNITS)
        row = episode_row(application, curie, answer)
        assert row["answer"]["expansions"] == [{"method": unit.method, "text": unit.text} for unit in UNITS]
        assert row["answer"]["expanded"] is True
        (question,) = application.models.embedder.embed([QUESTION])
        np.testing.assert_allclose(np.array(json.loads(row["embedding"])), question, atol=1e-6)

    def test_lexical_search_embeds_no_unit(
        self, application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        embedded: list[list[str]] = []
        embed = application.models.embedder.embed
        monkeypatch.setattr(
            application.models.embedder, "embed", lambda texts: embedded.append(list(texts)) or embed(texts)
        )
        ask(application, curie, "lexical", expansions=UNITS)
        ask(application, curie, "dense", expansions=UNITS)
        assert embedded == [[QUESTION], [QUESTION, *(unit.text for unit in UNITS)]]

    def test_the_weights_of_terms_are_those_of_the_query(self, application: Application, curie: str) -> None:
        scope, unit = application.auth.access.scope(curie), Expansion("m", "poland, vistula, of")
        plan = application.retrieval.planner.plan(
            Query(text="capital of Poland", scope=scope, strategy="lexical", expansions=[unit])
        )
        # Two terms weigh 2; so do the unit's two, one of which is the question's own.
        assert plan.terms == {"capit": 1.0, "poland": 2.0, "vistula": 1.0}
