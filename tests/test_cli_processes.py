"""Commands that run a part of Engram: settings, servers that are away, the judge, the OpenAPI document."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from engram import cli as command_line
from engram.cli.process_commands import warn_if_open
from engram.cli.terminal import OTHER_NAMES
from engram.composition.container import Servers
from engram.config.settings import Settings
from tests.support import databases
from tests.support.command import UNREACHABLE_URL, Cli
from tests.support.constants import LLM_ATTEMPTS
from tests.support.forks import ROOT
from tests.support.openai_server import OpenAiServer, Reply, keyword_handler
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"


@pytest.fixture
def cli(tmp_path: Path, settings: Settings) -> Cli:
    return Cli(tmp_path, UNREACHABLE_URL, settings.data_dir)


@pytest.mark.parametrize(
    ("command", "setting", "value"),
    [
        (["query", QUESTION], "ENGRAM_PORT", "eighty"),
        (["verify"], "ENGRAM_LOG_LEVEL", "LOUD"),
        (["serve"], "ENGRAM_PORT", "0"),
        (["worker"], "ENGRAM_DATABASE_POOL_SIZE", "nan"),
        (["judge", "--once"], "ENGRAM_JUDGE_EXAM", "perhaps"),
        (["up"], "ENGRAM_EMBEDDING_RUNTIME", "magic"),
    ],
)
def test_an_invalid_setting_is_named(command: list[str], setting: str, value: str, cli: Cli) -> None:
    said = cli.fails(*command, ENGRAM_URL="", **{setting: value})
    assert said.startswith(f"engram: setting {setting}: ")


def test_processes_without_their_servers_fail_in_one_line(cli: Cli, addresses: Servers) -> None:
    for command in (["serve"], ["worker"], ["migrate"], ["judge", "--once"]):
        env = {"REDIS_URL": addresses.redis_url, "ENGRAM_LLM_BASE_URL": UNREACHABLE_URL}
        said = cli.fails(*command, DATABASE_URL="postgresql://u:open-sesame@127.0.0.1:1/x", **env)
        assert "Postgres" in said
        assert "open-sesame" not in said
    for redis_url in ("localhost:6379", "redis://:open-sesame/@localhost"):
        said = cli.fails("worker", DATABASE_URL=addresses.database_url, REDIS_URL=redis_url)
        assert said.startswith("engram: REDIS_URL is not an address of a Redis")
        assert "open-sesame" not in said
    assert "postgresql://" in cli.fails("serve", DATABASE_URL="mysql://127.0.0.1/x", REDIS_URL=addresses.redis_url)
    env = {"DATABASE_URL": addresses.database_url, "REDIS_URL": addresses.redis_url}
    assert "migration: " in cli.fails("migrate", "no-such-revision", **env)


def test_migrate_says_where_it_is_and_what_it_came_to(cli: Cli, addresses: Servers) -> None:
    with databases.open_migrated(addresses) as servers:
        env = {"DATABASE_URL": servers.database_url}
        there = json.loads(cli("migrate", "--json", **env).stdout)
        where, revision = there["database"], there["revision"]
        assert cli("migrate", **env).stdout == f"{where}: the schema is at revision {revision}\n"
        assert json.loads(cli("migrate", "-1", "--json", **env).stdout)["revision"] != revision
        assert cli("migrate", **env).stdout == f"{where}: the schema is at revision {revision}\n"
        assert cli("migrate", "base", **env).stdout == f"{where}: no schema\n"
    assert where.startswith("database test_")


def test_migrate_refuses_an_unknown_option(cli: Cli) -> None:
    refused = cli("migrate", "--jsn")
    assert refused.returncode == 2
    assert "no such option" in refused.stderr


def test_restore_of_a_missing_backup_creates_no_database(cli: Cli, tmp_path: Path) -> None:
    assert "is no backup" in cli.fails("restore", "nothing", ENGRAM_DATA_DIR=str(tmp_path / "data"))
    assert not (tmp_path / "data").exists()


def test_the_judge(cli: Cli, curie: str, addresses: Servers, http: TestClient) -> None:
    env = {"DATABASE_URL": addresses.database_url, "REDIS_URL": addresses.redis_url, "ENGRAM_LOG_LEVEL": "ERROR"}
    assert "ENGRAM_LLM_BASE_URL" in cli.fails("judge", "--once", "-c", curie, **env)
    assert http.post("/query", json={"collection": curie, "query": QUESTION}).status_code == 200
    with OpenAiServer(keyword_handler) as server:
        env |= {
            "ENGRAM_LLM_BASE_URL": server.base_url,
            LLM_ATTEMPTS: "1",
            "ENGRAM_JUDGE_EXAM": "false",
        }
        assert "no collection" in cli.fails("judge", "--once", "-c", "nowhere", **env)
        server.queue(json.dumps({"supporting": [99]}), json.dumps({"supporting": [99]}))
        assert "99 is not a sentence number" in cli.fails("judge", "--once", "-c", curie, **env)
        server.queue(Reply("overloaded\nfor now", status=503))
        assert "status 503" in cli.fails("judge", "--once", "-c", curie, **env)
        assert cli("judge", "--once", "-c", curie, **env).stdout == "1 episodes judged\n"
        again = cli("judge", "--once", "-c", curie, "--json", **env).stdout
        assert json.loads(again) == {"collection": curie, "judged": 0}
    feedback = http.get("/feedback", params={"collection": curie}).json()["feedback"]
    assert [event["judge"] for event in feedback] == ["llm-judge"]


def test_the_openapi_document_is_exported_and_checked(cli: Cli, tmp_path: Path) -> None:
    exported = tmp_path / "somewhere" / "openapi.json"
    assert "out of date" in cli.fails("openapi", "--check", str(exported))
    assert cli("openapi", str(exported)).returncode == 0
    assert cli("openapi", "--check", str(exported)).returncode == 0
    document = json.loads(exported.read_text())
    assert document == json.loads((ROOT / "openapi" / "openapi.json").read_text())
    exported.write_text(exported.read_text().replace("Engram", "Engrams", 1))
    assert "engram openapi" in cli.fails("openapi", "--check", str(exported))
    assert str(tmp_path) in cli.fails("openapi", str(tmp_path))


def test_help_names_every_command(cli: Cli) -> None:
    said = cli("--help").stdout
    for command in (
        "up",
        "serve",
        "worker",
        "judge",
        "migrate",
        "ingest",
        "query",
        "feedback",
        "sample",
        "openapi",
    ):
        assert re.search(rf"^\W*{command}\s", said, re.MULTILINE), command
        assert cli(command, "--help").returncode == 0


@pytest.mark.parametrize(
    ("unknown", "suggested"),
    [
        ("qurey", "'query'"),
        ("search", "'engram query'"),
        ("upload", "'engram import'"),
        ("start", "'engram up'"),
        ("delete", "'engram collection delete'"),
        ("rekey", "'engram collection rekey'"),
        ("unsay", "'engram fact retract'"),
    ],
)
def test_an_unknown_command_names_the_right_one(unknown: str, suggested: str, cli: Cli) -> None:
    done = cli(unknown, "something")
    assert done.returncode == 2
    said = " ".join(done.stderr.replace("│", "").split())  # without the box and its line breaks
    assert f"No such command '{unknown}'" in said
    assert suggested in said


def test_other_names_lead_to_commands_that_exist() -> None:
    commands = set(command_line.command().commands)  # type: ignore[attr-defined]
    assert not commands & OTHER_NAMES.keys()
    for name in OTHER_NAMES.values():
        found: Any = command_line.command()
        for word in name.split():
            found = found if word.startswith("--") else found.commands[word]


def test_renamed_commands_lead_to_their_new_names() -> None:
    renamed = {
        "state",
        "facts",
        "revise",
        "unsay",
        "adopt",
        "align",
        "predicate",
        "keys",
        "key",
        "evolve",
        "rollback",
    }
    renamed |= {"collections", "rekey", "reembed", "passages", "jobs", "sessions", "set-judge", "retry", "keygen"}
    assert renamed | {"enough"} <= OTHER_NAMES.keys()


@pytest.mark.parametrize(
    ("host", "access", "warns"),
    [
        ("127.0.0.1", "open", False),
        ("::1", "open", False),
        ("localhost", "open", False),
        ("0.0.0.0", "open", True),
        ("::", "open", True),
        ("engram.example", "open", True),
        ("0.0.0.0", "auto", False),
        ("0.0.0.0", "keys", False),
        ("127.0.0.1", "auto", False),
    ],
)
def test_an_api_that_others_reach_without_a_key_warns(host: str, access: str, warns: bool) -> None:
    with capture_logs() as logs:
        warn_if_open(Settings(_env_file=None, host=host, access=access))
    assert [line["log_level"] for line in logs] == ["warning"] * warns
    assert all(line["host"] == host for line in logs)
