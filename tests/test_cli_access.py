"""Access keys from the command line, which makes the first one straight on the database; acts from there."""

import json

import pytest

from engram.config.safe_urls import is_loopback
from engram.core.auth.access_keys import is_key
from tests.conftest import Ingest
from tests.support.command import Cli
from tests.support.strict_client import TestClient


def test_a_key_is_made_used_followed_and_revoked(cli: Cli, env: dict[str, str], curie: str) -> None:
    made = cli(
        "access",
        "create-key",
        "Shop",
        "--scope",
        f"{curie}:read",
        "--scope",
        f"{curie}:admin",
        "--days",
        "30",
        **env,
    )
    key = made.stdout.strip()
    assert (made.returncode, is_key(key)) == (0, True), made.stderr
    assert key not in made.stderr
    assert "shop" in made.stderr
    assert cli("judges", "list", "-c", curie, ENGRAM_ACCESS_KEY=key).stdout == f"{curie}: no judges\n"
    wrong = key[:-1] + ("a" if key[-1] != "a" else "b")
    assert "Unauthorized" in cli.fails("judges", "list", "-c", curie, ENGRAM_ACCESS_KEY=wrong)
    assert "no collection" in cli.fails("judges", "list", "-c", "elsewhere", ENGRAM_ACCESS_KEY=key)

    listed = json.loads(cli("access", "list", "--json", "--limit", "1000", **env).stdout)["keys"]
    (own,) = [row for row in listed if row["hint"] == key[-4:] and row["name"] == "shop"]
    assert own["scopes"] == {curie: ["read", "admin"]}
    followed = json.loads(cli("access", "rotate", str(own["id"]), "--json", **env).stdout)
    assert is_key(followed["key"])
    assert cli("access", "revoke", str(followed["id"]), **env).stdout == f"key {followed['id']} of shop: revoked\n"
    assert "revoked" in cli("access", "list", "--after", str(own["id"] - 1), **env).stdout
    assert f"no access key {2**40}" in cli.fails("access", "revoke", str(2**40), **env)
    assert "'write' is no scope" in cli.fails("access", "create-key", "x", "--scope", "write", **env)
    assert "a name is made of" in cli.fails("access", "create-key", "ключ", **env)


def test_tenants_have_quotas(cli: Cli, env: dict[str, str], collection: str) -> None:
    assert cli("access", "tenant", collection, "--passages", "5", **env).stdout == f"tenant {collection}: set\n"
    shown = json.loads(cli("access", "tenants", "--json", **env).stdout)["tenants"]
    (own,) = [row for row in shown if row["name"] == collection]
    assert (own["quotas"]["passages"], own["quotas"]["queries"]) == (5, None)
    assert collection in cli("access", "tenants", **env).stdout
    told = json.loads(cli("access", "tenant", collection, "--judges", "3", "--json", **env).stdout)
    assert (told["name"], told["quotas"]["judges"], told["quotas"]["passages"]) == (collection, 3, None)
    assert "confirm it by its name" in cli.fails("access", "remove-tenant", collection, **env)
    assert "is that of requests without a key" in cli.fails(
        "access", "remove-tenant", "local", "--confirm", "local", **env
    )
    gone = cli("access", "remove-tenant", collection, "--confirm", collection, **env)
    assert (gone.returncode, gone.stdout) == (0, f"tenant {collection}: removed\n"), gone.stderr
    assert collection not in cli("access", "tenants", **env).stdout


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("::1", True), ("[::1]", True), ("localhost", True), ("0.0.0.0", False), ("api", False)],
)
def test_only_what_is_on_loopback_needs_no_key(host: str, alone: bool) -> None:
    assert is_loopback(host) is alone


@pytest.mark.parametrize("command", [("audit",), ("ask", "Who?"), ("query", "Who?")])
def test_commands_send_the_access_key(cli: Cli, command: tuple[str, ...]) -> None:
    assert "Unauthorized" in cli.fails(*command, ENGRAM_ACCESS_KEY="engram_" + "a" * 43)


def test_what_a_person_may_read_is_shown_with_the_reason(
    cli: Cli, env: dict[str, str], ingest: Ingest, collection: str
) -> None:
    readers = {"pay": ["group:hr"], "plan": ["user:ana"], "safe": [], "hours": None}
    passages = ({"id": f"{name}#1", "document": name, "readers": names} for name, names in readers.items())
    ingest(*(passage | {"text": f"About {passage['document']}."} for passage in passages), into=collection)
    ingest({"id": "memo", "text": "It came by itself.", "readers": ["group:staff"]}, into=collection)
    made = cli("access", "create-key", "viewer", "--scope", "admin", **env).stdout.strip()
    shown = cli("access", "person", "ana", "--group", "staff", "-c", collection, "--json", ENGRAM_ACCESS_KEY=made)
    told = json.loads(shown.stdout)
    assert told["passages"] == [{"passage": "memo", "seen": "yes", "why": "group:staff is among its readers"}]
    assert told["documents"] == [
        {"document": "hours", "seen": "yes", "why": "everyone reads it"},
        {"document": "pay", "seen": "no", "why": "it is read by group:hr"},
        {"document": "plan", "seen": "yes", "why": "user:ana is among its readers"},
        {"document": "safe", "seen": "no", "why": "it is read by nobody"},
    ]


def test_the_command_shows_acts(cli: Cli, http: TestClient, curie: str) -> None:
    http.delete(f"/collections/{curie}").raise_for_status()
    shown = cli("audit", "--limit", "1")
    assert f"/collections/{curie}" in shown.stdout
    assert "delete_collection" in shown.stdout
