"""The order in which a person reads the shapes of a slide."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple


class _Box(NamedTuple):
    """The rectangle of a shape."""

    left: int
    top: int
    right: int
    bottom: int
    shape: Any


def sort_by_place(shapes: Sequence[Any]) -> list[Any]:
    """Sort shapes from top to bottom, those in columns beside each other column by column.

    Shapes without a place go first. Shapes that lie over each other keep the order of the file.
    """
    if len(shapes) < 2:  # places of placeholders are slow to find
        return list(shapes)
    boxes: list[_Box] = []
    others: list[Any] = []
    for shape in shapes:
        place = (shape.left, shape.top, shape.width, shape.height)
        if None in place:
            others.append(shape)
        else:
            left, top, width, height = place
            boxes.append(_Box(left, top, left + width, top + height, shape))
    return [*others, *(box.shape for box in _sort(boxes))]


def _sort(boxes: list[_Box]) -> list[_Box]:
    if len(boxes) < 2:
        return boxes
    columns = _cut(boxes, lambda box: (box.left, box.right))
    if len(columns) > 1:
        return [box for column in columns for box in _sort(column)]
    rows = _cut(boxes, lambda box: (box.top, box.bottom))
    if len(rows) == 1:
        return boxes
    ordered: list[_Box] = []
    for has_columns, run in groupby(rows, key=lambda row: len(_cut(row, lambda box: (box.left, box.right))) > 1):
        listed = list(run)
        in_order = [box for row in listed for box in row]
        if has_columns and len(_cut(in_order, lambda box: (box.left, box.right))) > 1:
            ordered += _sort(in_order)
        else:
            ordered += (box for row in listed for box in _sort(row))
    return ordered


def _cut(boxes: Sequence[_Box], sides: Callable[[_Box], tuple[int, int]]) -> list[list[_Box]]:
    """The boxes in groups that a straight line parts, in order; inside a group in the order of the file."""
    groups: list[list[_Box]] = []
    end = 0
    for box in sorted(boxes, key=lambda one: sides(one)[0]):
        begin, last = sides(box)
        if groups and begin < end:
            groups[-1].append(box)
            end = max(end, last)
        else:
            groups.append([box])
            end = last
    places = {id(box): at for at, box in enumerate(boxes)}
    return [sorted(group, key=lambda box: places[id(box)]) for group in groups]
