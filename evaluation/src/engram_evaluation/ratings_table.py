"""Table of what ratings by people taught: a line for each group of questions, a column for each rule."""

from collections.abc import Sequence

from engram_evaluation.report_table import Grid, SummaryLine, cell

BEFORE_PHASE = "before"
RATED_GROUP = "rated questions"
TAUGHT_GROUP = "same questions"
UNTAUGHT = "other rated questions"
OTHER_GROUP = "everything else"
METRICS = {
    "rated": "nDCG of rated passages",
    "graded": "nDCG@10 by ratings",
    "recall@5": "R@5",
    "recall@10": "R@10",
}
LEGEND = """\
Ratings by people, as verdicts: Excellent and Acceptable support the whole passage, Could be Improved and Bad
reject it, with a confidence of 1 for the outer words and 1/3 for the inner ones. Half of the rated questions
taught. same questions: those, measured by one rater of each who was held out. other rated questions: by all who
rated them. everything else: questions with a known passage that nobody rated. raters agree: all who rated a
passage are for it or all are against it, for each passage of the question. nDCG of rated passages: of these alone,
in the order in which they came among the first 10 (one that did not come counts nothing). nDCG@10 by ratings: of
all that came, an unrated passage counting nothing. Gains are means of 1, 2/3, 1/3 and 0; a question of which the
measuring raters found every passage bad is left out. Rules: noise per rating is the system as it is, a rating's
noise divided by its confidence; without caps the same where no judge is held back; fixed gain moves everything by
one share, whatever the word; last rating believes only the last."""


def name_agreeing_group(group: str) -> str:
    """The part of a group of which raters agree."""
    return f"{group}, raters agree"


def name_disagreeing_group(group: str) -> str:
    """The part of a group of which they do not."""
    return f"{group}, raters disagree"


def list_change_metrics(group: str) -> tuple[str, ...]:
    """Return the metrics that changes of a group are shown by."""
    return ("recall@5", "ndcg@10") if group == OTHER_GROUP else ("rated", "graded")


def build_grids(lines: Sequence[SummaryLine]) -> list[Grid]:
    """Build a table for each metric: a line for each group, a column before and after by each rule."""
    headings = ["n", BEFORE_PHASE, *_arms(lines)]
    return [Grid([name, *headings], _rows(lines, metric)) for metric, name in METRICS.items()]


def _rows(lines: Sequence[SummaryLine], metric: str) -> list[list[str]]:
    lines_by_group = {(line.group, line.arm, line.turn): line for line in lines}
    arms = _arms(lines)
    table = []
    for group in dict.fromkeys(line.group for line in lines if metric in line.values):
        columns = [lines_by_group.get((group, arms[0], 0)), *(lines_by_group.get((group, arm, 1)) for arm in arms)]
        count = next(str(line.questions) for line in columns if line)
        table.append([group, count, *(cell(line.values, metric) if line else "" for line in columns)])
    return table


def _arms(lines: Sequence[SummaryLine]) -> list[str]:
    return list(dict.fromkeys(line.arm for line in lines if line.turn))
