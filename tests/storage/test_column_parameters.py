"""What is sent to the database, and received, in one piece: the same as one by one, to the bit."""

import json
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application
from engram.storage.column_parameters import (
    Documents,
    Vectors,
    decode_vectors,
    place_parameters,
    read_json,
    write_json,
)

VALUES: list[Any] = [
    {"a": [1, 2.5, None, True], "ö": "–"},
    [0.1, 1e-300, 1e300, 5e-324, -0.0, 2.0**-40],
    [2**63, -(2**63) - 1, 10**30],  # orjson makes floats of such, and writes none beyond 64 bits
    "1234567890123456789012",
    {},
]


def test_parameters_are_sent_by_their_places() -> None:
    assert place_parameters("SELECT %(b)s, %(a)s::text || '%%', %(b)s") == (
        b"SELECT $1, $2::text || '%', $1",
        ("b", "a"),
    )
    assert place_parameters("SELECT 5 %% 3") == (b"SELECT 5 % 3", ())


def test_one_parameter_may_be_named_twice_and_another_not_at_all(application: Application) -> None:
    with application.database.read() as reader:
        row = reader.row("SELECT %(a)s::int AS one, %(a)s::int + 1 AS two", {"a": 1, "b": object()})
    assert row == (1, 2)
    assert (row.one, row.two) == (1, 2)


def test_vectors_come_as_they_were_sent(application: Application) -> None:
    sent = np.random.default_rng(0).normal(size=(3, 7)).astype(np.float32)
    with application.database.read() as reader:
        rows = reader.rows("SELECT one FROM unnest(%(v)s::vector[]) AS one", {"v": Vectors(sent)})
        piece = reader.scalar(
            "SELECT string_agg(vector_send(one), ''::bytea) FROM unnest(%(v)s::vector[]) AS one",
            {"v": Vectors(sent)},
        )
    assert np.array_equal(np.stack([row.one.to_numpy() for row in rows]), sent)
    assert np.array_equal(decode_vectors(piece), sent)
    assert decode_vectors(None).shape == (0, 0)


@pytest.mark.parametrize("value", VALUES)
def test_json_is_read_and_written_as_by_the_standard_library(value: Any) -> None:
    assert json.loads(write_json(value)) == value
    read = read_json(json.dumps(value).encode())
    assert repr(read) == repr(value)  # which tells 1 from 1.0 and 0.0 from -0.0


def test_json_of_the_database_keeps_every_digit(application: Application) -> None:
    numbers = [0.1 + 0.2, 1 / 3, 5e-324, 12345678901234567890123]
    with application.database.read() as reader:
        row = reader.row("SELECT (%(d)s::jsonb[])[1] AS document", {"d": Documents([numbers[:3]])})
        large = reader.scalar("SELECT to_jsonb(12345678901234567890123::numeric)")
    assert row.document == numbers[:3]
    assert large == numbers[3]
