"""Evolving keys from the command line, against a live service."""

import json
import re
from pathlib import Path
from typing import Any

from engram.composition.container import Application
from engram.wings.published.parts import published_of
from tests.conftest import Ingest
from tests.support.command import UNREACHABLE_URL, Cli

QUESTION = "Which river is the longest of its country?"
RIVER = {"method": "hyde", "text": "The longest river of the country\nflows past the capital into the sea."}


def write(path: Path, value: Any) -> str:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return str(path)


def ask_question(cli: Cli, collection: str) -> str:
    """The query_id of an answered question."""
    query_id: str = json.loads(cli("query", QUESTION, "-c", collection, "--json").stdout)["query_id"]
    return query_id


def test_from_a_verdict_to_a_key_and_back(cli: Cli, curie: str, tmp_path: Path) -> None:
    expansions = write(tmp_path / "expansions.json", [RIVER])
    query_id = ask_question(cli, curie)
    judged = cli(
        "feedback", query_id, "-c", curie, "--passage", "vistula", "--passage", "warsaw",
        "--expansions", expansions,
    )  # fmt: skip
    assert judged.returncode == 0, judged.stderr
    first, *moved = judged.stdout.splitlines()
    standing, *credits = moved[next(at for at, line in enumerate(moved) if line.startswith("     keys: ")) :]
    event = re.fullmatch(r"feedback (\d+): applied", first)[1]  # type: ignore[index]
    validated = re.compile(r"     keys: validated by retrieval, highest alignment gain (0\.\d{3}), waiting")
    gain = validated.fullmatch(standing)[1]  # type: ignore[index]
    credited = re.compile(r"     (\w+), unit (\d+): alignment gain (0\.\d{3}) x weight 1\.000")
    named = [credited.fullmatch(line) for line in credits]
    assert {match[1] for match in named if match} == {"vistula", "warsaw"}
    assert gain == max(match[3] for match in named if match)
    waiting = cli("passage-key", "status", "-c", curie)
    assert waiting.stdout == (
        f"{curie}: base keys serve; verdicts waiting: 1, in the open batch: 1; "
        "best alignment gain 0.000, stale batches: 0\n"
    )
    evolved = cli("passage-key", "evolve", "-c", curie)
    assert evolved.stdout == f"{curie}: generation 1 serves; verdicts taken in: 1, keys composed: 2\n"
    assert (
        cli("passage-key", "evolve", "-c", curie).stdout
        == f"{curie}: nothing waits that moves a key; generation 1 serves\n"
    )
    key = cli("passage-key", "show", "vistula", "-c", curie).stdout.splitlines()
    assert re.fullmatch(
        r"vistula: evolved, as of generation 1; moved by (0\.\d+) of at most (0\.\d+) from its base key \(full\), "
        r"cosine 0\.\d+",
        key[0],
    )
    assert re.fullmatch(r"\[\d+\] score 0\.\d{4}, in the key, hyde", key[1])
    assert key[2].strip() == " ".join(RIVER["text"].split())
    assert re.fullmatch(r"     adds (\w+ 0\.\d\d, )+\w+ 0\.\d\d", key[3])
    assert re.fullmatch(
        rf"     feedback {event} \(cli\): alignment gain 0\.\d+ x weight 1\.000, taken in by generation 1: "
        + re.escape(QUESTION),
        key[4],
    )
    assert len(key) == 5
    assert cli("passage-key", "show", "tokyo", "-c", curie).stdout == "tokyo: base key (full)\n"
    back = cli("passage-key", "rollback", "0", "-c", curie)
    assert back.stdout.startswith(f"{curie}: base keys serve; verdicts waiting: 0")
    _, headings, row = cli("passage-key", "status", "-c", curie).stdout.splitlines()
    assert headings.split() == ["generation", "parent", "reason", "verdicts", "passages", "made"]
    assert re.fullmatch(r"1 +0 +requested +1 +2 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +rolled back", row)


