"""Counting the values of JSON."""

from typing import Any


def has_more_values(value: Any, most: int) -> bool:
    """Whether a JSON value holds more than ``most`` values, itself included; it looks at no more than that."""
    seen, waiting = 1, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict | list):
            seen += len(item)
            if seen > most:
                return True
            waiting.extend(item.values() if isinstance(item, dict) else item)
    return False
