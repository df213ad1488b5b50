"""Ids of the passages that stand beside another one in a document, whose ids end in consecutive numbers."""

import re

_NUMBER = re.compile(r"[0-9]{1,9}\Z")


def list_neighbour_ids(passage_id: str, before: int, after: int) -> tuple[list[str], list[str]]:
    """List the ids before and after one, each the nearest first; none of an id that ends in no number.

    A number with leading zeros keeps its width: ``page-099`` stands before ``page-100``.
    """
    match = _NUMBER.search(passage_id)
    if match is None:
        return [], []
    stem, digits = passage_id[: match.start()], match[0]
    width = len(digits) if digits.startswith("0") else 0
    number = int(digits)
    return (
        [f"{stem}{one:0{width}}" for one in range(number - 1, max(number - before, 0) - 1, -1)],
        [f"{stem}{one:0{width}}" for one in range(number + 1, number + after + 1)],
    )
