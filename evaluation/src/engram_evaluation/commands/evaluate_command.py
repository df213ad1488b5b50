"""The command that measures: retrieval, and what verdicts teach it."""

from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli.terminal import MEASURE, cli, err, open_console, say
from engram.runtime.local_engine import engine
from engram_evaluation.commands.dataset_names import load_dataset
from engram_evaluation.commands.figure_tables import show

if TYPE_CHECKING:
    from engram.composition.container import Application, Servers
    from engram.config.settings import Settings
    from engram_evaluation.dataset import Dataset
    from engram_evaluation.learning_variations import Variation
    from engram_evaluation.run_options import Options
    from engram_evaluation.table_report import TableReport

WIDTH = 120  # of the table where there is no terminal to ask


@cli.command(rich_help_panel=MEASURE)
def evaluate(
    dataset: Annotated[
        Path, typer.Argument(help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv, or 'sample'.")
    ],
    protocol: Annotated[
        str,
        typer.Option(
            help="cold, similar, different, levels, noise, hostile, clicks, thumbs, adapt, human, needs, unseen, "
            "absent or session: docs/evaluation.md."
        ),
    ] = "cold",
    profile: Annotated[str, typer.Option(help="paper or default")] = "default",
    turns: Annotated[int, typer.Option(help="Rounds of verdicts.")] = 1,
    at: Annotated[
        str,
        typer.Option(help="Measure after these turns only, as 1,5; before the first and after the last always."),
    ] = "",
    verdicts: Annotated[str, typer.Option(help="full: also names missed evidence; returned: does not.")] = "full",
    seed: Annotated[
        list[int] | None,
        typer.Option(help="Order of verdicts (adapt: which questions are judged); several give means."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "--questions",
            help="Judge at most so many questions (cold, clicks, thumbs: ask; adapt: draw "
            "from so many of those with expansions; human: so many that are rated, and of the others).",
        ),
    ] = None,
    stop_rule: Annotated[
        str | None,
        typer.Option(help="What ends hops early: none, coverage, learned or llm; the profile's own by default."),
    ] = None,
    freeze: Annotated[
        list[str] | None, typer.Option(help="Verdicts leave this alone: task, time, recall or weights; repeatable.")
    ] = None,
    prior: Annotated[
        Path | None, typer.Option(help="File with ranking weights to start from, as `engram fit` writes.")
    ] = None,
    fractions: Annotated[
        str, typer.Option(help="adapt: shares of the questions with expansions that keys are adapted to.")
    ] = "0.3,0.5,0.8",
    retrievers: Annotated[
        str, typer.Option(help="adapt: what answers, of dense, lexical, hybrid and graph.")
    ] = "dense,lexical,hybrid,graph",
    ways: Annotated[
        str,
        typer.Option(
            help="adapt: how expansions are credited, of supported, published and ungated; the first at every "
            "fraction, others at the middle one."
        ),
    ] = "supported,published,ungated",
    key_building: Annotated[
        str, typer.Option(help="adapt: base keys of the title, abstract, keywords or full text.")
    ] = "full",
    top_k: Annotated[int, typer.Option(help="session: passages of a query.")] = 5,
    planners: Annotated[
        str, typer.Option(help="session: what decides on rounds, of pool, socratic, tree, agent and rfm-rag.")
    ] = "pool",
    rounds: Annotated[int, typer.Option(help="session: rounds at most.")] = 3,
    llm_calls: Annotated[int, typer.Option(help="session: calls of the language model at most.")] = 100,
    oracle_errors: Annotated[
        float | None,
        typer.Option(
            help="session: an oracle that knows the data set's decompositions replies "
            "instead of the configured endpoint, and errs at this rate: an upper bound."
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="session: also without this; repeatable. Of socratic and tree: consolidation, update, extractor. "
            "Of pool by rules: walk, gaps, binding."
        ),
    ] = None,
    translation: Annotated[
        list[Path] | None,
        typer.Option(
            help="similar and others that ask again: the same data set in another language, whose questions "
            "of the same ids are the paraphrases; repeatable."
        ),
    ] = None,
    pooled: Annotated[
        bool, typer.Option("--pooled", help="With --translation: its passages join the collection.")
    ] = False,
    paraphrased: Annotated[
        bool,
        typer.Option("--paraphrased", help="session: ask the paraphrases, which share few words with passages."),
    ] = False,
    stops: Annotated[
        str,
        typer.Option(
            help="session: what may end sessions of pool: planner, rounds (nothing), sufficiency or covered."
        ),
    ] = "planner,rounds",
    at_least: Annotated[int, typer.Option(help="session: only questions with so many relevant passages.")] = 1,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave collection evaluate-NAME, for `engram trajectories` or a further run."),
    ] = False,
    folder: Annotated[Path, typer.Option("--out", help="Where reports and finished phases go.")] = Path("reports"),
) -> None:
    """Measure retrieval, and what verdicts teach it, on a data set; a stopped run goes on where it was."""
    from engram.config.settings import Settings
    from engram_evaluation.dataset import add_translations
    from engram_evaluation.evaluation_run import evaluate as run
    from engram_evaluation.harness import delete_collection
    from engram_evaluation.oracle_endpoint import Oracle
    from engram_evaluation.oracle_server import ChatServer
    from engram_evaluation.run_options import Options, numbers, parse_whole_numbers

    given: dict[str, Any] = {
        "protocol": protocol,
        "profile": profile,
        "turns": turns,
        "at": parse_whole_numbers("--at", at),
        "verdicts": verdicts,
        "seeds": tuple(seed or [0]),
        "limit": limit,
        "stop_rule": stop_rule,
        "freeze": tuple(freeze or ()),
        "fractions": numbers("--fractions", fractions),
        "retrievers": tuple(retrievers.split(",")),
        "ways": tuple(ways.split(",")),
        "key_building": key_building,
        "top_k": top_k,
        "planners": tuple(planners.split(",")),
        "rounds": rounds,
        "llm_calls": llm_calls,
        "oracle_errors": oracle_errors,
        "without": tuple(without or ()),
        "translations": tuple(folder.resolve().name for folder in translation or ()),
        "pooled": pooled,
        "paraphrased": paraphrased,
        "stops": tuple(stops.split(",")),
        "at_least": at_least,
        "prior": None if prior is None else prior.name if prior.is_absolute() else prior.as_posix(),
    }
    options = Options(**given)
    loaded = load_dataset(dataset)
    if options.translations:
        loaded = add_translations(loaded, map(load_dataset, translation or ()), pooled=pooled)
    settings = Settings()
    if prior is not None:
        settings = settings.model_copy(update={"ranking_prior": prior})
    if options.protocol == "absent":
        _run_absent(settings, loaded, options, folder, keep=keep)
        return
    with ExitStack() as stack:
        if options.oracle_errors is not None:
            oracle = Oracle(loaded, options.oracle_errors, options.seeds[0])
            base_url = stack.enter_context(ChatServer(oracle)).base_url
            settings = settings.model_copy(update={"llm_base_url": base_url, "llm_model": "oracle"})
        services, addresses = stack.enter_context(engine(settings))

        def vary(variation: "Variation") -> "Application":
            return stack.enter_context(closing(build_variation(services, addresses, variation)))

        report = run(services, vary, loaded, options, folder, err())
        if not keep:
            delete_collection(services, loaded)
    width = None if open_console().is_terminal else WIDTH
    show(report.table(), width)
    for further in report.build_further_tables():
        show(further, width)
    say(f"{folder / options.slug(loaded.name)}.md and .json")


