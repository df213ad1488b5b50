"""No byte of an answer tells of a passage that its caller may not read, whatever is asked.

A corpus whose passages have words, names, ids and metadata of their own is asked over every route of the OpenAPI
document, by callers with and without principals, while passages get other readers and verdicts come and go. A word
of a hidden passage that the caller did not send is a leak. So is a difference between the answers to a request that
names what is hidden and to the same request that names what there never was.
"""

import json
import random
from collections.abc import Sequence

import pytest

from tests.readers.conftest import Client, Put
from tests.readers.leaks import (
    PLAIN_QUESTION,
    REQUESTS,
    SEED,
    Caller,
    World,
    draw_readers,
    draw_request,
    explore,
    passage,
    send,
    settle,
    tokens_of,
)
from tests.support.strict_client import TestClient


def test_no_answer_has_a_word_of_a_hidden_passage(
    world: World, copied: World, callers: Sequence[Caller], admin: TestClient
) -> None:
    leaks = list(explore(random.Random(SEED), [world, copied], callers, admin))
    assert leaks == []
    assert world.asked + copied.asked == REQUESTS


def test_what_is_hidden_is_answered_like_what_there_never_was(world: World, callers: Sequence[Caller]) -> None:
    dice = random.Random(SEED)
    told = []
    for _ in range(REQUESTS // 8):
        caller = dice.choice(callers)
        hidden = world.hidden(caller)
        if not hidden:
            continue
        number = dice.choice(hidden)
        own, never = tokens_of(number), tokens_of(number + 5_000)
        state = dice.getstate()
        method, url, arguments = draw_request(dice, caller, world, number, own, plain=True)
        if "{sentence_id}" in url or method == "DELETE" or "feedback" in url or "session" in url:
            continue
        after = dice.getstate()
        dice.setstate(state)
        _, other_url, other_arguments = draw_request(dice, caller, world, number, never, plain=True)
        dice.setstate(after)
        answers = [
            settle(send(caller, method, *request).text, words)
            for request, words in (((url, arguments), own), ((other_url, other_arguments), never))
        ]
        if answers[0] != answers[1]:
            told.append(
                f"{method} {url} {json.dumps(arguments)} as {sorted(caller.names)}:\n{answers[0]}\n{answers[1]}"
            )
    assert told == []


@pytest.mark.parametrize("strategy", ["graph", "dense", "lexical"])
def test_an_answer_has_the_passages_that_it_had_without_the_hidden_ones(
    put: Put, admin: TestClient, client: Client, strategy: str
) -> None:
    dice = random.Random(SEED)
    readers = {number: draw_readers(dice) for number in range(100, 140)}
    ana = Caller(client("user:ana"), frozenset({"user:ana"}))
    put(f"all-{strategy}", *(passage(number, given) for number, given in readers.items()))
    put(f"seen-{strategy}", *(passage(number, None) for number, given in readers.items() if ana.sees(given)))
    body = {"query": PLAIN_QUESTION, "top_k": 100, "arm": {"strategy": strategy, "memory": "off"}}
    found = []
    for who, name in ((ana.client, f"all-{strategy}"), (admin, f"seen-{strategy}")):
        answer = who.post("/query", json=body | {"collection": name}).json()
        shown = {one["passage_id"]: one["score"] for one in answer["passages"]}
        found.append(shown if strategy == "dense" else set(shown))  # word statistics are of all passages
    assert found[0] == found[1]
    assert len(found[0]) == sum(map(ana.sees, readers.values()))
