"""Rules of sessions without an LLM: the order of passages, and the coverage of the question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engram.core.ranking.coverage import coverage
from engram.core.ranking.sufficiency import EVIDENCE_PASSAGES
from engram.wings.sessions.core.pool_ranking import order
from engram.wings.sessions.core.session import Note, PoolSentence, StopReason
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.session_tools import AskedQuery


@dataclass(frozen=True, slots=True)
class OrderedPassages:
    """The passages that were read, best first, and what that comes to.

    Attributes:
        sufficiency: probability that the first five of the session's own question hold all the evidence; None where
            features do not rank, or that was not asked in this round.
        covered: of the question's words, what the pool names, in [0, 1].
    """

    ranked: list[int]
    sufficiency: float | None
    covered: float


def rank_by_rules(
    state: SessionState, queries: Sequence[AskedQuery], evidence: Sequence[PoolSentence], notes: Sequence[Note] = ()
) -> OrderedPassages:
    """Rank all passages read, see ``wings.sessions.core.pool_ranking``; the caller's passages come last.

    Args:
        notes: of this round, besides those that there are.
    """
    holder = {sentence.sentence_id: sentence.passage_id for sentence in (*state.pool, *evidence)}
    bound = [one for note in (*state.notes, *notes) if note.kind == "binding" for one in note.cites]
    binding = {holder[sentence] for sentence in bound if sentence in holder}
    lists = [(text, scored) for one in state.rounds for text, scored in _read_passages(one.said)]
    lists += [(query.text, [(passage.id, passage.score) for passage in query.passages]) for query in queries]
    own: Sequence[tuple[int, float]] = next((scored for text, scored in lists if text == state.question), ())
    telling = {passage for one in state.rounds for passage in one.said.get("telling", ())}
    telling |= {passage.id for query in queries for passage in query.passages if passage.binds > 0}
    ranked = order(own, [scored for text, scored in lists if text != state.question], binding, telling)
    brought = [one.passage_id for one in (*state.pool, *evidence)]
    covered_share = coverage(state.question, [sentence.text for sentence in (*state.pool, *evidence)])
    enough = next((query.sufficiency for query in queries if query.text == state.question), None)
    return OrderedPassages(list(dict.fromkeys([*ranked, *brought])), enough, covered_share)


def move_evidence_first(ordered: Sequence[int], pool: Sequence[PoolSentence]) -> list[int]:
    """The passages that have a sentence in the pool before those that have none, as a model that sifted them
    judges.
    """
    holding = {sentence.passage_id for sentence in pool}
    return sorted(ordered, key=lambda passage: passage not in holding)


def stops(
    state: SessionState, ordered: OrderedPassages, planner_stop: StopReason | None, *, doubtful: bool = False
) -> StopReason | None:
    """Whether the session's rule stops it after this round, and why.

    Args:
        planner_stop: what the planner itself would stop by.
        doubtful: whether the planner sees no answer in what was read; then it does not stop by ``sufficiency``.
    """
    rule = state.request.stop
    # It is said of the first five, whoever read fewer: what is among the others may be what is missing.
    sufficiency = ordered.sufficiency if state.request.top_k >= EVIDENCE_PASSAGES else None
    is_enough = sufficiency is not None and sufficiency >= state.request.at_least
    if rule in ("rounds", "llm", "published"):
        return None
    if rule == "sufficiency":
        return "sufficiency" if is_enough else None
    if rule == "covered":
        return "covered" if ordered.covered >= 1.0 else None
    return "sufficiency" if is_enough and not doubtful and planner_stop in (None, "found") else planner_stop


def _read_passages(details: Mapping[str, Any]) -> list[tuple[str, list[tuple[int, float]]]]:
    """The queries of a round that was made, each with what it showed."""
    return [
        (text, [(passage, score) for passage, score in scored])
        for text, scored in zip(details.get("queries", ()), details.get("shown", ()), strict=False)
    ]
