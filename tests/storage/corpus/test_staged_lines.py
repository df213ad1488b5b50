"""Lines that wait: as many at once as a batch may hold."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from engram.composition.container import Application
from engram.storage.corpus import collections, staged_lines
from engram.storage.database import Writer, observe_sql
from engram.storage.jobs import jobs
from tests.support.citus import skip_on_citus
from tests.support.encoder import SOME_ENCODER

JOB = UUID(int=1)


def stage_lines(writer: Writer, name: str, *lengths: int) -> int:
    """Lines of a job, numbered from 1, each so many characters of JSON: ``{"id": "xx"}`` has 10 and the id's."""
    collection = collections.open_for_writing(writer, name, SOME_ENCODER).collection.id
    assert jobs.add(writer, collection, JOB, kind="any", lane=name, payload={})
    lines = [(line, {"id": "x" * (length - 10)}) for line, length in enumerate(lengths, start=1)]
    staged_lines.add(writer, collection, JOB, lines, [])
    return collection


@pytest.mark.parametrize(
    ("after", "limit", "characters", "lines"),
    [
        (0, 10, 1_000, [1, 2, 3, 4]),
        (0, 3, 1_000, [1, 2, 3]),
        (1, 2, 1_000, [2, 3]),
        (0, 10, 140, [1, 2]),  # 40 + 100
        (0, 10, 139, [1]),
        (1, 10, 20, [2]),  # none fits, so one comes alone
        (4, 10, 1_000, []),
    ],
)
def test_lines_come_until_they_are_too_much(
    application: Application, collection: str, after: int, limit: int, characters: int, lines: list[int]
) -> None:
    with application.database.write() as writer:
        target = stage_lines(writer, collection, 40, 100, 30, 20)
        found = staged_lines.list_next(writer, target, JOB, after, limit, characters)

    assert [line for line, _ in found] == lines


def test_lines_come_page_by_page(application: Application, collection: str) -> None:
    with application.database.write() as writer:
        target = stage_lines(writer, collection, *[20] * (2 * staged_lines.PAGE + 3))
        some = staged_lines.list_next(writer, target, JOB, 0, staged_lines.PAGE + 2, 10_000)
        all_of_them = staged_lines.list_next(writer, target, JOB, 0, 1_000, 10_000)

    assert [line for line, _ in some] == list(range(1, staged_lines.PAGE + 3))
    assert [line for line, _ in all_of_them] == list(range(1, 2 * staged_lines.PAGE + 4))


def test_a_sample_is_evenly_spaced_and_its_texts_are_cut(application: Application, collection: str) -> None:
    with application.database.write() as writer:
        target = collections.open_for_writing(writer, collection, SOME_ENCODER).collection.id
        assert jobs.add(writer, target, JOB, kind="any", lane=collection, payload={})
        lines = [(line, {"id": str(line), "title": f"Title {line}", "text": "long text"}) for line in range(5, 15)]
        staged_lines.add(writer, target, JOB, lines, [])
        some = staged_lines.sample(writer, target, JOB, 4, 4)
        every = staged_lines.sample(writer, target, JOB, 100, 4)

    assert some == [(f"Title {line}", "long") for line in (5, 8, 11, 14)]
    assert len(every) == 10


@skip_on_citus("plans")
def test_a_sample_reads_no_other_lines(application: Application, collection: str) -> None:
    sent: list[tuple[str, Mapping[str, Any]]] = []
    with application.database.write() as writer:
        target = stage_lines(writer, collection, *[20] * 500)
        with observe_sql(lambda _connection, *statement: sent.append(statement)):
            staged_lines.sample(writer, target, JOB, 10, 4)
        ((statement, parameters),) = sent
        ((plans,),) = writer.rows(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)

    assert count_read_lines(plans[0]["Plan"]) <= 10 + 2  # the first and the last give the distance


def count_read_lines(plan: Mapping[str, Any]) -> float:
    """Rows of ``ingest_line`` that a carried out plan read."""
    read = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    own = plan["Actual Loops"] * read if plan.get("Relation Name") == "ingest_line" else 0
    return own + sum(map(count_read_lines, plan.get("Plans", ())))


def test_a_sample_skips_lines_that_are_not_there(application: Application, collection: str) -> None:
    with application.database.write() as writer:
        target = stage_lines(writer, collection, *[20] * 20)
        staged_lines.take(writer, target, JOB, [1, *range(8, 17)])
        some = staged_lines.sample(writer, target, JOB, 6, 4)

    assert len(some) == 4  # of lines 2 to 20 in fours: 2, 6, none from 10 on, 17, 18


def test_a_sample_of_no_lines_is_empty(application: Application, collection: str) -> None:
    with application.database.write() as writer:
        target = collections.open_for_writing(writer, collection, SOME_ENCODER).collection.id
        assert staged_lines.sample(writer, target, JOB, 4, 4) == []
