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


def test_readers_of_documents_are_set(cli: Cli, fees: str) -> None:
    for named, shown in (
        ("group:hr,user:ana", "group:hr, user:ana"),
        ("nobody", "nobody"),
        ("everyone", "everyone"),
    ):
        done = cli("document", "readers", named, OLD, NEW, "-c", fees)
        assert done.stdout.splitlines() == [f"{OLD}: read by {shown}", f"{NEW}: read by {shown}"]
        listed = json.loads(cli("document", "list", "-c", fees, "--json").stdout)["documents"]
        expected = {"nobody": [], "everyone": None}.get(named, named.split(","))
        assert [one["readers"] for one in listed] == [[expected], [expected]]


@pytest.mark.parametrize("options", [[], ["--replaced-by", NEW, "--not-replaced"]], ids=["nothing", "both"])
def test_a_change_has_to_say_one_thing(cli: Cli, fees: str, options: list[str]) -> None:
    assert cli("document", "set", OLD, *options, "-c", fees).returncode == 2
    assert list_documents(cli, fees)[OLD] == (None, None)
