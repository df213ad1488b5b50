"""The lines of an ``expand`` run as tables: each method at query time, in the keys, and as both.

An arm names a retriever, and unless it is of base keys alone, a method and where its units went.
"""

from collections.abc import Sequence

from engram_evaluation import adapt_table
from engram_evaluation.report_table import HEADINGS, MARKS, Grid, TableLine, cell

ALL = "all"
"""The method that stands for all stored units together."""
KEPT = "kept back"
GROUPS = (adapt_table.ADAPTED, KEPT, adapt_table.NEAR, adapt_table.SHARING, adapt_table.OTHERS)
WIDENED, EVOLVED, BOTH = "widened", adapt_table.EVOLVED, "both"
SENDING, SENT = (adapt_table.ADAPTED, KEPT), (WIDENED, BOTH)
"""Groups whose questions have units of their own, and the arms in which these are sent along."""
METRICS = {"ndcg@10": "nDCG@10", "recall@5": "R@5", "mrr": "MRR"}
METRIC = "ndcg@10"
COSTS = {"llm_calls": "LLM", "prompt_tokens": "tokens in", "completion_tokens": "tokens out", "ms": "ms"}
COST_TITLE = "What a query costs"
LEGEND = """\
Each line: what answered, the method that widens questions, and where its units went: along with the question
(widened), into the keys of the passages that verdicts support (evolved keys), or both. adapted: the half of the
questions with expansions that were judged. kept back: the other half. near, sharing, others: as in `adapt`; with
these no units are sent. LLM, tokens, ms: of a query that is kept back, and of widening it where that was done
live. EM, F1, contains, strict, lenient, where answers were asked for: as in `answers`, of what the first passages
let a model say."""


def arm(retriever: str, method: str = "", how: str = adapt_table.BASE) -> str:
    """The arm's name."""
    return ", ".join(part for part in (retriever, method, how) if part)


def before(name: str) -> str:
    """The arm that an arm is compared with: the same retriever by base keys."""
    return arm(name.split(", ", maxsplit=1)[0])


def headings(metric: str) -> list[str]:
    """Of the columns that ``rows`` fills."""
    return [METRICS[metric], *GROUPS]


def rows(lines: Sequence[TableLine], metric: str) -> list[list[str]]:
    """How many questions the groups have, then each arm's figures, empty where a group was not asked so."""
    lines_by_arm = {(line.arm, line.group): line for line in lines}
    arms = list(dict.fromkeys(line.arm for line in lines))
    counts = [max((line.questions for line in lines if line.group == group), default=0) for group in GROUPS]
    figures = []
    for name in arms:
        values = [lines_by_arm.get((name, group)) for group in GROUPS]
        figures.append([name, *("" if line is None else cell(line.values, metric) for line in values)])
    return [["questions", *(str(count) if count else "" for count in counts)], *figures]


def cost_headings() -> list[str]:
    """Of the columns that ``cost_rows`` fills."""
    return ["", *COSTS.values()]


def cost_rows(lines: Sequence[TableLine]) -> list[list[str]]:
    """What each arm costs a question that is kept back."""
    return [[line.arm, *(cell(line.values, name) for name in COSTS)] for line in lines if line.group == KEPT]


def answers(lines: Sequence[TableLine]) -> list[Grid]:
    """What answers in words were worth by each arm, a table for each group that has some."""
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
