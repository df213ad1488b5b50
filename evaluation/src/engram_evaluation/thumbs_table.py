"""Tables of ``thumbs``: a line for each share of thumbs and of wrong ones, a column for each way to learn."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from engram_evaluation.feedback_rules import RULES
from engram_evaluation.protocols import MEMORY_OFF, PARAPHRASES, SHARING_GROUP
from engram_evaluation.report_table import Grid, SummaryLine

THUMB_RATES = (0.1, 0.01, 0.001)
WRONG_RATES = (0.0, 0.1, 0.3)
"""Shares of the answers that get a thumb, and of the thumbs that are wrong."""
ARRIVALS_GROUP = "arrivals"
WRONG_GROUP = "wrong first"
ARRIVING_GROUP = "arriving questions"
OTHER_GROUP = "other questions"
NO_LEARNING = "no learning"
ENGRAM = "Engram"
ARMS = (ENGRAM, *RULES)
LEGEND = """\
Questions arrive with Zipf repetition. A share of the answers gets a thumb: up if evidence is among the first five
passages, and wrongly at the share that the line names. Half of the thumbs say what the answer cites. Each way to
learn has its own answers rated; rules of other systems reorder the first 50 passages found without learning.
gain per arrival: nDCG@10 less that without learning. mended: share of the questions with a wrong first passage that
once have a right one; lag: how many of their arrivals come before that. The other tables ask each group after the
last arrival: change of R@5 / nDCG@10, in brackets how many questions lose nDCG@10. sharing a passage: those that
do not arrive and share a relevant passage with one that does; other questions share none."""


def name_arm(arm: str, rate: float, wrong_rate: float) -> str:
    """The name of a way to learn from so many thumbs."""
    return f"{arm}, {name_share(rate, wrong_rate)}"


def name_share(rate: float, wrong_rate: float) -> str:
    """A share of thumbs and of wrong ones in words."""
    return f"1 in {round(1 / rate):,}, {wrong_rate:.0%} wrong"


def list_shares() -> Iterator[tuple[float, float]]:
    """Each share of thumbs with each share of wrong ones."""
    return ((rate, wrong_rate) for rate in THUMB_RATES for wrong_rate in WRONG_RATES)


def build_grids(lines: Sequence[SummaryLine]) -> list[Grid]:
    """Build a table of arrivals, one of wrong answers, and one for each group; a column for each way to learn."""
    by_key = {(line.arm, line.group): line for line in lines}
    grids = []
    for group, (heading, write) in _TABLES.items():
        count = next((line.questions for line in lines if line.group == group), None)
        if count is None:
            continue
        rows = []
        base = by_key.get((NO_LEARNING, group))
        if base is not None:
            figures = f"{base.values['recall@5']:.3f} / {base.values['ndcg@10']:.3f}"
            rows.append([NO_LEARNING, figures, *("" for _ in ARMS[1:])])
        labels = {name_share(*share): [name_arm(arm, *share) for arm in ARMS] for share in list_shares()}
        last = name_arm(ENGRAM, THUMB_RATES[0], WRONG_RATES[-1])
        labels[f"{name_share(THUMB_RATES[0], WRONG_RATES[-1])}, {MEMORY_OFF}"] = [f"{last}, {MEMORY_OFF}"]
        for label, names in labels.items():
            cells = [write(by_key[name, group]) if (name, group) in by_key else "" for name in names]
            if any(cells):
                rows.append([label, *cells, *("" for _ in ARMS[len(cells) :])])
        grids.append(Grid([f"{heading.format(group=group)} ({count})", *ARMS], rows))
    return grids


def _write_gain(line: SummaryLine) -> str:
    return f"{line.values['gain']:+.4f}"


def _write_lag(line: SummaryLine) -> str:
    lag = f", lag {line.values['lag']:.1f}" if "lag" in line.values else ""
    return f"{line.values['mended']:.0%}{lag}"


def _write_change(line: SummaryLine) -> str:
    lost = round(line.values["lost"] * line.questions)
    return f"{line.values['recall_change']:+.3f} / {line.values['gain']:+.3f} ({lost})"


_TABLES: Mapping[str, tuple[str, Callable[[SummaryLine], str]]] = {
    ARRIVALS_GROUP: ("gain per arrival", _write_gain),
    WRONG_GROUP: ("wrong first: mended, lag", _write_lag),
    ARRIVING_GROUP: ("{group}: R@5 / nDCG@10", _write_change),
    PARAPHRASES: ("{group}: R@5 / nDCG@10", _write_change),
    SHARING_GROUP: ("{group}: R@5 / nDCG@10", _write_change),
    OTHER_GROUP: ("{group}: R@5 / nDCG@10", _write_change),
}
"""Group -> the heading of its table, and how a cell is written."""
