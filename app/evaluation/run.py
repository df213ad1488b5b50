"""``engram evaluate``: one protocol on one data set, from the corpus to the report."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from app.evaluation import judges, protocols
from app.evaluation.dataset import Dataset
from app.evaluation.harness import Services, open_harness
from app.evaluation.options import Options
from app.evaluation.phases import Phases
from app.evaluation.protocols import Run
from app.evaluation.report import Report
from app.settings import Settings

# Settings that can change a figure.
ENGINE = (
    "embedding_model",
    "spacy_model",
    "recall_gate",
    "hub_limit",
    "candidate_limit",
    "exact_search_limit",
    "observation_noise_positive",
    "observation_noise_negative",
    "process_noise",
)


class Configured(Services, Protocol):
    """The use cases, and the settings they were made with."""

    @property
    def settings(self) -> Settings: ...


def evaluate(services: Configured, dataset: Dataset, options: Options, folder: Path, console: Console) -> Report:
    """Ingest, run the protocol, write ``folder/*.json`` and ``*.md``; a stopped run goes on where it was.

    Raises:
        InvalidRequestError: the data set does not have what the protocol needs.
        LlmNotConfiguredError: a language model is needed and none is configured.
    """
    began = time.perf_counter()
    judge = judges.choose(options.judge, options.verdicts, services.llm)
    engine = {name: getattr(services.settings, name) for name in ENGINE}
    if options.judge == "llm" or options.sufficiency == "llm":
        engine["llm_model"] = services.settings.llm_model
    with _progress(console) as progress:
        harness = open_harness(services, dataset, _ticks(progress, f"{dataset.name}: ingest"))
        run = Run(
            harness=harness,
            dataset=dataset,
            options=options,
            judge=judge,
            phases=lambda parameters: Phases(folder, parameters),
            begin=lambda label, total: _steps(progress, label, total),
            engine=engine,
        )
        phases = protocols.cold(run) if options.protocol == "cold" else protocols.learning(run)
    report = Report(dataset, options, engine, phases, time.perf_counter() - began)
    write(report, folder)
    return report


def write(report: Report, folder: Path) -> list[Path]:
    """Write the report's files; where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    slug = report.options.slug(report.dataset.name)
    as_json, as_markdown = folder / f"{slug}.json", folder / f"{slug}.md"
    as_json.write_text(json.dumps(report.as_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    as_markdown.write_text(report.markdown(), encoding="utf-8")
    return [as_json, as_markdown]


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        yield progress


def _ticks(progress: Progress, label: str) -> Callable[[int, int], None]:
    task = progress.add_task(label, total=None)
    return lambda done, total: progress.update(task, completed=done, total=total)


def _steps(progress: Progress, label: str, total: int) -> Callable[[], None]:
    task = progress.add_task(label, total=total)
    return lambda: progress.advance(task)
