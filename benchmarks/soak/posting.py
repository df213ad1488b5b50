"""Posts verdicts as a good client does, from several threads, in a process of its own, which `run.py` starts.

    python benchmarks/soak/posting.py PLAN RESULTS

PLAN is a JSON file: {"url", "clients", "rate", "posts": [{"key", "body"}, ...]}. The posts are taken in turn by
``clients`` threads, each with one connection that is kept alive; what cannot be sent or is answered 503 is sent
again under its key, later each time, for as long as it takes. RESULTS gets a line of JSON per post.
"""

import json
import random
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
TIMEOUT_SECONDS = 30.0


class Queue:
    """Posts in turn, each to one thread, no sooner than its time comes."""

    def __init__(self, posts: Sequence[Mapping[str, Any]], rate: float) -> None:
        self._posts = enumerate(posts)
        self._lock = threading.Lock()
        self._rate = rate
        self._began = time.time()

    def take(self) -> Mapping[str, Any] | None:
        """The next post, or None if there is none left."""
        with self._lock:
            number, post = next(self._posts, (0, None))
        if post is not None and self._rate:
            time.sleep(max(0.0, self._began + number / self._rate - time.time()))
        return post


class Client:
    """One connection that is kept alive, and opened again where it was lost.

    The standard library's, as a client that computes much would take the processor from what it measures.
    """

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(url.removeprefix("http://"), timeout=TIMEOUT_SECONDS)

    def post(self, body: bytes, key: str) -> tuple[int, Any] | None:
        """Status and document of the answer; None if the post or the answer was lost."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        try:
            self._connection.request("POST", "/feedback", body, headers)
            answer = self._connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, HTTPException):
            self._connection.close()
            return None


def send(client: Client, post: Mapping[str, Any], draw: random.Random) -> dict[str, Any]:
    """Post until there is an answer that stands."""
    began, tries, pause = time.time(), 0, PAUSE_SECONDS
    body = json.dumps(post["body"]).encode()
    while True:
        tries += 1
        answer = client.post(body, post["key"])
        if answer is not None and answer[0] != HTTPStatus.SERVICE_UNAVAILABLE:
            break
        time.sleep(draw.uniform(pause / 2, pause))
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
    status, document = answer
    return {
        "key": post["key"],
        "began": began,
        "ended": time.time(),
        "tries": tries,
        "status": status,
        "feedback_id": document.get("feedback_id"),
    }


def work(url: str, queue: Queue, results: list[dict[str, Any]], seed: int) -> None:
    """One client."""
    draw = random.Random(seed)
    client = Client(url)
    while (post := queue.take()) is not None:
        results.append(send(client, post, draw))


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    queue = Queue(plan["posts"], plan["rate"])
    results: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=work, args=(plan["url"], queue, results, seed)) for seed in range(plan["clients"])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    Path(sys.argv[2]).write_text("".join(json.dumps(result) + "\n" for result in results), encoding="utf-8")


if __name__ == "__main__":
    main()
