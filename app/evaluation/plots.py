"""Plots of a report as PNG: metrics against turns, the stream's running mean, gain and perplexity dynamics."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.evaluation.dynamics import dynamics
from app.evaluation.metrics import summary
from app.evaluation.report import HEADINGS, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AGAINST_TURNS = ("recall@5", "hops")
UPDATES = 20


def draw(report: Report, folder: Path) -> list[str]:
    """Write the plots that suit the report into ``folder``; their file names."""
    slug = report.options.slug(report.dataset.name)
    figures: dict[str, Figure] = {}
    if report.options.protocol == "stream":
        figures[f"{slug}-running.png"] = _running(report)
    elif report.options.protocol != "cold":
        figures[f"{slug}-turns.png"] = _turns(report)
        figures["gain-and-perplexity.png"] = _dynamics(float(report.engine["process_noise"]))
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=120, metadata={"Software": None})
    return list(figures)


def _figure(columns: int) -> "tuple[Figure, list[Axes]]":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * columns, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, columns, squeeze=False)[0]
    for ax in axes:
        ax.grid(alpha=0.3)
    return figure, list(axes)


def _turns(report: Report) -> "Figure":
    """Means over seeds with the range of the seeds as a band."""
    from matplotlib.ticker import MaxNLocator

    figure, axes = _figure(len(AGAINST_TURNS))
    several = len({phase.arm for phase in report.phases}) > 1
    for ax, metric in zip(axes, AGAINST_TURNS, strict=True):
        for arm, group in dict.fromkeys((phase.arm, phase.group) for phase in report.phases):
            by_turn: dict[int, list[float]] = {}
            for phase in report.phases:
                if (phase.arm, phase.group) == (arm, group):
                    by_turn.setdefault(phase.turn, []).append(summary(phase.rows)[metric])
            turns = sorted(by_turn)
            means = [float(np.mean(by_turn[turn])) for turn in turns]
            (line,) = ax.plot(turns, means, marker="o", ms=3, label=f"{group}, {arm}" if several else group)
            low, high = ([edge(by_turn[turn]) for turn in turns] for edge in (min, max))
            ax.fill_between(turns, low, high, color=line.get_color(), alpha=0.15, lw=0)
        ax.set_xlabel("turns of verdicts")
        ax.set_ylabel(HEADINGS[metric])
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[0].legend(fontsize=6)
    return figure


def _running(report: Report) -> "Figure":
    """The mean over all arrivals so far, memory off and read; a band over seeds."""
    figure, axes = _figure(len(AGAINST_TURNS))
    for ax, metric in zip(axes, AGAINST_TURNS, strict=True):
        for arm in dict.fromkeys(phase.arm for phase in report.phases):
            courses = []
            for seed in report.options.seeds:
                values = [
                    row.values[metric]
                    for phase in report.phases
                    if (phase.arm, phase.seed) == (arm, seed)
                    for row in phase.rows
                ]
                courses.append(np.cumsum(values) / np.arange(1, len(values) + 1))
            stacked = np.stack(courses)
            arrivals = np.arange(1, stacked.shape[1] + 1)
            (line,) = ax.plot(arrivals, stacked.mean(axis=0), label=arm)
            ax.fill_between(
                arrivals, stacked.min(axis=0), stacked.max(axis=0), color=line.get_color(), alpha=0.15, lw=0
            )
        ax.set_xlabel("questions that came")
        ax.set_ylabel(f"{HEADINGS[metric]}, mean so far")
    axes[0].legend(fontsize=8)
    return figure


def _dynamics(process_noise: float) -> "Figure":
    figure, (gains, perplexities) = _figure(2)
    for course in dynamics(UPDATES, process_noise):
        label = f"R = {course.observation_noise:g}"
        gains.plot(range(1, UPDATES + 1), course.gains, marker="o", ms=3, label=label)
        perplexities.plot(range(UPDATES + 1), course.perplexities, marker="o", ms=3, label=label)
    gains.set_ylabel("gain K")
    perplexities.set_ylabel("perplexity π")
    for ax in (gains, perplexities):
        ax.set_xlabel("verdicts")
        ax.legend(fontsize=8)
    return figure
