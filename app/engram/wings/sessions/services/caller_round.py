"""A round as a caller wants it: with a sub-question of its own, with evidence of its own, or with both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engram.wings.sessions.core.curation import curate
from engram.wings.sessions.core.session import CurationCounts, Gap, PoolSentence
from engram.wings.sessions.services.planner import SessionStep
from engram.wings.sessions.services.session_rules import rank_by_rules
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.session_tools import StepTools


@dataclass(frozen=True, slots=True)
class CallerRound:
    """Requests of the caller for one round; empty leaves everything to the planner."""

    question: str | None = None
    evidence: Sequence[int] = ()

    @property
    def says(self) -> bool:
        """Whether it is more than "go on"."""
        return self.question is not None or bool(self.evidence)


def read_caller_round(payload: Mapping[str, Any]) -> CallerRound | None:
    """Read the caller's round of a job's payload; None lets the session run to its end."""
    round_payload = payload.get("round")
    return (
        None
        if round_payload is None
        else CallerRound(round_payload.get("question"), tuple(round_payload.get("evidence", ())))
    )


def run_caller_round(state: SessionState, tools: StepTools, caller_round: CallerRound) -> SessionStep:
    """Ask the caller's sub-question, and put its evidence into the pool."""
    brought = _collect_evidence(state, tools, caller_round)
    pool = [*state.pool, *brought]
    queries = (
        []
        if caller_round.question is None
        else [tools.ask(caller_round.question, pool=[one.sentence_id for one in pool])]
    )
    evidence, curated = tools.curate_sentences(queries, pool=pool)
    lost = len(caller_round.evidence) - len(brought)
    evidence = [*brought, *evidence]
    ranking = rank_by_rules(state, queries, evidence)
    return SessionStep(
        action="given",
        sub_question=caller_round.question,
        gap=None if caller_round.question is None else Gap(caller_round.question),
        queries=queries,
        sentences=evidence,
        curated=curated + CurationCounts(kept=len(brought), exact=lost),
        ranked=ranking.ranked,
        sufficiency=ranking.sufficiency,
        covered=ranking.covered,
    )


def _collect_evidence(state: SessionState, tools: StepTools, caller_round: CallerRound) -> list[PoolSentence]:
    """The caller's sentences that there are and that the pool has not, of passages that may still be read."""
    sentence_ids = [
        sentence for sentence in caller_round.evidence if sentence not in {one.sentence_id for one in state.pool}
    ]
    stored = tools.sentences(sentence_ids)
    allowed = set(tools.meter.reads(list(dict.fromkeys(one.passage_id for one in stored))))
    allowed_sentences = [one for one in stored if one.passage_id in allowed]
    curated_places = curate(
        [one.text for one in allowed_sentences], [one.text for one in state.pool]
    ).kept_positions
    return [
        PoolSentence(one.id, one.passage_id, one.text, state.number, None)
        for one in (allowed_sentences[at] for at in curated_places)
    ]
