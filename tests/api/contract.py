"""What answers are held against: the OpenAPI document, and which of schemathesis' checks hold where."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from engram.core.text.words import NOT_BLANK
from tests.api.operations import DOCUMENT, Operation

# Whether what the document calls right is refused is a check of our own, below. What is wrong may be too large as
# well. Without an LLM, what needs one says so. A verdict that was taken back stays in the log, and a session that
# was cancelled can be read. A judge's name with blanks around it is the name without them, though no client sends
# such a path.
CONFIG = """
[checks.positive_data_acceptance]
enabled = false
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx"]
[checks.negative_data_rejection]
expected-statuses = ["400", "404", "405", "409", "413", "415", "422"]
[[operations]]
include-path-regex = "^/(answer|expand|query|query/compare|facts|facts/revise|sessions)$"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "503"]
[[operations]]
include-path-regex = "/judges/"
checks.negative_data_rejection.enabled = false
[[operations]]
include-path-regex = "^/(feedback|sessions)/"
checks.use_after_free.enabled = false
"""
WITHOUT_BOUNDARIES = """
[phases.coverage]
enabled = false
"""
"""Added to it: to make these requests up takes two thirds of the time."""
UNCOUNTED_NOT_BLANK = f"{NOT_BLANK}|{NOT_BLANK}"
"""A pattern, and another that means the same.

Schemathesis makes the former count to ``maxLength``: such an expression takes up to 1.3 s to compile, each time.
"""


def keyless(operations: Sequence[Operation]) -> dict[str, Any]:
    """The document of a service that needs no key, with these operations only.

    Which key may do what, ``test_access`` asks of every route.
    """
    document = deepcopy(DOCUMENT)
    del document["components"]["securitySchemes"]
    for path, methods in list(document["paths"].items()):
        document["paths"][path] = kept = {
            method: operation for method, operation in methods.items() if (method.upper(), path) in operations
        }
        for operation in kept.values():
            operation.pop("security", None)
    _replace_patterns(document)
    return document


def _replace_patterns(node: Any) -> None:
    if isinstance(node, dict):
        if node.get("pattern") == NOT_BLANK:
            node["pattern"] = UNCOUNTED_NOT_BLANK
        node = node.values()
    if not isinstance(node, str | int | float | None):
        for inner in node:
            _replace_patterns(inner)
