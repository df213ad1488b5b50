"""Calendar parts of messages (iCalendar)."""

import re
from collections.abc import Iterator

from engram.wings.importing.conversion.outline import flatten_text

_FOLDED = re.compile(r"\r?\n[ \t]")
_PROPERTY = re.compile(r'([A-Za-z-]+)((?:;[^:;"]*(?:"[^"]*"[^:;"]*)*)*):(.*)')
_ZONE = re.compile(r';TZID="?([^;:"]+)', re.IGNORECASE)
_PERSON = re.compile(r';CN="?([^;:"]+)', re.IGNORECASE)
_MOMENT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z?))?")
_COMPONENTS = ("VEVENT", "VTODO", "VJOURNAL")
_NAMES = {
    "SUMMARY": "Summary",
    "LOCATION": "Location",
    "DTSTART": "Start",
    "DTEND": "End",
    "DUE": "Due",
    "RRULE": "Repeats",
    "STATUS": "Status",
    "ORGANIZER": "Organizer",
    "ATTENDEE": "Attendee",
    "DESCRIPTION": "Description",
}


def read_entries(text: str) -> Iterator[list[str]]:
    """Yield the lines ``Name: value`` of each entry; entries without one of these are skipped."""
    lines: list[str] = []
    inside: list[str] = []
    for line in _FOLDED.sub("", text).splitlines():
        match = _PROPERTY.fullmatch(line.strip())
        if match is None:
            continue
        name, parameters, value = match[1].upper(), match[2], match[3].strip()
        if name == "BEGIN":
            inside.append(value.upper())
        elif name == "END" and inside:
            if inside.pop() in _COMPONENTS and lines:
                yield lines
                lines = []
        elif inside and inside[-1] in _COMPONENTS and name in _NAMES:
            written = _write_value(name, parameters, value)
            if written:
                lines.append(f"{_NAMES[name]}: {written}")


def _write_value(name: str, parameters: str, value: str) -> str:
    if moment := _MOMENT.fullmatch(value):
        year, month, day, hour, minute, second, utc = moment.groups()
        clock = f"T{hour}:{minute}:{second}{utc}" if hour else ""
        zone = _ZONE.search(parameters)
        return f"{year}-{month}-{day}{clock}" + (f" ({zone[1]})" if zone else "")
    if name in ("ORGANIZER", "ATTENDEE"):
        named = _PERSON.search(parameters)
        address = re.sub("^mailto:", "", value, flags=re.IGNORECASE)
        return f"{named[1]} <{address}>" if named else address
    return flatten_text(re.sub(r"\\([\\,;nN])", lambda sign: " " if sign[1] in "nN" else sign[1], value))
