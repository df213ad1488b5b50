"""The protocol ``facts``: gold evidence as paths, and what is left of the truth when sources contradict each other.

It ingests and embeds nothing: facts are read by the rules and stated into a collection of its own, which is removed
in the end. A data set with gold facts (2WikiMultihopQA) measures chains, one whose questions name a page and
years (TimeQA) measures revision.
"""

import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from engram.context.errors import InvalidRequestError
from engram_evaluation import chains, revision_measure
from engram_evaluation.chains import DEPTHS, EDGES, Chains
from engram_evaluation.dataset import Dataset
from engram_evaluation.harness import EvaluatedServices
from engram_evaluation.report_table import Grid
from engram_evaluation.revision_measure import RevisionShares
from engram_evaluation.run_options import Options
from engram_evaluation.table_report import TableReport

Begin = Callable[[str, int], Callable[[], None]]


@dataclass(frozen=True, slots=True)
class FactsReport:
    """Report of facts; one of its two parts is None or empty."""

    dataset: str
    command: str
    chains: Chains | None
    revised: tuple[RevisionShares, ...]

    def as_tables(self) -> TableReport:
        """Return the report with one table."""
        tables = {"": self._table()}
        return TableReport("facts", self.dataset, self.command, tables, self._note(), self._rows())

    def _table(self) -> Grid:
        if self.chains is not None:
            chain_figures = self.chains
            heads = ["L", *(f"chains in the first {k}" for k in DEPTHS), "links returned", "links known"]
            body = [
                [
                    str(edges),
                    *(f"{chain_figures.hits[edges, depth]:.3f}" for depth in DEPTHS),
                    f"{chain_figures.links[edges]:.3f}",
                    f"{chain_figures.stored_share:.3f}",
                ]
                for edges in EDGES
            ]
            return Grid(heads, body)
        heads = ["lying", "way", "current", "as of", "stale", "bridges"]
        body = [
            [f"{r.lying:.0%}", r.way, *(f"{share:.3f}" for share in (r.current, r.as_of, r.stale, r.bridges))]
            for r in self.revised
        ]
        return Grid(heads, body)

    def _note(self) -> str:
        if self.chains is None:
            return "Shares of questions; stale: answered by an earlier holder; bridges: periods still reachable."
        counts = self.chains
        return (
            f"{counts.questions} questions, {counts.chains} chains, {counts.facts} statements. Facts that hold all "
            f"the evidence take {counts.tokens:.1%} of the tokens of the gold passages."
        )

    def _rows(self) -> list[dict[str, Any]]:
        if self.chains is not None:
            document = asdict(self.chains)
            hits = {f"L{edges} k{depth}": value for (edges, depth), value in self.chains.hits.items()}
            return [document | {"hits": hits}]
        return [asdict(row) for row in self.revised]


def facts(services: EvaluatedServices, dataset: Dataset, options: Options, begin: Begin) -> FactsReport:
    """Measure what the data set allows.

    Raises:
        InvalidRequestError: it has neither gold facts nor questions with pages and years.
    """
    chosen = replace(dataset, questions=dataset.questions[: options.limit])
    gold = any(question.evidences for question in chosen.questions)
    period_series = () if gold else revision_measure.series(chosen)
    if not gold and not period_series:
        raise InvalidRequestError(f"{dataset.name} has no gold facts, and no questions with a page and years.")
    name = f"evaluation-facts-{uuid.uuid4().hex[:12]}"
    reception = services.corpus.ingest.receive(services.auth.access.prepare_opening(name))
    reception.add([], [])  # makes the collection
    scope = services.auth.access.scope(name)
    chain_figures: Chains | None = None
    revised: tuple[RevisionShares, ...] = ()
    try:
        if gold:
            stated = chains.learn(services, scope, chosen, begin("state facts", len(chosen.passages)))
            step = begin("ask for chains", sum(bool(question.evidences) for question in chosen.questions))
            chain_figures = chains.chains(services, scope, chosen, stated, step)
        else:
            step = begin("streams", len(revision_measure.RATES) * len(options.seeds))
            revised = tuple(revision_measure.revision(services, scope, chosen, options.seeds, step))
    finally:
        services.corpus.ingest.delete_collection(scope)
    return FactsReport(dataset.name, options.command(dataset.name), chain_figures, revised)
