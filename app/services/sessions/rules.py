"""What sessions go by without an LLM: the passages in order, and how much of the question the pool has."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.coverage import coverage
from app.core.session import PoolSentence, StopReason
from app.services.sessions.state import SessionState
from app.services.sessions.tools import AskedQuery, Tools

LOOKED_AT = 100
"""Passages among which those that were read are put in order."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """The passages that were read, best first, and what that comes to.

    Attributes:
        enough: probability that the best five hold all the evidence; None where features do not rank.
        covered: of the question's words, what the pool names, in [0, 1].
    """

    ranked: list[int]
    enough: float | None
    covered: float


def ranked_by_rules(
    state: SessionState, tools: Tools, asked: Sequence[AskedQuery], found: Sequence[PoolSentence]
) -> Ordered:
    """All that was read, by the collection's learned ranking for the session's own question.

    The ranking is that of a query that starts from the pool as well, so what a round adds competes with what was
    there by the same weights.
    """
    pool = [*state.pool, *found]
    read = dict.fromkeys(
        [*state.ranked, *(passage.id for query in asked for passage in query.passages)]
        + [sentence.passage_id for sentence in found]
    )
    said = coverage(state.question, [sentence.text for sentence in pool])
    if not state.rounds and len(asked) == 1 and asked[0].text == state.question:
        return Ordered([passage.id for passage in asked[0].passages], asked[0].enough, said)
    seen = tools.look(state.question, top_k=LOOKED_AT, pool=[sentence.sentence_id for sentence in pool])
    order = {passage: at for at, (passage, _) in enumerate(seen.ranking.ordered)}
    ranked = sorted(read, key=lambda passage: order.get(passage, len(order)))
    enough = seen.ranking.enough
    return Ordered(ranked, None if enough is None else enough.probability, said)


def stops(state: SessionState, ordered: Ordered, by_planner: StopReason | None) -> StopReason | None:
    """Whether the session's rule stops it after this round, and why.

    Args:
        by_planner: what the planner itself would stop by.
    """
    rule = state.asked.stop
    is_enough = ordered.enough is not None and ordered.enough >= state.asked.threshold
    if rule in ("rounds", "llm"):
        return None
    if rule == "enough":
        return "enough" if is_enough else None
    if rule == "covered":
        return "covered" if ordered.covered >= 1.0 else None
    return by_planner or ("enough" if is_enough else None)
