"""Parts of statements that look rows up by their keys.

The planner knows from statistics how large collections are, which tell nothing of one that came since: it takes
that for empty, and reads it from end to end where a few rows are to be looked up, in the worst case for each row of
something else. So the form of a statement says how it is carried out. Ids come as rows (``id_rows``), and what
belongs to each is looked up in a sub-select of its own (``join_by_index``) that OFFSET 0 keeps from being merged
into the statement: no order of joins is left to choose. Hundreds of rows are looked up together instead
(``join_once``): one by one would be most of what such a statement costs. The choice of the index is left, and is
made without regard to which collection is asked for: see ``database`` and the migrations.

Statements that mean a collection as a whole (an exact search, a copy, a verification) name it as usual;
tests/storage/test_plans.py lists them.
"""

import re
from functools import cache

NOT_DELETED = "deleted_at IS NULL"
"""Of rows of ``collection``: it is there. What others held goes by ``storage.corpus.collection_deletion``."""


_EQUAL = re.compile(r"\b((?:\w+\.)?collection_id) = (\w+\.collection_id)\b")
_INDEXED = re.compile(r"\(((?:\w+\.)?collection_id) \+ 0\) = (\d+)")
_INSERT = re.compile(r"\bINSERT INTO\b")
_COPIED = re.compile(r"(?!.*\b(?:RETURNING|ON CONFLICT)\b).*\bSELECT\b", re.DOTALL)


def id_rows(parameter: str, kind: str = "bigint", *, collection: str = "%(collection)s") -> str:
    """The parameter, an array of ``kind``, as rows ``wanted(collection_id, id)``, each once.

    Rows to be changed or removed cannot be looked up by ``join_by_index``. Joined to these by both columns they are
    found one by one as well: no condition on their table alone leads to a collection as a whole.
    """
    columns = f"{collection}::bigint AS collection_id, unnest(%({parameter})s::{kind}[]) AS id"
    return f"(SELECT DISTINCT {columns}) AS wanted"


LAST_CHARACTER = "\U0010ffff"
"""After a beginning, the end of the texts that begin so, by the pattern operators."""
CLOCK = "(SELECT now() AS moment) AS clock"
"""The moment as a column: for a CASE, into which Citus lets no function whose value is not for ever the same."""
WANTED_IDS = id_rows("ids")


@cache
def bind_to_node(statement: str) -> str:
    """A statement about one collection with that named at each of its tables, as Citus needs to find the node.

    Citus does not see through a sub-select that a column is the parameter: to it, an equality of two collections
    within one may reach over all nodes. Nor does it see which collection a search through a vector index is about:
    a decimal tells it, and leads to no other index of the node.
    """
    if not statement.lstrip().startswith("CREATE INDEX"):
        statement = _INDEXED.sub(r"\g<0> AND \1 = \2.0", statement)
    if "%(collection)s" not in statement:
        return statement
    return _EQUAL.sub(r"\1 = %(collection)s::bigint AND \2 = %(collection)s::bigint", statement)


@cache
def insert_by_statement(statement: str) -> str:
    """The statement as Citus can send it to a node where row security binds it.

    What a SELECT gives Citus sends by COPY, unless the insertion returns rows or says what a conflict does. A COPY
    is refused where a policy holds. What returns rows must be visible to who inserts them.
    """
    for start in reversed([found.start() for found in _INSERT.finditer(statement)]):
        end = _find_end(statement, start)
        if _COPIED.match(statement, start, end):
            statement = f"{statement[:end]} RETURNING collection_id {statement[end:]}"
    return statement


def _find_end(statement: str, start: int) -> int:
    """Find where the part ends that begins at ``start``: at a parenthesis that was opened before, or with all."""
    depth = 0
    for at in range(start, len(statement)):
        depth += (statement[at] == "(") - (statement[at] == ")")
        if depth < 0:
            return at
    return len(statement)


def alias_rows(rows: str, *, collection: str = "%(collection)s") -> str:
    """Rows that parameters give as ``new``, the collection's id before their columns, to change others by."""
    return f"(SELECT {collection}::bigint AS collection_id, * FROM {rows} OFFSET 0) AS new"


def join_by_index(table: str, condition: str, *, outer: bool = False, collection: str = "%(collection)s") -> str:
    """Return JOIN text that looks up, for each row before it, the collection's rows that meet a condition.

    Args:
        table: with its alias, as "sentence s".
        condition: on columns that one index begins with after the collection.
        outer: keep rows that nothing is found for.
        collection: whose rows.
    """
    alias = table.rsplit(maxsplit=1)[-1]
    return f"""
        {"LEFT" if outer else "INNER"} JOIN LATERAL (
            SELECT {alias}.* FROM {table} WHERE {alias}.collection_id = {collection} AND {condition} OFFSET 0
        ) AS {alias} ON true
    """


def join_once(table: str, column: str, ids: str, *, condition: str = "true") -> str:
    """Return SQL for the collection's rows whose column is among the ids, in one pass through an index.

    Where the ids come from rows, join it to those by FULL, which cannot be carried out row by row: one side is
    hashed, whatever the planner takes their number for. Leave out what only one side has around a sub-select with
    OFFSET 0 of the join: a condition beside it would make it another one.

    Args:
        table: with its alias, as "sentence s".
        column: that one index begins with after the collection.
        ids: an array.
        condition: on further columns.
    """
    alias = table.rsplit(maxsplit=1)[-1]
    return f"""(
        SELECT {alias}.* FROM {table}
        WHERE {alias}.collection_id = %(collection)s AND {alias}.{column} = ANY({ids}) AND {condition} OFFSET 0
    ) AS {alias}"""
