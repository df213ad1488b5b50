"""Charts of lines as SVG. Colours are classes (``s0`` to ``s7``), which the style sheet of the file names."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

COLOURS = 8
LIGHT = ("#0072b2", "#c2500a", "#00805d", "#a8487f", "#9a6b00", "#2b7bb0", "#5f5f5f", "#7d4b3f")
DARK = ("#4aa8e0", "#ff9457", "#35c99b", "#e79ac6", "#f2bd4a", "#9cd4f5", "#b4b4b4", "#d0a595")
WIDTH, HEIGHT = 480, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 10, 36
TICKS = 5
COLUMNS = 2
"""Charts beside each other in a picture."""
CAPTION = 42
"""Height of a chart's title and of the names of its series in a picture, in pixels."""
LETTER = 6.5
"""Width of a letter of these names, about, in pixels."""


@dataclass(frozen=True, slots=True)
class Lines:
    """A chart of lines.

    Attributes:
        series: name -> (x, y), x ascending.
        intervals: name -> (low, high) of each y; of some series, or none.
    """

    title: str
    x: str
    y: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    intervals: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


def draw_picture(charts: Sequence[Lines]) -> str:
    """Draw charts of lines as one SVG file, with titles and the names of series."""
    parts = []
    for place, chart in enumerate(charts):
        left, top = place % COLUMNS * WIDTH, place // COLUMNS * (CAPTION + HEIGHT)
        parts.append(_text(left + LEFT, top + 16, chart.title, "start"))
        across = float(left + LEFT)
        for at, name in enumerate(chart.series):
            parts.append(f'<rect class="s{at % COLOURS}" x="{across:.1f}" y="{top + 25}" width="9" height="9"/>')
            parts.append(_text(across + 13, top + 34, name, "start"))
            across += 28 + LETTER * len(name)
        size = f'x="{left}" y="{top + CAPTION}" width="{WIDTH}" height="{HEIGHT}"'
        parts.append(_lines(chart).replace("<svg ", f"<svg {size} ", 1))
    width, height = WIDTH * min(COLUMNS, len(charts)), -(-len(charts) // COLUMNS) * (CAPTION + HEIGHT)
    inside = "\n".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>{_write_style()}
.page{{fill:var(--paper)}}</style>
<rect class="page" width="{width}" height="{height}"/>
{inside}
</svg>
"""


def _write_style() -> str:
    """Write the style sheet of charts, in light and in dark."""
    light, dark = ("".join(f"--s{at}:{colour};" for at, colour in enumerate(colours)) for colours in (LIGHT, DARK))
    series = "".join(
        f".line.s{at}{{stroke:var(--s{at})}}rect.s{at},circle.s{at}{{fill:var(--s{at})}}" for at in range(COLOURS)
    )
    return f"""
:root{{color-scheme:light dark;--ink:#1c1c1c;--paper:#fff;--faint:#d9d9d9;--soft:#5c5c5c;{light}}}
@media (prefers-color-scheme:dark){{:root{{--ink:#e8e8e8;--paper:#16181b;--faint:#3a3d42;--soft:#a9adb3;{dark}}}}}
svg text{{fill:var(--soft);font:11px system-ui,sans-serif}}
.grid{{stroke:var(--faint);stroke-width:1}}
.line{{fill:none;stroke-width:2}}
.dashed{{stroke-dasharray:5 3}}
.interval{{stroke-width:1}}
{series}"""


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
    heights = [y for _, y in points] + [end for of in chart.intervals.values() for ends in of for end in ends]
    xs, ys = sorted({x for x, _ in points}), ticks(min(heights), max(heights))
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
        intervals = chart.intervals.get(name)
        for (x, _), (low, high) in zip(of, intervals, strict=True) if intervals else ():
            (across, bottom), (_, top) = place(x, low), place(x, high)
            beside = across + 2 * at  # so that intervals of one x do not hide each other
            parts.append(f'<path class="line interval s{at % COLOURS}" d="M{beside:.1f} {bottom:.1f}V{top:.1f}"/>')
        for x, y in of:
            across, down = place(x, y)
            tooltip = escape(f"{name}: {chart.x} {x:g}, {chart.y} {y:.3f}")
            parts.append(f'<circle class="s{at % COLOURS}" cx="{across:.1f}" cy="{down:.1f}" r="3">')
            parts.append(f"<title>{tooltip}</title></circle>")
    return _svg(f"{chart.title}: {chart.y} by {chart.x}", HEIGHT, parts)


def _svg(label: str, height: float, parts: Sequence[str]) -> str:
    inside = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}">\n{inside}\n</svg>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
