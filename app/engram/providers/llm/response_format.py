"""The options of a request that an endpoint may refuse, remembered for the endpoint.

A request demands JSON of a schema. If the endpoint refuses the schema, JSON of any kind is demanded; if it refuses
that too, nothing is, and the prompt alone asks for JSON.
"""

import threading
from collections.abc import Mapping
from typing import Any

from engram.providers.llm.replies import Reply
from engram.providers.llm.reply_json import REASONING

TEMPERATURE, FORMAT = "temperature", "response_format"
_BY_SCHEMA, _BY_OBJECT = "json_schema", "json_object"
_KEPT_KEYWORDS = frozenset(
    {"type", "properties", "items", "anyOf", "enum", "const", "required", "additionalProperties", "$ref", "$defs"}
)
"""Keywords that strict modes and grammars know. Bounds of lengths and numbers are checked on reading."""


class EndpointOptions:
    """Options that one endpoint accepts; safe to share between threads and between copies of a client."""

    def __init__(self) -> None:
        self._refused: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    def options(self, use: str, schema: type[Reply] | None) -> dict[str, Any]:
        """Options to send, without those that were refused.

        Args:
            use: the schema's name.
            schema: of the reply; None where the reply is not JSON.
        """
        refused = self._refused
        options: dict[str, Any] = {} if TEMPERATURE in refused else {TEMPERATURE: 0}
        if schema is None or _BY_OBJECT in refused:
            return options
        if _BY_SCHEMA in refused:
            return options | {FORMAT: {"type": _BY_OBJECT}}
        named = {"name": use, "strict": True, "schema": reply_schema(schema)}
        return options | {FORMAT: {"type": _BY_SCHEMA, "json_schema": named}}

    def refuse(self, sent: Mapping[str, Any], names: frozenset[str]) -> None:
        """Remember which of the options ``sent`` were refused."""
        refused = set(names & {TEMPERATURE})
        if FORMAT in names:
            refused.add(sent[FORMAT]["type"])
        with self._lock:
            self._refused |= refused


def reply_schema(reply: type[Reply]) -> dict[str, Any]:
    """JSON Schema of a reply in the subset of OpenAI's strict mode: every property required, no others."""
    schema: dict[str, Any] = _restrict_schema(reply.model_json_schema(by_alias=False))
    if reply.reasoned:
        schema["properties"] = {REASONING: {"type": "string"}, **schema["properties"]}
        schema["required"] = list(schema["properties"])
    return schema


def _restrict_schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_restrict_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {keyword: value for keyword, value in schema.items() if keyword in _KEPT_KEYWORDS}
    for keyword in ("properties", "$defs"):
        if keyword in strict:
            strict[keyword] = {name: _restrict_schema(value) for name, value in strict[keyword].items()}
    for keyword in ("items", "anyOf"):
        if keyword in strict:
            strict[keyword] = _restrict_schema(strict[keyword])
    if "properties" in strict:
        strict |= {"required": list(strict["properties"]), "additionalProperties": False}
    return strict
