"""The lexical index: BM25 as bm25s has it, and after any history the index that a fresh start would make."""

import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from engram.core.ranking.bm25 import inverse_document_frequency
from engram.providers.language import terms
from engram.storage.corpus import collections, lexical_index, passages
from engram.wings.local.sample import corpus as sample_corpus
from engram.wings.local.sample import questions as sample_questions
from tests.support import state
from tests.support.keys import evolve, statements
from tests.support.lexical import fresh, load_index, match_passages, put, reference, saturation, search

words = st.sampled_from("ant bee cat dog eel fox gnu hen".split())
texts = st.lists(words, max_size=9)
corpora = st.dictionaries(st.sampled_from([f"p{n}" for n in range(12)]), texts, min_size=1, max_size=12)
# None deletes a passage.
histories = st.lists(
    st.dictionaries(st.sampled_from([f"p{n}" for n in range(5)]), st.none() | texts, min_size=1, max_size=4),
    min_size=1,
    max_size=6,
)
many = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def new_name() -> str:
    return f"test-{uuid.uuid4().hex}"


def count_terms(corpus: Mapping[str, Sequence[str]]) -> dict[str, Counter[str]]:
    return {passage: Counter(tokens) for passage, tokens in corpus.items()}


def take_out(application: Application, name: str, keys: Sequence[str]) -> None:
    """Delete passages made by ``put``."""
    with application.database.write() as writer:
        collection = collections.find(writer, name).id
        collections.lock_graph(writer, collection)
        ids = [found[0] for found in passages.versions(writer, collection, keys).values()]
        length = lexical_index.remove(writer, collection, ids)
        for passage in ids:
            passages.delete_passage(writer, collection, passage)
        collections.add_counts(
            writer, collection, passages=-len(ids), sentences=0, entities=0, lexical_length=length
        )


def assert_same_ranking(found: Mapping[str, float], expected: Mapping[str, float], limit: int = 1000) -> None:
    """The same passages with the same scores; bm25s computes in single precision."""
    assert len(found) == min(limit, len(expected))
    assert dict(found) == pytest.approx({passage: expected[passage] for passage in found}, rel=1e-5)
    best = sorted(expected.values(), reverse=True)[:limit]
    assert list(found.values()) == pytest.approx(best, rel=1e-5)


