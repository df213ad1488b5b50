"""How many files one has to open to read a question from its route to its statements."""

from collections.abc import Iterable
from pathlib import Path

import grimp
import pytest

import engram.services.question

MOST_FILES = 45
MOST_FILES_WITH_MATHEMATICS = 98
"""What is reached now: a rise needs a reason. The last one: ``recall`` left ``walk``, half of which was no walk."""
ROOMS = ("auth", "corpus", "feedback_log", "learning", "question")


@pytest.fixture(scope="module")
def reached() -> list[str]:
    """The pipeline of a question, and all modules of Engram that it imports directly or through others."""
    pipeline = "engram.services.question.pipeline"
    graph = grimp.build_graph("engram")
    return [
        module for module in {pipeline, *graph.find_upstream_modules(pipeline)} if not graph.find_children(module)
    ]


def count(modules: Iterable[str], *packages: str) -> int:
    return sum(module.startswith(tuple(f"{package}." for package in packages)) for module in modules)


def test_between_route_and_sql_are_few_files(reached: list[str]) -> None:
    """Count the modules of ``services``, and those of the rooms of ``storage``, where statements stand.

    Not counted are ``config``, ``context`` and ``telemetry``; ``core`` and ``providers``, which compute or ask a
    model and lead to no statement; and the modules of ``storage`` beside its rooms, which send all statements.
    """
    rooms = [f"engram.storage.{room}" for room in ROOMS]
    assert count(reached, "engram.services", *rooms) <= MOST_FILES


def test_with_mathematics_they_become_no_more(reached: list[str]) -> None:
    """Count ``core`` as well."""
    rooms = [f"engram.storage.{room}" for room in ROOMS]
    assert count(reached, "engram.services", "engram.core", *rooms) <= MOST_FILES_WITH_MATHEMATICS


def test_the_search_alone_opens_snapshots() -> None:
    steps = Path(engram.services.question.__path__[0]).glob("*.py")
    opening = [step.name for step in steps if ".snapshot()" in step.read_text(encoding="utf-8")]
    assert opening == ["search.py"]
