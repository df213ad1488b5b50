"""Long columns of numbers and documents that are sent, and received, in one piece."""

import json
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from psycopg import Connection, pq
from psycopg.adapt import Dumper
from psycopg.types.json import set_json_dumps, set_json_loads

from engram.core.text.long_numbers import may_hold_long_number


@dataclass(frozen=True, slots=True)
class Numbers:
    """A parameter sent in one piece, (n,).

    A ``bigint[]`` (int64), ``float8[]`` (float64), ``real[]`` (float32) or ``boolean[]`` (bool).
    """

    values: NDArray[Any]


def integers(values: Iterable[int]) -> Numbers:
    """A ``bigint[]`` parameter."""
    return Numbers(np.fromiter(values, np.int64))


def floats(values: Iterable[float]) -> Numbers:
    """A ``float8[]`` parameter, to the bit."""
    return Numbers(np.fromiter(values, np.float64))


@dataclass(frozen=True, slots=True)
class Vectors:
    """A ``vector[]`` parameter, float32 (n, d), sent in one piece."""

    values: NDArray[np.float32]


def vectors(values: Sequence[NDArray[np.float32]]) -> Vectors:
    """A ``vector[]`` parameter of vectors that are apart."""
    return Vectors(np.stack(values) if values else np.zeros((0, 0), dtype=np.float32))


@dataclass(frozen=True, slots=True)
class Documents:
    """A ``jsonb[]`` parameter of (n,) values with text for keys, finite floats to the bit."""

    values: Sequence[Any]


def _build_sized_type(element: str) -> np.dtype[Any]:
    return np.dtype([("size", ">i4"), ("element", element)])


_ELEMENTS = {
    np.dtype(np.int64): (20, _build_sized_type(">i8")),
    np.dtype(np.float64): (701, _build_sized_type(">f8")),
    np.dtype(np.float32): (700, _build_sized_type(">f4")),
    np.dtype(np.bool_): (16, _build_sized_type("?")),
}
"""Postgres' oid of each type of element, and how one lies in an array."""
JSONB = 3802
_PARAMETER = re.compile(r"%(?:%|\((\w+)\)s)")


def decode_column(sent: bytes | None, kind: type[np.generic]) -> NDArray[Any]:
    """A column of numbers without nulls that a statement gave by ``array_send``, (n,); None is an empty one.

    An array of arrays comes as one, row after row. A thousand numbers take as long as ten do as rows.

    Raises:
        ValueError: its elements are of another type, some of which are as long and would read as other numbers.
    """
    if sent is None:
        return np.zeros(0, dtype=kind)
    oid, form = _ELEMENTS[np.dtype(kind)]
    dimensions, _, sent_oid = struct.unpack_from(">iii", sent)
    if sent_oid != oid:
        raise ValueError(f"an array of type {sent_oid} came where one of {oid} is read")
    body = np.frombuffer(sent, dtype=form, offset=12 + 8 * dimensions)
    return body["element"].astype(kind)


def decode_vectors(sent: bytes | None) -> NDArray[np.float32]:
    """Vectors that a statement gave by ``vector_send``, one after the other, (n, d); None is none, (0, 0).

    They can be written to.
    """
    if sent is None:
        return np.zeros((0, 0), dtype=np.float32)
    (dimension,) = struct.unpack_from(">h", sent)
    body = np.frombuffer(sent, dtype=[("dimension", ">i2"), ("unused", ">i2"), ("numbers", ">f4", (dimension,))])
    return body["numbers"].astype(np.float32)


@lru_cache(maxsize=512)
def place_parameters(statement: str) -> tuple[bytes, Sequence[str]]:
    """A statement with parameters by their places, as ``$1``, and their names in this order.

    As it is written they are ``%(name)s``, and ``%%`` is a percent sign. What was parsed is remembered.
    """
    names: dict[str, int] = {}

    def place(match: re.Match[str]) -> str:
        name = match[1]
        return "%" if name is None else f"${names.setdefault(name, len(names) + 1)}"

    return _PARAMETER.sub(place, statement).encode(), tuple(names)


class _NumbersDumper(Dumper):
    """Writes Postgres' binary array: dimensions, has nulls, element type, length, first index, elements."""

    format = pq.Format.BINARY

    def dump(self, obj: Numbers) -> bytes:
        oid, form = _ELEMENTS[obj.values.dtype]
        body = np.empty(len(obj.values), dtype=form)
        body["size"] = body["element"].dtype.itemsize
        body["element"] = obj.values
        return struct.pack(">iiIii", 1, 0, oid, len(body), 1) + body.tobytes()


class _VectorsDumper(Dumper):
    """Writes the same; an element is its dimension, two bytes of nothing, and its numbers."""

    format = pq.Format.BINARY
    vector = 0

    def dump(self, obj: Vectors) -> bytes:
        count, dimension = obj.values.shape
        form = [("size", ">i4"), ("dimension", ">i2"), ("unused", ">i2"), ("numbers", ">f4", (dimension,))]
        body = np.zeros(count, dtype=form)
        body["size"] = 4 + 4 * dimension
        body["dimension"] = dimension
        body["numbers"] = obj.values
        return struct.pack(">iiIii", 1, 0, self.vector, count, 1) + body.tobytes()


class _DocumentsDumper(Dumper):
    """Writes the same; an element is a version, 1, and the JSON."""

    format = pq.Format.BINARY

    def dump(self, obj: Documents) -> bytes:
        parts = [struct.pack(">iiIii", 1, 0, JSONB, len(obj.values), 1)]
        for value in obj.values:
            document = orjson.dumps(value)
            parts += (struct.pack(">iB", len(document) + 1, 1), document)
        return b"".join(parts)


def read_json(document: bytes | str) -> Any:
    """Parse JSON of the database as ``json`` does, in half the time or less.

    orjson makes a float of a whole number beyond 64 bits, so one of so many digits is left to ``json``.
    """
    sent = document.encode() if isinstance(document, str) else document
    return json.loads(sent) if may_hold_long_number(sent) else orjson.loads(sent)


def write_json(value: Any) -> bytes:
    """A value as JSON; what orjson cannot write, as whole numbers beyond 64 bits, is left to ``json``."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:
        return json.dumps(value).encode()


def register(connection: Connection[Any]) -> None:
    """Have the connection, which knows ``vector``, know these parameters, and read and write JSON as above."""
    vector = connection.adapters.types["vector"].oid
    connection.adapters.register_dumper(Vectors, type("_VectorsDumper", (_VectorsDumper,), {"vector": vector}))
    set_json_loads(read_json, connection)
    set_json_dumps(write_json, connection)
    connection.adapters.register_dumper(Numbers, _NumbersDumper)
    connection.adapters.register_dumper(Documents, _DocumentsDumper)
