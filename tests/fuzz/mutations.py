"""Requests with bodies that were right until something happened to them; number and seed say which one."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.api.operations import ABSENT_IDS, BODIES, DOCUMENT, OPERATIONS, WITH_BODIES

HUGE_MARK = "\ue000huge\ue000"
"""Stands for a number that Python's writer of JSON would not write."""
ODD_VALUES: Sequence[Any] = (
    None, True, False, 0, -1, 1, 0.5, -0.0, 1e308, 5e-324, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 10**40, float("nan"),
    float("inf"), HUGE_MARK,
    "", " ", "\x00", "\ud800", "\u202e", "ﬀ", "İ", "'s" * 2_000, "The " * 2_000, "x" * 10_001,
    "A" * 200_000, "a\u0301" * 500, "🙂" * 300, "⟦1⟧", "%s%n{}", "' OR 1=1 --", "../../etc/passwd",
    "2026-05-01T00:00:00Z", "9999-12-31T23:59:59+14:00", "1700000000", [], {}, [None], [[]],
    {"": None}, [1] * 2_000, {"a": {"$ne": 1}},
    "null", "-1", "1e5", "NaN", "⁰", "０", "\r\nX: y", "<script>", "е" * 20,
)  # fmt: skip
HEADERS: Sequence[Mapping[str, str]] = (
    {"content-type": "text/plain"}, {"content-type": "application/json; charset=utf-16"}, {"content-type": ""},
    {"content-type": "application/x-ndjson"}, {"content-encoding": "gzip"}, {"accept": "image/png"},
    {"x-request-id": "x" * 200}, {"x-request-id": "a b"}, {"authorization": "Bearer engram_x"},
    {"authorization": "Basic Og=="}, {"origin": "null"}, {"expect": "100-continue"}, {"range": "bytes=0-1"},
    {"idempotency-key": "a b"}, {"idempotency-key": "x" * 201}, {"traceparent": "00-zz-zz-00"},
    {"accept-encoding": "br"}, {"x-forwarded-for": "999.1.1.1"}, {"last-event-id": "-1"},
    {"content-language": "\u00e4"},
)  # fmt: skip
QUERIES = (
    "collection=", "collection=%00", "collection=x&collection=y", "limit=1e9", "limit=-1", "after=%ff",
    "errors_limit=0", "before=0", "from=1700000000", "x" * 3_000, "a=" + "b" * 20_000, "%", "&&&==",
    "collection[]=a",
)  # fmt: skip
RARELY = 8
MOST_BYTES = 20 * 2**20
"""Beyond the largest body that is read, and no more than a client soon has sent."""
NESTED = (25, 150, 20_000)


@dataclass
class Sent:
    """One request as it is sent."""

    method: str
    path: str
    target: str
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.target[:120]} {self.headers} {len(self.content)} bytes {self.content[:200]!r}"


def seeds(known: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """(method, path, body) of requests that are right: the document's examples and those that tests send.

    Args:
        known: what the service holds, by the names of parameters and fields.
    """
    found: list[tuple[str, str, Any]] = []
    schemas = DOCUMENT["components"]["schemas"]
    for method, path in OPERATIONS:
        if method not in WITH_BODIES:
            continue
        content = DOCUMENT["paths"][path][method.lower()].get("requestBody", {}).get("content", {})
        named = content.get("application/json", {}).get("schema", {}).get("$ref", "").rpartition("/")[2]
        examples = schemas.get(named, {}).get("examples", [])
        bodies = [*examples, BODIES[path]] if path in BODIES else [*examples, {}]
        found += [(method, path, _use_known_names(body, known)) for body in bodies]
    judged = {"query_id": known["query_id"], "collection": known["collection"]}
    for more in (
        {"none_helped": True},
        {"supporting": known["sentences"][:1]},
        {"supporting": []},
    ):
        found += [("POST", "/feedback", judged | more)] * 3
    return found


def _use_known_names(body: Any, known: Mapping[str, Any]) -> Any:
    """The body, speaking of what there is."""
    if not isinstance(body, dict):
        return body
    here = {name: known[name] for name in ("collection", "query_id") if name in body}
    return body | here | ({"collection": known["collection"]} if "query" in body or "question" in body else {})


def mutate(seed: int, number: int, right: Sequence[tuple[str, str, Any]], known: Mapping[str, Any]) -> Sent:
    """The request of this number."""
    dice = random.Random(f"{seed}/{number}")
    method, path, body = deepcopy(dice.choice(right))
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3))):
        body = _change(body, dice)
    content = json.dumps(body, ensure_ascii=dice.random() < 0.7).encode("utf-8", "surrogatepass")
    content = content.replace(json.dumps(HUGE_MARK).encode(), b"9" * 5_000).replace(
        HUGE_MARK.encode(), b"9" * 5_000
    )
    if dice.randrange(4) == 0:
        content = dice.choice(BYTES)(content, dice)
    content = content[:MOST_BYTES]
    headers = {"content-type": "application/json", "idempotency-key": f"fuzz-{seed}-{number}"}
    if dice.randrange(RARELY) == 0:
        headers |= dice.choice(HEADERS)
    elif dice.randrange(RARELY) == 0:
        headers["idempotency-key"] = f"fuzz-{seed}-{dice.randrange(20)}"
    target = _target(path, known, dice)
    return Sent(method, path, target, content, headers)


