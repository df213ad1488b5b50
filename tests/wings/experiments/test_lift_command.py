"""What arms come to, from the command line against a live service."""

import json
import re
from pathlib import Path
from typing import Any

from tests.support.command import Cli

QUESTION = "Where was Marie Curie born?"
ARMS = [{"name": "off", "percent": 50, "memory": "off"}, {"name": "read", "percent": 50}]


def set_collection(cli: Cli, collection: str, *changes: str) -> None:
    done = cli("collection", "set", "-c", collection, *changes)
    assert done.returncode == 0, done.stderr


def write(path: Path, *arms: dict[str, Any]) -> str:
    path.write_text(json.dumps({"arms": arms}), encoding="utf-8")
    return str(path)


def test_a_question_that_says_nothing_is_given_an_arm(cli: Cli, curie: str, tmp_path: Path) -> None:
    experiment = write(tmp_path / "arms.json", {"name": "all", "percent": 100, "memory": "off"})
    set_collection(cli, curie, "--experiment", experiment, "--explore", "1")
    first, *rest = cli("query", QUESTION, "-c", curie, "--top-k", "2", "--unit", "user").stdout.splitlines()
    assert re.fullmatch(r"query \S+: \d hops?, \w+, arm all, sufficiency \d+%", first)
    ranked = [line for line in rest if re.match(r"\d\. ", line)]
    assert ["  (explored)" in line for line in ranked] == [False, True]
    own = cli("query", QUESTION, "-c", curie, "--memory", "read", "--json")
    assert (json.loads(own.stdout)["arm"], json.loads(own.stdout)["memory"]) == (None, "read")
    set_collection(cli, curie, "--shadow")
    first, *_ = cli("query", QUESTION, "-c", curie, "--memory", "read").stdout.splitlines()
    assert first.count(", in shadow")


def test_arms_are_compared(cli: Cli, curie: str, tmp_path: Path) -> None:
    set_collection(cli, curie, "--experiment", write(tmp_path / "arms.json", *ARMS))
    queries = {}
    for number in range(20):  # until both arms were asked
        answer = json.loads(cli("query", QUESTION, "-c", curie, "--unit", f"user-{number}", "--json").stdout)
        queries.setdefault(answer["arm"], answer)
        if len(queries) == 2:
            break
    for answer in queries.values():
        hit = answer["passages"][0]["passage_id"]
        assert cli("feedback", answer["query_id"], "-c", curie, "--passage", hit).returncode == 0
    done = cli("lift", "-c", curie)
    assert done.returncode == 0, done.stderr
    headings, off, read, rest, *differences, never = done.stdout.splitlines()
    assert (
        headings.split()
        == (
            "arm queries judged unjudged retrieval success evidence recall reciprocal rank generation success hops "
            "median ms"
        ).split()
    )
    assert off.split()[:1] + off.split()[4:8] == ["off", "1.000", "1.000", "1.000", "-"]
    assert read.split()[0] == "read"
    assert rest.split() == ["(no", "arm)", "0", "0", "0", "-", "-", "-", "-", "-", "-"]
    assert "read less off, retrieval success: +0.000 (95% interval -0.793 to +0.793)" in differences
    assert "read less off, evidence recall: +0.000 (too few queries for an interval)" in differences
    asked = sum(int(line.split()[1]) for line in (off, read))
    assert never == f"never judged: {asked - 2} of {asked}; they need not be like the judged queries"
    report = json.loads(
        cli("lift", "-c", curie, "--baseline", "read", "--to", "2999-01-01T00:00:00Z", "--json").stdout
    )
    assert (report["baseline"], report["to"]) == ("read", "2999-01-01T00:00:00Z")
    assert "no arm 'nobody'" in cli.fails("lift", "-c", curie, "--baseline", "nobody")
    assert "from" in cli.fails("lift", "-c", curie, "--from", "yesterday")
