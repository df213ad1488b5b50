"""Lines of a report's table, and how they are written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table

from engram_evaluation.retrieval_metrics import COSTS, RANKING

HEADINGS = {
    "recall@2": "R@2",
    "recall@5": "R@5",
    "all@5": "all@5",
    "recall@10": "R@10",
    "ndcg@1": "nDCG@1",
    "ndcg@10": "nDCG",
    "mrr": "MRR",
    "support": "support",
    "hops": "hops",
    "shown": "shown",
    "llm_calls": "LLM",
    "ms": "ms",
    "em": "EM",
    "f1": "F1",
    "contains": "contains",
    "prompt_tokens": "tokens in",
    "completion_tokens": "tokens out",
    "pool_recall": "gold in pool",
    "pool_precision": "of pool gold",
    "pool": "pool",
    "read": "read",
    "read_all": "all read",
    "rounds": "rounds",
    "answered": "answered",
    "wrong": "wrong first",
    "mended": "mended",
    "stuck": "stuck",
    "spoiled": "spoiled",
}
FIRST_RESULTS = ("wrong", "mended", "stuck", "spoiled")
"""Of the first results of questions that came again."""
MARKS = ("em", "f1", "contains")
TOKENS = ("prompt_tokens", "completion_tokens")
DIGITS = dict.fromkeys(TOKENS, 0) | {"hops": 2, "shown": 1, "llm_calls": 2, "ms": 1}
DIGITS |= {"pool": 1, "read": 1, "rounds": 2}
LEGEND = """\
R@k: share of the relevant passages among the first k. all@5: share of the questions of which all (or five) are so
among the first five. nDCG, MRR: of the first 10.
support: share of the gold sentences among those that retrieval selected. shown: sentences selected, which is what a
judge reads. LLM: requests to a language model per question. ms: median wall-clock time of a query."""

SESSIONS_NOTE = """\
R@5, all@5: of the passages in the session's own order. read: passages that it read; all read: share of the
questions of which all relevant passages are among these. pool: sentences in the evidence pool; gold in pool: share
of the gold sentences that are there; of pool gold: share of the pool that is gold. EM, F1, contains: of the answer
in words; answered: share of the questions that got one. LLM, tokens in, out: of a question, as the endpoint counts
them. ms: median wall-clock time.
`query` is one question of five passages; below each planner stands one question of as many passages as it read."""
CLICKS_NOTE = """\
Questions arrive with Zipf repetition and are clicked, not judged: the result of rank r is looked at with
probability 1 / r, and what is looked at is clicked if it is relevant, else one time in ten. A click supports what
was shown of the passage. silence rejects: what was not clicked is rejected. silence weighed: the same, with the
probability that it was looked at (`examined`). clicks alone: what was not clicked is left alone. asked again:
questions that came more than once, by their first result. wrong first: it was not relevant when the question came
first; of these, mended: it was when the question came last, stuck: it was the same one every time. spoiled: of the
others, it was not when the question came last."""
FITTED_NOTE = "weights fitted to the same questions"
"""What is said of figures that the ranking weights have seen the questions of."""
COLUMNS = {
    "clicks": ("recall@5", "recall@10", "ndcg@10", "mrr", *FIRST_RESULTS, "hops", "ms"),
    "session": ("recall@5", "all@5", "read", "read_all", "pool", "pool_recall", "pool_precision", "rounds"),
}
"""What main tables show, of protocols for which it is not (*RANKING, *COSTS)."""

FURTHER_COLUMNS = {"session": (*MARKS, "answered", "llm_calls", *TOKENS, "ms")}
"""What a second table shows, of protocols that measure more than one has room for."""


def columns(protocol: str) -> tuple[str, ...]:
    """The metrics of a protocol's main table."""
    return COLUMNS.get(protocol, (*RANKING, *COSTS))


def legend(protocol: str) -> str:
    """Explain the headings of a protocol's table."""
    return {"session": SESSIONS_NOTE, "clicks": CLICKS_NOTE}.get(protocol, LEGEND)


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """One line of the table: means over the questions and seeds of equal phases."""

    arm: str
    group: str
    turn: int
    questions: int
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table in words: the first heading names what it is of, the first cell of a row what the row is of."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        return markdown_table(self.headings, self.rows)


def label(line: SummaryLine, protocol: str, *, several: bool) -> str:
    """Label a line; the arm is named where a run has ``several``."""
    if protocol in {"cold", "session"}:
        return line.arm
    if protocol == "clicks":
        return f"{line.group}, {line.arm}"
    when = "before" if line.turn == 0 else f"turn {line.turn}"
    return f"{line.group}, {when}" + (f", {line.arm}" if several else "")


def cell(values: Mapping[str, float], name: str) -> str:
    """One figure as it is shown, or nothing where it was not measured."""
    return f"{values[name]:.{DIGITS.get(name, 3)}f}" if name in values else ""


def cells(values: Mapping[str, float], protocol: str) -> list[str]:
    """All figures of a line."""
    return [cell(values, name) for name in columns(protocol)]


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, its first column aligned left and all others right."""
    lines = [headings, ["---", *("---:" for _ in headings[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def terminal_table(
    title: str | None, headings: Sequence[str], rows: Iterable[Sequence[str]], *, no_wrap: bool = False
) -> Table:
    """A table for the terminal, its first column aligned left and all others right."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    first, *others = headings
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right", no_wrap=no_wrap)
    for row in rows:
        table.add_row(*row)
    return table
