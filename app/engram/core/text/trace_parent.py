"""The trace id of a ``traceparent`` header, as W3C's Trace Context writes it."""

import re

_FORM = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?", re.ASCII | re.DOTALL)


def trace_id(header: str | None) -> str | None:
    """The 32 hexadecimal digits of the trace; None if the header is absent or invalid.

    The standard has a receiver ignore an invalid header. Version 00 has four fields; later ones may add more.
    """
    parts = _FORM.fullmatch(header.strip()) if header else None
    if parts is None or not int(parts[2], 16) or not int(parts[3], 16):
        return None
    return None if parts[1] == "00" and parts[4] else parts[2]