def _run_absent(settings: "Settings", dataset: "Dataset", options: "Options", folder: Path, *, keep: bool) -> None:
    """Run the protocol ``absent``, whose figures are not those of retrieval."""
    from engram_evaluation.absent_protocol import measure_absent
    from engram_evaluation.harness import delete_collection, open_harness
    from engram_evaluation.run_progress import progress, steps, ticks

    with engine(settings) as (services, _), progress(err()) as bars:
        harness = open_harness(services, dataset, ticks(bars, f"{dataset.name}: ingest"))
        report = measure_absent(harness, dataset, options, lambda label, total: steps(bars, label, total))
        if not keep:
            delete_collection(services, dataset)
    _show_tables(report, folder, options.slug(dataset.name))


def _show_tables(report: "TableReport", folder: Path, slug: str) -> None:
    for table in report.terminal_tables():
        show(table, WIDTH)
    say(report.note)
    say(str(report.write(folder, slug)))


def build_variation(services: "Application", addresses: "Servers", variation: "Variation") -> "Application":
    """Make an application on the same encoder and servers, with a part of learning left out or changed."""
    from engram.composition.container import Application
    from engram.core.learning.states import CHANNELS, RECALL
    from engram.wings.published.parts import published_of
    from engram.wings.tuning.parts import tuning_of
    from engram.wings.tuning.services.tuning_job import TuningJob
    from engram_evaluation.learning_rules import WITHOUT_GATE, PartialMemoryRule, PartialRule, WithoutValidation

    other = Application(services.settings, addresses)
    other.models.embedder, other.models.language = services.models.embedder, services.models.language
    other.models.noise = services.models.noise
    if variation.uncapped:
        other.models.noise = replace(services.models.noise, share=1.0, contested=1.0, weight_verdicts=None)
    gain, channels = variation.fixed_gain, variation.frozen.intersection(CHANNELS)
    if gain is not None or RECALL in variation.frozen:
        other.models.learning_rule = PartialRule(RECALL in variation.frozen, gain)
    if "weights" in variation.frozen:
        other.models.weight_priors = lambda kind: {}
    published, plain = published_of(other), published_of(services)
    if gain is not None or channels:
        published.memory_rule = PartialMemoryRule(channels, gain)
    published.key_learning = plain.key_learning
    if variation.ungated_tuning:
        tuning_of(other).job = TuningJob(other.database, lambda: other.models.encoder, rule=WITHOUT_GATE)
    published.expansion_validation = WithoutValidation() if variation.ungated_keys else plain.expansion_validation
    return other
