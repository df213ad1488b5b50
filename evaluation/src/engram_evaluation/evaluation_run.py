"""``engram evaluate``: one protocol on one data set, from the corpus to the report."""

import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Protocol, runtime_checkable

from rich.console import Console

from engram.config.settings import Settings
from engram.context.errors import InvalidRequestError
from engram.core.ranking.profiles import DEFAULT
from engram.providers.language.spacy_pipeline import RULES, pipeline_folder
from engram.providers.ranking_prior import RankingPriors
from engram.wings.published.core.paper_profile import PAPER
from engram_evaluation.adapt_protocol import adapt
from engram_evaluation.clicks_protocol import clicks
from engram_evaluation.dataset import Dataset
from engram_evaluation.finished_phases import Phase, Phases
from engram_evaluation.harness import EvaluatedServices, open_harness
from engram_evaluation.human_protocol import run_human
from engram_evaluation.learning_turns import run_learning
from engram_evaluation.learning_variations import Variation, list_variations
from engram_evaluation.needs_protocol import run_needs
from engram_evaluation.protocols import Run, run_cold
from engram_evaluation.report_table import FITTED_NOTE
from engram_evaluation.run_options import Options
from engram_evaluation.run_progress import progress, steps, ticks
from engram_evaluation.run_report import IndexingCost, RunReport
from engram_evaluation.session_protocol import sessions
from engram_evaluation.thumbs_protocol import thumbs
from engram_evaluation.unseen_protocol import run_unseen
from engram_evaluation.verdict_givers import OracleJudge

# Settings that can change a figure.
ENGINE = ("embedding_model", "embedding_precision", "spacy_model")

DIGITS = 16
"""Of the encoder's fingerprint that a report shows."""


class ConfiguredServices(EvaluatedServices, Protocol):
    """The use cases, and the settings they were made with."""

    @property
    def settings(self) -> Settings: ...


def evaluate(
    services: ConfiguredServices,
    vary: Callable[[Variation], EvaluatedServices],
    dataset: Dataset,
    options: Options,
    folder: Path,
    console: Console,
) -> RunReport:
    """Ingest, run the protocol, write ``folder/*.json`` and ``*.md``; a stopped run goes on where it was.

    ``vary`` gives the use cases on the same database with a part of learning left out or changed.

    Raises:
        InvalidRequestError: the data set does not have what the protocol needs.
        LlmNotConfiguredError: a language model is needed and none is configured.
    """
    began = time.perf_counter()
    if not dataset.questions and options.protocol != "human":
        raise InvalidRequestError(
            f"{dataset.name} labels no passage as relevant, so --protocol {options.protocol} measures nothing."
        )
    engine = {name: getattr(services.settings, name) for name in ENGINE}
    engine["embedding_model"] = (
        services.models.embedder.model
    )  # of a folder its name, which says nothing of its weights
    engine["embedding_fingerprint"] = services.models.embedder.fingerprint[:DIGITS]
    if pipeline_folder(services.settings.spacy_model) is None:
        engine["spacy_model"] = RULES  # what is not installed found no names
    engine["ranking_prior"] = [services.models.priors.name, *services.models.priors.fitted]
    asks = options.protocol == "session" and services.models.llm is not None
    if asks or options.stop_rule == "llm":
        engine["llm_model"] = services.settings.llm_model
    fitted = options.weighted and dataset.name in services.models.priors.fitted
    if fitted:
        _warn(console, dataset, services.models.priors)
    with progress(console) as bars:
        read, opened = _tokens_read(services), time.perf_counter()
        harness = open_harness(services, dataset, ticks(bars, f"{dataset.name}: ingest"), options.key_building)
        tokens = None if read is None else (_tokens_read(services) or 0) - read
        indexing = IndexingCost(time.perf_counter() - opened, tokens)
        run = Run(
            harness=harness,
            dataset=dataset,
            options=options,
            judge=OracleJudge(options.verdicts),
            phases=lambda parameters: Phases(folder, parameters),
            begin=lambda label, total: steps(bars, label, total),
            vary=cache(vary),  # several seeds share its connections
            engine=engine,
        )
        phases = _run(run)
    seconds = time.perf_counter() - began
    report = RunReport(run.dataset, options, engine, phases, seconds, indexing, fitted, tuple(run.drift))
    write(report, folder)
    return report


def _warn(console: Console, dataset: Dataset, priors: RankingPriors) -> None:
    console.print(
        f"Warning: {FITTED_NOTE}: the ranking weights in use were fitted to {', '.join(priors.fitted)}. "
        f"Figures of {dataset.name} are better than those of data that they have not seen; "
        "fit others with `engram fit` and give them with --prior.",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )


@runtime_checkable
class _CountingEncoder(Protocol):
    """An encoder that counts what it reads."""

    @property
    def tokens_read(self) -> int: ...


def _tokens_read(services: EvaluatedServices) -> int | None:
    return services.models.embedder.tokens_read if isinstance(services.models.embedder, _CountingEncoder) else None


def _run(run: Run) -> list[Phase]:
    alone: Mapping[str, Callable[[Run], list[Phase]]] = {
        "cold": run_cold,
        "clicks": clicks,
        "thumbs": thumbs,
        "adapt": adapt,
        "human": run_human,
        "needs": run_needs,
        "unseen": run_unseen,
        "session": sessions,
    }
    protocol = run.options.protocol
    if protocol in alone:
        return alone[protocol](run)
    profile = PAPER if run.options.profile == PAPER.name else DEFAULT
    return run_learning(run, list_variations(protocol, profile, has_expansions=bool(run.dataset.expansions)))


def write(report: RunReport, folder: Path) -> list[Path]:
    """Write the report's files; where the JSON and the Markdown are."""
    folder.mkdir(parents=True, exist_ok=True)
    slug = report.options.slug(report.dataset.name)
    as_json, as_markdown = folder / f"{slug}.json", folder / f"{slug}.md"
    as_json.write_text(json.dumps(report.as_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    as_markdown.write_text(report.markdown(), encoding="utf-8")
    return [as_json, as_markdown]
