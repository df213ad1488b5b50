"""Plots of a report as PNG: metrics against turns, the stream's running mean, where memories go, the filter."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engram_evaluation.dynamics import dynamics
from engram_evaluation.memory_trajectories import Trajectories
from engram_evaluation.report_table import HEADINGS
from engram_evaluation.retrieval_metrics import summary
from engram_evaluation.run_report import MEMORIES, RunReport
from engram_evaluation.sweep_protocol import VALUES, courses

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AGAINST_TURNS = ("recall@5", "hops")
UPDATES = 20
SUPPORTED, REJECTED, ASKED = "tab:green", "tab:red", "tab:blue"


def draw(report: RunReport, folder: Path) -> list[str]:
    """Write the plots that suit the report into ``folder``; their file names."""
    slug = report.options.slug(report.dataset.name)
    figures: dict[str, Figure] = {}
    if report.options.protocol == "stream":
        figures[f"{slug}-running.png"] = _plot_running_mean(report)
    elif report.options.protocol == "sweep":
        figures[f"{slug}-sweep.png"] = _sweep(report)
    elif report.options.protocol not in {
        "cold",
        "clicks",
        "thumbs",
        "adapt",
        "expand",
        "human",
        "levels",
        "answers",
        "session",
    }:
        figures[f"{slug}-turns.png"] = _turns(report)
        if report.trajectories is not None:
            figures[f"{slug}{MEMORIES}"] = _memories(report.trajectories)
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


def _turns(report: RunReport) -> "Figure":
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


def _sweep(report: RunReport) -> "Figure":
    """Recall and hops against each of the two numbers, a line for each profile."""
    varied = {metric: courses((o.arm, o.values[metric]) for o in report.lines()) for metric in AGAINST_TURNS}
    figure, axes = _figure(len(AGAINST_TURNS) * len(VALUES))
    places = [(metric, name) for name in VALUES for metric in AGAINST_TURNS]
    for ax, (metric, name) in zip(axes, places, strict=True):
        for profile, points in varied[metric][name].items():
            ax.plot(*zip(*points, strict=True), marker="o", ms=3, label=profile)
        ax.set_xlabel(name)
        ax.set_ylabel(HEADINGS[metric])
    axes[0].legend(fontsize=8)
    return figure


def _plot_running_mean(report: RunReport) -> "Figure":
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


def _memories(trajectories: Trajectories) -> "Figure":
    """Left: memories and questions in the plane of most variance, paler where earlier. Right: how near they are."""
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    figure, (plane, nearness) = _figure(2)
    questions, courses, shares = trajectories.project()
    plane.scatter(questions[:, 0], questions[:, 1], marker="*", s=90, color=ASKED, zorder=3)
    for at, point in enumerate(questions.tolist(), start=1):
        plane.annotate(f"Q{at}", point, textcoords="offset points", xytext=(5, 4), fontsize=8, color=ASKED)
    alphas = np.linspace(0.25, 1.0, trajectories.turns + 1)
    for at, (course, points) in enumerate(zip(trajectories.courses, courses, strict=True), start=1):
        color, marker = (SUPPORTED, "o") if course.supported else (REJECTED, "v")
        plane.plot(points[:, 0], points[:, 1], color=color, lw=0.8, alpha=0.5)
        shades = [to_rgba(color, alpha) for alpha in alphas]
        plane.scatter(points[:, 0], points[:, 1], s=16, lw=0, marker=marker, color=shades)
        plane.annotate(
            f"S{at}", points[-1].tolist(), textcoords="offset points", xytext=(4, -8), fontsize=7, color=color
        )
        nearness.plot(trajectories.cosines(course), marker=marker, ms=3, lw=1, color=color)
    plane.set_xlabel(f"first principal component ({shares[0]:.0%} of the variance)")
    plane.set_ylabel(f"second ({shares[1]:.0%})")
    plane.margins(0.1)
    handles = [
        Line2D([], [], color=ASKED, marker="*", ls="", label="question"),
        Line2D([], [], color=SUPPORTED, marker="o", ms=4, label="memory of a supported sentence"),
        Line2D([], [], color=REJECTED, marker="v", ms=4, label="of a rejected one"),
    ]
    plane.legend(handles=handles, fontsize=7)
    nearness.set_xlabel("turns of verdicts")
    nearness.set_ylabel("cosine of memory and question")
    nearness.xaxis.set_major_locator(MaxNLocator(integer=True))
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
