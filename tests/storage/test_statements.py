"""The text of each statement that a question or a verdict sends, kept as files beside this test.

``make docs`` writes them: ``statements/MODULE.FUNCTION.sql`` for each function of the storage layer, and in
``statements/README.md`` the order in which they are sent.
"""

import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.storage.database import observe_sql
from tests.support.citus import skip_on_citus
from tests.support.plans import find_caller
from tests.support.state import add_episode, judge, sentences
from tests.support.strict_client import TestClient

FOLDER = Path(__file__).parent / "statements"
CHAIN = "Into which sea flows the river of Marie Curie's birthplace?"


def record(send: Callable[[], Any]) -> list[tuple[str, str]]:
    """Name and text of each statement that is sent meanwhile, once each, in order."""
    texts: dict[tuple[str, str], None] = {}

    def observe(_connection: object, text: str, _parameters: object) -> None:
        name = find_caller(inspect.currentframe())
        if name is not None:
            texts[name, _lay_out(text)] = None

    with observe_sql(observe):
        send()
    return list(texts)


def _lay_out(text: str) -> str:
    lines = [line.rstrip() for line in textwrap.dedent(text.expandtabs()).strip().splitlines()]
    return "\n".join(line for line in lines if line) + "\n"


def _make_files(requests: dict[str, list[tuple[str, str]]]) -> dict[str, str]:
    """File name -> its text."""
    files: dict[str, str] = {}
    order = ["# Statements in the order in which they are sent", "", "Written by `make docs`.", ""]
    for request, sent in requests.items():
        order += [f"## {request}", ""]
        for name, text in sent:
            numbers = (f"{name}{number}.sql" for number in ("", *(f".{n}" for n in range(2, 99))))
            file = next(one for one in numbers if files.get(one, text) == text)
            files[file] = text
            order.append(f"1. [{file.removesuffix('.sql')}]({file})")
        order.append("")
    return files | {"README.md": "\n".join(order).rstrip() + "\n"}


@pytest.fixture
def files(http: TestClient, application: Application, curie: str) -> dict[str, str]:
    """What the statements of a question after a first one, and those of a verdict on it, are written as."""
    ids = list(sentences(application, curie, "vistula").values())
    judge(application, curie, add_episode(application, curie, CHAIN, ids), ids, wait=True)
    asked = {"query": CHAIN, "collection": curie, "top_k": 2, "max_hops": 2, "stop_rule": "none"}
    http.post("/query", json=asked).raise_for_status()
    query_id = add_episode(application, curie, CHAIN, ids)
    verdict = {"query_id": str(query_id), "collection": curie, "supporting": ids, "wait": True}
    return _make_files(
        {
            "POST /query": record(lambda: http.post("/query", json=asked).raise_for_status()),
            "POST /feedback": record(
                lambda: http.post(
                    "/feedback", json=verdict, headers={"Idempotency-Key": uuid4().hex}
                ).raise_for_status()
            ),
        }
    )


@skip_on_citus("statements")
def test_statements_are_those_of_the_files(files: dict[str, str], request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--write-statements"):
        for old in FOLDER.glob("*"):
            old.unlink()
        for name, text in files.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
    kept = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.iterdir()}
    assert files == kept, "run `make docs`"
