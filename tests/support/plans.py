"""Plans of the statements that an application runs, as the planner makes them where and when they run."""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from psycopg import ClientCursor, sql
from psycopg.adapt import PyFormat, Transformer
from sqlalchemy import Engine, event

from app.storage.database import Database
from app.storage.tables import metadata

STORAGE = Path(sys.modules["app.storage"].__file__ or "").parent
TENANTS = {table.name for table in metadata.tables.values() if "collection_id" in table.columns}
EXPLAINED = 4
"""Executions of one statement that are explained: what it is given may make another plan."""
PLACEHOLDER = re.compile(r"%\((\w+)\)[sbt]")
# What hands rows on as they come; all else between a scan and a LIMIT reads the scan to its end first.
STREAMING = {"Nested Loop", "LockRows", "Result", "Subquery Scan", "Unique", "Append", "Merge Append", "ProjectSet"}


@dataclass(frozen=True)
class Reading:
    """A scan that reads a collection, or all of them, from end to end.

    Attributes:
        statement: the function that runs it.
        again: whether it is repeated for each row of something else.
    """

    statement: str
    scan: str
    again: bool


@dataclass
class Watch:
    """What was run, and what of it reads whole collections."""

    runs: Counter[str] = field(default_factory=Counter)
    readings: dict[Reading, str] = field(default_factory=dict)


@contextmanager
def watched(database: Database) -> Iterator[Watch]:
    """Explain everything that ``database`` is asked in the block, just before it is run."""
    watch = Watch()
    engines = {value for value in vars(database).values() if isinstance(value, Engine)}
    texts: Counter[str] = Counter()
    indexed: dict[str, list[str]] = {}

    def explain(_engine: Any, cursor: Any, text: str, parameters: Mapping[str, Any], *_: Any) -> None:
        statement = _caller(sys._getframe(1))
        watch.runs[statement] += 1
        texts[text] += 1
        if texts[text] > EXPLAINED or not re.match(r"\s*(SELECT|WITH|INSERT|UPDATE|DELETE|\()", text):
            return
        connection = cursor.connection
        with ClientCursor(connection) as plain:
            if not indexed:
                indexed.update(_index_columns(plain))
            plain.execute(f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {_generic(connection, text, parameters)}")
            ((plan,),) = plain.fetchall()
        for scan, again in _collection_scans(plan[0]["Plan"], indexed):
            watch.readings.setdefault(Reading(statement, scan, again), text)

    for engine in engines:
        event.listen(engine, "before_cursor_execute", explain)
    try:
        yield watch
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", explain)


def _caller(frame: FrameType | None) -> str:
    """The function of the storage layer that runs a statement, with its module."""
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(STORAGE) and path.name != "database.py":
            return f"{path.stem}.{frame.f_code.co_name}"
        frame = frame.f_back
    return "?"


def _index_columns(cursor: ClientCursor[Any]) -> dict[str, list[str]]:
    """Index -> its key columns, of B-trees."""
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


def _generic(connection: Any, text: str, parameters: Mapping[str, Any]) -> str:
    """The statement with its parameters as the server numbers and types them."""
    names = list(dict.fromkeys(PLACEHOLDER.findall(text)))
    if not names:
        return text
    dumped = Transformer(connection)
    dumped.dump_sequence([parameters[name] for name in names], [PyFormat.AUTO] * len(names))
    with ClientCursor(connection) as cursor:
        cursor.execute("SELECT format_type(oid, NULL) FROM unnest(%s::oid[]) AS oid", [list(dumped.types or ())])
        kinds = [row[0] for row in cursor.fetchall()]
    written = {
        name: f"${n}" if kind in ("unknown", "-", "text") else f"${n}::{kind}"
        for n, (name, kind) in enumerate(zip(names, kinds, strict=True), start=1)
    }
    return PLACEHOLDER.sub(lambda found: written[found[1]], text).replace("%%", "%")


def _collection_scans(
    plan: Mapping[str, Any], indexed: Mapping[str, list[str]], again: bool = False, limited: bool = False
) -> Iterator[tuple[str, bool]]:
    """Scans below ``plan`` that no column but the collection's bounds, and whether each is repeated."""
    kind = plan["Node Type"]
    found = _scanned(plan, indexed, limited)
    if found:
        yield found, again
    streams = (limited and kind in STREAMING) or kind == "Limit"
    for child in plan.get("Plans", ()):
        role = child.get("Parent Relationship", "")
        inner = kind == "Nested Loop" and role == "Inner"
        repeated = again or inner or (role == "SubPlan" and f"hashed {child['Subplan Name']}" not in str(plan))
        yield from _collection_scans(
            child,
            indexed,
            repeated,
            (streams and not (kind == "Nested Loop" and role == "Inner")) or (kind == "Limit"),
        )


def _scanned(plan: Mapping[str, Any], indexed: Mapping[str, list[str]], limited: bool) -> str:
    kind, table = plan["Node Type"], plan.get("Relation Name", "")
    if kind in ("Seq Scan", "Sample Scan"):
        return f"{kind} on {table}" if table in TENANTS else ""
    if "Scan" not in kind or "Index Name" not in plan or plan["Index Name"] not in indexed:
        return ""
    columns = indexed[plan["Index Name"]]
    condition = plan.get("Index Cond", "")
    if columns[0] != "collection_id" or (not table and kind != "Bitmap Index Scan"):
        return ""
    if len(columns) == 1:
        return ""
    bound = re.findall(rf"\b{columns[1]} (=|>=|<=|<|>)|ROW\([^)]*{columns[1]}", condition)
    if "=" in bound or (limited and (bound or "Filter" not in plan)):
        return ""
    return f"{kind} by {plan['Index Name']}, {condition or 'unbounded'}"


__all__ = ["Reading", "Watch", "sql", "watched"]