class TestRanking:
    @many
    @given(corpus=corpora, question=st.lists(words, min_size=1, max_size=6), limit=st.integers(1, 12))
    def test_it_is_that_of_bm25s(
        self, application: Application, corpus: dict[str, list[str]], question: list[str], limit: int
    ) -> None:
        name = new_name()
        put(application, name, count_terms(corpus))

        expected = reference(corpus, question) if any(corpus.values()) else {}
        assert_same_ranking(search(application, name, Counter(question), limit), expected, limit)

    def test_it_is_that_of_bm25s_on_the_sample_corpus(self, application: Application, collection: str) -> None:
        bodies = [json.loads(line) for line in sample_corpus().splitlines()]
        corpus = {body["_id"]: terms(f"{body['title']}. {body['text']}", "en") for body in bodies}
        put(application, collection, count_terms(corpus))

        for question in sample_questions():
            for text in (question.text, question.paraphrase):
                found = search(application, collection, Counter(terms(text, "en")))
                assert_same_ranking(found, reference(corpus, terms(text, "en")))

    def test_weights_of_terms_and_broken_frequencies_enter_the_formula(
        self, application: Application, collection: str
    ) -> None:
        put(application, collection, {"a": {"ant": 2.5, "bee": 0.5}, "b": {"bee": 4.0}, "c": {"cat": 2.0}})

        found = search(application, collection, {"ant": 0.5, "bee": 2.0, "unknown": 9.0})

        idf, mean = inverse_document_frequency(3, [1, 2]), (3 + 4 + 2) / 3
        a = 0.5 * idf[0] * saturation(2.5, 3, mean) + 2.0 * idf[1] * saturation(0.5, 3, mean)
        assert found == pytest.approx({"b": 2.0 * idf[1] * saturation(4, 4, mean), "a": a}, rel=1e-6)

    def test_equal_scores_come_in_id_order(self, application: Application, collection: str) -> None:
        put(application, collection, count_terms({key: ["ant", "bee"] for key in ("z", "m", "a")}))

        assert len(set(search(application, collection, {"bee": 1.0, "ant": 1.0}).values())) == 1
        assert list(search(application, collection, {"ant": 1.0}, 2)) == ["z", "m"]

    def test_question_without_shared_terms_has_no_results(self, application: Application, collection: str) -> None:
        put(application, collection, count_terms({"a": ["ant"], "b": []}))

        assert search(application, collection, {}) == {}
        assert search(application, collection, {"cat": 1.0}) == {}
        assert list(search(application, collection, {"ant": 1.0})) == ["a"]

    def test_metadata_choose_passages_and_leave_the_scores(self, application: Application, collection: str) -> None:
        put(
            application,
            collection,
            count_terms({"a": ["ant"], "bb": ["ant"] * 3, "cc": ["ant", "bee"], "dd": ["bee"]}),
        )
        everything = search(application, collection, {"ant": 1.0})

        even = search(application, collection, {"ant": 1.0}, metadata={"even": True})

        assert even == {key: score for key, score in everything.items() if key in {"bb", "cc"}}
        assert list(even) == ["bb", "cc"]
        assert search(application, collection, {"ant": 1.0}, 1, metadata={"even": True}).keys() == {"bb"}
        assert search(application, collection, {"ant": 1.0}, metadata={"even": "no"}) == {}

    def test_beyond_a_bound_only_the_rarest_terms_are_scanned_and_scores_are_whole(
        self, application: Application, collection: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of the question's terms a has all, b and c the two more common ones, d the most common."""
        put(
            application,
            collection,
            count_terms(
                {"a": ["ant", "bee", "cat"], "b": ["bee", "cat"], "c": ["bee", "cat", "dog"], "d": ["cat"]}
            ),
        )
        question = {"cat": 1.0, "bee": 1.0, "ant": 1.0}
        everything = search(application, collection, question)
        assert everything.keys() == {"a", "b", "c", "d"}
        for postings, scanned in ((8, "abcd"), (7, "abc"), (4, "abc"), (3, "a"), (0, "a")):
            monkeypatch.setattr(lexical_index, "POSTINGS", postings)
            assert search(application, collection, question) == {key: everything[key] for key in scanned}
        monkeypatch.setattr(lexical_index, "POSTINGS", 4)
        assert list(search(application, collection, question, 1)) == ["a"]
        assert search(application, collection, question, metadata={"even": True}).keys() == set()
        assert search(application, collection, {"cat": 1.0}).keys() == {"a", "b", "c", "d"}

    @pytest.mark.parametrize(
        ("chosen", "found"),
        [
            ({"metadata": {"even": True}}, {"aa", "bb", "dd"}),
            ({"metadata": {"even": True}, "is_bounded": True}, {"aa", "bb"}),
            ({"metadata": {"even": True}, "is_bounded": True, "limit": 1}, {"aa"}),
            ({"among": ["bb", "c", "dd"]}, {"bb", "c", "dd"}),
            ({"among": ["bb", "c", "dd"], "metadata": {"even": True}}, {"bb", "dd"}),
            ({"among": []}, set()),
        ],
        ids=str,
    )
    def test_what_is_left_is_searched_by_all_terms_or_by_the_rarest(
        self,
        application: Application,
        collection: str,
        monkeypatch: pytest.MonkeyPatch,
        chosen: dict[str, Any],
        found: set[str],
    ) -> None:
        put(
            application,
            collection,
            count_terms(
                {"aa": ["ant", "bee", "cat"], "bb": ["bee", "cat"], "c": ["bee", "cat", "dog"], "dd": ["cat"]}
            ),
        )
        question = {"cat": 1.0, "bee": 1.0, "ant": 1.0}
        everything = search(application, collection, question)
        monkeypatch.setattr(lexical_index, "POSTINGS", 4)
        assert search(application, collection, question, **chosen) == {key: everything[key] for key in found}

    def test_scores_are_of_the_given_passages_only(self, application: Application, collection: str) -> None:
        put(application, collection, count_terms({"a": ["ant"], "b": ["ant", "ant"], "c": ["cat"]}))
        with application.database.read() as reader:
            found = collections.find(reader, collection)
            ids = {key: held[0] for key, held in passages.versions(reader, found.id, "abc").items()}
            both = match_passages(reader, found, {"ant": 1.0}, [ids["a"], ids["c"]])
            none = match_passages(reader, found, {"ant": 1.0}, [])
            assert both.ids.tolist() == [ids["a"], ids["c"]]
            assert both.words.in_passages.tolist() == [[True], [False]]
            assert both.word_scores[0] > 0
            assert both.word_scores[1] == 0
            assert (none.ids.tolist(), none.words.weight.tolist()) == ([], [])

    @pytest.mark.parametrize("evolved", [False, True])
    def test_a_match_names_each_of_the_questions_terms_once(
        self, application: Application, collection: str, evolved: bool
    ) -> None:
        put(application, collection, count_terms({"a": ["ant", "ant", "bee"], "b": ["bee", "cat"], "c": ["dog"]}))
        if evolved:
            evolve(application, collection, terms={"b": {"bee": (1.0, 2.0), "new": (0.0, 0.5)}})
        question = {"ant": 1.0, "bee": 2.0, "new": 3.0, "nowhere": 1.0}
        with application.database.read() as reader:
            found = collections.find(reader, collection)
            ids = {held[0]: key for key, held in passages.versions(reader, found.id, "abc").items()}
            matches = match_passages(reader, found, question, list(ids), evolved=evolved)
        idf = inverse_document_frequency(3, [0, 1, 2])
        terms = {
            ids[passage]: sorted(matches.words.weight[said].tolist())
            for passage, said in zip(matches.ids.tolist(), matches.words.in_passages, strict=True)
        }
        expected = {"a": sorted([idf[1], 2 * idf[2]]), "b": [2 * idf[2]], "c": []}
        if evolved:
            expected["b"] = sorted([2 * idf[2], 3 * idf[0]])
        assert terms == {key: pytest.approx(weights) for key, weights in expected.items()}
        assert len(matches.words.weight) == 2 + evolved


class TestHistory:
    @many
    @given(history=histories)
    def test_any_history_leaves_what_a_fresh_start_would_make(
        self, application: Application, history: list[dict[str, list[str] | None]]
    ) -> None:
        name = new_name()
        put(application, name, {})
        left: dict[str, list[str]] = {}
        for analyser, change in enumerate(history):
            written = {key: tokens for key, tokens in change.items() if tokens is not None}
            put(application, name, count_terms(written), analyser)
            take_out(application, name, [key for key in change if key not in written])
            left = {key: tokens for key, tokens in {**left, **change}.items() if tokens is not None}

        assert load_index(application, name) == fresh(count_terms(left))
        assert application.auth.access.scope(name).collection.passage_count == len(left)
        if any(left.values()):
            question = ["ant", "bee", "fox"]
            assert_same_ranking(search(application, name, Counter(question)), reference(left, question))

    def test_collections_do_not_mix(self, application: Application, collection: str) -> None:
        corpus = count_terms({"a": ["ant", "bee"], "b": ["ant"]})
        put(application, collection, corpus)
        alone = search(application, collection, {"ant": 1.0, "bee": 1.0})
        other = f"{collection}-other"
        put(application, other, count_terms({"a": ["bee", "cat"], "c": ["bee"] * 5}))

        assert search(application, collection, {"ant": 1.0, "bee": 1.0}) == alone
        assert search(application, other, {"ant": 1.0}) == {}

        take_out(application, other, ["a"])
        assert load_index(application, collection) == fresh(corpus)
        application.corpus.ingest.delete_collection(application.auth.access.scope(other))
        assert load_index(application, collection) == fresh(corpus)

    def test_which_analysis_gave_the_terms_is_recorded(self, application: Application, collection: str) -> None:
        put(application, collection, count_terms({"a": ["ant"], "b": ["bee"]}), analyser=1)
        put(application, collection, count_terms({"b": ["beetle"]}), analyser=2)

        assert {row["analyser"] for row in state.rows(application, collection, "lexical_passage")} == {1, 2}

    def test_a_passage_cannot_leave_while_it_is_counted(self, application: Application, collection: str) -> None:
        put(application, collection, count_terms({"a": ["ant"]}))
        target = state.collection_id(application, collection)

        with pytest.raises(NotFoundError), application.database.write() as writer:
            writer.execute("DELETE FROM passage WHERE collection_id = %(c)s", {"c": target})

        assert load_index(application, collection) == fresh(count_terms({"a": ["ant"]}))


increments = st.dictionaries(
    st.sampled_from([f"p{n}" for n in range(12)]),
    st.dictionaries(st.one_of(words, st.just("new")), st.sampled_from([0.25, 1.0, 3.5]), min_size=1, max_size=3),
    max_size=6,
)


def score_composed(
    corpus: Mapping[str, Mapping[str, float]],
    added: Mapping[str, Mapping[str, float]],
    weights: Mapping[str, float],
) -> dict[str, float]:
    """BM25 over frequencies that ``added`` raised, with the statistics of those that it did not."""
    mean = sum(sum(tokens.values()) for tokens in corpus.values()) / len(corpus)
    scores = {}
    for passage, tokens in corpus.items():
        length = sum(tokens.values())
        score = 0.0
        for term, weight in weights.items():
            containing = sum(term in other for other in corpus.values())
            frequency = tokens.get(term, 0) + added.get(passage, {}).get(term, 0.0)
            idf = inverse_document_frequency(len(corpus), containing)
            score += weight * float(idf * saturation(frequency, length, mean)) if frequency else 0.0
        if score > 0:
            scores[passage] = score
    return scores


def build_rows(
    corpus: Mapping[str, Mapping[str, float]], added: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, tuple[float, float]]]:
    """The rows that ``added`` stands for."""
    return {
        passage: {
            term: (corpus[passage].get(term, 0), corpus[passage].get(term, 0) + more)
            for term, more in terms.items()
        }
        for passage, terms in added.items()
    }


