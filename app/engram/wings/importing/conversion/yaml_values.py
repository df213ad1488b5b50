"""Reader of YAML, whose values are read as those of JSON."""

from functools import cache
from typing import Any

from engram.wings.importing.conversion import structured
from engram.wings.importing.conversion.documents import Conversion, Document
from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.outline import library
from engram.wings.importing.conversion.records import read_plain

_TAG = "tag:yaml.org,2002:"
_KINDS = [f"{_TAG}{name}" for name in ("null", "str", "seq", "map", "merge")]
"""YAML 1.1 has more, and sees false in NO, 668 in 01234 and 630 in 10:30."""


def parse_yaml(source: str, data: bytes, limits: ConversionLimits) -> Conversion | Document:
    """Convert YAML as ``structured.parse_json`` converts JSON; several documents are a list.

    No tag makes an object: what has one is read as it is written.
    """
    decoded = decode_text(source, data)
    values = [value for value in library("yaml").load_all(decoded.text, Loader=_loader()) if value is not None]
    value = values[0] if len(values) == 1 else values
    return structured.convert_value(source, value, "yaml", limits, decoded.notes)


@cache
def _loader() -> Any:
    """A loader of plain values; others are texts as they are written."""
    yaml = library("yaml")

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        yaml_implicit_resolvers = {  # noqa: RUF012 - as the class above has it
            first: [(tag, pattern) for tag, pattern in resolvers if tag in _KINDS]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }
        yaml_constructors = {  # noqa: RUF012 - the same
            tag: make for tag, make in yaml.SafeLoader.yaml_constructors.items() if tag in _KINDS
        }

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            return {str(key): value for key, value in super().construct_mapping(node, deep).items()}

    def construct(loader: Any, suffix: str, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(node)

    Loader.add_constructor(f"{_TAG}str", lambda _, node: node.value if node.style else read_plain(node.value))
    Loader.add_multi_constructor("", construct)
    return Loader
