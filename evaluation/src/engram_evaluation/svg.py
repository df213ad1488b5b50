"""Lines, bars and trees as inline SVG. Colours are classes (``s0`` to ``s7``); the page's style sheet decides."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from engram_evaluation.branches import Branches, draw_tree

COLOURS = 8
WIDTH, HEIGHT = 480, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 10, 36
CATEGORY, BAR, GAP = 18, 13, 8
"""Heights of a category's name, of one bar, and of the space below it, in pixels."""
VALUE = 48
"""Room for the figure at the end of a bar."""
TICKS = 5


@dataclass(frozen=True, slots=True)
class Lines:
    """A chart of lines.

    Attributes:
        series: name -> (x, y), x ascending.
    """

    title: str
    x: str
    y: str
    series: Mapping[str, Sequence[tuple[float, float]]]


@dataclass(frozen=True, slots=True)
class Bars:
    """A chart of horizontal bars from 0.

    Attributes:
        series: name -> a figure, at least 0, or None for each of the categories.
    """

    title: str
    categories: Sequence[str]
    series: Mapping[str, Sequence[float | None]]


Chart = Lines | Bars | Branches


def figure(chart: Chart) -> str:
    """The chart in a ``figure`` element, its title and the names of its series beside it."""
    match chart:
        case Lines():
            picture = _lines(chart)
        case Bars():
            picture = _bars(chart)
        case Branches():
            picture = draw_tree(chart)
    names = "".join(f'<li class="s{at % COLOURS}">{escape(name)}</li>' for at, name in enumerate(chart.series))
    title = escape(chart.title)
    return f'<figure><figcaption>{title}</figcaption>\n{picture}\n<ul class="legend">{names}</ul></figure>'


def ticks(low: float, high: float) -> list[float]:
    """About ``TICKS`` round numbers that enclose both ends."""
    span = high - low or abs(high) or 1.0
    rough = span / (TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(at * step, 10) for at in range(first, max(last, first + 1) + 1)]


def _lines(chart: Lines) -> str:
    points = [point for of in chart.series.values() for point in of]
    xs, ys = sorted({x for x, _ in points}), ticks(min(y for _, y in points), max(y for _, y in points))
    x_span, y_span = (xs[-1] - xs[0]) or 1.0, ys[-1] - ys[0]

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (x - xs[0]) / x_span * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - (y - ys[0]) / y_span * (HEIGHT - TOP - BOTTOM)

    parts = []
    for value in ys:
        _, y = place(xs[0], value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{value:g}", "end"))
    for value in xs if len(xs) <= 2 * TICKS else [x for x in ticks(xs[0], xs[-1]) if xs[0] <= x <= xs[-1]]:
        parts.append(_text(place(value, ys[0])[0], HEIGHT - BOTTOM + 15, f"{value:g}", "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, chart.x, "middle"))
    for at, (name, of) in enumerate(chart.series.items()):
        path = "L".join("{:.1f} {:.1f}".format(*place(*point)) for point in of)
        dash = " dashed" if at >= COLOURS else ""
        parts.append(f'<path class="line s{at % COLOURS}{dash}" d="M{path}"/>')
        for x, y in of:
            across, down = place(x, y)
            tooltip = escape(f"{name}: {chart.x} {x:g}, {chart.y} {y:.3f}")
            parts.append(f'<circle class="s{at % COLOURS}" cx="{across:.1f}" cy="{down:.1f}" r="3">')
            parts.append(f"<title>{tooltip}</title></circle>")
    return _svg(f"{chart.title}: {chart.y} by {chart.x}", HEIGHT, parts)


def _bars(chart: Bars) -> str:
    most = max((value for of in chart.series.values() for value in of if value is not None), default=0.0) or 1.0
    parts = []
    down = 0.0
    for at, category in enumerate(chart.categories):
        down += CATEGORY
        parts.append(_text(0, down - 5, category, "start"))
        for colour, (name, of) in enumerate(chart.series.items()):
            value = of[at]
            if value is None:
                continue
            length = max(0.0, value) / most * (WIDTH - VALUE)
            parts.append(
                f'<rect class="s{colour % COLOURS}" x="0" y="{down:.1f}" width="{length:.1f}" height="{BAR - 2}">'
                f"<title>{escape(f'{category}, {name}: {value:.3f}')}</title></rect>"
            )
            parts.append(_text(length + 5, down + BAR - 3.5, f"{value:.3f}", "start"))
            down += BAR
        down += GAP
    return _svg(chart.title, max(down, 1.0), parts)


def _svg(label: str, height: float, parts: Sequence[str]) -> str:
    inside = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}">\n{inside}\n</svg>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