class TestEvolvedKeys:
    @many
    @given(corpus=corpora, added=increments, question=st.lists(words | st.just("new"), min_size=1, max_size=6))
    def test_terms_count_as_often_as_evolved_keys_have_them(
        self,
        application: Application,
        corpus: dict[str, list[str]],
        added: dict[str, dict[str, float]],
        question: list[str],
    ) -> None:
        name, frequencies = new_name(), count_terms(corpus)
        put(application, name, frequencies)
        # A passage without terms has no length that a share could be added of.
        added = {passage: terms for passage, terms in added.items() if frequencies.get(passage)}
        evolve(application, name, terms=build_rows(frequencies, added))
        weights = Counter(question)

        expected = score_composed(frequencies, added, weights) if any(corpus.values()) else {}
        assert_same_ranking(search(application, name, weights, evolved=True), expected)
        before = score_composed(frequencies, {}, weights) if any(corpus.values()) else {}
        assert_same_ranking(search(application, name, weights), before)

    def test_a_term_that_no_passage_had_is_found_in_evolved_keys_only(
        self, application: Application, collection: str
    ) -> None:
        put(application, collection, count_terms({"a": ["ant", "bee"], "bb": ["bee"], "cc": ["cat"]}))
        evolve(application, collection, terms={"bb": {"new": (0.0, 0.5)}})

        assert search(application, collection, {"new": 1.0}) == {}
        # Held by none of 3 passages: idf = ln(1 + (3 - 0 + 1/2) / (0 + 1/2)). Of their 4 terms bb has one.
        idf, norm = np.log(8.0), 1.5 * (0.25 + 0.75 * 1 / (4 / 3))
        expected = {"bb": idf * 0.5 / (0.5 + norm)}
        assert search(application, collection, {"new": 1.0}, evolved=True) == pytest.approx(expected, rel=1e-6)

    def test_other_passages_keep_their_scores(self, application: Application, collection: str) -> None:
        put(application, collection, count_terms({"a": ["ant", "bee"], "bb": ["ant"] * 3, "cc": ["bee"]}))
        before = search(application, collection, {"ant": 1.0, "bee": 2.0})
        evolve(application, collection, terms={"cc": {"ant": (0.0, 2.0), "bee": (1.0, 1.5)}})

        after = search(application, collection, {"ant": 1.0, "bee": 2.0}, evolved=True)

        assert {key: after[key] for key in ("a", "bb")} == {key: before[key] for key in ("a", "bb")}
        assert after["cc"] > before["cc"]

    def test_metadata_choose_among_evolved_keys_too(self, application: Application, collection: str) -> None:
        put(application, collection, count_terms({"a": ["ant"], "bb": ["bee"], "cc": ["cat"]}))
        evolve(application, collection, terms={"a": {"new": (0, 1)}, "bb": {"new": (0, 1)}, "cc": {"ant": (0, 1)}})

        for term, found in (("new", {"bb"}), ("ant", {"cc"}), ("cat", {"cc"})):
            chosen = search(application, collection, {term: 1.0}, metadata={"even": True}, evolved=True)
            assert chosen.keys() == found

    def test_base_keys_are_read_without_looking_at_evolved_ones(
        self, application: Application, collection: str
    ) -> None:
        put(application, collection, count_terms({"a": ["ant"]}))
        with statements() as sent:
            search(application, collection, {"ant": 1.0})
        assert not [statement for statement in sent if "evolved_posting" in statement]


def test_postings_are_read_from_their_index_alone(bystander: "psycopg.Connection[object]") -> None:
    columns = bystander.execute(
        """
        SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_index i
        JOIN pg_attribute a ON a.attrelid = i.indexrelid
        WHERE i.indrelid = 'lexical_posting'::regclass
        """
    ).fetchone()
    assert columns == (["collection_id", "term_id", "passage_id", "frequency", "length", "reader_set_id"],)
