"""`engram document`: what a collection's documents are, which replaces which, and who reads them."""

import json

import pytest

from tests.conftest import Ingest
from tests.support.command import Cli

OLD, NEW = "fees.md", "charges.md"


@pytest.fixture
def fees(ingest: Ingest, collection: str) -> str:
    ingest(
        {"id": f"{OLD}#1", "document": OLD, "title": "Fees", "text": "The fee for a parcel is 5 EUR."},
        {"id": f"{NEW}#1", "document": NEW, "title": "Charges", "text": "A parcel costs 7 EUR."},
    )
    return collection


def list_documents(cli: Cli, collection: str) -> dict[str, tuple[str | None, str | None]]:
    """Source -> since when it holds, and what replaces it."""
    listed = json.loads(cli("document", "list", "-c", collection, "--json").stdout)["documents"]
    return {one["source"]: (one["valid_from"], one["replaced_by"]) for one in listed}


def test_a_person_says_what_replaces_a_document_and_takes_it_back(cli: Cli, fees: str) -> None:
    assert list_documents(cli, fees) == {OLD: (None, None), NEW: (None, None)}
    done = cli("document", "set", OLD, "--replaced-by", NEW, "--valid-from", "2023-01-01", "-c", fees)
    assert done.stdout.splitlines() == [f"{OLD}: replaced by {NEW}", f"{OLD}: valid from 2023-01-01"]
    assert list_documents(cli, fees)[OLD] == ("2023-01-01", NEW)
    question = ("query", "What is the fee for a parcel?", "-c", fees)
    answered = cli(*question).stdout.splitlines()
    assert [line.split()[1] for line in answered if line[:2] in {"1.", "2."}] == [f"{NEW}#1", f"{OLD}#1"]
    assert f"     replaced by {NEW}" in answered
    assert cli("document", "set", OLD, "--not-replaced", "-c", fees).returncode == 0
    assert list_documents(cli, fees)[OLD] == ("2023-01-01", None)
    assert "replaced by" not in cli(*question).stdout


@pytest.mark.parametrize(
    ("named", "shown", "listed"),
    [
        ("group:hr,user:ana", "group:hr, user:ana", ["group:hr", "user:ana"]),
        ("user:ana, group:hr", "group:hr, user:ana", ["group:hr", "user:ana"]),
        ("nobody", "nobody", []),
        ("everyone", "everyone", None),
    ],
)
def test_readers_of_documents_are_set(
    cli: Cli, fees: str, named: str, shown: str, listed: list[str] | None
) -> None:
    changed = 0 if listed is None else 1
    done = cli("document", "readers", named, OLD, NEW, "-c", fees)
    assert done.stdout.splitlines() == [
        f"{source}: {changed} passage{'s' * (not changed)} changed to be read by {shown}" for source in (OLD, NEW)
    ]
    documents = json.loads(cli("document", "list", "-c", fees, "--json").stdout)["documents"]
    assert [one["readers"] for one in documents] == [[listed], [listed]]


def test_who_sees_a_part_of_a_document_is_told_of_that_part(
    cli: Cli, env: dict[str, str], ingest: Ingest, collection: str
) -> None:
    ingest(
        {"id": "plan.md#1", "document": "plan.md", "text": "All know the plan.", "readers": ["group:staff"]},
        {"id": "plan.md#2", "document": "plan.md", "text": "Its price is ten.", "readers": ["group:hr"]},
    )
    grants = ("--scope", "read", "--scope", "ingest", "--principal", "group:staff")
    key = cli("access", "create-key", "staff", *grants, **env).stdout.strip()
    done = cli("document", "readers", "everyone", "plan.md", "-c", collection, ENGRAM_ACCESS_KEY=key)
    assert done.stdout == "plan.md: 1 passage changed to be read by everyone\n", done.stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_documents_whose_readers_are_set_are_named_before_one_that_fails(
    cli: Cli, fees: str, *, as_json: bool
) -> None:
    done = cli("document", "readers", "nobody", OLD, "gone.md", NEW, "-c", fees, *["--json"] * as_json)
    assert (done.returncode, "gone.md" in done.stderr) == (1, True)
    named = [one["source"] for one in json.loads(done.stdout)] if as_json else done.stdout.split(":")[:1]
    assert named == [OLD]


def test_readers_of_all_documents_below_a_folder_are_set(cli: Cli, ingest: Ingest, collection: str) -> None:
    sources = ("pay/a.md", "pay/b.md", "pays.md")
    ingest(*({"id": f"{source}#1", "document": source, "text": f"{source} is here."} for source in sources))
    done = cli("document", "readers", "group:hr", "pay/", "-c", collection)
    assert done.stdout.splitlines() == [f"{one}: 1 passage changed to be read by group:hr" for one in sources[:2]]
    assert "below 'food/'" in cli.fails("document", "readers", "group:hr", "food/", "-c", collection)


def test_what_is_no_reader_is_refused(cli: Cli, fees: str) -> None:
    done = cli("document", "readers", "group:hr; user:ana", OLD, "-c", fees)
    assert (done.returncode, "commas" in done.stderr) == (2, True)


@pytest.mark.parametrize("options", [[], ["--replaced-by", NEW, "--not-replaced"]], ids=["nothing", "both"])
def test_a_change_has_to_say_one_thing(cli: Cli, fees: str, options: list[str]) -> None:
    assert cli("document", "set", OLD, *options, "-c", fees).returncode == 2
    assert list_documents(cli, fees)[OLD] == (None, None)
