"""A language model in every mood: it answers as it should, something else, too late, or not at all."""

import json
import random
import threading
from typing import Any

from tests.support.openai_server import OpenAiServer, Reply, keyword_handler

MOODS = (
    "right", "right", "right", "cut", "words", "another shape", "deep", "huge", "odd numbers", "empty", "refuses",
    "too many", "fails", "hangs up", "late", "no json",
)  # fmt: skip
LATE_SECONDS = 1.5
"""More than ``TIMEOUT_SECONDS``, which the service is given."""
TIMEOUT_SECONDS = 1.0


def open_moody_server(seed: int) -> OpenAiServer:
    """A server of it, to be used as a context manager; moods follow each other as the seed says."""
    dice, lock = random.Random(f"model/{seed}"), threading.Lock()

    def handle(request: dict[str, Any]) -> str | Reply:
        with lock:
            mood, place = dice.choice(MOODS), dice.random()
        return reply_in_mood(mood, place, request)

    return OpenAiServer(handle)


def reply_in_mood(mood: str, place: float, request: dict[str, Any]) -> str | Reply:
    right = _right(request)
    kinds: dict[str, str | Reply] = {
        "right": right,
        "cut": right[: int(len(right) * place)],
        "words": f"I think that {right} is what you ask for.",
        "another shape": json.dumps(
            [right, {"sufficient": "perhaps", "supporting": {"a": [None]}, "cited": "all"}]
        ),
        "deep": "[" * 5_000 + "]" * 5_000,
        "huge": json.dumps({"answer": "x" * 300_000, "supporting": list(range(20_000)), "queries": ["y"] * 2_000}),
        "odd numbers": '{"supporting": [-1, 1e400, 99999999999999999999], "cited": [0], "confidence": NaN}',
        "empty": "",
        "refuses": Reply("No.", status=400),
        "too many": Reply("Slow down.", status=429, headers={"Retry-After": "0"}),
        "fails": Reply("Oh.", status=500),
        "hangs up": Reply(hang_up=True),
        "late": Reply(right, delay_seconds=LATE_SECONDS),
        "no json": Reply(body=b"<html>\x00\xff</html>"),
    }
    return kinds[mood]


def _right(request: dict[str, Any]) -> str:
    try:
        return keyword_handler(request)
    except (IndexError, KeyError, TypeError):  # of a prompt of another form, an object will do
        return json.dumps({"queries": ["Who was Marie Curie?"], "text": "Marie Curie", "sufficient": True})
