"""Changes that a report shows, by its protocol: what verdicts teach, and what bystanders lose."""

from collections.abc import Mapping, Sequence

from engram_evaluation import adapt_table, change_table, needs_table, ratings_table, unseen_table
from engram_evaluation.change_table import GroupChange, compute_changes
from engram_evaluation.dataset import Question
from engram_evaluation.finished_phases import Phase
from engram_evaluation.learning_variations import HUMAN
from engram_evaluation.report_table import Grid
from engram_evaluation.run_options import Options

UNCHANGED = frozenset({"cold", "clicks", "thumbs", "session"})
"""Protocols without a state before and after the same verdicts."""
COUNTED = {"needs": needs_table.CHANGE_METRICS, "unseen": unseen_table.CHANGE_METRICS}
"""Metrics of protocols whose changes are listed after each number of verdicts."""


def list_changes(
    options: Options, phases: Sequence[Phase], drift: Sequence[Phase], paraphrases: Mapping[str, Sequence[Question]]
) -> list[GroupChange]:
    """List the change of each group from before the first to after the last turn.

    Of ``adapt`` by base and by evolved keys; of ``human`` by the system as it is; of ``COUNTED`` after each number
    of verdicts.
    """
    if options.protocol in UNCHANGED:
        return []
    if options.protocol in COUNTED:
        return [
            change
            for turn in sorted({phase.turn for phase in phases} - {0})
            for change in compute_changes(
                [phase for phase in phases if phase.group != unseen_table.GATE],
                drift,
                turn,
                lambda group: COUNTED[options.protocol],
                {},
                unseen_table.find_base_arm,
            )
        ]
    if options.protocol == "human":
        phases = [phase for phase in phases if phase.arm == HUMAN[0].name]

    def list_metrics(group: str) -> Sequence[str]:
        if options.protocol == "human":
            return ratings_table.list_change_metrics(group)
        if options.protocol == "adapt":
            return ("ndcg@10",)
        # Of ways to learn side by side, one metric makes the table long enough.
        return tuple(change_table.METRICS) if drift else ("recall@5",)

    return compute_changes(
        [phase for phase in phases if phase.group != adapt_table.PRICE],
        drift,
        1 if options.protocol == "human" else options.turns,
        list_metrics,
        {one.id: question for question, group in paraphrases.items() for one in group},
        adapt_table.find_base_arm if options.protocol == "adapt" else str,
    )


def list_metric_names(protocol: str) -> Mapping[str, str]:
    """Metric -> how changes of a protocol show it."""
    ratings = ratings_table.METRICS if protocol == "human" else {}
    return change_table.METRICS | ratings


def build_change_grid(options: Options, changes: Sequence[GroupChange]) -> Grid | None:
    """Build the table of changes; None where there is none, or the report has it already."""
    if not changes or options.protocol in {"levels", *COUNTED}:
        return None
    return change_table.build_grid(changes, list_metric_names(options.protocol))
