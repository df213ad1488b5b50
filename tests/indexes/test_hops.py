"""What the graph's statements read: passages by the time they speak of, and by their keys."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from engram.composition.container import Application, Servers
from engram.core.ranking.profiles import DEFAULT
from engram.core.text.temporal import find_time_expressions
from engram.storage.corpus import collections, passages
from engram.storage.corpus.passages import PassageRow
from engram.storage.database import Database, Reader
from engram.storage.question import entity_lookup, graph_hops, passages_by_key
from engram.storage.question.metadata_filter import compile_filter
from engram.storage.question.query_focus import Focus, GraphLimits
from tests.conftest import Ingest
from tests.support import state
from tests.support.databases import index_all
from tests.support.encoder import HALF_PRECISION
from tests.support.keys import Vector, evolve, statements, unit


def timely(application: Application, name: str, asked: str) -> dict[str, float]:
    """External id -> timeliness of every passage for a time constraint."""
    with application.database.read() as reader:
        collection = collections.find(reader, name)
        ids = {
            row.id: row.external_id
            for row in reader.rows(
                "SELECT id, external_id FROM passage WHERE collection_id = %(c)s", {"c": collection.id}
            )
        }
        vector = np.zeros(application.models.embedder.dimension, dtype=np.float32)
        focus = Focus(collection, vector, limits=application.models.limits, intervals=find_time_expressions(asked))
        found = passages_by_key.find_timely_passages(reader, focus, list(ids))
    return {ids[passage]: share for passage, share in found.items()}


def test_a_passage_is_as_timely_as_its_best_sentence(
    application: Application, ingest: Ingest, collection: str
) -> None:
    ingest(
        {"id": "mill", "text": "The mill was built in 1790. It was a school from 1920 to 1931."},
        {"id": "barn", "text": "The barn burnt down in 1850."},
        {"id": "well", "text": "The well is deep."},
        into=collection,
    )

    found = timely(application, collection, "from 1920 to 1925")

    assert found.keys() == {"mill", "barn"}
    assert found["mill"] == 1.0
    assert 0 < found["barn"] < 0.1


def test_undated_question_has_no_timely_sentences(application: Application, curie: str) -> None:
    assert timely(application, curie, "never") == {}


def test_a_hop_reads_how_well_sentences_agree_only_where_a_time_is_asked_for(
    application: Application, ingest: Ingest, collection: str
) -> None:
    ingest(
        {"id": "mill", "title": "Old Mill", "text": "It was built in 1790. It was a school in 1920. It is wet."},
        into=collection,
    )
    limits = GraphLimits(hub_limit=10, candidate_limit=10)
    with application.database.read() as reader:
        corpus = collections.find(reader, collection)
        mill = entity_lookup.find_called_entities(reader, corpus, ["old mill"])["old mill"][0]
        vector = application.models.embedder.embed(["What was the Old Mill in 1920?"])[0]
        for use_memory in (False, True):
            timeless = Focus(corpus, vector, limits=limits, use_memory=use_memory, policy=DEFAULT.policy)
            timed = replace(timeless, intervals=find_time_expressions("in 1920"))
            walks = [
                graph_hops.find_linked_sentences(reader, focus, {mill: 1.0}, []) for focus in (timeless, timed)
            ]
            scans = [graph_hops.find_all_sentences(reader, focus, None, []) for focus in (timeless, timed)]
            nothing = graph_hops.find_linked_sentences(reader, timed, {}, [])
            for without, with_time in (walks, scans):
                assert without.agreement.tolist() == [0.0, 0.0, 0.0]
                assert with_time.agreement[1] == 1.0
                assert 0 < with_time.agreement[0] < 0.1
                assert with_time.agreement[2] == 0.0
                np.testing.assert_array_equal(without.semantic, with_time.semantic)
            assert len(nothing) == 0


@pytest.mark.parametrize("use_memory", [False, True])
def test_recalled_sentence_joins_a_hop_unless_deleted(
    application: Application, ingest: Ingest, collection: str, use_memory: bool
) -> None:
    ingest({"id": "mill", "text": "Ada Lovelace saw the mill."}, {"id": "barn", "text": "The barn is wet."})
    named, other = (next(iter(state.sentences(application, collection, one).values())) for one in ("mill", "barn"))
    query_id = state.add_episode(application, collection, "What is wet?", [other])
    state.judge(application, collection, query_id, [other], wait=True)
    with application.database.read() as reader:
        focus = build_focus(
            reader, collection, application.models.embedder.embed(["What is wet?"])[0], use_memory=use_memory
        )
        ada = entity_lookup.find_called_entities(reader, focus.collection, ["ada lovelace"])["ada lovelace"][0]
        gone = max(named, other) + 1
        found = graph_hops.find_linked_sentences(reader, focus, {ada: 0.5}, [named, other, gone])
    assert found.sentence_ids.tolist() == sorted([named, other])
    assert dict(zip(found.sentence_ids.tolist(), found.activation.tolist(), strict=True)) == {
        named: 0.5,
        other: 0.0,
    }


@pytest.mark.parametrize("metadata", [None, {"even": True}])
def test_a_hub_contributes_what_is_near_and_others_all(
    application: Application,
    ingest: Ingest,
    collection: str,
    monkeypatch: pytest.MonkeyPatch,
    metadata: dict[str, Any] | None,
) -> None:
    """Ada Lovelace is named in four sentences, London in two."""
    for number in range(4):
        text = "Ada Lovelace wrote. " + ("London is wet." if number < 2 else "It rained.")
        ingest({"id": f"p{number}", "text": text, "metadata": {"even": number % 2 == 0}}, into=collection)
    monkeypatch.setattr(graph_hops, "HUB_THRESHOLD", 2)
    of = {number: list(state.sentences(application, collection, f"p{number}").values()) for number in range(4)}
    with application.database.read() as reader:
        corpus = collections.find(reader, collection)
        found = entity_lookup.find_called_entities(reader, corpus, ["ada lovelace", "london"])
        focus = replace(
            build_focus(reader, collection, np.ones(application.models.embedder.dimension)),
            filter=compile_filter(metadata),
        )
        held = passages.versions(reader, corpus.id, ["p2", "p3"])
        near = [held[key][0] for key in ("p2", "p3")]

        def list_reached(near: list[int] | None, *names: str) -> list[int]:
            active = {found[name][0]: 1.0 for name in names}
            some = graph_hops.find_linked_sentences(reader, focus, active, [], near=near)
            return some.sentence_ids.tolist()

        inside = [number for number in range(4) if metadata is None or number % 2 == 0]
        assert list_reached(None, "ada lovelace") == [of[number][0] for number in inside]
        assert list_reached(near, "ada lovelace") == [of[number][0] for number in inside if number >= 2]
        assert list_reached([], "ada lovelace") == []
        both = {of[number][0] for number in inside if number >= 2} | {
            of[number][1] for number in inside if number < 2
        }
        assert set(list_reached(near, "ada lovelace", "london")) == both


def test_sentences_that_name_an_entity_are_counted_up_to_a_limit(
    application: Application, ingest: Ingest, collection: str
) -> None:
    """Also where another collection names the same one."""
    other = f"{collection}-other"
    ingest(
        {"id": "a", "text": "Ada Lovelace wrote to Charles Babbage. Ada Lovelace was born in London."},
        {"id": "b", "text": "Charles Babbage lived in London. Ada Lovelace died in London."},
        into=collection,
    )
    ingest({"id": "c", "text": "Ada Lovelace read. Ada Lovelace wrote. Ada Lovelace rode."}, into=other)
    names = ["ada lovelace", "charles babbage", "london"]
    ids = list(state.sentences(application, collection, "a").values())
    foreign = list(state.sentences(application, other, "c").values())
    with application.database.read() as reader:
        corpus = collections.find(reader, collection)
        found = entity_lookup.find_called_entities(reader, corpus, names)

        def count_evidence(most: int, *wanted: int) -> dict[int, int]:
            return graph_hops.load_sentences(reader, corpus.id, wanted, most)[1]

        ada, babbage, london = (found[name][0] for name in names)
        assert count_evidence(1000, *ids) == {ada: 3, babbage: 2, london: 3}
        assert count_evidence(2, *ids) == {ada: 2, babbage: 2, london: 2}
        assert count_evidence(1000, ids[0]) == {ada: 3, babbage: 2}
        assert count_evidence(1000, *foreign) == {}  # they are no sentences of this collection
        assert count_evidence(1000) == {}


EXACT = GraphLimits(hub_limit=10, candidate_limit=10, exact=True)
INDEXED = replace(EXACT, exact=False)
both_ways = pytest.mark.parametrize("limits", [EXACT, INDEXED], ids=["exact", "indexed"])


@pytest.fixture
def reader(own: Servers) -> Iterator[Reader]:
    """A reader whose planner takes the vector index wherever a statement lets it, however few the rows."""
    database = Database(own.database_url, pool_size=1)
    with database.read() as reader:
        for name in ("enable_seqscan", "enable_sort"):
            reader.scalar("SELECT set_config(%(name)s, 'off', false)", {"name": name})
        yield reader
    database.close()


class Keys:
    """A collection of 16 passages near one direction, odd and even ones, and evolved keys for four of them."""

    def __init__(self, application: Application, name: str) -> None:
        random = np.random.default_rng(crc32(name.encode()))  # vectors of its own: equal ones would crowd the index
        dimension = application.models.embedder.dimension
        self.question: Vector = unit(random.normal(size=dimension))
        # Nearer to the question than what other tests left in the index.
        near = [unit(self.question + random.normal(scale=0.04, size=dimension)) for _ in range(16)]
        self.base: dict[str, Vector] = {f"p{at}": vector for at, vector in enumerate(near)}
        rows = [
            PassageRow(key, f"Title of {key}", key, "en", {"odd": int(key[1:]) % 2 == 1}, b"", vector)
            for key, vector in self.base.items()
        ]
        with application.database.write() as writer:
            target = collections.open_for_writing(writer, name, application.models.encoder.id).collection.id
            self.ids = passages.upsert(writer, target, rows)
            collections.add_counts(writer, target, passages=16, sentences=0, entities=0, lexical_length=0.0)
        index_all(application)
        # p0 comes nearest of all, p4 goes far away, the others go either way.
        self.evolved: dict[str, Vector] = {
            "p0": unit(self.question + 0.1 * near[0]),
            "p4": unit(random.normal(size=dimension) - self.question),
            "p9": unit(near[9] + 0.5 * unit(random.normal(size=dimension))),
            "p13": unit(near[13] + 0.5 * self.question),
        }

    def list_expected(self, keys: Mapping[str, Vector], asked: Vector, odd: bool | None = None) -> dict[str, float]:
        """External id -> cosine, best first."""
        cosines = {
            key: float(vector @ asked) for key, vector in keys.items() if odd is None or int(key[1:]) % 2 == odd
        }
        return dict(sorted(cosines.items(), key=lambda pair: -pair[1]))

    def map_names(self, found: Mapping[int, passages_by_key.KeyMatch]) -> dict[str, float]:
        """External id -> similarity, in the order found."""
        names = {identity: key for key, identity in self.ids.items()}
        assert all(keyed.title == f"Title of {names[identity]}" for identity, keyed in found.items())
        return {names[identity]: keyed.similarity for identity, keyed in found.items()}


@pytest.fixture
def keys(application: Application, collection: str) -> Keys:
    return Keys(application, collection)


def build_focus(reader: Reader, name: str, vector: Vector, *, use_memory: bool = True, **more: Any) -> Focus:
    more = {"limits": EXACT} | more
    policy = replace(DEFAULT.policy, evolved_keys=True)
    return Focus(collections.find(reader, name), vector, use_memory=use_memory, policy=policy, **more)


def assert_near(found: Mapping[str, float], expected: Mapping[str, float]) -> None:
    """The same passages in the same order, but for those that half precision cannot tell apart."""
    assert list(found.values()) == pytest.approx(list(expected.values()), abs=HALF_PRECISION)
    assert found == pytest.approx(expected, abs=HALF_PRECISION)


@both_ways
class TestKeys:
    def test_an_evolved_key_takes_the_place_of_its_base_key(
        self, application: Application, collection: str, reader: Reader, keys: Keys, limits: GraphLimits
    ) -> None:
        evolve(application, collection, keys.evolved)
        focus = build_focus(reader, collection, keys.question, limits=limits)
        expected = keys.list_expected(keys.base | keys.evolved, keys.question)
        assert [*expected][:: len(expected) - 1] == ["p0", "p4"]

        for limit in (1, 3, 15, 16, 50):
            found = keys.map_names(passages_by_key.find_nearest_passages(reader, focus, limit))
            assert_near(found, dict(list(expected.items())[:limit]))
        given = {key: keys.ids[key] for key in ("p4", "p5", "p9", "p0")}
        found = keys.map_names(passages_by_key.find_nearest_passages(reader, focus, 0, list(given.values())))
        assert found == pytest.approx({key: expected[key] for key in given}, abs=HALF_PRECISION)

    def test_without_memory_base_keys_serve(
        self, application: Application, collection: str, reader: Reader, keys: Keys, limits: GraphLimits
    ) -> None:
        evolve(application, collection, keys.evolved)
        focus = build_focus(reader, collection, keys.question, use_memory=False, limits=limits)
        expected = keys.list_expected(keys.base, keys.question)

        assert_near(keys.map_names(passages_by_key.find_nearest_passages(reader, focus, 16)), expected)
        found = keys.map_names(passages_by_key.find_nearest_passages(reader, focus, 0, list(keys.ids.values())))
        assert found == pytest.approx(expected, abs=HALF_PRECISION)

    def test_a_filter_holds_for_evolved_keys_too(
        self, application: Application, collection: str, reader: Reader, keys: Keys, limits: GraphLimits
    ) -> None:
        evolve(application, collection, keys.evolved)
        for odd in (False, True):
            focus = build_focus(
                reader, collection, keys.question, filter=compile_filter({"odd": odd}), limits=limits
            )
            expected = keys.list_expected(keys.base | keys.evolved, keys.question, odd)
            for limit in (2, 8, 50):
                found = keys.map_names(passages_by_key.find_nearest_passages(reader, focus, limit))
                assert_near(found, dict(list(expected.items())[:limit]))

    def test_search_finds_all_passages_when_all_keys_evolved(
        self, application: Application, collection: str, reader: Reader, keys: Keys, limits: GraphLimits
    ) -> None:
        turned = dict(zip(keys.base, reversed(keys.base.values()), strict=True))
        evolve(application, collection, turned)
        focus = build_focus(reader, collection, keys.question, limits=limits)

        found = keys.map_names(passages_by_key.find_nearest_passages(reader, focus, 16))

        assert_near(found, keys.list_expected(turned, keys.question))

    def test_keys_are_compared_with_the_key_vector(
        self, application: Application, collection: str, reader: Reader, keys: Keys, limits: GraphLimits
    ) -> None:
        other = unit(keys.question + keys.base["p7"])
        for evolved in ({}, keys.evolved):
            evolve(application, collection, evolved)
            focus = build_focus(reader, collection, keys.base["p3"], key_vector=other, limits=limits)
            expected = keys.list_expected(keys.base | evolved, other)
            assert_near(
                keys.map_names(passages_by_key.find_nearest_passages(reader, focus, 16)),
                expected,
            )
            found = keys.map_names(passages_by_key.find_nearest_passages(reader, focus, 0, list(keys.ids.values())))
            assert found == pytest.approx(expected, abs=HALF_PRECISION)

    def test_other_collections_keys_have_no_say(
        self, application: Application, collection: str, reader: Reader, keys: Keys, limits: GraphLimits
    ) -> None:
        other = f"{collection}-other"
        neighbours = Keys(application, other)
        evolve(application, other, neighbours.evolved)
        evolve(application, collection, {"p1": keys.question})

        found = keys.map_names(
            passages_by_key.find_nearest_passages(
                reader, build_focus(reader, collection, keys.question, limits=limits), 50
            )
        )

        assert_near(found, keys.list_expected(keys.base | {"p1": keys.question}, keys.question))

    def test_collection_without_evolved_keys_needs_no_extra_statements(
        self, application: Application, collection: str, keys: Keys, limits: GraphLimits
    ) -> None:
        ids = list(keys.ids.values())
        with application.database.read() as reader, statements() as sent:
            for use_memory in (False, True):
                focus = build_focus(reader, collection, keys.question, use_memory=use_memory, limits=limits)
                passages_by_key.find_nearest_passages(reader, focus, 5)
                passages_by_key.find_nearest_passages(reader, focus, 5, ids)
        assert sent[:3] == sent[3:]
        assert not [statement for statement in sent if re.search(r"\bpassage_key\b", statement)]


@pytest.mark.parametrize("metadata", [None, {"odd": True}])
def test_the_index_serves_the_keys_that_did_not_evolve(
    application: Application, collection: str, reader: Reader, keys: Keys, metadata: Any
) -> None:
    evolve(application, collection, keys.evolved)
    focus = build_focus(reader, collection, keys.question, filter=compile_filter(metadata), limits=INDEXED)
    with statements() as sent, application.database.read() as other:
        passages_by_key.find_nearest_passages(other, focus, 5)
    assert len(sent) == 1
    plan = "\n".join(row[0] for row in reader.rows(f"EXPLAIN {sent[0]}", focus.parameters(limit=5)))
    assert plan.count(f"passage_hnsw_{focus.collection.id}") == 1


def test_sentences_keep_to_the_question_where_keys_are_compared_with_more(
    application: Application, ingest: Ingest, collection: str
) -> None:
    ingest({"id": "mill", "text": "The Old Mill is wet. Bread is baked in it."}, into=collection)
    question, other = application.models.embedder.embed(["Where is bread baked?", "A treatise on shipbuilding"])
    with application.database.read() as reader:
        plain = build_focus(reader, collection, question)
        widened = replace(plain, key_vector=other)
        for reached in (
            lambda focus: graph_hops.find_all_sentences(reader, focus, None, []),
            lambda focus: graph_hops.find_linked_sentences(
                reader,
                focus,
                {entity_lookup.find_called_entities(reader, focus.collection, ["old mill"])["old mill"][0]: 1.0},
                [],
            ),
        ):
            np.testing.assert_array_equal(reached(plain).semantic, reached(widened).semantic)
            assert len(reached(plain))
