"""Evolved keys as an evolution would leave them, with exactly these vectors and terms."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from engram.composition.container import Application
from engram.storage.database import observe_sql
from tests.support import state

Vector = NDArray[np.float32]
_evolved: list[tuple[Application, int]] = []


def unit(values: NDArray[np.floating]) -> Vector:
    """The vectors, (..., d), at unit length."""
    return np.asarray(values / np.linalg.norm(values, axis=-1, keepdims=True), dtype=np.float32)


def evolve(
    application: Application,
    name: str,
    vectors: Mapping[str, Vector] | None = None,
    terms: Mapping[str, Mapping[str, tuple[float, float]]] | None = None,
) -> None:
    """Give passages evolved keys.

    Args:
        vectors: external id -> evolved dense key.
        terms: external id -> term -> (frequency in the base key, frequency in the evolved key).
    """
    target = state.collection_id(application, name)
    _evolved.append((application, target))
    ids = state.passages(application, name)
    with application.database.write() as writer:
        writer.execute("UPDATE collection SET key_generation = 1 WHERE id = %(c)s", {"c": target})
        for passage, vector in (vectors or {}).items():
            writer.execute(
                """
                INSERT INTO passage_key (collection_id, passage_id, generation, vector, units, scores)
                VALUES (%(c)s, %(p)s, 1, %(v)s, '{}', '{}')
                """,
                {"c": target, "p": ids[passage], "v": vector},
            )
        for passage, changed in (terms or {}).items():
            for term, (base, frequency) in changed.items():
                writer.execute(
                    """
                    INSERT INTO evolved_posting (collection_id, term, passage_id, base, frequency, length)
                    SELECT %(c)s, %(term)s, %(p)s, %(base)s, %(frequency)s, length
                    FROM lexical_passage WHERE collection_id = %(c)s AND passage_id = %(p)s
                    """,
                    {"c": target, "p": ids[passage], "term": term, "base": base, "frequency": frequency},
                )


def forget_evolved() -> None:
    """Remove what ``evolve`` wrote: no process starts on rows of a wing that is off."""
    for application, target in _evolved:
        with application.database.write() as writer:
            for table in ("passage_key", "evolved_posting"):
                writer.execute(f"DELETE FROM {table} WHERE collection_id = %(c)s", {"c": target})
    _evolved.clear()


@contextmanager
def statements() -> Iterator[list[str]]:
    """What readers send during the block, as it is written."""
    noted: list[str] = []

    with observe_sql(lambda _connection, statement, _given: noted.append(" ".join(statement.split()))):
        yield noted