def test_key_commands_print_json(cli: Cli, curie: str, tmp_path: Path) -> None:
    document = write(tmp_path / "widened.json", {"collection": curie, "query": QUESTION, "expansions": [RIVER]})
    query_id = ask_question(cli, curie)
    verdict = ("feedback", query_id, "-c", curie, "--passage", "vistula", "--expansions", document)
    receipt = json.loads(cli(*verdict, "--json").stdout)
    assert receipt["keys"]["credits"][0]["passage_id"] == "vistula"
    evolved = json.loads(cli("passage-key", "evolve", "-c", curie, "--json").stdout)
    assert (evolved["changed"], evolved["serving"]) == (True, 1)
    shown = json.loads(cli("passage-key", "status", "-c", curie, "--json").stdout)
    assert shown["keys"]["generation"] == 1
    assert shown["generations"]["generations"] == [evolved["generation"]]
    key = json.loads(cli("passage-key", "show", "vistula", "-c", curie, "--json").stdout)
    assert [unit["text"] for unit in key["units"]] == [" ".join(RIVER["text"].split())]
    assert json.loads(cli("passage-key", "rollback", "0", "-c", curie, "--json").stdout)["generation"] == 0


def test_a_passage_whose_id_is_a_path(cli: Cli, ingest: Ingest, collection: str) -> None:
    ids = ["a/key", "key", "..", "a b?c#d%2F", "über"]
    ingest(*({"id": identity, "text": "It says little."} for identity in ids))
    for identity in ids:
        done = cli("passage-key", "show", identity, "-c", collection)
        assert done.stdout == f"{identity}: base key (full)\n", done.stderr


def test_refusals_are_one_line(cli: Cli, curie: str, tmp_path: Path) -> None:
    for command in (
        ["passage-key", "evolve", "-c", "nowhere"],
        ["passage-key", "status", "-c", "nowhere"],
        ["passage-key", "rollback", "0", "-c", "nowhere"],
    ):
        assert "no collection 'nowhere'" in cli.fails(*command)
        assert "is `engram up` running?" in cli.fails(*command, "--url", UNREACHABLE_URL).lower()
        assert "Invalid request" in cli.fails(*command[:-1], "no name")
    assert "no key generation 7" in cli.fails("passage-key", "rollback", "7", "-c", curie)
    assert "no passage 'nowhere'" in cli.fails("passage-key", "show", "nowhere", "-c", curie)
    assert "no passage" in cli.fails("passage-key", "show", b"\xff", "-c", curie)
    assert "Invalid request" in cli.fails("passage-key", "show", "", "-c", curie)
    assert cli("passage-key", "rollback", "x", "-c", curie).returncode == 2
    query_id = ask_question(cli, curie)
    verdict = ("feedback", query_id, "-c", curie)
    assert "no passage 'nowhere'" in cli.fails(*verdict, "--passage", "nowhere")
    assert "No such file" in cli.fails(*verdict, "--expansions", "missing.json")
    unreadable = ["", "{", "1", "null", '"x"', "{}", "[NaN]", "[" * 100_000, '{"expansions": [Infinity]}']
    for text in unreadable:
        said = cli.fails(*verdict, "--expansions", write(tmp_path / "odd.json", text))
        assert "odd.json: not what `engram expand --json` prints" in said, text[:20]
    for value in ([1], [{"method": "hyde"}], {"expansions": None}, [RIVER | {"unknown": 1}]):
        assert "Invalid request" in cli.fails(*verdict, "--expansions", write(tmp_path / "odd.json", value))


def test_unvalidated_expansions_are_not_learned(
    cli: Cli, application: Application, ingest: Ingest, collection: str, tmp_path: Path
) -> None:
    """Nothing is said to have helped, so nothing can have been found."""
    ingest({"id": "a", "text": "It says little."})
    expansions = write(tmp_path / "expansions.json", [RIVER])
    judged = cli("feedback", ask_question(cli, collection), "-c", collection, "--expansions", expansions)
    assert judged.stdout.splitlines()[3:] == ["     keys: the expansions are not validated, and teach nothing"]
    assert (
        published_of(application).evolve.load_standing(application.auth.access.scope(collection)).progress.waiting
        == 0
    )
