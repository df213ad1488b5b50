"""``python -m tests.fuzz`` notices what it looks for; some of its requests are in the contract's test."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.fuzz import campaign, mutations
from tests.fuzz.ledger import Ledger

KNOWN: dict[str, Any] = {"collection": campaign.COLLECTION, "query_id": "q", "sentences": [1]}


class Broken(BaseHTTPRequestHandler):
    """Accepts verdicts and forgets every second one of them; fails at everything else."""

    accepted = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/feedback":
            Broken.accepted += 1
            self._answer(202, {"feedback_id": Broken.accepted, "collection": campaign.COLLECTION})
        else:
            self._answer(500, {"type": "urn:engram:problem:internal"})

    do_PUT = do_PATCH = do_POST  # noqa: N815 - as the base class calls them

    def do_GET(self) -> None:
        kept = [{"feedback_id": number, "status": "applied"} for number in range(1, Broken.accepted + 1, 2)]
        self._answer(200, {"feedback": kept, "next_after": None})

    def _answer(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def broken() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Broken) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_failures_and_lost_verdicts_are_found(broken: str) -> None:
    ledger = Ledger()
    assert campaign.bodies(broken, KNOWN, 1, campaign.Bounds(60, 60, 0), ledger) == 60
    campaign.account(broken, ledger)
    kinds = {found.kind for found in ledger.findings.values()}
    assert {"500", "verdict lost"} <= kinds
    assert ledger.said()["verdicts_accepted"] == Broken.accepted


def test_hangs_slow_answers_and_what_is_right() -> None:
    ledger = Ledger(slow_seconds=1.0)
    ledger.answered("bodies", "POST /query", 200, 0.5, b"{}", "quick")
    ledger.answered("bodies", "POST /answer", 503, 0.5, b'{"type": "urn:engram:problem:llm-not-configured"}', "")
    assert not ledger.findings
    ledger.answered("bodies", "POST /query", 200, 1.5, b"{}", "slow")
    ledger.hung("bodies", "POST /query", "hang")
    ledger.hung("bodies", "POST /query", "hang again")
    assert {(found.kind, found.example, found.times) for found in ledger.findings.values()} == {
        ("slow", "1.5 s: slow", 1),
        ("hang", "hang", 2),
    }


def test_a_number_is_the_same_request_again() -> None:
    numbers = range(300)
    first = [str(mutations.mutated(7, number, mutations.seeds(KNOWN), KNOWN)) for number in numbers]
    right = mutations.seeds(KNOWN)
    again = [str(mutations.mutated(7, number, right, KNOWN)) for number in reversed(numbers)]
    assert first == again[::-1]
    assert len(set(first)) > 250
