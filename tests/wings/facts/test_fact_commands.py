"""Facts on the command line: the README's example, as a user types it."""

import json

from engram.composition.container import Application
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from tests.conftest import Ingest
from tests.support.command import Cli


def test_two_sources_disagree_and_a_verdict_decides(cli: Cli, ingest: Ingest, collection: str) -> None:
    ingest({"id": "river", "text": "The river flows."})

    def run(*arguments: str) -> str:
        done = cli(*arguments, "-c", collection)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("fact", "predicate", "chair", "--one").startswith("chair: one at a time (as declared)")
    first = run("fact", "add", "gazette", "Acme", "chair", "Ana Diaz")
    assert "Acme -[chair]-> Ana Diaz (belief 0.67)" in first
    assert "belief 0.50" in run("fact", "add", "blog", "Acme", "chair", "Ben Ito")
    fact = first.splitlines()[1].removeprefix("fact ").partition(":")[0]
    judged = run("fact", "revise", "confirm", fact, "--judge", "me")
    assert "confirm, applied" in judged
    assert "belief 0.75" in judged
    found = run("fact", "search", "Who is the chair of Acme?")
    assert "Ben Ito (belief 0.33, doubted)" in found
    assert "[1] gazette: Acme chair Ana Diaz" in found
    assert "source by blog speaks against it: belief 0.50" in run("fact", "show", fact)
    event = judged.partition(":")[0].removeprefix("event ")
    told = run("fact", "retract", "--judge", "me", "--preview")
    assert told.startswith("1 confirm would be revoked\n2 facts change, 0 become doubted, 1 are doubted no more")
    revoked = run("fact", "retract", "--judge", "me")
    revocation = revoked.partition(":")[0].removeprefix("event ")
    assert run("fact", "retract", revocation) == f"event {revocation}: revoked\n"
    assert "belief 0.75" in run("fact", "show", fact)
    assert run("fact", "retract", event) == f"event {event}: revoked\n"


def test_a_graph_is_merged_and_names_are_aligned(cli: Cli, ingest: Ingest, collection: str) -> None:
    ingest({"id": "river", "text": "The river flows."})
    assert (
        cli("fact", "add", "wire", "Acme", "chair", "Eve Hall", "--graph", "mine", "-c", collection).returncode == 0
    )
    merged = cli("fact", "merge", "mine", "-c", collection)
    assert merged.stdout.endswith("merged mine: 1 fact, 1 sentence, 0 verdicts, 0 joins\n"), merged.stderr
    assert "Eve Hall" in cli("fact", "search", "Who is the chair of Acme?", "-c", collection).stdout
    assert cli("fact", "align", "--preview", "-c", collection).stdout == f"{collection}: 0 names would join\n"


def test_with_a_key_it_is_the_keys_word(
    cli: Cli, application: Application, ingest: Ingest, collection: str
) -> None:
    ingest({"id": "river", "text": "The river flows."})
    stated = cli("fact", "add", "gazette", "Acme", "chair", "Ana Diaz", "-c", collection, "--json")
    fact = json.loads(stated.stdout)["facts"][0]["fact_id"]
    name = f"ana-{collection[-8:]}"
    made = application.auth.access_keys.make(LOCAL, AccessKeyRequest(name=name, scopes={collection: ["judge"]}))
    said = cli("fact", "revise", "confirm", str(fact), "-c", collection, "--json", ENGRAM_ACCESS_KEY=made.key)
    assert said.returncode == 0, said.stderr
    assert [event["judge"] for event in json.loads(said.stdout)["events"]] == [name]


def test_fact_command_errors_are_one_line(cli: Cli, ingest: Ingest, collection: str) -> None:
    ingest({"id": "river", "text": "The river flows."})
    assert "Say which" in cli.fails("fact", "retract", "-c", collection)
    assert "no graph" in cli.fails("fact", "merge", "none", "-c", collection)
    assert "LLM" in cli.fails("fact", "revise", "Ana is the chair.", "-c", collection)
