"""Parked verdicts from the command line."""

import json

import pytest

from engram.composition.container import Application
from tests.support import state
from tests.support.command import UNREACHABLE_URL, Cli


@pytest.fixture
def parked(application: Application, curie: str) -> list[int]:
    """Three verdicts that were given up."""
    query_id = state.add_episode(application, curie, "Where was Marie Curie born?", [])
    events = [state.judge(application, curie, query_id, judge=judge).event.id for judge in ("a", "a", "b")]
    with application.database.write() as writer:
        writer.execute(
            """
            UPDATE feedback_event SET status = 'parked', attempts = 5, error = E'it\nbroke' WHERE id = ANY(%(ids)s)
            """,
            {"ids": events},
        )
    return events


def test_parked_verdicts_are_listed_and_retried(
    cli: Cli, application: Application, curie: str, parked: list[int]
) -> None:
    first, *others, more = cli("parked", "list", "-c", curie, "--limit", "2").stdout.splitlines()
    assert first.startswith(f"feedback {parked[0]} of a, ")
    assert first.endswith(": it broke")
    assert len(others) == 1
    assert more == f"more: engram parked list -c {curie} --after {parked[1]}"
    assert cli("parked", "list", "-c", curie, "--after", str(parked[1])).stdout.startswith(
        f"feedback {parked[2]} of b, "
    )

    assert cli("parked", "retry", str(parked[0]), "-c", curie).stdout == f"feedback {parked[0]}: pending\n"
    assert cli("parked", "retry", "--judge", "b", "-c", curie).stdout == f"{curie}: 1 retried\n"
    left = json.loads(cli("parked", "list", "-c", curie, "--json").stdout)["feedback"]
    assert [event["feedback_id"] for event in left] == [parked[1]]
    done = json.loads(cli("parked", "retry", "--all", "-c", curie, "--json").stdout)
    assert done == {"collection": curie, "retried": 1}
    assert cli("parked", "list", "-c", curie).stdout == ""
    assert set(state.event_statuses(application, curie).values()) == {"pending"}


def test_parked_retry_errors_are_one_line(cli: Cli, curie: str, parked: list[int]) -> None:
    for arguments in ([], ["1", "--all"], ["--all", "--judge", "a"], ["1", "--judge", "a"]):
        assert "Say which verdicts" in cli.fails("parked", "retry", *arguments, "-c", curie)
    assert "no verdict 1." in cli.fails("parked", "retry", "1", "-c", curie)
    cli("parked", "retry", str(parked[0]), "-c", curie)
    assert "is pending" in cli.fails("parked", "retry", str(parked[0]), "-c", curie)
    for command in (["parked", "retry", "--all"], ["parked", "list"]):
        assert "no collection 'nowhere'" in cli.fails(*command, "-c", "nowhere")
        assert "is `engram up` running?" in cli.fails(*command, "--url", UNREACHABLE_URL).lower()
