"""ONNX models as bytes: the few messages of its Protocol Buffers schema that a graph without weights needs.

The package `onnx` writes the same, for 30 MB and a third of a second at every start; `tests/providers/test_bert.py`
reads what is written here with it. Field numbers are those of `onnx.proto3`, which are never reassigned.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FLOAT, UINT8, INT8, INT64 = 1, 2, 3, 7
"""`TensorProto.DataType`."""

IR_VERSION = 8
"""Of the format; the one that belongs to opset 17."""
OPSET = 17

_EXTERNAL = 1
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_INTS = 1, 2, 7
_VARINT, _BYTES, _FIXED32 = 0, 2, 5

Attribute = int | float | Sequence[int]
Shape = Sequence[int | str]
"""A dimension by its length, or by a name if it may have any."""


@dataclass(frozen=True)
class OnnxNode:
    """One operator with the names of the tensors that it reads and writes."""

    operator: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    domain: str = ""


@dataclass(frozen=True)
class Tensor:
    """Name, type and shape of what goes in, comes out, or is given to the runtime beside the graph."""

    name: str
    kind: int
    shape: Shape


def model(
    nodes: Iterable[OnnxNode],
    inputs: Iterable[Tensor],
    outputs: Iterable[Tensor],
    initializers: Iterable[Tensor],
    constants: Mapping[str, NDArray[np.int64] | NDArray[np.float32]],
) -> bytes:
    """A model of ``nodes`` in order of execution.

    ``constants`` are written into it; ``initializers`` are constants whose content the runtime is handed beside it.
    """
    graph = b"".join(
        (
            *(_message(1, _node(node)) for node in nodes),
            _text(2, "encoder"),
            *(_message(5, _initializer(tensor)) for tensor in initializers),
            *(_message(5, _constant(name, array)) for name, array in constants.items()),
            *(_message(11, _value(tensor)) for tensor in inputs),
            *(_message(12, _value(tensor)) for tensor in outputs),
        )
    )
    opsets = (("", OPSET), ("com.microsoft", 1))
    imports = (_message(8, _text(1, domain) + _integer(2, version)) for domain, version in opsets)
    return b"".join((_integer(1, IR_VERSION), _message(7, graph), *imports))


def _node(node: OnnxNode) -> bytes:
    return b"".join(
        (
            *(_text(1, name) for name in node.inputs),
            *(_text(2, name) for name in node.outputs),
            _text(4, node.operator),
            *(_message(5, _attribute(name, value)) for name, value in node.attributes.items()),
            _text(7, node.domain),
        )
    )


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + _key(2, _FIXED32) + struct.pack("<f", value) + _integer(20, _ATTRIBUTE_FLOAT)
    if isinstance(value, int):
        return _text(1, name) + _integer(3, value) + _integer(20, _ATTRIBUTE_INT)
    return b"".join((_text(1, name), *(_integer(8, one) for one in value), _integer(20, _ATTRIBUTE_INTS)))


def _initializer(tensor: Tensor) -> bytes:
    # A location must stand there; nobody looks, as the runtime is given the content.
    location = _text(1, "location") + _text(2, "given")
    dimensions = (_integer(1, size) for size in tensor.shape if isinstance(size, int))
    return b"".join(
        (
            *dimensions,
            _integer(2, tensor.kind),
            _text(8, tensor.name),
            _message(13, location),
            _integer(14, _EXTERNAL),
        )
    )


def _constant(name: str, array: NDArray[np.int64] | NDArray[np.float32]) -> bytes:
    kind, little_endian = (INT64, "<i8") if array.dtype == np.int64 else (FLOAT, "<f4")
    dimensions = (_integer(1, size) for size in array.shape)
    content = array.astype(little_endian).tobytes()
    return b"".join((*dimensions, _integer(2, kind), _text(8, name), _message(9, content)))


def _value(tensor: Tensor) -> bytes:
    sizes = (_text(2, size) if isinstance(size, str) else _integer(1, size) for size in tensor.shape)
    shape = b"".join(_message(1, size) for size in sizes)
    return _text(1, tensor.name) + _message(2, _message(1, _integer(1, tensor.kind) + _message(2, shape)))


def _message(number: int, content: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(content)) + content


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode())


def _integer(number: int, value: int) -> bytes:
    return _key(number, _VARINT) + _varint(value)


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers as their 64-bit two's complement."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
