"""`engram-pull open-webui`, of an export and of a server that speaks Open WebUI's contract."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.integrations.pull.conftest import Ask, RatingRecorder
from tests.support.command import Cli
from tests.support.product_servers import OpenWebUiServer, open_webui_feedback

Pull = Callable[..., "CompletedProcess[str]"]
JUDGE = "open-webui:user-1"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return tmp_path / "feedback-history-export.json"


@pytest.fixture
def pull(pulling: Cli, curie: str) -> Pull:
    def run_pull(*arguments: str, **env: str) -> "CompletedProcess[str]":
        return pulling("open-webui", *arguments, "-c", curie, "--json", **env)

    return run_pull


def counts(done: "CompletedProcess[str]") -> dict[str, int]:
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return {name: number for name, number in found.items() if number}


def test_an_export_is_read_and_a_later_one_goes_on(
    pull: Pull, export: Path, ratings: RatingRecorder, ask: Ask, trace: str
) -> None:
    query = ask(trace)
    up = open_webui_feedback("a", trace, 1, comment="nice")
    export.write_text(json.dumps([up, open_webui_feedback("b", "elsewhere", 1), open_webui_feedback("c", None, 1)]))
    assert counts(pull(str(export))) == {"up": 1, "unknown": 1}
    assert counts(pull(str(export))) == {"unchanged": 1, "unknown": 1}
    export.write_text(json.dumps([open_webui_feedback("a", trace, -1, reason="too_verbose")]))
    assert counts(pull(str(export))) == {"down": 1}
    export.write_text("[]")
    assert counts(pull(str(export))) == {"revoked": 1}
    assert [(one["judge"], one["query_id"], one["rating"], one.get("reason")) for one in ratings.ratings] == [
        (JUDGE, query, "up", "nice"),
        (JUDGE, query, "down", "wrong_answer"),
        (JUDGE, query, None, None),
    ]


@pytest.mark.parametrize("old", [False, True])
def test_the_api_is_read(pull: Pull, ratings: RatingRecorder, ask: Ask, trace: str, old: bool) -> None:
    query = ask(trace)
    with OpenWebUiServer([open_webui_feedback("a", trace, 1)], old=old) as server:
        told = {"OPEN_WEBUI_URL": server.url, "OPEN_WEBUI_API_KEY": "sk-1"}
        assert counts(pull(**told)) == {"up": 1}
        assert ratings.current() == {(JUDGE, query): "up"}
        refused = pull(**told | {"OPEN_WEBUI_API_KEY": "wrong"})
    assert refused.returncode == 1
    assert "refuses the credentials (401)" in refused.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "feedback-history-export.json: "), ('{"items": []}', "a list of objects"), (None, "No such file")],
)
def test_a_bad_file_is_one_line_and_a_failure(
    pull: Pull, export: Path, ratings: RatingRecorder, content: Any, words: str
) -> None:
    if content is not None:
        export.write_text(content)
    done = pull(str(export))
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert ratings.posts == 0


def test_without_a_file_an_address_is_needed(pull: Pull) -> None:
    assert "OPEN_WEBUI_URL is not set" in pull().stderr
