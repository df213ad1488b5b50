"""Plans of the statements that an application runs, as the planner makes them where and when they run."""

import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

from psycopg import ClientCursor, Connection
from psycopg.adapt import PyFormat, Transformer

from engram.storage.database import Writer, observe_sql
from engram.storage.tables import metadata
from tests.support.storage_files import STORAGE_FOLDERS

Plan = Mapping[str, Any]
TENANTS = {table.name for table in metadata.tables.values() if "collection_id" in table.columns}
EXPLAINED = 2
"""Executions of one statement that are explained."""
PLACEHOLDER = re.compile(r"%\((\w+)\)[sbt]")
# What hands rows on as they come; all else between a scan and a LIMIT reads the scan to its end first.
STREAMING = {"Nested Loop", "LockRows", "Result", "Subquery Scan", "Unique", "Append", "Merge Append", "ProjectSet"}
# Partial indexes that hold what waits or is under way, and so are read whole without harm; once.
OF_WHAT_WAITS = {
    "feedback_event_parked_idx",
    "feedback_event_pending_idx",
    "job_open_idx",
    "job_receiving_idx",
    "job_running_idx",
    "key_evidence_waiting_idx",
}
FEW_ROWS_INDEXES = {"job_open_idx"}
"""Of these those that may be read again for each row of something: open jobs are compared with one another."""


@dataclass(frozen=True)
class TableScan:
    """A scan that reads a table, or all of a collection in it, from end to end.

    Attributes:
        statement: the function of the storage layer that runs it, with its module.
        again: whether it is repeated for each row of something else.
    """

    statement: str
    scan: str
    again: bool


@dataclass
class Watch:
    """What was run how often, and what of it reads from end to end, with the first text that does."""

    runs: Counter[str] = field(default_factory=Counter)
    readings: dict[TableScan, str] = field(default_factory=dict)


@contextmanager
def watch_plans() -> Iterator[Watch]:
    """Explain what the storage layer asks in the block, each statement just before it runs.

    Explained is the plan for any parameters, which is what the application has the server make.
    """
    watch = Watch()
    texts: Counter[str] = Counter()
    indexes: dict[str, list[str]] = {}
    kinds: dict[int, str] = {}

    def explain(connection: "Connection[Any]", text: str, parameters: Mapping[str, Any]) -> None:
        texts[text] += 1
        if texts[text] > EXPLAINED or not re.match(r"\s*(\(?SELECT|WITH|[IUD]\w+)\s", text):
            return
        statement = find_caller(inspect.currentframe())
        if statement is None:
            return
        watch.runs[statement] += 1
        with ClientCursor(connection) as plain:
            indexes.update(indexes or _key_columns(plain))
            numbered = _number_parameters(plain, text, parameters, kinds)
            plain.execute(f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {numbered}")
            ((plans,),) = plain.fetchall()
        for scan, again in _end_to_end(plans[0]["Plan"], indexes):
            watch.readings.setdefault(TableScan(statement, scan, again), text)

    # Of a block that runs ahead each statement is waited for: between two nothing could be explained.
    with observe_sql(explain), patch.object(Writer, "ahead", nullcontext):
        yield watch


def find_caller(frame: FrameType | None) -> str | None:
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        in_storage = any(map(path.is_relative_to, STORAGE_FOLDERS)) and path.name != "database.py"
        if in_storage and not frame.f_code.co_name.startswith("<"):  # Python 3.11 gives comprehensions frames
            return f"{path.stem}.{frame.f_code.co_name}"
        frame = frame.f_back
    return None


def _key_columns(cursor: "ClientCursor[Any]") -> dict[str, list[str]]:
    """Index -> its columns, of B-trees."""
    cursor.execute(
        """
        SELECT i.relname, array_agg(a.attname::text ORDER BY k.n)
        FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_am m ON m.oid = i.relam
        CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY AS k(attnum, n)
        JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.attnum
        WHERE m.amname = 'btree' AND k.n <= x.indnkeyatts GROUP BY i.relname
        """
    )
    return dict(cursor.fetchall())


def _number_parameters(
    cursor: "ClientCursor[Any]", text: str, parameters: Mapping[str, Any], kinds: dict[int, str]
) -> str:
    """The statement with its parameters as the server numbers them, of the types that they are sent as.

    Args:
        kinds: names of types by their ids, as far as they were looked up.
    """
    names = list(dict.fromkeys(PLACEHOLDER.findall(text)))
    dumped = Transformer(cursor.connection)
    dumped.dump_sequence([parameters[name] for name in names], [PyFormat.AUTO] * len(names))
    types = dumped.types or ()
    if new := set(types) - kinds.keys():
        cursor.execute("SELECT oid, format_type(oid, NULL) FROM unnest(%s::oid[]) AS oid", [list(new)])
        kinds.update(cursor.fetchall())
    written = {
        name: f"${n}" if kinds[oid] in {"-", "text", "unknown"} else f"${n}::{kinds[oid]}"
        for n, (name, oid) in enumerate(zip(names, types, strict=True), start=1)
    }
    return PLACEHOLDER.sub(lambda found: written[found[1]], text).replace("%%", "%")


def _end_to_end(
    plan: Plan, indexes: Mapping[str, list[str]], again: bool = False, limited: bool = False
) -> Iterator[tuple[str, bool]]:
    """Scans of ``plan`` that read from end to end, and whether each is repeated.

    Args:
        again: whether the plan is carried out for each row of something else.
        limited: whether it is left off when a LIMIT has its rows.
    """
    kind = plan["Node Type"]
    scan = _find_bare_scan(plan, indexes, again, limited)
    if scan:
        yield scan, again
    for child in plan.get("Plans", ()):
        role = child.get("Parent Relationship")
        inner = kind == "Nested Loop" and role == "Inner"
        # A hashed sub-plan is carried out once, and each row looks its values up.
        correlated = role == "SubPlan" and f"hashed {child['Subplan Name']}" not in str(plan)
        left_off = kind == "Limit" or (limited and kind in STREAMING and not inner)
        yield from _end_to_end(child, indexes, again or inner or correlated, left_off)


def _find_bare_scan(plan: Plan, indexes: Mapping[str, list[str]], again: bool, limited: bool) -> str | None:
    """What the node scans, if nothing bounds that but the collection; or what waits, for each row of something."""
    kind, table, index = plan["Node Type"], plan.get("Relation Name"), plan.get("Index Name", "")
    if kind == "Seq Scan" and table in TENANTS:
        return f"all of {table}"
    columns = indexes.get(index, [])
    condition = plan.get("Index Cond", "")
    if index in OF_WHAT_WAITS - FEW_ROWS_INDEXES and again and f"{columns[0]} =" not in condition:
        return f"{index} {condition or 'without condition'}"
    if len(columns) < 2 or columns[0] != "collection_id" or index in OF_WHAT_WAITS:
        return None
    bounds = re.findall(rf"\b{columns[1]} (=|>=|<=|<|>)|ROW\([^)]*\b{columns[1]}\b", condition)
    if "=" in bounds or (limited and (bounds or "Filter" not in plan)):
        return None
    return f"{index} {condition or 'without condition'}"
