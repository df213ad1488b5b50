"""A collection of thousands of passages with everything that verdicts leave behind, made by the server itself."""

from pathlib import Path
from typing import Any

import psycopg

PASSAGES = 6_000
VECTORS = 200
"""Different directions; every row's vector is the sum of two of them."""

# Of {passages} passages p: sentences 4p-3 to 4p, each with 5 of as many entities; 40 of 10,000 terms in each;
# a verdict for each of the first half, on four sentences, crediting two units to it and the next passage; as many
# facts, each said by a sentence and by a statement.
# Triggers are off: checking the foreign keys would take most of the time.
_ROWS = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")


def fill(connection: "psycopg.Connection[Any]", *, dimension: int, passages: int = PASSAGES) -> None:
    """Make the collection ``large``, of id 1, in a database that has none; nothing is analysed."""
    rows = _ROWS.format(
        dimension=dimension, vectors=VECTORS, passages=passages, sentences=4 * passages, events=passages // 2
    )
    with connection.transaction():
        connection.execute("SET LOCAL citus.propagate_set_commands = 'local'")  # to each node of a cluster
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute(rows)
