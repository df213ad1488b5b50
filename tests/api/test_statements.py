"""How often a question goes to the database: connections taken from the pool, and statements sent on them."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.conftest import CURIE, ingest_passages
from tests.support.state import add_episode, judge, sentences
from tests.support.statements import Sent, record_statements
from tests.support.strict_client import TestClient

CHAIN = "Into which sea flows the river of Marie Curie's birthplace?"
UNKNOWN = "Into which sea flows the river of the Curies and of Kopernik?"


@pytest.fixture(scope="module")
def taught(application: Application) -> str:
    """The five passages, and a verdict on ``CHAIN``."""
    ingest_passages(application, name := f"taught-{uuid4().hex}", *CURIE)
    ids: Sequence[int] = list(sentences(application, name, "vistula").values())
    judge(application, name, add_episode(application, name, CHAIN, ids), ids, wait=True)
    return name


def record_query(
    http: TestClient, collection: str, query: str = CHAIN, hops: int = 3, *, first: bool = False, **body: Any
) -> Sent:
    """What one question sends whose walk makes so many hops; 0 for a strategy that makes none.

    Args:
        first: whether it is the first one, after which the process has read what it needs of the graph.
    """
    bounds = {"max_hops": hops, "stop_rule": "none"} if hops else {}
    body = {"query": query, "collection": collection, "top_k": 2} | bounds | body
    if not first:
        http.post("/query", json=body).raise_for_status()
    with record_statements() as sent:
        answer = http.post("/query", json=body).raise_for_status().json()
    assert answer["hops"] == hops
    return sent


SCOPE = 1
ALIGNED = 1
OPENED = 1
HOP = 1
KEYS = 1
TERMS = 1
TEXTS = 1
# Whether the vectors are still those that the question was embedded for; read with the names, if there are any.
SPACE = 1
FOUND = 1
LOOK = 1
# By the first question alone: whether its words are in the collection, and the parts of a word that it lacks; texts
# with these parts; the terms of the leading passages, by which near-duplicates are looked for; the entities that
# the candidates name; their names; and the sentences that each hop selects.
WORDS = 1
APART = 2
COMPARED = 1
NAMED = 2
SENTENCES = 1


@pytest.mark.parametrize(
    ("arm", "hops", "statements"),
    [
        # What is recalled and the first hop are read with the names, and learned weights with the pool's links.
        # Here something is recalled, which joins the first hop: it is made again.
        ({"profile": "default", "memory": "read"}, 3, OPENED + 3 * HOP + FOUND + LOOK + TEXTS),
        ({"profile": "default", "memory": "off"}, 3, OPENED + 2 * HOP + FOUND + LOOK + TEXTS),
        *(
            pytest.param(
                {"profile": "paper", "memory": memory},
                3,
                SPACE + ALIGNED + 3 * HOP + KEYS + TEXTS,
                marks=pytest.mark.wing("published"),
            )
            for memory in ("read", "off")
        ),
        ({"strategy": "dense"}, 0, SPACE + KEYS + TEXTS),
        ({"strategy": "lexical"}, 0, SPACE + TERMS + TEXTS),
        ({"strategy": "hybrid"}, 0, SPACE + KEYS + TERMS + TEXTS),
    ],
)
def test_a_question_takes_one_connection_to_read_and_one_to_write(
    http: TestClient, taught: str, arm: dict[str, str], hops: int, statements: int
) -> None:
    scope, read, written = record_query(http, taught, hops=hops, arm=arm).connections
    assert len(scope) == SCOPE
    assert len(read) == statements
    assert not {"INSERT", "UPDATE", "DELETE"} & {*read}
    assert written == ["INSERT"]


def test_a_question_of_three_hops_that_nothing_is_recalled_for_takes_eight(http: TestClient, curie: str) -> None:
    first = record_query(http, curie, first=True).statements
    later = record_query(http, curie).statements
    assert later == SCOPE + OPENED + 2 * HOP + FOUND + LOOK + TEXTS + 1 == 8
    assert first == later + WORDS + APART + COMPARED + NAMED + 3 * SENTENCES


def test_first_uncollapsed_query_sends_one_statement_less(http: TestClient, curie: str) -> None:
    uncollapsed = record_query(http, curie, first=True, collapse_duplicates=False).statements
    assert uncollapsed == 8 + WORDS + APART + NAMED + 3 * SENTENCES


def test_a_general_corpus_takes_one_more_to_compare_titles_and_sentences(http: TestClient, curie: str) -> None:
    http.patch(f"/collections/{curie}", json={"corpus_kind": "general"}).raise_for_status()
    assert record_query(http, curie).statements == 9


def test_a_name_that_no_entity_bears_is_embedded_between_two_connections(http: TestClient, taught: str) -> None:
    body = {"hops": 1, "arm": {"memory": "off"}}
    known = record_query(http, taught, **body)
    first = record_query(http, taught, UNKNOWN, first=True, **body).connections
    assert len(first[1]) == WORDS + 1, "spellings near the name that the collection does not have"
    scope, looked, read, written = record_query(http, taught, UNKNOWN, **body).connections
    assert (len(scope), len(looked), written) == (SCOPE, OPENED, ["INSERT"]), "it is known to have none"
    left = OPENED - ALIGNED - HOP - SPACE
    assert len(read) == len(known.connections[1]) - left + 2, "the two names' nearest entities"


@pytest.mark.parametrize(("strategy", "statements"), [("dense", 5), ("lexical", 5), ("hybrid", 6)])
@pytest.mark.parametrize("memory", ["off", "read"])
def test_plain_search_sends_as_much_with_memory_as_without(
    http: TestClient, taught: str, strategy: str, memory: str, statements: int
) -> None:
    sent = record_query(http, taught, hops=0, arm={"strategy": strategy, "memory": memory})
    assert sent.statements == statements
