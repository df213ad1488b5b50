"""`engram-pull langfuse` against a server that speaks Langfuse's published contract."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import httpx
import pytest

from engram.composition.container import Application
from engram_client import Engram
from engram_pull import product_http
from engram_pull.langfuse_scores import LangfuseScores
from engram_pull.product_http import ProductError, ProductHttp, UnavailableProductError
from engram_pull.pull_run import PullRun
from engram_pull.pull_service import PullService
from tests.integrations.pull.conftest import Ask, RatingRecorder
from tests.support import state
from tests.support.command import UNREACHABLE_URL, Cli
from tests.support.processes import PATIENCE_SECONDS
from tests.support.product_servers import LangfuseServer, langfuse_score

NOW = datetime.now(UTC)
KEYS = {"LANGFUSE_PUBLIC_KEY": "pk-lf-1", "LANGFUSE_SECRET_KEY": "sk-lf-1"}
Pull = Callable[..., "CompletedProcess[str]"]


def format_moment(age: timedelta) -> str:
    return (NOW - age).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def score(score_id: str, trace: str | None, age_minutes: float = 10, **changed: Any) -> dict[str, Any]:
    moment = format_moment(timedelta(minutes=age_minutes))
    return langfuse_score(score_id, trace, **({"timestamp": moment, "updatedAt": moment} | changed))


@pytest.fixture(params=["v3", "v2"])
def langfuse(request: pytest.FixtureRequest) -> Any:
    with LangfuseServer(version=request.param) as server:
        yield server


@pytest.fixture
def pull(pulling: Cli, langfuse: LangfuseServer, curie: str) -> Pull:
    def run_pull(*arguments: str, **env: str) -> "CompletedProcess[str]":
        told = KEYS | {"LANGFUSE_HOST": langfuse.url} | env
        return pulling("langfuse", "-c", curie, *arguments, **told)

    return run_pull


def counts(done: "CompletedProcess[str]") -> dict[str, int]:
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return {name: number for name, number in found.items() if number}


def test_scores_become_ratings_once(
    pull: Pull, langfuse: LangfuseServer, ratings: RatingRecorder, ask: Ask, trace: str, curie: str
) -> None:
    query = ask(trace)
    langfuse.records += [
        score("up", trace, comment="nice"),
        score("other-name", trace, name="hallucination", dataType="NUMERIC", value=0.9),
        score("elsewhere", "a" * 32),
        score("session", None),
        score("odd", trace, dataType="NUMERIC", value=7),
    ]
    done = pull()
    assert done.returncode == 0, done.stderr
    assert f"up: score up of langfuse for {query}" in done.stdout
    assert "skipped: score odd: 7 is outside the scale 0:1; set --scale" in done.stdout
    assert (
        "1 up, 0 down, 0 revoked, 0 unchanged; 1 score of traces without a query here; 1 score skipped"
        in done.stdout
    )
    assert ratings.ratings == [
        {"query_id": query, "collection": curie, "rating": "up", "judge": "langfuse", "reason": "nice"}
    ]
    assert counts(pull("--json")) == {"unchanged": 1, "unknown": 1, "skipped": 1}
    assert ratings.posts == 1


def test_a_changed_score_replaces_and_a_deleted_one_revokes(
    pull: Pull, langfuse: LangfuseServer, ratings: RatingRecorder, ask: Ask, trace: str
) -> None:
    query = ask(trace)
    langfuse.records.append(score("a", trace))
    assert counts(pull("--json")) == {"up": 1}
    langfuse.records[0] |= {"value": False, "comment": "missing", "updatedAt": format_moment(timedelta(minutes=5))}
    assert counts(pull("--json")) == {"down": 1}
    langfuse.records.clear()
    assert counts(pull("--json")) == {"revoked": 1}
    assert counts(pull("--json")) == {}
    langfuse.records.append(score("a", trace))  # pressed again, under the id of before
    assert counts(pull("--json")) == {"up": 1}
    sent = [(one["query_id"], one["rating"], one.get("reason")) for one in ratings.ratings]
    assert sent == [(query, "up", None), (query, "down", "missing"), (query, None, None), (query, "up", None)]


def test_of_several_scores_of_a_person_the_latest_counts(
    pull: Pull, langfuse: LangfuseServer, ratings: RatingRecorder, ask: Ask, trace: str
) -> None:
    query = ask(trace)
    langfuse.records += [
        score("first", trace, 30),
        score("second", trace, 20, value=False),
        score("other", trace, 10, authorUserId="Bea"),
    ]
    pull()
    assert ratings.current() == {("langfuse", query): "down", ("langfuse:bea", query): "up"}
    del langfuse.records[1]
    assert counts(pull("--json")) == {"revoked": 1, "unchanged": 2}
    assert ratings.current() == {("langfuse", query): "up", ("langfuse:bea", query): "up"}


def test_all_pages_are_read_and_a_score_reaches_all_queries_of_its_trace(
    pull: Pull, langfuse: LangfuseServer, ratings: RatingRecorder, ask: Ask, trace: str
) -> None:
    queries = {ask(trace), ask(trace)}
    langfuse.records += [score(f"s{number:03}", f"{number:032x}") for number in range(230)]
    langfuse.records.append(score("last", trace, 600))
    assert counts(pull("--json")) == {"up": 1, "unknown": 230}
    assert {one["query_id"] for one in ratings.ratings} == queries
    assert sum("/scores" in path for path in langfuse.paths) >= 3


def test_only_the_last_days_are_read_and_older_scores_are_not_missed(
    pull: Pull, langfuse: LangfuseServer, ratings: RatingRecorder, ask: Ask, trace: str
) -> None:
    ask(trace)
    langfuse.records.append(score("old", trace, 60 * 24 * 5))
    assert counts(pull("--json", "--days", "3")) == {}
    assert counts(pull("--json")) == {"up": 1}
    assert counts(pull("--json", "--days", "3")) == {}
    assert [one["rating"] for one in ratings.ratings] == ["up"]


def test_a_pull_that_breaks_off_goes_on_and_counts_once(
    pull: Pull, langfuse: LangfuseServer, ratings: RatingRecorder, ask: Ask, trace: str
) -> None:
    query, other = ask(trace), ask(trace + "-2")
    langfuse.records += [score("a", trace, 30), score("b", trace + "-2", 20)]
    ratings.refusals = [500]
    done = pull()
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert counts(pull("--json")) == {"up": 2}
    assert sorted(one["query_id"] for one in ratings.ratings) == sorted([query, other])


def test_pull_after_a_crash_reuses_idempotency_keys(
    pull: Pull,
    langfuse: LangfuseServer,
    ratings: RatingRecorder,
    ask: Ask,
    trace: str,
    application: Application,
    curie: str,
) -> None:
    ask(trace)
    langfuse.records.append(score("a", trace))
    assert counts(pull("--json")) == {"up": 1}
    with application.database.write() as writer:  # as if it had stopped before it noted what it sent
        own = {"id": state.collection_id(application, curie)}
        assert writer.execute("DELETE FROM pulled_score WHERE collection_id = %(id)s", own) == 1
    assert counts(pull("--json")) == {"up": 1}
    assert (ratings.posts, len(ratings.ratings)) == (2, 1)


def test_an_earlier_score_counts_again_after_a_quick_pass(
    langfuse: LangfuseServer,
    ratings: RatingRecorder,
    recorder: tuple[RatingRecorder, str],
    ask: Ask,
    trace: str,
    curie: str,
) -> None:
    query = ask(trace)
    http = ProductHttp("Langfuse", langfuse.url, "KEYS", auth=("pk-lf-1", "sk-lf-1"))
    with Engram(recorder[1], collection=curie) as client:
        run = PullRun(LangfuseScores(http, ["user-feedback"]), PullService(client, "langfuse"), "langfuse")
        langfuse.records += [score("early", trace, 300, value=False), score("late", trace)]
        month, hour = NOW - timedelta(days=30), NOW - timedelta(hours=1)
        run.run_once(month, month)
        del langfuse.records[1]
        assert run.run_once(hour, month).revoked == 1
    assert ratings.current() == {("langfuse", query): "down"}


def test_dry_run_sends_and_stores_no_scores(
    pull: Pull, langfuse: LangfuseServer, ratings: RatingRecorder, ask: Ask, trace: str
) -> None:
    query = ask(trace)
    langfuse.records.append(score("a", trace))
    done = pull("--dry-run")
    assert f"up: score a of langfuse for {query}" in done.stdout
    assert ratings.posts == 0
    assert counts(pull("--json")) == {"up": 1}


def test_names_scale_and_judge_are_set(
    pull: Pull, langfuse: LangfuseServer, ratings: RatingRecorder, ask: Ask, trace: str
) -> None:
    query = ask(trace)
    langfuse.records += [
        score("a", trace, name="stars", dataType="NUMERIC", value=5, authorUserId="Ada"),
        score("b", trace, 20, name="thumb", dataType="CATEGORICAL", value="down"),
    ]
    assert counts(
        pull("--json", "--score", "stars", "--score", "thumb", "--scale", "1:5", "--judge", "People")
    ) == {
        "up": 1,
        "down": 1,
    }
    assert ratings.current() == {("people", query): "up"}


def test_most_scores_missing_is_taken_for_a_slip(
    pull: Pull, langfuse: LangfuseServer, ratings: RatingRecorder, ask: Ask, trace: str
) -> None:
    ask(trace)
    langfuse.records += [score(f"s{number:02}", trace, 60 - number) for number in range(25)]
    assert counts(pull("--json")) == {"up": 25}
    langfuse.records.clear()
    done = pull()
    assert done.returncode == 1
    assert "25 of 25 known scores" in done.stderr
    assert done.stderr.count("\n") == 1
    assert counts(pull("--json", "--allow-mass-revocation")) == {"revoked": 25}
    assert ratings.current() == {}


def test_429_and_500_are_tried_again(
    pull: Pull, langfuse: LangfuseServer, ratings: RatingRecorder, ask: Ask, trace: str
) -> None:
    ask(trace)
    langfuse.records.append(score("a", trace))
    langfuse.fail(429, {"retry-after": "0"})
    langfuse.fail(500)
    assert counts(pull("--json")) == {"up": 1}


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        ((), {"LANGFUSE_SECRET_KEY": "wrong"}, "refuses the credentials (401)"),
        ((), {"LANGFUSE_SECRET_KEY": ""}, "LANGFUSE_SECRET_KEY is not set"),
        ((), {"LANGFUSE_HOST": "nonsense"}, "no URL of Langfuse"),
        (("--scale", "5:1"), {}, "--scale '5:1' is not LOW:HIGH"),
        (("--name", "Two Words"), {}, "--name"),
        (("--judge", "!"), {}, "--judge"),
        ((), {"ENGRAM_URL": UNREACHABLE_URL}, "out of reach"),
        (("-c", "nowhere"), {}, "no collection"),
    ],
)
def test_a_slip_is_one_line_and_a_failure(
    pull: Pull, ratings: RatingRecorder, arguments: tuple[str, ...], env: dict[str, str], words: str
) -> None:
    done = pull(*arguments, **env)
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert ratings.posts == 0


def test_a_server_that_is_not_there_is_one_line(pull: Pull) -> None:
    done = pull(LANGFUSE_HOST=UNREACHABLE_URL)
    assert done.returncode == 1
    assert "out of reach" in done.stderr
    assert done.stderr.count("\n") == 1


def test_watching_goes_on_over_a_failure(
    pulling: Cli,
    langfuse: LangfuseServer,
    ratings: RatingRecorder,
    ask: Ask,
    trace: str,
    tmp_path: Path,
    curie: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = ask(trace)
    for name, value in (KEYS | {"LANGFUSE_HOST": langfuse.url}).items():
        monkeypatch.setenv(name, value)
    for _ in range(product_http.TRIES):
        langfuse.fail(500, {"retry-after": "0"})
    with (tmp_path / "output").open("wb") as output:
        running = pulling.begin("langfuse", "-c", curie, "--watch", "--every", "1", output=output)
        try:
            langfuse.records.append(score("a", trace))
            await_rating(ratings, {("langfuse", query): "up"})
            langfuse.records[0]["value"] = False
            await_rating(ratings, {("langfuse", query): "down"})
        finally:
            running.terminate()
            assert running.wait(PATIENCE_SECONDS) == 0
    assert "The next pass tries again." in (tmp_path / "output").read_text()


def await_rating(ratings: RatingRecorder, expected: dict[tuple[str, str], str]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while ratings.current() != expected:
        assert time.monotonic() < deadline, ratings.current()
        time.sleep(0.05)


class TestHttp:
    """Waits are counted, not waited for."""

    @staticmethod
    def http(server: LangfuseServer, waits: list[float]) -> ProductHttp:
        return ProductHttp("Langfuse", server.url, "KEYS", auth=("pk-lf-1", "sk-lf-1"), pause=waits.append)

    def test_retry_after_is_waited_for_as_a_number_or_a_date(self) -> None:
        waits: list[float] = []
        with LangfuseServer() as server:
            server.fail(429, {"retry-after": "7"})
            server.fail(429, {"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"})
            server.fail(503)
            self.http(server, waits).get("/api/public/v3/scores", {"name": "x"})
        assert waits[:2] == [7.0, 0.0]
        assert 0.0 < waits[2] <= product_http.FIRST_WAIT_SECONDS * 4

    def test_a_long_retry_after_is_not_waited_for(self) -> None:
        waits: list[float] = []
        with LangfuseServer() as server:
            server.fail(429, {"retry-after": "86400"})
            with pytest.raises(UnavailableProductError, match="429"):
                self.http(server, waits).get("/api/public/v3/scores")
        assert waits == []

    def test_it_gives_up_after_some_tries(self) -> None:
        waits: list[float] = []
        with LangfuseServer() as server:
            for _ in range(product_http.TRIES):
                server.fail(502)
            with pytest.raises(UnavailableProductError, match="502"):
                self.http(server, waits).get("/api/public/v3/scores")
        assert len(waits) == product_http.TRIES - 1

    def test_a_refusal_is_not_tried_again(self) -> None:
        waits: list[float] = []
        with LangfuseServer() as server, pytest.raises(ProductError, match="400"):
            self.http(server, waits).get("/api/public/v3/scores", {"limit": "1000"})
        assert waits == []


def test_a_thumb_in_langfuse_moves_what_is_learned(
    cli: Cli, langfuse: LangfuseServer, ask: Ask, trace: str, curie: str, service: str
) -> None:
    """End to end with the real `POST /feedback`."""
    cli = replace(cli, module="engram_pull")
    query = ask(trace)
    langfuse.records.append(score("a", trace))
    told = KEYS | {"LANGFUSE_HOST": langfuse.url}
    done = cli("langfuse", "-c", curie, "--json", **told)
    with httpx.Client(base_url=service) as http:
        ledger = http.get(f"/collections/{curie}/pulls/langfuse@127.0.0.1").json()["scores"]
        verdicts = http.get("/feedback", params={"collection": curie}).json()["feedback"]
        assert [(one["score_id"], one["rating"], one["queries"]) for one in ledger] == [("a", "up", [query])]
        assert counts(done) == {"up": 1}
        assert [(one["query_id"], one["judge"]) for one in verdicts] == [(query, "langfuse")]
        langfuse.records[0] |= {
            "value": False,
            "comment": "missing",
            "updatedAt": format_moment(timedelta(minutes=1)),
        }
        assert counts(cli("langfuse", "-c", curie, "--json", **told)) == {"down": 1}
        await_statuses(http, curie, ["revoked", "pending"])
        langfuse.records.clear()
        assert counts(cli("langfuse", "-c", curie, "--json", **told)) == {"revoked": 1}
        await_statuses(http, curie, ["revoked", "revoked"])


def await_statuses(http: httpx.Client, collection: str, expected: list[str]) -> None:
    """Wait until the first verdicts have these statuses; what takes one back may be logged after them."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        verdicts = http.get("/feedback", params={"collection": collection}).json()["feedback"]
        if [one["status"] for one in verdicts][: len(expected)] == expected:
            return
        assert time.monotonic() < deadline, [one["status"] for one in verdicts]
        time.sleep(0.1)
