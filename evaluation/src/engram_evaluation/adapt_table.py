"""Tables of an ``adapt`` run: figures before and after keys evolved, and the cost of a query.

An arm names a retriever, the share of questions that was adapted to, and the keys it searched.
"""

from collections.abc import Sequence

from engram_evaluation.report_table import SummaryLine, cell

ADAPTED_GROUP = "adapted"
NEAR_GROUP = "near"
SHARING_GROUP = "sharing"
OTHER_GROUP = "others"
GROUPS = (ADAPTED_GROUP, NEAR_GROUP, SHARING_GROUP, OTHER_GROUP)
PRICE = "price"
"""The group of questions that are asked by all of ``PRICED_ARMS`` in turns, so that their times can be compared."""

BASE = "base keys"
EVOLVED_ARM = "evolved keys"
EXPANDED_ARM = "expanded questions"
PRICED_ARMS = (BASE, EVOLVED_ARM, EXPANDED_ARM)

METRICS = {"ndcg@10": "nDCG@10", "ndcg@1": "nDCG@1", "mrr": "MRR", "recall@5": "R@5", "recall@10": "R@10"}
"""What is reported, the first of them everywhere."""
METRIC = "ndcg@10"
LEGEND = """\
A line names the retriever, the share of the questions that taught, and which passages are credited. These are the
ones that the verdict supports (supported), all retrieved ones (published), or supported ones without validation
(ungated). Figures: by base keys without memory -> by evolved keys with memory. adapted: questions whose expansions
were credited. near: their paraphrases, else questions of `sharing` with a cosine of 0.85 or more. sharing: other
questions that share a relevant passage with an adapted one. others: questions that share none."""
PRICE_TITLE = "What a query costs: nDCG@10, ms"


def arm(retriever: str, fraction: float, keys: str) -> str:
    """The arm's name."""
    return f"{retriever}, {100 * fraction:g}%, {keys}"


def find_base_arm(name: str) -> str:
    """The arm that an arm is compared with: the same retriever and share, with base keys."""
    return _replace_keys(name, BASE)


def headings(metric: str) -> list[str]:
    """Return the headings of the columns of ``rows``."""
    return [METRICS[metric], *GROUPS]


def rows(lines: Sequence[SummaryLine], metric: str) -> list[list[str]]:
    """Return the number of questions of each group at each fraction, then before -> after for each learning arm."""
    lines_by_arm = {(line.arm, line.group): line for line in lines}
    arms = list(dict.fromkeys(line.arm for line in lines if line.turn and line.group != PRICE))
    counts = {}
    for name in arms:
        share = name.split(", ")[1]
        counts[share] = [f"questions, {share}", *(_count(lines_by_arm.get((name, group))) for group in GROUPS)]
    figures = []
    for name in arms:
        pairs = [
            (lines_by_arm.get((find_base_arm(name), group)), lines_by_arm.get((name, group))) for group in GROUPS
        ]
        figures.append([name, *(_change(metric, *pair) for pair in pairs)])
    return [*counts.values(), *figures]


def prices(lines: Sequence[SummaryLine]) -> dict[str, str]:
    """Arm -> nDCG@10 and milliseconds of the questions of ``PRICE``; a retriever's ``PRICED_ARMS`` side by side."""
    values_by_arm = {line.arm: line.values for line in lines if line.group == PRICE}
    arms = [
        _replace_keys(name, keys)
        for name in dict.fromkeys(map(find_base_arm, values_by_arm))
        for keys in PRICED_ARMS
    ]
    return {
        name: f"{cell(values_by_arm[name], METRIC)}, {cell(values_by_arm[name], 'ms')}"
        for name in arms
        if name in values_by_arm
    }


def price_rows(lines: Sequence[SummaryLine]) -> list[list[str]]:
    """A row for each retriever and share, a column for each of ``PRICED_ARMS``."""
    priced = prices(lines)
    return [
        [", ".join(name.split(", ")[:2]), *(priced.get(_replace_keys(name, keys), "") for keys in PRICED_ARMS)]
        for name in dict.fromkeys(map(find_base_arm, priced))
    ]


def _replace_keys(name: str, keys: str) -> str:
    """The arm of the same retriever and share with other keys."""
    return ", ".join([*name.split(", ")[:2], keys])


def _count(line: SummaryLine | None) -> str:
    return str(line.questions) if line else ""


def _change(metric: str, old: SummaryLine | None, new: SummaryLine | None) -> str:
    return f"{cell(old.values, metric)} -> {cell(new.values, metric)}" if old and new else ""
