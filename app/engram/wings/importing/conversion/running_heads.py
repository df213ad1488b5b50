"""Lines that the pages of a document repeat: page numbers, and what stands above or below each page's text."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from engram.wings.importing.conversion.notes import list_some

_NUMBER = re.compile(r"\d+")
_ONLY_NUMBER = re.compile(r"[^\w]*\d+[^\w]*")
_NUMBER_OF = re.compile(r"[^\d]*\d+[^\d]{1,6}\d+[^\w]*")
_OF_TOTAL = re.compile(r"\b(\d+)(\D{1,6})(\d+)\b")
_LABELLED = re.compile(r"[^\W\d]+[.:]? \d+")
_ENDS = (".", "!", "?", ";", ":")
_EDGE_LINES = 2
"""Lines at the top and at the bottom of a page that may go."""
Place = tuple[int, int]  # page, line


def drop_running_heads(source: str, pages: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the pages without what they repeat, and a note that says what that was.

    Of each page one page number goes, and at each end one line that most pages share letter for letter. "3 of
    12" may stand in it, with the page's own number and the total. A page number is a line that has nothing but a
    number which counts up with the pages, with a total or a word ("Page 3 of 12") if it is the page's own number.
    All other numbers are text, since they are what such pages differ in.
    """
    lines = [page.split("\n") for page in pages]
    numbers = _find_page_numbers(lines)
    heads = _find_heads(lines, numbers)
    dropped_lines = numbers | heads.keys()
    remaining = [
        "\n".join(text for line, text in enumerate(page) if (at, line) not in dropped_lines).strip()
        for at, page in enumerate(lines)
    ]
    dropped = Counter(heads.values())
    labels = [*["page numbers"] * bool(numbers), *(f'"{text}"' for text, _ in dropped.most_common())]
    return remaining, (f"{source}: left out what pages repeat: {list_some(labels)}",) if labels else ()


def _edges(page: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(number, place from the top, or from the bottom as -1, -2) of the outer lines."""
    for at in range(min(_EDGE_LINES, len(page))):
        yield at, at
        if len(page) - 1 - at >= _EDGE_LINES:
            yield len(page) - 1 - at, -1 - at


def _find_page_numbers(pages: Sequence[Sequence[str]]) -> set[Place]:
    """The lines that number the pages: at one place of most pages, with one distance to the number of the page."""
    found: dict[tuple[int, int], list[Place]] = defaultdict(list)
    for at, page in enumerate(pages):
        for line, edge in _edges(page):
            for distance in _page_distances(page[line].strip(), at + 1, len(pages), edge):
                found[edge < 0, distance].append((at, line))
    places: set[Place] = set()
    for (bottom, _), listed in sorted(found.items(), key=lambda item: -len(item[1])):
        by_page = dict(listed if bottom else reversed(listed))
        if len(by_page) > max(2, len(pages) / 2):
            numbered = {at for at, _ in places}
            places |= {(at, line) for at, line in by_page.items() if at not in numbered}
    return places


def _page_distances(line: str, page: int, count: int, edge: int) -> Iterator[int]:
    """List the differences between the numbers of a line and that of its page."""
    numbers = [int(number) for number in _NUMBER.findall(line)[:3] if len(number) < 7]
    if len(numbers) == 1 and _ONLY_NUMBER.fullmatch(line):
        yield numbers[0] - page
    elif len(numbers) == 2 and numbers[1] == count and _NUMBER_OF.fullmatch(line) and numbers[0] == page:
        yield 0
    elif len(numbers) == 1 and edge == -1 and _LABELLED.fullmatch(line) and abs(numbers[0] - page) < count:
        yield numbers[0] - page


def _find_heads(pages: Sequence[Sequence[str]], numbers: set[Place]) -> dict[Place, str]:
    """The outermost lines, page numbers aside, that most pages share, with their texts.

    A line that ends like a sentence stays, and so does one where another page has the same words but for the last
    ("Status: paid"): that is a value and no head.
    """
    places: dict[tuple[bool, str], list[Place]] = defaultdict(list)
    for at, page in enumerate(pages):
        lines = [
            (line, text.strip()) for line, text in enumerate(page) if (at, line) not in numbers and text.strip()
        ]
        for bottom, outer in ((False, lines[:1]), (True, lines[-1:] if len(lines) > 1 else [])):
            for line, text in outer:
                places[bottom, _hide_number(text, at + 1, len(pages))].append((at, line))
    heads: dict[Place, str] = {}
    for (bottom, text), listed in places.items():
        if len(listed) <= max(2, len(pages) / 2):
            continue
        words = text.split()
        value = any(
            at_bottom == bottom and other != text and len(words) > 1 and other.split()[:-1] == words[:-1]
            for at_bottom, other in places
        )
        if not text.endswith(_ENDS) and not value and any(map(str.isalpha, text)):
            heads |= dict.fromkeys(listed, text)
    return heads


def _hide_number(text: str, page: int, count: int) -> str:
    """The text with a mark for the page's own number where the number of pages follows it."""
    return _OF_TOTAL.sub(
        lambda at: f"#{at[2]}{at[3]}" if (at[1], at[3]) == (str(page), str(count)) else at[0], text
    )