def _target(path: str, known: Mapping[str, Any], dice: random.Random) -> str:
    target = path
    for name, absent in ABSENT_IDS.items():
        if name in target:
            here = known.get(name.strip("{}"), absent)
            odd = dice.choice(("%00", "%ff", "x" * 600, "9" * 400, "..%2f", absent))
            target = target.replace(name, str(odd if dice.randrange(RARELY) == 0 else here))
    query = f"collection={known['collection']}" if path == "/passages" else ""
    if dice.randrange(RARELY) == 0:
        query = dice.choice(QUERIES)
    return f"{target}?{query}" if query else target


def _change(body: Any, dice: random.Random) -> Any:
    """The value with one change somewhere inside it."""
    places = list(_places(body))
    holder, key = dice.choice(places) if places else (None, None)
    if holder is None or dice.randrange(12) == 0:
        return dice.choice((deepcopy(dice.choice(ODD_VALUES)), [body], {"": body}, _draw_nested(dice)))
    what = dice.randrange(8)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        holder[dice.choice((f"{key} ", str(key).upper(), "__proto__", "", "\x00", "unknown"))] = holder[key]
    elif what == 2:
        holder[key] = [holder[key]] * dice.choice((1, 2, 60, 1_200))
    elif what == 3:
        holder[key] = {str(key): holder[key]}
    elif what == 4:
        holder[key] = _draw_nested(dice)
    elif what == 5 and isinstance(holder[key], str):
        at = dice.randint(0, len(holder[key]))
        odd_texts = [odd for odd in ODD_VALUES if isinstance(odd, str)]
        holder[key] = f"{holder[key][:at]}{dice.choice(odd_texts)}{holder[key][at:]}"
    else:
        holder[key] = deepcopy(dice.choice(ODD_VALUES))
    return body


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (holder, key) inside a value."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        inside = (
            holder.items() if isinstance(holder, dict) else enumerate(holder) if isinstance(holder, list) else ()
        )
        for key, item in list(inside)[:50]:
            found.append((holder, key))
            if len(found) < 500:
                waiting.append(item)
    return found


def _draw_nested(dice: random.Random) -> Any:
    depth = dice.choice(NESTED[:2])
    value: Any = []
    for _ in range(depth):
        value = [value] if dice.random() < 0.5 else {"a": value}
    return value


def _flip_bytes(content: bytes, dice: random.Random) -> bytes:
    found = bytearray(content or b"{}")
    for _ in range(dice.randint(1, 8)):
        found[dice.randrange(len(found))] = dice.randrange(256)
    return bytes(found)


BYTES: Sequence[Callable[[bytes, random.Random], bytes]] = (
    _flip_bytes,
    lambda content, dice: content[: dice.randint(0, len(content))],
    lambda content, dice: content + content,
    lambda content, dice: b"\xef\xbb\xbf" + content,
    lambda content, dice: content.decode("utf-8", "replace").encode("utf-16"),
    lambda content, dice: b"[" * NESTED[dice.randrange(3)] + content,
    lambda content, dice: dice.randbytes(dice.randint(0, 2_000)),
    lambda content, dice: content.replace(b":", b": " + b" " * 100_000, 1),
    lambda content, dice: content[:-1] + b"," + content[1:] if content[:1] == b"{" else content,
)
