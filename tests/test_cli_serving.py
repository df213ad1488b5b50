"""How a collection serves, from the command line against a live service."""

import json
import re
from pathlib import Path
from typing import Any

from tests.support.command import UNREACHABLE_URL, Cli

ARMS = {"arms": [{"name": "off", "percent": 50, "memory": "off"}, {"name": "read", "percent": 50}]}


def show_collection(cli: Cli, collection: str, *changes: str) -> list[str]:
    """The lines of ``collection show``, or of ``collection set`` with changes."""
    done = cli("collection", "set" if changes and changes != ("--json",) else "show", "-c", collection, *changes)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def write(path: Path, value: Any) -> str:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return str(path)


def test_settings_are_shown_and_changed(cli: Cli, curie: str, tmp_path: Path) -> None:
    fresh, kind, languages = show_collection(cli, curie)
    assert re.fullmatch(rf"{curie}: 5 passages, 9 sentences, \d+ entities; live", fresh)
    assert re.fullmatch(
        r"     ranked as encyclopedic, by its titles \(\d+% of passages titled after their subject\)", kind
    )
    assert languages == "     languages: en 5"
    shadow, *_ = show_collection(cli, curie, "--shadow")
    assert shadow == fresh.removesuffix("live") + "in shadow: it learns, and serves without memory"
    experiment = write(tmp_path / "arms.json", ARMS)
    exploration = "     explores in 2.50% of queries, last positions: 3, seed 7"
    expected = [
        shadow,
        kind,
        languages,
        "     arm off: 50%, memory off, profile default, strategy graph",
        "     arm read: 50%, memory read, profile default, strategy graph",
        exploration,
    ]
    options = ("--experiment", experiment, "--explore", "0.025", "--slots", "3", "--seed", "7")
    assert show_collection(cli, curie, *options) == expected
    assert show_collection(cli, curie) == expected
    assert show_collection(cli, curie, "--slots", "1")[-1] == exploration.replace("3,", "1,")
    assert show_collection(cli, curie, "--no-experiment", "--no-exploration", "--live") == [
        fresh,
        kind,
        languages,
    ]
    assert show_collection(cli, curie, "--corpus-kind", "general")[1] == "     ranked as general, as set"
    assert show_collection(cli, curie, "--corpus-kind", "auto")[1] == kind
    for option, language in (("de", "de"), ("auto", None)):
        assert (
            json.loads("\n".join(show_collection(cli, curie, "--language", option, "--json")))["language"]
            == language
        )
    as_json = json.loads("\n".join(show_collection(cli, curie, "--json")))
    assert (as_json["kind_source"], as_json["question_share"], as_json["question_count"]) == ("titles", None, 0)
    assert (as_json["serving"], as_json["experiment"], as_json["exploration"]) == ("live", None, None)


def test_mistakes_are_one_line(cli: Cli, curie: str, tmp_path: Path) -> None:
    arms = write(tmp_path / "arms.json", ARMS)
    assert "no collection 'nowhere'" in cli.fails("collection", "set", "-c", "nowhere", "--shadow")
    assert "at least one setting" in cli.fails("collection", "set", "-c", curie)
    assert "contradict" in cli.fails("collection", "set", "-c", curie, "--experiment", arms, "--no-experiment")
    assert "contradict" in cli.fails("collection", "set", "-c", curie, "--explore", "0.1", "--no-exploration")
    assert "No such file" in cli.fails("collection", "set", "-c", curie, "--experiment", "missing.json")
    assert "not JSON" in cli.fails(
        "collection", "set", "-c", curie, "--experiment", write(tmp_path / "bad.json", "{")
    )
    assert "less than or equal to 1" in cli.fails("collection", "set", "-c", curie, "--explore", "1.5")
    assert "share" in cli.fails("collection", "set", "-c", curie, "--slots", "2")
    assert "out of reach" in cli.fails("collection", "show", "-c", curie, ENGRAM_URL=UNREACHABLE_URL)
    assert "no arm 'nobody'" in cli.fails("lift", "-c", curie, "--baseline", "nobody")
    assert "from" in cli.fails("lift", "-c", curie, "--from", "yesterday")
