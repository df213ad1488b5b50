"""The lines of an ``expand`` run as tables: each method at query time, in the keys, and as both.

An arm names a retriever, and unless it is of base keys alone, a method and where its units went.
"""

from collections.abc import Sequence

from engram_evaluation import adapt_table
from engram_evaluation.report_table import HEADINGS, MARKS, Grid, TableLine, cell

ALL_METHODS = "all"
"""The method that stands for all stored units together."""
HELD_BACK_GROUP = "kept back"
GROUPS = (
    adapt_table.ADAPTED_GROUP,
    HELD_BACK_GROUP,
    adapt_table.NEAR_GROUP,
    adapt_table.SHARING_GROUP,
    adapt_table.OTHER_GROUP,
)
WIDENED, EVOLVED, BOTH = "widened", adapt_table.EVOLVED_ARM, "both"
SENDING, SENT = (adapt_table.ADAPTED_GROUP, HELD_BACK_GROUP), (WIDENED, BOTH)
"""Groups whose questions have units of their own, and the arms in which these are sent along."""
METRICS = {"ndcg@10": "nDCG@10", "recall@5": "R@5", "mrr": "MRR"}
METRIC = "ndcg@10"
COSTS = {"llm_calls": "LLM", "prompt_tokens": "tokens in", "completion_tokens": "tokens out", "ms": "ms"}
COST_TITLE = "What a query costs"
LEGEND = """\
A line names the retriever, the method that widens questions, and where its units went. They go along with the
question (widened), into the keys of supported passages (evolved keys), or both. adapted: the half of the questions
with expansions that were judged. kept back: the other half. near, sharing, others: as in `adapt`, without units.
LLM, tokens, ms: of a query that is kept back, and of widening it where that was live. EM, F1, contains, strict,
lenient: as in `answers`, of what the first passages let a model say."""


def arm(retriever: str, method: str = "", how: str = adapt_table.BASE) -> str:
    """The arm's name."""
    return ", ".join(part for part in (retriever, method, how) if part)


def find_base_arm(name: str) -> str:
    """The arm that an arm is compared with: the same retriever by base keys."""
    return arm(name.split(", ", maxsplit=1)[0])


def headings(metric: str) -> list[str]:
    """Return the headings of the columns of ``rows``."""
    return [METRICS[metric], *GROUPS]


def rows(lines: Sequence[TableLine], metric: str) -> list[list[str]]:
    """Return the number of questions of each group, then each arm's figures; empty where a group was not asked."""
    lines_by_arm = {(line.arm, line.group): line for line in lines}
    arms = list(dict.fromkeys(line.arm for line in lines))
    counts = [max((line.questions for line in lines if line.group == group), default=0) for group in GROUPS]
    figures = []
    for name in arms:
        values = [lines_by_arm.get((name, group)) for group in GROUPS]
        figures.append([name, *("" if line is None else cell(line.values, metric) for line in values)])
    return [["questions", *(str(count) if count else "" for count in counts)], *figures]


def cost_headings() -> list[str]:
    """Return the headings of the columns of ``cost_rows``."""
    return ["", *COSTS.values()]


def cost_rows(lines: Sequence[TableLine]) -> list[list[str]]:
    """Return the cost of each arm for a held-out question."""
    return [
        [line.arm, *(cell(line.values, name) for name in COSTS)] for line in lines if line.group == HELD_BACK_GROUP
    ]


def answers(lines: Sequence[TableLine]) -> list[Grid]:
    """Make a table of the marks of answers by arm for each group with answers."""
    tables = []
    for group in SENDING:
        marked_lines = [line for line in lines if line.group == group and MARKS[0] in line.values]
        if marked_lines:
            headings = [f"{group}: answers", "n", *(HEADINGS[name] for name in MARKS)]
            cells = [
                [line.arm, str(line.questions), *(cell(line.values, name) for name in MARKS)]
                for line in marked_lines
            ]
            tables.append(Grid(headings, cells))
    return tables
