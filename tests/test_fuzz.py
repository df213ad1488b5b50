"""``python -m tests.fuzz`` notices what it looks for; some of its requests are in the contract's test."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.fuzz import campaign, guests, model, mutations
from tests.fuzz.ledger import Ledger

KNOWN_NAMES: dict[str, Any] = {"collection": campaign.COLLECTION, "query_id": "q", "sentences": [1]}


class ForgetfulHandler(BaseHTTPRequestHandler):
    """Accepts verdicts and forgets every second one of them; fails at everything else."""

    accepted = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/feedback":
            ForgetfulHandler.accepted += 1
            self._answer(202, {"feedback_id": ForgetfulHandler.accepted, "collection": campaign.COLLECTION})
        else:
            self._answer(500, {"type": "urn:engram:problem:internal"})

    do_PUT = do_PATCH = do_POST  # noqa: N815 - as the base class calls them

    def do_GET(self) -> None:
        kept = [
            {"feedback_id": number, "status": "applied"} for number in range(1, ForgetfulHandler.accepted + 1, 2)
        ]
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
    with ThreadingHTTPServer(("127.0.0.1", 0), ForgetfulHandler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_failures_and_lost_verdicts_are_found(broken: str) -> None:
    ledger = Ledger()
    assert campaign.bodies(broken, KNOWN_NAMES, 1, campaign.Bounds(60, 60, 0), ledger) == 60
    campaign.account(broken, ledger)
    kinds = {found.kind for found in ledger.findings.values()}
    assert {"500", "verdict lost"} <= kinds
    assert ledger.as_report()["verdicts_accepted"] == ForgetfulHandler.accepted


def test_hangs_slow_answers_and_what_is_right() -> None:
    ledger = Ledger(slow_seconds=1.0)
    ledger.record_answer("bodies", "POST /query", 200, 0.5, b"{}", "quick")
    ledger.record_answer(
        "bodies", "POST /answer", 503, 0.5, b'{"type": "urn:engram:problem:llm-not-configured"}', ""
    )
    assert not ledger.findings
    ledger.record_answer("bodies", "POST /query", 200, 1.5, b"{}", "slow")
    ledger.record_hang("bodies", "POST /query", "hang")
    ledger.record_hang("bodies", "POST /query", "hang again")
    assert {(found.kind, found.example, found.times) for found in ledger.findings.values()} == {
        ("slow", "1.5 s: slow", 1),
        ("hang", "hang", 2),
    }


def test_a_number_is_the_same_request_again() -> None:
    numbers = range(300)
    first = [str(mutations.mutate(7, number, mutations.seeds(KNOWN_NAMES), KNOWN_NAMES)) for number in numbers]
    right = mutations.seeds(KNOWN_NAMES)
    again = [str(mutations.mutate(7, number, right, KNOWN_NAMES)) for number in reversed(numbers)]
    assert first == again[::-1]
    assert len(set(first)) > 250


def test_ledger_reports_unauthorized_access_and_leaks() -> None:
    """And whoever is let in by a right, or refused, is no finding."""
    reader, judge = guests.Guest("r", frozenset({"read"})), guests.Guest("j", frozenset({"judge"}))
    stranger = guests.Guest("s", frozenset({"admin"}), home=False)
    present, ledger = guests.Guests(guests.Guest("o", frozenset({"admin"})), [reader, judge, stranger]), Ledger()
    for guest, where, status, body in (
        (reader, "GET /collections/{name}/passages", 200, guests.MARK.encode()),
        (judge, "GET /collections/{name}/passages", 403, b""),
        (present.owner, "DELETE /collections/{name}", 204, b""),
        (stranger, "POST /query", 404, b""),
        (guests.NOBODYS_GUEST, "POST /query", 401, b""),
        (guests.NOBODYS_GUEST, "POST /query", 415, b""),
    ):
        present.check(guest, where, status, body, "", ledger)
    assert not ledger.findings
    assert present.refused == 3
    for guest, where, status, body in (
        (judge, "GET /collections/{name}/passages", 200, b""),
        (guests.NOBODYS_GUEST, "POST /query", 422, b""),
        (stranger, "POST /query", 404, guests.MARK.encode()),
    ):
        present.check(guest, where, status, body, "", ledger)
    assert [(found.kind, found.where) for found in ledger.findings.values()] == [
        ("let in", "GET /collections/{name}/passages"),
        ("let in", "POST /query"),
        ("told", "POST /query"),
    ]


def test_model_moods_differ_and_follow_their_seed() -> None:
    asked = {"messages": [{"content": "supporting"}, {"content": "<evidence>\n[1] The moor.\n</evidence>"}]}
    replies = {mood: model.reply_in_mood(mood, 0.5, asked) for mood in model.MOODS}
    assert len(set(map(str, replies.values()))) == len(set(model.MOODS))
